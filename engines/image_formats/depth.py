"""Values that are not 8 bit become 8 bit, by two rules that look at nothing but the values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK_VALUES = 1 << 20
_FULL_SCALES = (255, 1023, 4095, 16383, 65535)


def scale_to_8bit(values: NDArray[Any]) -> tuple[NDArray[np.uint8], str | None]:
    """The values of any real type as uint8 of the same shape, and a note on what was done (None: unchanged).

    Whole numbers of 0 to 65535: 0 stays black, and white is the full scale of the fewest bits (8, 10, 12, 14 or 16)
    that hold the largest value. All others: the smallest finite value becomes black and the largest white; values that
    are not finite become black. Raises TypeError for complex numbers.
    """
    if values.dtype == np.uint8:
        return values, None
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255), None
    if values.dtype.kind not in "iuf":
        raise TypeError(f"values of type {values.dtype} have no brightness")
    low, high = finite_range(values)
    if values.dtype.kind in "iu" and low >= 0 and high <= _FULL_SCALES[-1]:
        full_scale = next(scale for scale in _FULL_SCALES if high <= scale)
        return _scaled(values, 0, full_scale), f"16-bit values scaled to 8 bit from 0–{full_scale}"
    kind = "float" if values.dtype.kind == "f" else f"{8 * values.dtype.itemsize}-bit"
    return _scaled(values, low, high), f"{kind} values scaled to 8 bit from {low:g} to {high:g}"


def finite_range(values: NDArray[Any]) -> tuple[float, float]:
    """The smallest and the largest finite value; 0 and 0 if there is none."""
    low, high = np.inf, -np.inf
    for block in _blocks(values):
        finite = block[np.isfinite(block)] if block.dtype.kind == "f" else block
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    return (low, high) if low <= high else (0.0, 0.0)


def scale_between(values: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """The values as uint8: `low` and below is 0, `high` and above is 255, and what is not finite is 0."""
    return _scaled(values, low, high)


def _scaled(values: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    scaled = np.zeros(values.shape, dtype=np.uint8)
    if high <= low:
        return scaled
    for block, target in zip(_blocks(values), _blocks(scaled), strict=True):
        # Halved, because the distance between two finite float64 need not be finite.
        share = (block.astype(np.float64) / 2 - low / 2) / (high / 2 - low / 2)
        share[~np.isfinite(block)] = 0
        np.rint(np.clip(share, 0, 1) * 255, out=target, casting="unsafe")
    return scaled


def _blocks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Views of whole rows that bound the memory of float64 copies."""
    if values.size == 0:
        return
    rows = max(1, _BLOCK_VALUES * values.shape[0] // values.size)
    for top in range(0, values.shape[0], rows):
        yield values[top : top + rows]
