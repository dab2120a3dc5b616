"""Joins the parts of an object to one closed outline, for formats that take one polygon for each object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def one_outline(parts: Sequence[Sequence[float]]) -> list[float]:
    """Flat polygons [x1, y1, …] → one flat polygon that walks over bridges between nearest corners, forth and back.

    A bridge encloses nothing: filled, the outline is the union of the parts. Nearest parts are joined first.
    """
    rings = [np.asarray(part, dtype=np.float64).reshape(-1, 2) for part in parts]
    outline, rest = rings[0], rings[1:]
    while rest:
        bridges = [_shortest(outline, ring) for ring in rest]
        nearest = min(range(len(rest)), key=lambda place: bridges[place][0])
        _, here, there = bridges[nearest]
        outline = _joined(outline, here, rest.pop(nearest), there)
    return [float(value) for value in outline.reshape(-1)]


def _shortest(outline: NDArray[np.float64], ring: NDArray[np.float64]) -> tuple[float, int, int]:
    """Squared length and the two corners of the shortest bridge."""
    best = (np.inf, 0, 0)
    for there, corner in enumerate(ring):
        distance = ((outline - corner) ** 2).sum(axis=1)
        here = int(distance.argmin())
        best = min(best, (float(distance[here]), here, there))
    return best


def _joined(outline: NDArray[np.float64], here: int, ring: NDArray[np.float64], there: int) -> NDArray[np.float64]:
    around = np.concatenate((ring[there:], ring[: there + 1]))
    return np.concatenate((outline[: here + 1], around, outline[here:]))
