"""Colour pictures of 16 bits a channel, of which Pillow keeps only the high byte: too little where they are dark."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engines.image_formats.depth import scale_to_8bit
from engines.image_formats.orientation import UPRIGHT, turn_upright
from engines.image_formats.picture import Pixels
from engines.image_formats.pillow_pixels import rgb_from_pillow

_BRIGHT_HIGH_BYTE = 64
"""A value of more than 14 bits: the full scale is 65535, and the high byte is the 8-bit value."""


def rgb_from_16_bit_colours(image: Image.Image, data: bytes, orientation: int = UPRIGHT) -> Pixels:
    """The pixels of a loaded RGB(A) picture with 16 bits a channel, by the rule of `scale_to_8bit`.

    `orientation` is what Pillow has turned the picture by. Where the file cannot be read deeper than Pillow does, its
    8 bits are all there is.
    """
    key_colour = image.info.pop("transparency", None)
    high_bytes = np.asarray(image)
    if key_colour is not None or high_bytes[..., :3].max(initial=0) < _BRIGHT_HIGH_BYTE:
        values = _all_16_bits(data, high_bytes[..., :3], orientation)
        if values is not None:
            return _scaled(values, _alpha(values, high_bytes, key_colour))
    return rgb_from_pillow(image)


def _scaled(values: NDArray[np.uint16], alpha: NDArray[np.uint8] | None) -> Pixels:
    colours, note = scale_to_8bit(values)
    rgb, notes = rgb_from_pillow(Image.fromarray(colours if alpha is None else np.dstack([colours, alpha])))
    return rgb, (note, *notes) if note else notes


def _alpha(values: NDArray[np.uint16], high_bytes: NDArray[np.uint8], key_colour: Any) -> NDArray[np.uint8] | None:
    if high_bytes.shape[2] == 4:
        return high_bytes[..., 3]
    if not isinstance(key_colour, tuple):
        return None
    return np.where((values == np.asarray(key_colour)).all(axis=2), np.uint8(0), np.uint8(255))


def _all_16_bits(data: bytes, high_bytes: NDArray[np.uint8], orientation: int) -> NDArray[np.uint16] | None:
    """The (H, W, 3) values in the order RGB; None unless their high bytes are those that Pillow has verified."""
    import cv2

    decoded = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
    if decoded is None or decoded.dtype != np.uint16 or decoded.ndim != 3 or decoded.shape[2] < 3:
        return None
    values: NDArray[np.uint16] = np.ascontiguousarray(decoded[..., [2, 1, 0]])
    for candidate in (values, turn_upright(values, orientation)):
        if np.array_equal(candidate >> 8, high_bytes):
            return candidate
    return None
