"""Gives each pixel that two outlines claim to one of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engines import boxes
from engines.families._starter.detector import Detections
from engines.families._starter.outline import Outline

_MIN_IOU = 0.02


def separated(row: int, detections: Detections, outline_of: Callable[[int], Outline]) -> Outline:
    """The outline of a detection without the pixels that lie nearer to the centre of another of its category."""
    own = outline_of(row)
    same = np.flatnonzero(detections.categories == detections.categories[row])
    overlap = boxes.iou_matrix(detections.xyxy[row : row + 1], detections.xyxy[same])[0]
    pixels = own.pixels
    for other in same[overlap > _MIN_IOU].tolist():
        if other != row:
            shared = _on_canvas(outline_of(other), own)
            pixels = pixels & ~(shared & _nearer(own, detections.xyxy[other], detections.xyxy[row]))
    return Outline(own.left, own.top, pixels)


def _on_canvas(outline: Outline, canvas: Outline) -> NDArray[np.bool_]:
    """The pixels of `outline` as seen in the frame of `canvas`."""
    result = np.zeros_like(canvas.pixels)
    height, width = outline.pixels.shape
    left, top = outline.left - canvas.left, outline.top - canvas.top
    y1, y2 = max(0, top), min(result.shape[0], top + height)
    x1, x2 = max(0, left), min(result.shape[1], left + width)
    if y1 < y2 and x1 < x2:
        result[y1:y2, x1:x2] = outline.pixels[y1 - top : y2 - top, x1 - left : x2 - left]
    return result


def _nearer(canvas: Outline, xyxy: NDArray[np.float32], than_xyxy: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Pixels of the canvas nearer to the centre of the first box than to the second's, in units of the boxes' sides."""
    return _distance(canvas, xyxy) < _distance(canvas, than_xyxy)


def _distance(canvas: Outline, xyxy: NDArray[np.float32]) -> NDArray[np.float32]:
    x1, y1, x2, y2 = (float(value) for value in xyxy)
    xs = np.arange(canvas.pixels.shape[1], dtype=np.float32) + canvas.left + 0.5
    ys = np.arange(canvas.pixels.shape[0], dtype=np.float32) + canvas.top + 0.5
    dx = (xs - (x1 + x2) / 2) / max(x2 - x1, 1.0)
    dy = (ys - (y1 + y2) / 2) / max(y2 - y1, 1.0)
    return np.asarray(dx[None, :] ** 2 + dy[:, None] ** 2)
