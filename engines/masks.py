"""Instance masks as COCO run-length encoding (RLE): column-major runs in pycocotools' compressed ASCII form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from engines.errors import MaskError
from engines.run_lengths import checked_runs, compress, expand, pixels_of
from engines.suppression import SuppressionLimits, keep_best

_MAX_PIXELS = 2**32 - 1
"""COCO's runs are 32-bit numbers."""

_AREA_BATCH = 255
"""pycocotools 2.0.11 with NumPy 2 raises OverflowError for the area of more masks at once."""


@dataclass(frozen=True)
class Mask:
    """A binary mask of `height` × `width` pixels; `counts` is COCO's compressed RLE as an ASCII string."""

    height: int
    width: int
    counts: str

    @classmethod
    def encode(cls, pixels: NDArray[Any]) -> Mask:
        """The mask of an (H, W) array: every non-zero pixel belongs to it."""
        rle = coco_mask.encode(np.asfortranarray(pixels != 0, dtype=np.uint8))
        return cls(int(pixels.shape[0]), int(pixels.shape[1]), rle["counts"].decode("ascii"))

    @classmethod
    def from_rle(cls, rle: Mapping[str, Any]) -> Mask:
        """The mask of a foreign COCO RLE: `size` [height, width], `counts` compressed (str, bytes) or a list of runs.

        Raises `MaskError` if the size is not two whole numbers above zero, or the runs do not add up to it.
        """
        height, width = _checked_size(rle.get("size"))
        runs = checked_runs(rle.get("counts"), height, width)
        return cls(height, width, compress(runs, height, width))

    @property
    def rle(self) -> dict[str, Any]:
        """The form that pycocotools takes and COCO files hold: size [height, width] and counts as a string."""
        return {"size": [self.height, self.width], "counts": self.counts}

    def decode(self) -> NDArray[np.bool_]:
        """(H, W) bool, column-major in memory. Raises `MaskError` if the runs do not fit the size."""
        return pixels_of(expand(self.counts), self.height, self.width)

    @property
    def area(self) -> int:
        """Number of pixels."""
        return int(coco_mask.area(self.rle))

    @property
    def xywh(self) -> tuple[float, float, float, float]:
        """Tight box in pixels: left, top, width, height. All zero for an empty mask."""
        x, y, w, h = coco_mask.toBbox(self.rle).tolist()
        return x, y, w, h

    @property
    def xyxy(self) -> NDArray[np.float32]:
        """Tight box in pixels, float32 [4]: x1 y1 x2 y2, x2 and y2 exclusive."""
        x, y, w, h = self.xywh
        return np.array([x, y, x + w, y + h], dtype=np.float32)


def areas(masks: Sequence[Mask]) -> NDArray[np.int64]:
    """Number of pixels of each mask, int64 [n]."""
    return _areas([mask.rle for mask in masks])


def areas_and_xywh(masks: Sequence[Mask]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Number of pixels, int64 [n], and tight box (left, top, width, height), float64 [n, 4], of each mask.

    An empty mask has a box of zeros. Many masks are measured much faster at once than one by one.
    """
    rles = [mask.rle for mask in masks]
    return _areas(rles), np.asarray(coco_mask.toBbox(rles), dtype=np.float64).reshape(-1, 4)


def iou_matrix(a: Sequence[Mask], b: Sequence[Mask]) -> NDArray[np.float64]:
    """Intersection over union of each mask of `a` with each of `b`, float64 [n, m]; 0 where both are empty.

    Raises `MaskError` if the masks are not all of one size.
    """
    return _overlaps(a, b, of_a_alone=False)


def containment_matrix(a: Sequence[Mask], b: Sequence[Mask]) -> NDArray[np.float64]:
    """The share of each mask of `a` that lies inside each of `b`, float64 [n, m]; 0 for an empty mask of `a`.

    Raises `MaskError` if the masks are not all of one size.
    """
    return _overlaps(a, b, of_a_alone=True)


def union(masks: Sequence[Mask]) -> Mask:
    """The pixels that are in any of the masks. Raises `MaskError` for no mask at all, or for different sizes."""
    if not masks:
        raise MaskError("there is no mask to merge; choose at least one")
    _check_one_size(masks)
    merged = coco_mask.merge([mask.rle for mask in masks])
    return Mask(masks[0].height, masks[0].width, merged["counts"].decode("ascii"))


def suppress(masks: Sequence[Mask], iou: float | None = None, containment: float | None = None) -> list[int]:
    """Indices, ascending, of the masks that stay when each better one (they come best first) drops those like it.

    A mask goes if its IoU with a kept better one is above `iou`, or if more than the share `containment` of it lies
    inside a kept better one; None switches a rule off.
    """
    limits = SuppressionLimits(iou, containment)
    if len(masks) < 2 or not limits.active:
        return list(range(len(masks)))
    _check_one_size(masks)
    return keep_best(len(masks), _Repeats(masks, limits).of)


class _Repeats:
    """Which masks repeat which: runs are compared only where areas and boxes leave it open."""

    def __init__(self, masks: Sequence[Mask], limits: SuppressionLimits) -> None:
        self._rles = [mask.rle for mask in masks]
        self._limits = limits
        sizes, xywh = areas_and_xywh(masks)
        self._areas = sizes.astype(np.float64)
        self._corners = np.hstack([xywh[:, :2], xywh[:, :2] + xywh[:, 2:]])

    def of(self, best: int, others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the masks at the indices `others` repeat the one at `best`."""
        sizes, size = self._areas[others], float(self._areas[best])
        found = self._limits.repeated(self._most_shared(best, others), sizes, size)
        unsure = np.flatnonzero(found)
        if unsure.size:
            shared = self._shared(best, others[unsure])
            found[unsure] = self._limits.repeated(shared, sizes[unsure], size)
        return found

    def _most_shared(self, best: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Pixels that two masks of those areas and boxes can have in common at most."""
        a, b = self._corners[others], self._corners[best]
        sides = np.maximum(np.minimum(a[:, 2:], b[2:]) - np.maximum(a[:, :2], b[:2]), 0)
        smaller = np.minimum(self._areas[others], self._areas[best])
        most: NDArray[np.float64] = np.minimum(sides[:, 0] * sides[:, 1], smaller)
        return most

    def _shared(self, best: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Pixels that masks really have in common: against a "crowd", COCO divides by the first mask's area alone."""
        shares = coco_mask.iou([self._rles[index] for index in others], [self._rles[best]], [1])[:, 0]
        pixels: NDArray[np.float64] = np.rint(shares * self._areas[others])
        return pixels


def _areas(rles: list[dict[str, Any]]) -> NDArray[np.int64]:
    parts = [coco_mask.area(rles[i : i + _AREA_BATCH]) for i in range(0, len(rles), _AREA_BATCH)]
    return np.concatenate([np.zeros(0, np.uint32), *parts]).astype(np.int64)


def _overlaps(a: Sequence[Mask], b: Sequence[Mask], of_a_alone: bool) -> NDArray[np.float64]:
    _check_one_size([*a, *b])
    if not a or not b:
        return np.zeros((len(a), len(b)))
    crowd = [int(of_a_alone)] * len(b)  # against a "crowd", COCO divides by the area of the first mask alone
    return np.asarray(coco_mask.iou([mask.rle for mask in a], [mask.rle for mask in b], crowd), dtype=np.float64)


def _check_one_size(masks: Sequence[Mask]) -> None:
    sizes = sorted({(mask.width, mask.height) for mask in masks})
    if len(sizes) > 1:
        named = " and ".join(f"{width}×{height}" for width, height in sizes[:2])
        raise MaskError(f"masks of different sizes ({named}) cannot be compared; use masks of one image")


def _checked_size(size: Any) -> tuple[int, int]:
    whole = isinstance(size, Sequence) and len(size) == 2 and all(type(side) is int and side > 0 for side in size)
    if not whole or size[0] * size[1] > _MAX_PIXELS:
        raise MaskError(f"the mask's size is {size!r:.60}, wanted [height, width] in pixels; write the mask again")
    return int(size[0]), int(size[1])
