"""The formats that Pillow reads by itself. Its decoders are called directly: `Image.open` has a limit of its own."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    Jpeg2KImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    WebPImagePlugin,
)

from engines.image_formats.deep_colour import rgb_from_16_bit_colours
from engines.image_formats.frames import first_of
from engines.image_formats.gif_stream import count_gif_frames, gif_size
from engines.image_formats.interrupted_copy import is_zero_filled
from engines.image_formats.jpeg_stream import has_end, with_filler, without_early_end
from engines.image_formats.orientation import orientation_of
from engines.image_formats.picture import OpenedPicture, Pixels
from engines.image_formats.pillow_pixels import rgb_from_pillow
from engines.image_formats.png_stream import (
    bits_per_channel,
    has_all_rows,
    has_sound_checksums,
    is_interlaced,
    png_orientation,
)
from engines.image_formats.signature import ImageKind
from engines.image_formats.source import CUT_OFF, PictureSource
from engines.image_formats.webp_stream import webp_size

_MAX_GREY_DEVIATION = 1
_GIF_HEADER_BYTES = 1 << 20


def open_jpeg(source: PictureSource) -> OpenedPicture:
    """JPEG, and the first picture of an MPO file as phones and stereo cameras write it."""
    if source.data is not None:
        if not has_end(source.data):
            raise source.refusal(CUT_OFF)
        source = replace(source, stream=io.BytesIO(without_early_end(source.data)))
    image = JpegImagePlugin.jpeg_factory(source.stream, "")

    def decode() -> Pixels:
        image.load()
        if source.data is not None and _ends_grey(image) and _misses_data(image, source.data):
            raise source.refusal(CUT_OFF)
        rgb, notes = rgb_from_pillow(image)
        return rgb, notes + first_of(getattr(image, "n_frames", 1), "pictures")

    return _opened(source, image, decode)


def open_png(source: PictureSource) -> OpenedPicture:
    """PNG, and the first frame of an animated one."""
    image = PngImagePlugin.PngImageFile(source.stream, "")
    source.check_size(image.height, image.width)
    orientation = png_orientation(io.BytesIO(source.data) if source.data is not None else source.stream)
    return OpenedPicture(image.height, image.width, lambda: _decode_png(source, image), orientation)


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


def open_simple(factory: Callable[..., ImageFile.ImageFile]) -> Callable[[PictureSource], OpenedPicture]:
    """An opener for a format with one picture, no orientation and nothing else to look after."""

    def opener(source: PictureSource) -> OpenedPicture:
        image = factory(source.stream, "")
        return _opened(source, image, lambda: _with_frames(image, 1))

    return opener


open_bmp = open_simple(BmpImagePlugin.BmpImageFile)
open_jpeg_2000 = open_simple(Jpeg2KImagePlugin.Jpeg2KImageFile)
open_pnm = open_simple(PpmImagePlugin.PpmImageFile)


def _open_checking_tail(source: PictureSource, factory: Callable[..., ImageFile.ImageFile]) -> OpenedPicture:
    image = factory(source.stream, "")
    if source.data is not None and is_zero_filled(source.kind, source.data, image.height * image.width):
        raise source.refusal(CUT_OFF)
    return _opened(source, image, lambda: _with_frames(image, getattr(image, "n_frames", 1)))


def _opened(source: PictureSource, image: Image.Image, decode: Callable[[], Pixels]) -> OpenedPicture:
    source.check_size(image.height, image.width)
    orientation = orientation_of(image.info.get("exif"), image.info.get("xmp"))
    return OpenedPicture(image.height, image.width, decode, orientation)


def _with_frames(image: ImageFile.ImageFile, n_frames: int) -> Pixels:
    image.load()
    rgb, notes = rgb_from_pillow(image)
    return rgb, notes + first_of(n_frames, "frames")


def _decode_png(source: PictureSource, image: PngImagePlugin.PngImageFile) -> Pixels:
    data = source.data or b""
    if not has_sound_checksums(data):
        raise source.refusal(f"the {ImageKind.PNG} data is damaged (a checksum is wrong); copy or download it again")
    n_frames = getattr(image, "n_frames", 1)
    image.load()
    if (is_interlaced(data) or _ends_black(image)) and not has_all_rows(data):
        raise source.refusal(CUT_OFF)
    is_deep_colour = bits_per_channel(data) == 16 and image.mode in ("RGB", "RGBA")
    rgb, notes = rgb_from_16_bit_colours(image, data) if is_deep_colour else rgb_from_pillow(image)
    return rgb, notes + first_of(n_frames, "frames")


def _ends_black(image: Image.Image) -> bool:
    """Rows that were never written are zero."""
    return not np.asarray(_last_row(image)).any()


def _ends_grey(image: Image.Image) -> bool:
    """Blocks that were never decoded are mid grey, or nearly so after rounding."""
    end = np.asarray(_last_row(image)).astype(np.int16)[:, -8:]
    return bool((np.abs(end - 128) <= _MAX_GREY_DEVIATION).all())


def _misses_data(image: Image.Image, data: bytes) -> bool:
    filled = JpegImagePlugin.jpeg_factory(io.BytesIO(with_filler(data)), "")
    filled.load()
    return filled.tobytes() != image.tobytes()


def _last_row(image: Image.Image) -> Image.Image:
    return image.crop((max(0, image.width - 4096), image.height - 1, image.width, image.height))
