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
    square = Image.fromarray(rgb).resize((side, side), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(square).transpose(2, 0, 1)[None])
