"""From low-resolution mask logits straight to the RLE of the full-size mask, without making the full-size image.

Bilinear upsampling is linear along each output column between two rows of the logits. So a column of the full-size
mask can change at most once between two rows, at a place that follows from the two values: the runs are computed from
these crossings alone, for the columns near positive logits. The grid is that of half-pixel centres (torch's
`interpolate(align_corners=False)` without antialiasing, `cv2.INTER_LINEAR`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.errors import MaskError
from engines.masks import Mask
from engines.run_lengths import compress, runs_between

_LARGEST_LOGIT = 65504.0
"""Stands in for an infinite logit, which cannot be interpolated; the largest value of a float16."""


def encode_upsampled(logits: NDArray[Any], height: int, width: int, threshold_logit: float = 0.0) -> Mask:
    """The mask of `height` × `width` pixels where the upsampled [h, w] float16 or float32 logits exceed the threshold.

    A logit that is not a number counts as background. Raises `MaskError` for anything but a two-dimensional array.
    """
    if logits.ndim != 2 or logits.size == 0 or height < 1 or width < 1:
        raise MaskError(f"mask logits of shape {list(logits.shape)} cannot become a mask of {width}×{height} pixels")
    window = _positive_window(logits, threshold_logit)
    toggles = _toggles(logits, window, height, width, threshold_logit) if window else np.zeros(0, np.int64)
    return Mask(height, width, compress(runs_between(toggles, height * width), height, width))


def encode_upsampled_all(
    logits: Iterable[NDArray[Any]], height: int, width: int, threshold_logit: float = 0.0
) -> list[Mask]:
    """`encode_upsampled` for each [h, w] of [n, h, w] logits, one after the other."""
    return [encode_upsampled(one, height, width, threshold_logit) for one in logits]


@dataclass(frozen=True)
class _Window:
    """Rows and columns of the logits, exclusive at the end, outside which nothing can exceed the threshold."""

    top: int
    bottom: int
    left: int
    right: int


def _positive_window(logits: NDArray[Any], threshold: float) -> _Window | None:
    """The positive logits and one more on each side, since interpolation reaches to the next one; None without any."""
    positive = logits > threshold
    rows, columns = np.flatnonzero(positive.any(axis=1)), np.flatnonzero(positive.any(axis=0))
    if rows.size == 0:
        return None
    n_rows, n_columns = logits.shape
    return _Window(
        max(0, int(rows[0]) - 1),
        min(n_rows, int(rows[-1]) + 2),
        max(0, int(columns[0]) - 1),
        min(n_columns, int(columns[-1]) + 2),
    )


def _toggles(logits: NDArray[Any], window: _Window, height: int, width: int, threshold: float) -> NDArray[np.int64]:
    """Sorted column-major pixel positions at which the full-size mask changes."""
    first_x, columns = _interpolated_columns(logits, window, width)
    n_rows = columns.shape[1]
    above = np.zeros((columns.shape[0], n_rows + 2), dtype=bool)  # background above and below the window
    np.greater(columns, threshold, out=above[:, 1:-1])
    changes = np.flatnonzero(above[:, 1:] != above[:, :-1])
    x, row = np.divmod(changes, n_rows + 1)  # the change lies between rows `row` - 1 and `row` of the window
    place = window.top + row - 1 + _crossing_shares(columns, x, row, threshold)
    y = _output_rows(place, above[x, row + 1], height / logits.shape[0])
    y = np.where(row == 0, 0, np.where(row == n_rows, height, np.clip(y, 0, height)))
    # Rounding could swap two crossings that lie within one pixel.
    return np.maximum.accumulate((first_x + x) * height + y.astype(np.int64))


def _interpolated_columns(logits: NDArray[Any], window: _Window, width: int) -> tuple[int, NDArray[np.float32]]:
    """First output column and, float32 [n columns, rows of the window], the logits interpolated to output columns."""
    n_columns = logits.shape[1]
    part = logits[window.top : window.bottom, window.left : window.right].T.astype(np.float32, order="C")
    part = np.nan_to_num(part, copy=False, nan=-_LARGEST_LOGIT, posinf=_LARGEST_LOGIT, neginf=-_LARGEST_LOGIT)
    first_x = max(0, int((window.left + 0.5) * width / n_columns - 0.5)) if window.left else 0
    end_x = min(width, int((window.right - 0.5) * width / n_columns + 0.5)) if window.right < n_columns else width
    source = np.clip((np.arange(first_x, end_x) + 0.5) * n_columns / width - 0.5, 0, n_columns - 1)
    before = np.clip(source.astype(np.int64), window.left, window.right - 1)
    after = np.minimum(before + 1, window.right - 1)
    share = np.clip(source - before, 0, 1).astype(np.float32)[:, None]
    low, mixed = part[before - window.left], part[after - window.left]
    mixed -= low
    mixed *= share
    mixed += low
    return first_x, mixed


def _crossing_shares(
    columns: NDArray[np.float32], x: NDArray[np.int64], row: NDArray[np.int64], threshold: float
) -> NDArray[np.float64]:
    """Where between row `row` - 1 and row `row` of column `x` the threshold is crossed, in [0, 1]."""
    last = columns.shape[1] - 1
    before = columns[x, np.clip(row - 1, 0, last)].astype(np.float64)
    after = columns[x, np.clip(row, 0, last)].astype(np.float64)
    return (threshold - before) / np.where(after == before, 1.0, after - before)


def _output_rows(place: NDArray[np.float64], rises: NDArray[np.bool_], scale: float) -> NDArray[np.float64]:
    """First output row after a crossing at `place`, in rows of the logits.

    An output row exactly on the threshold is background: the last one before a rise, the first one after a fall.
    """
    y = (place + 0.5) * scale - 0.5
    return np.where(rises, np.floor(y) + 1, np.ceil(y))
