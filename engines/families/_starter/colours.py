"""Colour words, and whether the pixels of an object show one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

COLOUR_WORDS = {
    "red": "red",
    "scarlet": "red",
    "crimson": "red",
    "orange": "orange",
    "yellow": "yellow",
    "golden": "golden",
    "green": "green",
    "blue": "blue",
    "purple": "purple",
    "violet": "purple",
    "pink": "pink",
    "magenta": "pink",
    "brown": "brown",
    "black": "black",
    "white": "white",
    "gray": "gray",
    "grey": "gray",
    "silver": "gray",
}
"""Word → the colour it is decided as."""

_ENOUGH = 0.25
_HUES = {
    # degrees of hue; a range that passes 360 goes on from 0
    "red": (340, 18),
    "orange": (12, 44),
    "golden": (22, 62),
    "yellow": (40, 70),
    "green": (70, 170),
    "blue": (170, 258),
    "purple": (250, 315),
    "pink": (295, 350),
}


def has_colour(rgb: NDArray[Any], colour: str) -> bool:
    """Whether at least a quarter of the (N, 3) uint8 RGB pixels show the colour."""
    return rgb.shape[0] > 0 and float(_shows(rgb, colour).mean()) >= _ENOUGH


def _shows(rgb: NDArray[Any], colour: str) -> NDArray[np.bool_]:
    hue, saturation, value = _hue_saturation_value(rgb)
    if colour == "black":
        return np.asarray(value < 0.28)
    if colour == "white":
        return np.asarray((value > 0.72) & (saturation < 0.2))
    if colour == "gray":
        return np.asarray((value >= 0.28) & (value <= 0.8) & (saturation < 0.2))
    vivid = (saturation > 0.3) & (value > 0.2)
    if colour == "brown":
        return np.asarray((hue > 5) & (hue < 45) & (saturation > 0.2) & (value > 0.12) & (value < 0.7))
    low, high = _HUES[colour]
    between = (hue >= low) & (hue <= high) if low < high else (hue >= low) | (hue <= high)
    return np.asarray(between & vivid)


def _hue_saturation_value(rgb: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Hue in degrees, saturation and value in [0, 1], each float32 [N]."""
    import cv2

    hsv = cv2.cvtColor(rgb.reshape(1, -1, 3).astype(np.float32) / 255, cv2.COLOR_RGB2HSV)[0]
    return hsv[:, 0], hsv[:, 1], hsv[:, 2]
