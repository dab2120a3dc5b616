"""TIFF: by Pillow where it can, else by tifffile, which knows floats of any size, planes, stacks and many bands."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin

from engines.errors import MissingImageLibraryError
from engines.image_formats.deep_colour import rgb_from_16_bit_colours
from engines.image_formats.depth import scale_between, scale_to_8bit
from engines.image_formats.frames import first_of
from engines.image_formats.orientation import UPRIGHT, legal_orientation
from engines.image_formats.picture import OpenedPicture, Pixels
from engines.image_formats.pillow_pixels import rgb_from_pillow, rgb_from_values
from engines.image_formats.source import CUT_OFF, PictureSource
from engines.image_formats.tiff_stream import count_tiff_pages, has_whole_first_directory

_BITS_PER_SAMPLE, _COMPRESSION, _PHOTOMETRIC, _ORIENTATION, _SAMPLE_FORMAT = 258, 259, 262, 274, 339
_STRIPS_AND_TILES = ((273, 279), (324, 325))
_PLAIN = 1
_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB = 0, 1, 2
_UNSIGNED, _SIGNED = 1, 2
_MAX_BYTES_PER_PIXEL = 8


def open_tiff(source: PictureSource) -> OpenedPicture:
    """The first page of a TIFF."""
    if source.data is not None and not has_whole_first_directory(source.data):
        raise source.refusal(CUT_OFF)
    try:
        image = TiffImagePlugin.TiffImageFile(source.stream, "")
    except SyntaxError:
        return _open_by_tifffile(source)
    source.check_size(image.height, image.width)
    if Image.MAX_IMAGE_PIXELS and image.height * image.width > 2 * Image.MAX_IMAGE_PIXELS:
        return _open_by_tifffile(source)  # Pillow's own limit, which it holds only TIFF to when it decodes
    return OpenedPicture(image.height, image.width, lambda: _decode_by_pillow(source, image))


def _decode_by_pillow(source: PictureSource, image: TiffImagePlugin.TiffImageFile) -> Pixels:
    tags, data = dict(image.tag_v2), source.data or b""
    # Of packed data the decoder does not miss the last bytes; of plain data it does, whatever these tags say.
    if tags.get(_COMPRESSION, _PLAIN) != _PLAIN and _reaches_beyond(tags, len(data)):
        raise source.refusal(CUT_OFF)
    image.load()  # also turns the picture upright and drops the tag
    bits, sample_format = _numbers(tags.get(_BITS_PER_SAMPLE, 8))[0], _numbers(tags.get(_SAMPLE_FORMAT, _UNSIGNED))[0]
    if bits == 16 and image.mode in ("RGB", "RGBA"):
        rgb, notes = rgb_from_16_bit_colours(image, lambda: TiffImagePlugin.TiffImageFile(io.BytesIO(data), ""))
    elif image.mode.startswith(("I", "F")) or (image.mode == "L" and sample_format == _SIGNED):
        values = _true_type(np.asarray(image), bits, sample_format)
        rgb, notes = rgb_from_values(values, zero_is_white=tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO)
    else:
        rgb, notes = rgb_from_pillow(image)
    return rgb, notes + first_of(count_tiff_pages(data), "pages")


def _reaches_beyond(tags: dict[int, Any], n_bytes: int) -> bool:
    return any(
        start + length > n_bytes
        for starts, lengths in _STRIPS_AND_TILES
        for start, length in zip(_numbers(tags.get(starts, ())), _numbers(tags.get(lengths, ())), strict=False)
    )


def _numbers(tag: Any) -> tuple[int, ...]:
    return tag if isinstance(tag, tuple) else (int(tag),)


def _true_type(values: NDArray[Any], bits: int, sample_format: int) -> NDArray[Any]:
    """Pillow reads the bits of these two types right and their signs wrong."""
    if values.dtype == np.int32 and bits == 32 and sample_format == _UNSIGNED:
        return values.view(np.uint32)
    return values.view(np.int8) if values.dtype == np.uint8 else values


def _open_by_tifffile(source: PictureSource) -> OpenedPicture:
    try:
        import tifffile
    except ImportError as error:
        raise MissingImageLibraryError(source.path, "TIFF", "tifffile", "tiff") from error
    source.stream.seek(0)
    page = tifffile.TiffFile(source.stream).pages.first
    source.check_size(page.imagelength, page.imagewidth)
    orientation = legal_orientation(page.tags[_ORIENTATION].value if _ORIENTATION in page.tags else UPRIGHT)
    return OpenedPicture(page.imagelength, page.imagewidth, lambda: _decode_page(source, page), orientation)


def _decode_page(source: PictureSource, page: Any) -> Pixels:
    data = source.data or b""
    _refuse_unusable_page(source, page, len(data))
    bands = _bands_last(page)
    n_bands = bands.shape[2]
    notes = first_of(count_tiff_pages(data), "pages")
    has_alpha = n_bands in (2, 4) and bool(page.extrasamples)
    if n_bands == 1 or (n_bands == 2 and not has_alpha) or (n_bands > 4 and page.photometric != _RGB):
        notes += (f"band 1 of {n_bands} shown as gray",) if n_bands > 1 else ()
        rgb, more = rgb_from_values(bands[..., 0], zero_is_white=page.photometric == _WHITE_IS_ZERO)
        return rgb, more + notes
    colours, note = scale_to_8bit(bands[..., : 1 if n_bands == 2 else 3])
    alpha = [_opacity(bands[..., -1])] if has_alpha else []
    rgb, more = rgb_from_pillow(Image.fromarray(np.dstack([colours, *alpha])))
    return rgb, (*((note,) if note else ()), *more, *notes)


def _opacity(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Alpha by the full scale of its type: 1 for floats, the largest number for whole numbers."""
    return scale_between(values, 0, 1 if values.dtype.kind == "f" else np.iinfo(values.dtype).max)


def _refuse_unusable_page(source: PictureSource, page: Any, n_bytes: int) -> None:
    if page.nbytes > _MAX_BYTES_PER_PIXEL * source.max_pixels:
        raise source.refusal(f"its first page unpacks to {page.nbytes / 1e9:.1f} GB; keep fewer bands or scale it down")
    if page.photometric not in (_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB):
        raise source.refusal("the colours of this TIFF are of a kind that cannot be read; save it again as RGB")
    ends = (start + length for start, length in zip(page.dataoffsets, page.databytecounts, strict=False))
    if any(end > n_bytes for end in ends):
        raise source.refusal(CUT_OFF)


def _bands_last(page: Any) -> NDArray[Any]:
    """The page as (H, W, bands); of a stack in one page, its first slice."""
    pixels, axes = page.asarray(), page.axes
    if "Z" in axes:
        pixels, axes = np.take(pixels, 0, axis=axes.index("Z")), axes.replace("Z", "")
    order = {"YX": (), "YXS": (0, 1, 2), "SYX": (1, 2, 0)}[axes]
    return np.asarray(pixels[..., None] if not order else pixels.transpose(order))
