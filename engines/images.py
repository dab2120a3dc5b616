"""The one place where a picture is opened: any file becomes upright 8-bit RGB, or is refused with one sentence.

docs/images.md states the rules. How each format is read stands in `engines.image_formats`.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engines.image_formats.openers import open_picture
from engines.image_formats.orientation import UPRIGHT, turn_upright
from engines.image_formats.source import PictureSource, decoder_failures, opened_file, read_whole
from engines.image_search import IMAGE_SUFFIXES, find_images

__all__ = [
    "IMAGE_SUFFIXES",
    "MAX_PIXELS",
    "ReadImage",
    "find_images",
    "image_size",
    "is_stored_upright",
    "read_image",
    "write_preview",
]

MAX_PIXELS = 256_000_000
"""Every camera's picture fits (the largest phone sensors have 200 MP), and its RGB takes at most 768 MB."""

PreviewFormat = Literal["WEBP", "JPEG"]
_PREVIEW_OPTIONS: dict[PreviewFormat, dict[str, int]] = {"WEBP": {"quality": 82, "method": 2}, "JPEG": {"quality": 87}}
_MAX_PREVIEW_PX = 16383


@dataclass(frozen=True)
class ReadImage:
    """A picture as it is meant to be seen.

    `rgb` is (H, W, 3) uint8, upright, contiguous and not writeable. `sha256` is of the file's bytes, as hexadecimal
    text. `notes` say, each in a few words for a person, what was left out or changed: "first of 5 frames".
    """

    rgb: NDArray[np.uint8]
    sha256: str
    notes: tuple[str, ...]


def read_image(path: Path, max_pixels: int = MAX_PIXELS) -> ReadImage:
    """Read a picture of any known format; its content decides, not its suffix, and its bytes are read once.

    Raises UnreadableImageError (no picture, empty, cut off, damaged, not there, no permission), ImageTooLargeError
    (before any pixel is decoded) or MissingImageLibraryError (an optional package would read it).
    """
    with opened_file(path) as (file, kind):
        data = read_whole(path, file)
    with decoder_failures(path, kind), io.BytesIO(data) as stream:
        picture = open_picture(PictureSource(path, kind, stream, data, max_pixels))
        orientation, upright_size = picture.orientation, picture.upright_size
        stored, notes = picture.decode()
        del picture  # with the decoder's own copy of the pixels
        rgb = np.ascontiguousarray(turn_upright(stored, orientation))
        if rgb.shape != (*upright_size, 3):
            raise ValueError("the pixels do not fit the header")
    rgb.flags.writeable = False
    return ReadImage(rgb, hashlib.sha256(data).hexdigest(), notes)


def image_size(path: Path, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Height and width in pixels of the upright picture, from its header alone.

    Raises as `read_image` does, except that damaged or missing pixels are not noticed.
    """
    with opened_file(path) as (file, kind), decoder_failures(path, kind):
        return open_picture(PictureSource(path, kind, file, None, max_pixels)).upright_size


def is_stored_upright(path: Path, max_pixels: int = MAX_PIXELS) -> bool:
    """Whether the stored pixels stand as the picture is meant to be seen. Raises as `image_size`."""
    with opened_file(path) as (file, kind), decoder_failures(path, kind):
        return open_picture(PictureSource(path, kind, file, None, max_pixels)).orientation == UPRIGHT


def write_preview(
    rgb: NDArray[np.uint8], path: Path, long_side_px: int, format: PreviewFormat = "WEBP"
) -> tuple[int, int]:
    """Write a copy of an (H, W, 3) uint8 RGB picture for display, with no side longer than `long_side_px`.

    Small pictures keep their size. The file appears whole or not at all. Returns its height and width. Raises
    ValueError for a side that no format can hold, and OSError if the file cannot be written.
    """
    if not 1 <= long_side_px <= _MAX_PREVIEW_PX:
        raise ValueError(f"the long side of a preview must be 1 to {_MAX_PREVIEW_PX} pixels, not {long_side_px}")
    small = _shrunk(rgb, long_side_px)
    encoded = io.BytesIO()
    Image.fromarray(small).save(encoded, format, **_PREVIEW_OPTIONS[format])
    _replace_file(path, encoded.getvalue())
    return small.shape[0], small.shape[1]


def _shrunk(rgb: NDArray[np.uint8], long_side_px: int) -> NDArray[np.uint8]:
    height, width = rgb.shape[:2]
    scale = long_side_px / max(height, width)
    if scale >= 1:
        return rgb
    import cv2  # areas are averaged several times faster than by Pillow

    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _replace_file(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
