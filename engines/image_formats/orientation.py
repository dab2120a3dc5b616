"""Which way up a picture is, and turning it. The tag is read by hand: decoders stumble over bad EXIF, or warn of it."""

from __future__ import annotations

import re
import struct

import numpy as np
from numpy.typing import NDArray

UPRIGHT = 1

# As OpenCV names them: 1 left and right, 0 top and bottom, -1 both.
_FLIPS = {2: 1, 3: -1, 4: 0}
_FLIPS_AFTER_TRANSPOSING = {6: 1, 7: -1, 8: 0}
_ORIENTATION_TAG = 0x0112
_NUMBER_FORMATS = {1: "B", 3: "H", 4: "I"}
_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([1-8])\b')


def orientation_of(exif: bytes | None, xmp: bytes | None = None) -> int:
    """The orientation 1 to 8 by EXIF, else by XMP; 1 (upright) if there is none, or an illegal or unreadable one."""
    found = _exif_orientation(exif) if exif else None
    if found is None and xmp and (match := _XMP_ORIENTATION.search(xmp)):
        found = int(match[1])
    return legal_orientation(found)


def legal_orientation(number: int | None) -> int:
    """The orientation itself if it is one, else 1."""
    return int(number) if number is not None and 1 <= number <= 8 else UPRIGHT


def swaps_sides(orientation: int) -> bool:
    """Whether turning a picture upright swaps its height and width."""
    return orientation >= 5


def turn_upright(pixels: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """The (H, W, C) picture as it is meant to be seen; the same array if it stands upright already."""
    if orientation == UPRIGHT:
        return pixels
    import cv2  # four times as fast here as NumPy

    if orientation in _FLIPS:
        return np.asarray(cv2.flip(pixels, _FLIPS[orientation]), dtype=np.uint8)
    turned = np.asarray(cv2.transpose(pixels), dtype=np.uint8)
    if orientation in _FLIPS_AFTER_TRANSPOSING:
        cv2.flip(turned, _FLIPS_AFTER_TRANSPOSING[orientation], dst=turned)
    return turned


def _exif_orientation(exif: bytes) -> int | None:
    tiff = exif.removeprefix(b"Exif\0\0")
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return None
    try:
        return _orientation_entry(tiff, order)
    except struct.error:
        return None


def _orientation_entry(tiff: bytes, order: str) -> int | None:
    (directory,) = struct.unpack_from(order + "I", tiff, 4)
    (n_entries,) = struct.unpack_from(order + "H", tiff, directory)
    for entry in range(n_entries):
        start = directory + 2 + 12 * entry
        tag, number_type, count = struct.unpack_from(order + "HHI", tiff, start)
        if tag == _ORIENTATION_TAG and count == 1 and number_type in _NUMBER_FORMATS:
            return int(struct.unpack_from(order + _NUMBER_FORMATS[number_type], tiff, start + 8)[0])
    return None
