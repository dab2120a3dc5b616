"""Masks as COCO polygons on pixel edges, computed from the run lengths alone.

The upper and lower edges of a column's runs are joined to horizontal segments, directed so that the mask lies to the
right of the walking direction; the vertical edges between them follow from sorting the segment ends. Pixels that touch
at a corner belong to one part. A hole is tied to the contour above it by a vertical bridge that is walked down and up
again (key-hole), so that one polygon holds a part with its holes and rasterises to exactly the same pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engines.masks import Mask
from engines.run_lengths import expand

Point = tuple[int, int]
"""x, y of a pixel corner: the pixel in row r and column c has its corners at (c, r) … (c + 1, r + 1)."""


def polygons(mask: Mask, tolerance_px: float = 0.0) -> list[list[float]]:
    """One flat polygon [x1, y1, x2, y2, …] for each part of the mask, on pixel edges, from top to bottom.

    With tolerance 0 the polygons rasterise (pycocotools, even-odd filling) to exactly the mask. A larger tolerance
    leaves out corners that stand off by at most so many pixels; a part too small for it keeps all its corners, so
    that every polygon has three points or more. An empty mask has no polygon.
    """
    runs = _column_runs(mask)
    rings = _keyholed(_segments(runs, mask.width), runs, mask)
    if tolerance_px > 0:
        rings = [_simplified(ring, tolerance_px) for ring in rings]
    return [[coordinate for point in ring.points for coordinate in point] for ring in rings]


@dataclass(frozen=True)
class _ColumnRuns:
    """The mask's runs cut at column ends, in column-major order: int64 [n] each, `bottom` exclusive."""

    x: NDArray[np.int64]
    top: NDArray[np.int64]
    bottom: NDArray[np.int64]


@dataclass(frozen=True)
class _Segments:
    """Maximal horizontal edges from `left` to `right` at height `y`, int64 [n] each, sorted by y, then x.

    `is_lower` is 0 for the upper edge of mask pixels, walked to the right, and 1 for a lower edge, walked to the left.
    """

    y: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    is_lower: NDArray[np.int64]


@dataclass(frozen=True)
class _Ring:
    """A closed walk over pixel corners, with the ends of its bridges, which must stay where they are."""

    points: list[Point] = field(default_factory=list)
    bridge_ends: set[Point] = field(default_factory=set)


def _column_runs(mask: Mask) -> _ColumnRuns:
    ends = np.cumsum(expand(mask.counts))
    starts, ends = ends[:-1:2], ends[1::2]
    starts, ends = starts[starts < ends], ends[starts < ends]
    first, last = starts // mask.height, (ends - 1) // mask.height
    n_columns = last - first + 1
    offset = np.arange(n_columns.sum()) - np.repeat(np.cumsum(n_columns) - n_columns, n_columns)
    x = np.repeat(first, n_columns) + offset
    top = np.maximum(np.repeat(starts, n_columns) - x * mask.height, 0)
    bottom = np.minimum(np.repeat(ends, n_columns) - x * mask.height, mask.height)
    return _ColumnRuns(x, top, bottom)


def _segments(runs: _ColumnRuns, width: int) -> _Segments:
    upper, lower = (_joined(runs.x, y, width) for y in (runs.top, runs.bottom))
    y, left, right = (np.concatenate(pair) for pair in zip(upper, lower, strict=True))
    is_lower = np.repeat([0, 1], [upper[0].size, lower[0].size])
    order = np.lexsort((left, y))
    return _Segments(y[order], left[order], right[order], is_lower[order])


def _joined(x: NDArray[np.int64], y: NDArray[np.int64], width: int) -> tuple[NDArray[np.int64], ...]:
    """y, left and right of the segments made of unit edges from (x, y) to (x + 1, y)."""
    places = np.sort(y * (width + 1) + x)  # one column more than the image, so that rows do not touch
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    first = places[np.concatenate(([0], breaks))] if places.size else places
    last = places[np.concatenate((breaks - 1, [places.size - 1]))] if places.size else places
    return first // (width + 1), first % (width + 1), last % (width + 1) + 1


def _next_segments(segments: _Segments, height: int) -> list[int]:
    """For each segment the one that is walked after it, over the vertical edge at its end."""
    n = segments.y.size
    x = np.concatenate((segments.left, segments.right))
    y = np.tile(segments.y, 2)
    # Where two pixels touch at a corner, two segments end in one point. The upper edge takes the vertical edge above
    # it and the lower edge the one below, which walks on from one pixel to the other: they are one part.
    order = np.argsort((x * (height + 1) + y) * 2 + np.tile(segments.is_lower, 2), kind="stable")
    is_end = np.concatenate((segments.is_lower == 1, segments.is_lower == 0))
    pairs = order.reshape(-1, 2)
    ends_first = is_end[pairs[:, 0]]
    ends = np.where(ends_first, pairs[:, 0], pairs[:, 1]) % n
    begins = np.where(ends_first, pairs[:, 1], pairs[:, 0]) % n
    following = np.empty(n, dtype=np.int64)
    following[ends] = begins
    return following.tolist()


def _walks(following: list[int]) -> list[list[int]]:
    """The closed walks, each a list of segments from its topmost, leftmost one."""
    walks: list[list[int]] = []
    walked = [False] * len(following)
    for first in range(len(following)):
        if not walked[first]:
            walk, segment = [], first
            while not walked[segment]:
                walked[segment] = True
                walk.append(segment)
                segment = following[segment]
            walks.append(walk)
    return walks


def _keyholed(segments: _Segments, runs: _ColumnRuns, mask: Mask) -> list[_Ring]:
    """The outer contours with their holes tied in, from top to bottom."""
    walks = _walks(_next_segments(segments, mask.height))
    is_lower = segments.is_lower.tolist()
    holes = [walk for walk in walks if is_lower[walk[0]]]
    hangs_on = _segments_above(segments, runs, [walk[0] for walk in holes], mask)
    tied: dict[int, list[_Ring]] = {}
    shape = list(zip(segments.y.tolist(), segments.left.tolist(), segments.right.tolist(), is_lower, strict=True))
    # A hole hangs on a contour that begins higher up: from the lowest hole on, each is whole before it is tied.
    for hole, above in sorted(zip(holes, hangs_on, strict=True), key=lambda pair: pair[0][0], reverse=True):
        tied.setdefault(above, []).append(_ring(hole, shape, tied))
    return [_ring(walk, shape, tied) for walk in walks if not is_lower[walk[0]]]


def _segments_above(segments: _Segments, runs: _ColumnRuns, tops: list[int], mask: Mask) -> list[int]:
    """For the top segment of each hole, the upper edge that is met when going up from its left end."""
    x, y = segments.left[tops], segments.y[tops]
    column_run = np.searchsorted(runs.x * (mask.height + 1) + runs.bottom, x * (mask.height + 1) + y)
    upper = np.flatnonzero(segments.is_lower == 0)
    upper_places = segments.y[upper] * (mask.width + 1) + segments.left[upper]
    wanted = runs.top[column_run] * (mask.width + 1) + x
    found: list[int] = upper[np.searchsorted(upper_places, wanted, side="right") - 1].tolist()
    return found


def _ring(walk: list[int], shape: list[tuple[int, int, int, int]], tied: dict[int, list[_Ring]]) -> _Ring:
    """The walk's corners, with a detour down and up a bridge for each hole that is tied to one of its segments."""
    ring = _Ring()
    for segment in walk:
        y, left, right, is_lower = shape[segment]
        ring.points.append((right, y) if is_lower else (left, y))
        for hole in sorted(tied.get(segment, ()), key=lambda hole: hole.points[1]):
            _tie(ring, hole, y)
        ring.points.append((left, y) if is_lower else (right, y))
    return ring


def _tie(ring: _Ring, hole: _Ring, y: int) -> None:
    """Go from (x, y) down to the hole, around it and back, where x is at the left end of the hole's top edge."""
    below = hole.points[1]
    above = (below[0], y)
    if ring.points[-1] != above:
        ring.points.append(above)
    ring.points.extend((*hole.points[1:], hole.points[0], below, above))
    ring.bridge_ends.update(hole.bridge_ends, (above, below))


def _simplified(ring: _Ring, tolerance_px: float) -> _Ring:
    """The ring with fewer corners; between bridges, each stretch is simplified for itself."""
    corners = [place for place, point in enumerate(ring.points) if point in ring.bridge_ends]
    if not corners:
        points = _fewer(ring.points, tolerance_px, closed=True)
    else:
        walk = ring.points[corners[0] :] + ring.points[: corners[0] + 1]
        cuts = [place for place, point in enumerate(walk) if point in ring.bridge_ends]
        stretches = (walk[i : j + 1] for i, j in pairwise(cuts))
        points = [point for stretch in stretches for point in _fewer(stretch, tolerance_px, closed=False)[:-1]]
    return _Ring(points) if len(points) > 2 else ring


def _fewer(points: list[Point], tolerance_px: float, closed: bool) -> list[Point]:
    import cv2

    kept = cv2.approxPolyDP(np.array(points, dtype=np.int32), tolerance_px, closed)
    return [(int(x), int(y)) for x, y in kept.reshape(-1, 2)]
