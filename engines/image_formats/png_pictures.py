"""PNG by Pillow, with the checks that Pillow leaves out."""

from __future__ import annotations

import io

import numpy as np
from PIL.PngImagePlugin import PngImageFile

from engines.image_formats.deep_colour import rgb_from_16_bit_colours
from engines.image_formats.frames import first_of
from engines.image_formats.picture import OpenedPicture, Pixels
from engines.image_formats.pillow_pixels import rgb_from_pillow
from engines.image_formats.png_stream import (
    HEADER_BYTES,
    bits_per_channel,
    count_frames,
    has_all_rows,
    has_end,
    has_sound_checksums,
    is_interlaced,
    only_pixels,
    png_orientation,
    png_size,
)
from engines.image_formats.source import CUT_OFF, PictureSource


def open_png(source: PictureSource) -> OpenedPicture:
    """PNG, and the first frame of an animated one."""
    height, width = png_size(source.stream.read(HEADER_BYTES))
    return OpenedPicture(height, width, lambda: _decode(source), png_orientation(source.stream))


def _decode(source: PictureSource) -> Pixels:
    data = source.data or b""
    _refuse_unsound(source, data)
    pixels = only_pixels(data)
    image = PngImageFile(io.BytesIO(pixels), "")
    image.load()
    if (is_interlaced(data) or _ends_black(image)) and not has_all_rows(data):
        raise source.refusal(CUT_OFF)
    if bits_per_channel(data) == 16 and image.mode in ("RGB", "RGBA"):
        rgb, notes = rgb_from_16_bit_colours(image, lambda: PngImageFile(io.BytesIO(pixels), ""))
    else:
        rgb, notes = rgb_from_pillow(image)
    return rgb, notes + first_of(count_frames(data), "frames")


def _refuse_unsound(source: PictureSource, data: bytes) -> None:
    if not has_sound_checksums(data):
        raise source.refusal("the PNG data is damaged (a checksum is wrong); copy or download it again")
    if not has_end(data):
        raise source.refusal(CUT_OFF)


def _ends_black(image: PngImageFile) -> bool:
    """Rows that were never written are zero."""
    width = min(image.width, 4096)
    return not np.asarray(image.crop((0, image.height - 1, width, image.height))).any()
