"""The formats that Pillow reads without much help. Its decoders are called directly: `Image.open` has its own limit."""

from __future__ import annotations

from collections.abc import Callable

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    Jpeg2KImagePlugin,
    PpmImagePlugin,
    WebPImagePlugin,
)

from engines.image_formats.frames import first_of
from engines.image_formats.gif_stream import count_gif_frames, gif_size
from engines.image_formats.interrupted_copy import is_zero_filled
from engines.image_formats.orientation import orientation_of
from engines.image_formats.picture import OpenedPicture, Pixels
from engines.image_formats.pillow_pixels import rgb_from_pillow
from engines.image_formats.source import CUT_OFF, PictureSource
from engines.image_formats.webp_stream import webp_size

_GIF_HEADER_BYTES = 1 << 20
_JPEG_2000_START, _JPEG_2000_END = b"\xff\x4f\xff\x51", b"\xff\xd9"


def open_gif(source: PictureSource) -> OpenedPicture:
    """The first frame of a GIF."""
    source.check_size(*gif_size(source.stream.read(_GIF_HEADER_BYTES)))
    source.stream.seek(0)
    image = GifImagePlugin.GifImageFile(source.stream, "")
    return _opened(source, image, lambda: _with_frames(image, count_gif_frames(source.data or b"")))


def open_webp(source: PictureSource) -> OpenedPicture:
    """The first frame of a WebP."""
    size = webp_size(source.stream.read(32))
    source.stream.seek(0)
    if size is not None:
        source.check_size(*size)
    return _open_checking_tail(source, WebPImagePlugin.WebPImageFile)


def open_avif(source: PictureSource) -> OpenedPicture:
    """The first frame of an AVIF, of the depths that Pillow's own decoder knows."""
    return _open_checking_tail(source, AvifImagePlugin.AvifImageFile)


def open_jpeg_2000(source: PictureSource) -> OpenedPicture:
    """JPEG 2000. Its decoder shows what there is of a cut file, so the end marker has to be there."""
    if source.data is not None and source.data.find(_JPEG_2000_END, source.data.find(_JPEG_2000_START)) < 0:
        raise source.refusal(CUT_OFF)
    image = Jpeg2KImagePlugin.Jpeg2KImageFile(source.stream, "")
    return _opened(source, image, lambda: _with_frames(image, 1))


def open_simple(factory: Callable[..., ImageFile.ImageFile]) -> Callable[[PictureSource], OpenedPicture]:
    """An opener for a format with one picture, no orientation and nothing else to look after."""

    def opener(source: PictureSource) -> OpenedPicture:
        image = factory(source.stream, "")
        return _opened(source, image, lambda: _with_frames(image, 1))

    return opener


open_bmp = open_simple(BmpImagePlugin.BmpImageFile)
open_pnm = open_simple(PpmImagePlugin.PpmImageFile)


def _open_checking_tail(source: PictureSource, factory: Callable[..., ImageFile.ImageFile]) -> OpenedPicture:
    image = factory(source.stream, "")
    if source.data is not None and is_zero_filled(source.kind, source.data, image.height * image.width):
        raise source.refusal(CUT_OFF)
    return _opened(source, image, lambda: _with_frames(image, getattr(image, "n_frames", 1)))


def _opened(source: PictureSource, image: Image.Image, decode: Callable[[], Pixels]) -> OpenedPicture:
    orientation = orientation_of(image.info.get("exif"), image.info.get("xmp"))
    return OpenedPicture(image.height, image.width, decode, orientation)


def _with_frames(image: ImageFile.ImageFile, n_frames: int) -> Pixels:
    image.load()
    rgb, notes = rgb_from_pillow(image)
    return rgb, notes + first_of(n_frames, "frames")
