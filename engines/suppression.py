"""Greedy suppression of repeated instances, the same rule for boxes and for masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ABOVE_ROUNDING = 1 + 1e-12
"""A share computed back from a quotient can exceed the true one by the last bits of a float64."""


@dataclass(frozen=True)
class SuppressionLimits:
    """When one thing repeats a better one. Limits are shares in [0, 1]; None, or 1, switches a rule off."""

    iou: float | None = None
    """It does if the IoU of the two is above this."""
    containment: float | None = None
    """It does if more than this share of it lies inside the better one."""

    @property
    def active(self) -> bool:
        """Whether anything can be a repeat."""
        return any(limit is not None and limit < 1 for limit in (self.iou, self.containment))

    def repeated(
        self, intersection: NDArray[np.float64], area: NDArray[np.float64], better_area: float | NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Which of n things repeat a better one, by what they share with it and their areas, all in pixels, [n].

        An intersection that is too large finds at least all that the true one finds.
        """
        found = np.zeros(len(area), dtype=bool)
        if self.iou is not None:
            found |= intersection > self.iou * (area + better_area - intersection) * _ABOVE_ROUNDING
        if self.containment is not None:
            found |= intersection > self.containment * area * _ABOVE_ROUNDING
        return found


def keep_best(n: int, repeats: Callable[[int, NDArray[np.int64]], NDArray[np.bool_]]) -> list[int]:
    """Indices that stay of `n` things that come best first: each one kept drops the later ones that repeat it.

    `repeats` says which of the things [m] at the given indices repeat the one at an index; it is not asked about
    those dropped before.
    """
    kept: list[int] = []
    waiting = np.arange(n)
    while waiting.size:
        best, others = int(waiting[0]), waiting[1:]
        kept.append(best)
        waiting = others[~repeats(best, others)] if others.size else others
    return kept
