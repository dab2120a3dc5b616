"""Boxes as float32 [n, 4] arrays in pixels; xyxy has x2 and y2 exclusive, cxcywh is centre and size, xywh COCO's."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engines.suppression import SuppressionLimits, keep_best

Boxes = NDArray[np.float32]


def cxcywh_to_xyxy(cxcywh: ArrayLike) -> Boxes:
    """Centre and size → corners."""
    boxes = _as_boxes(cxcywh)
    half = boxes[:, 2:] / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def xyxy_to_cxcywh(xyxy: ArrayLike) -> Boxes:
    """Corners → centre and size."""
    boxes = _as_boxes(xyxy)
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)


def xyxy_to_xywh(xyxy: ArrayLike) -> Boxes:
    """Corners → left, top, width, height."""
    boxes = _as_boxes(xyxy)
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)


def xywh_to_xyxy(xywh: ArrayLike) -> Boxes:
    """Left, top, width, height → corners."""
    boxes = _as_boxes(xywh)
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def scale(boxes: ArrayLike, scale_x: float, scale_y: float) -> Boxes:
    """Boxes of any of the three forms with x multiplied by `scale_x` and y by `scale_y`."""
    return _as_boxes(boxes) * np.array([scale_x, scale_y, scale_x, scale_y], dtype=np.float32)


def clip(xyxy: ArrayLike, height: int, width: int) -> Boxes:
    """The part of each box inside an image of `height` × `width`; a box outside ends up without area on its border."""
    return np.clip(_as_boxes(xyxy), 0, np.array([width, height, width, height], dtype=np.float32))


def area(xyxy: ArrayLike) -> NDArray[np.float64]:
    """Area of each box, float64 [n]; 0 for a box whose corners are the wrong way round."""
    boxes = _as_boxes(xyxy).astype(np.float64)
    sides: NDArray[np.float64] = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    return sides[:, 0] * sides[:, 1]


def iou_matrix(a_xyxy: ArrayLike, b_xyxy: ArrayLike) -> NDArray[np.float64]:
    """Intersection over union of each box of `a` with each of `b`, float64 [n, m]; 0 where neither has area."""
    intersection = _intersections(a_xyxy, b_xyxy)
    union = area(a_xyxy)[:, None] + area(b_xyxy)[None, :] - intersection
    return _ratio(intersection, union)


def containment(a_xyxy: ArrayLike, b_xyxy: ArrayLike) -> NDArray[np.float64]:
    """The share of each box of `a` that lies inside each of `b`, float64 [n, m]; 0 for a box of `a` without area."""
    intersection = _intersections(a_xyxy, b_xyxy)
    return _ratio(intersection, np.broadcast_to(area(a_xyxy)[:, None], intersection.shape))


def suppress(
    xyxy: ArrayLike, scores: ArrayLike, iou: float | None = None, containment: float | None = None
) -> NDArray[np.int64]:
    """Indices of the boxes that stay, best score first (of equal scores, the earlier box first).

    A box goes if its IoU with a kept better one is above `iou`, or if more than the share `containment` of it lies
    inside a kept better one; None switches a rule off.
    """
    order = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
    ranked = _as_boxes(xyxy)[order]
    shared, areas, limits = _intersections(ranked, ranked), area(ranked), SuppressionLimits(iou, containment)
    kept = keep_best(
        len(order), lambda best, others: limits.repeated(shared[best, others], areas[others], float(areas[best]))
    )
    return order[kept]


def _as_boxes(boxes: ArrayLike) -> Boxes:
    return np.asarray(boxes, dtype=np.float32).reshape(-1, 4)


def _intersections(a_xyxy: ArrayLike, b_xyxy: ArrayLike) -> NDArray[np.float64]:
    a, b = _as_boxes(a_xyxy).astype(np.float64)[:, None], _as_boxes(b_xyxy).astype(np.float64)[None]
    sides: NDArray[np.float64] = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    sides = np.maximum(sides, 0)
    return sides[..., 0] * sides[..., 1]


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
