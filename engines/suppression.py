"""Greedy suppression of repeated instances, the same rule for boxes and for masks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ABOVE_ROUNDING = 1 + 1e-12
"""An intersection computed back from the IoU can exceed the true one by the last bits of a float64."""


def keep_best(
    iou: NDArray[np.float64], area: NDArray[np.float64], iou_limit: float | None, containment_limit: float | None
) -> list[int]:
    """Indices that stay, given the IoU [n, n] and area [n] of things that come best first.

    One goes if its IoU with a kept better one is above `iou_limit`, or if more than the share `containment_limit` of
    it lies inside a kept better one; None switches a rule off.
    """
    repeats = np.zeros(iou.shape, dtype=bool)
    if iou_limit is not None:
        repeats |= iou > iou_limit
    if containment_limit is not None:
        intersection = iou / (1 + iou) * (area[:, None] + area[None, :])
        repeats |= intersection > containment_limit * area[None, :] * _ABOVE_ROUNDING
    kept: list[int] = []
    dropped = np.zeros(len(area), dtype=bool)
    for index in range(len(area)):
        if not dropped[index]:
            kept.append(index)
            dropped |= repeats[index]
    return kept
