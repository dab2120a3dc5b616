"""Run lengths of COCO masks as arrays: column-major runs that begin with background, and their compressed text.

In the compressed text a run is written as its difference to the run two before it (from the fourth run on), cut into
groups of five bits, lowest first; bit 5 says that another group follows, bit 4 of the last group is the sign, and each
group is one character from "0" (48) on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from engines.errors import MaskError

_MAX_GROUPS = 7
"""Characters of the longest number that COCO writes: 32 bits and a sign."""


def compress(runs: NDArray[np.int64], height: int, width: int) -> str:
    """The compressed text of runs that add up to `height` × `width`."""
    rle = coco_mask.frPyObjects({"size": [height, width], "counts": runs.astype(np.uint32)}, height, width)
    return str(rle["counts"], "ascii")


def expand(counts: str) -> NDArray[np.int64]:
    """The runs, int64 [n], of compressed text; raises `MaskError` for text that no COCO encoder writes."""
    values, _ = _numbers(_codes(counts))
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values


def n_pixels_each(counts: Sequence[str]) -> NDArray[np.int64]:
    """What the runs of each compressed text add up to, int64 [n]; raises `MaskError` as `expand` does."""
    if not counts:
        return np.zeros(0, np.int64)
    values, last = _numbers(_codes("".join(counts)))
    ends = np.searchsorted(last, np.cumsum([len(text) for text in counts]) - 1)
    n_runs = np.diff(ends, prepend=-1)
    place = np.arange(values.size) - np.repeat(ends - n_runs + 1, n_runs)
    # A difference is part of its own run and of every second one after it; the first run is no difference.
    repeats = (np.repeat(n_runs, n_runs) - 1 - place) // 2 + 1
    return np.add.reduceat(values * np.where(place == 0, 1, repeats), ends - n_runs + 1)


def runs_between(toggles: NDArray[np.int64], n_pixels: int) -> NDArray[np.int64]:
    """The runs of a mask that changes at each of the sorted pixel positions; two changes at one position cancel."""
    first = np.flatnonzero(np.concatenate(([True], toggles[1:] != toggles[:-1]))[: toggles.size])
    n_changes = np.diff(np.append(first, toggles.size))
    positions = toggles[first]
    real = positions[(n_changes % 2 == 1) & (positions < n_pixels)]
    return np.diff(np.concatenate(([0], real, [n_pixels])))


def runs_of(pixels: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The runs of an (H, W) mask, from the part that has any: a small one on a large picture takes little time."""
    height, width = pixels.shape
    rows = np.flatnonzero(pixels.any(axis=1))
    if rows.size == 0:
        return np.array([height * width])
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    columns = np.flatnonzero(pixels[top:bottom].any(axis=0))
    left, right = int(columns[0]), int(columns[-1]) + 1
    framed = np.zeros((right - left, bottom - top + 2), dtype=bool)  # by column, background above and below
    framed[:, 1:-1] = pixels[top:bottom, left:right].T
    x, y = np.divmod(np.flatnonzero(framed[:, 1:] != framed[:, :-1]), bottom - top + 1)
    return runs_between((left + x) * height + top + y, height * width)


def checked_runs(counts: str | bytes | Any, height: int, width: int) -> NDArray[np.int64]:
    """The runs of foreign counts, compressed or a list of integers, without empty ones in the middle.

    Raises `MaskError` when they are not runs or do not add up to `height` × `width`.
    """
    runs = expand(_text(counts)) if isinstance(counts, str | bytes) else _integers(counts)
    _check_total(runs, height, width)
    return runs_between(np.cumsum(runs)[:-1], height * width)


def pixels_of(runs: NDArray[np.int64], height: int, width: int) -> NDArray[np.bool_]:
    """(H, W) bool, column-major in memory; raises `MaskError` when the runs do not add up to the size."""
    _check_total(runs, height, width)
    return np.repeat(np.arange(runs.size) % 2 == 1, runs).reshape(width, height).T


def _check_total(runs: NDArray[np.int64], height: int, width: int) -> None:
    n_pixels = height * width
    if runs.min() < 0 or runs.max() > n_pixels or runs.sum() != n_pixels:
        raise MaskError(
            f"the mask's runs add up to {sum(runs.tolist())} pixels, but {width}×{height} has {n_pixels}; "
            "the size or the counts are damaged"
        )


def _codes(counts: str) -> NDArray[np.int64]:
    codes = np.frombuffer(counts.encode("utf-8", "replace"), dtype=np.uint8).astype(np.int64) - 48
    if codes.size == 0 or codes.min() < 0 or codes.max() > 63:
        raise MaskError("the mask's counts are not COCO's compressed text; write the mask again with pycocotools")
    return codes


def _numbers(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers as written, before the differences are undone, and the place of the last character of each."""
    last = np.flatnonzero(codes < 32)
    n_groups = np.diff(last, prepend=-1)
    if last.size == 0 or last[-1] != codes.size - 1 or n_groups.max() > _MAX_GROUPS:
        raise MaskError("the mask's counts are cut off or damaged; write the mask again with pycocotools")
    starts = last - n_groups + 1
    shifts = 5 * (np.arange(codes.size) - np.repeat(starts, n_groups))
    values = np.add.reduceat((codes & 31) << shifts, starts)
    values -= np.where(codes[last] & 16, np.int64(1) << (5 * n_groups), 0)
    return values, last


def _text(counts: str | bytes) -> str:
    return counts if isinstance(counts, str) else counts.decode("ascii", "replace")


def _integers(counts: Any) -> NDArray[np.int64]:
    try:
        runs = np.asarray(counts)
    except ValueError:
        runs = np.zeros((0, 0))
    if runs.ndim != 1 or runs.size == 0 or runs.dtype.kind not in "iu":
        raise MaskError("the mask's counts are neither COCO's compressed text nor a list of whole numbers")
    return runs.astype(np.int64)
