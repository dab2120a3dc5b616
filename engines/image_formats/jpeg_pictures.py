"""JPEG by Pillow, with the checks that Pillow leaves out."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import jpeg_factory

from engines.image_formats.frames import first_of
from engines.image_formats.jpeg_stream import has_end, with_filler, without_early_end
from engines.image_formats.orientation import orientation_of
from engines.image_formats.picture import OpenedPicture, Pixels
from engines.image_formats.pillow_pixels import rgb_from_pillow
from engines.image_formats.source import CUT_OFF, PictureSource

_BLOCK_PX = 8
_GREY_DEVIATION = 16
"""Decoders smooth blocks of which they know little, so that grey takes on some colour of its neighbours."""


def open_jpeg(source: PictureSource) -> OpenedPicture:
    """JPEG, and the first picture of an MPO file as phones and stereo cameras write it."""
    data, stream = source.data, source.stream
    if data is not None:
        if not has_end(data):
            raise source.refusal(CUT_OFF)
        stream = io.BytesIO(without_early_end(data))
    image = jpeg_factory(stream, "")
    orientation = orientation_of(image.info.get("exif"), image.info.get("xmp"))
    return OpenedPicture(image.height, image.width, lambda: _decode(source, image), orientation)


def _decode(source: PictureSource, image: Image.Image) -> Pixels:
    image.load()
    if _ends_grey(image) and _misses_data(image, source.data or b""):
        raise source.refusal(CUT_OFF)
    rgb, notes = rgb_from_pillow(image)
    return rgb, notes + first_of(getattr(image, "n_frames", 1), "pictures")


def _ends_grey(image: Image.Image) -> bool:
    """Blocks that were never decoded are mid grey, or nearly."""
    box = (max(0, image.width - _BLOCK_PX), image.height - 1, image.width, image.height)
    end = np.asarray(image.crop(box)).astype(np.int16)
    return bool((np.abs(end - 128) <= _GREY_DEVIATION).all())


def _misses_data(image: Image.Image, data: bytes) -> bool:
    """Whether bytes put before the end are used, which happens only if picture data are missing there."""
    filled = jpeg_factory(io.BytesIO(with_filler(data)), "")
    try:
        filled.load()
    except OSError:
        return True
    return filled.tobytes() != image.tobytes()
