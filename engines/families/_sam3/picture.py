"""The picture as the vision graph takes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def stretched(rgb: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """(H, W, 3) RGB → [1, 3, side, side], both sides stretched alike or not, bilinear with antialias.

    Pillow's filter stays within 2 grey levels of the one in training; OpenCV has no antialiased bilinear filter, and
    reducing large pictures first leaves these bounds on fine patterns.
    """
    return stretched_to(rgb, side, side)


def stretched_to(rgb: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The same to a size that need not be square: [1, 3, height, width]."""
    small = Image.fromarray(rgb).resize((width, height), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1)[None])
