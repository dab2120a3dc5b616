"""The outline of the thing in a box: salience of the crop around it, sharpened at the picture's edges by GrabCut."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CROP_MARGIN = 0.12
_BOX_MARGIN = 0.03
_GRABCUT_SIDE_PX = 360
_GRABCUT_ROUNDS = 3
_SURE_FOREGROUND = 0.85
_SURE_BACKGROUND = 0.03
_TRUST_GRABCUT_IOU = 0.55
_SMALL_PART = 0.10
_MIN_SHARE_OF_BOX = 0.02
_SEED = 7
_grabcut_lock = threading.Lock()
"""OpenCV has one random generator, which GrabCut draws its first colour clusters from."""

SalienceFn = Callable[[NDArray[np.uint8]], NDArray[np.float32]]


@dataclass(frozen=True)
class Outline:
    """A mask of part of a picture: `pixels` (h, w) bool, with its top left corner at `left`, `top`."""

    left: int
    top: int
    pixels: NDArray[np.bool_]


def trace(rgb: NDArray[np.uint8], xyxy: NDArray[Any], salience: SalienceFn) -> Outline:
    """The thing in a box (pixels of `rgb`); empty only when nothing in the box stands out."""
    left, top, right, bottom = crop_around(xyxy, rgb.shape[0], rgb.shape[1], CROP_MARGIN)
    crop = rgb[top:bottom, left:right]
    box = np.asarray(xyxy, dtype=np.float64) - [left, top, left, top]
    near = _inside(box, crop.shape[0], crop.shape[1], _BOX_MARGIN)
    raw = np.where(near, salience(crop), 0).astype(np.float32)
    return Outline(left, top, largest_parts(_sharpen(crop, raw, near)))


def trace_drawn(rgb: NDArray[np.uint8], xyxy: NDArray[Any], salience: SalienceFn) -> Outline:
    """The thing in a box drawn by a person, never outside it and never empty.

    Where the salience finds next to nothing in the box, the box's inscribed ellipse seeds GrabCut; where that finds
    nothing either, the ellipse is the answer.
    """
    left, top, right, bottom = crop_around(xyxy, rgb.shape[0], rgb.shape[1], CROP_MARGIN)
    crop = rgb[top:bottom, left:right]
    box = np.asarray(xyxy, dtype=np.float64) - [left, top, left, top]
    near = _inside(box, crop.shape[0], crop.shape[1], 0.0)
    raw = np.where(near, salience(crop), 0).astype(np.float32)
    pixels = largest_parts(_sharpen(crop, raw, near))
    if pixels.sum() < _MIN_SHARE_OF_BOX * near.sum():
        ellipse = _ellipse(near)
        pixels = _sharpen(crop, np.where(ellipse, 0.7, np.where(near, 0.3, 0)).astype(np.float32), near)
        if pixels.sum() < _MIN_SHARE_OF_BOX * near.sum():
            pixels = ellipse
    return Outline(left, top, pixels)


def _ellipse(near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The ellipse inscribed in a filled rectangle; never empty."""
    rows, columns = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
    y = (np.arange(near.shape[0]) - rows.mean()) / (rows.size / 2)
    x = (np.arange(near.shape[1]) - columns.mean()) / (columns.size / 2)
    return np.asarray(near & (x[None, :] ** 2 + y[:, None] ** 2 <= 1.0 + 1e-6))


def crop_around(xyxy: NDArray[Any], height: int, width: int, margin: float) -> tuple[int, int, int, int]:
    """x1 y1 x2 y2 of the box grown by a share of its sides, inside the picture, at least one pixel."""
    x1, y1, x2, y2 = (float(value) for value in xyxy)
    grow_x, grow_y = margin * (x2 - x1), margin * (y2 - y1)
    left, top = int(max(0, np.floor(x1 - grow_x))), int(max(0, np.floor(y1 - grow_y)))
    left, top = min(left, width - 1), min(top, height - 1)
    right, bottom = int(min(width, np.ceil(x2 + grow_x))), int(min(height, np.ceil(y2 + grow_y)))
    return left, top, max(right, left + 1), max(bottom, top + 1)


def largest_parts(pixels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Without fragments below a tenth of the largest connected part."""
    import cv2

    count, labels, stats, _ = cv2.connectedComponentsWithStats(pixels.astype(np.uint8), connectivity=8)
    if count <= 2:
        return pixels
    areas = stats[:, cv2.CC_STAT_AREA].copy()
    areas[0] = 0
    keep = areas >= _SMALL_PART * areas.max()
    keep[0] = False
    result: NDArray[np.bool_] = keep[labels]
    return result


def _sharpen(crop: NDArray[np.uint8], raw: NDArray[np.float32], near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    import cv2

    height, width = raw.shape
    scale = min(1.0, _GRABCUT_SIDE_PX / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(crop, size, interpolation=cv2.INTER_AREA)
    small_raw = cv2.resize(raw, size, interpolation=cv2.INTER_AREA)
    small_near = cv2.resize(near.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    cut = _grabcut(small, small_raw, small_near)
    rough = small_raw > 0.5
    if cut is None or _iou(cut, rough) < _TRUST_GRABCUT_IOU:
        return np.asarray(raw > 0.5)
    soft = cv2.resize(cut.astype(np.uint8) * 255, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray((soft > 127) & near)


def _grabcut(
    rgb: NDArray[np.uint8], salience: NDArray[np.float32], near: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """GrabCut seeded with the salience, or None where it lacks one of the two sides."""
    import cv2

    labels = np.where(salience > 0.5, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    sure = cv2.erode((salience > _SURE_FOREGROUND).astype(np.uint8), np.ones((3, 3), np.uint8))
    labels[sure > 0] = cv2.GC_FGD
    labels[(salience < _SURE_BACKGROUND) | ~near] = cv2.GC_BGD
    foreground = (labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD)
    if foreground.sum() < 8 or (~foreground).sum() < 8:
        return None
    with _grabcut_lock:
        cv2.setRNGSeed(_SEED)
        cv2.grabCut(
            rgb, labels, None, np.zeros((1, 65)), np.zeros((1, 65)), _GRABCUT_ROUNDS, cv2.GC_INIT_WITH_MASK
        )
    return np.asarray((labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD))


def _inside(xyxy: NDArray[Any], height: int, width: int, margin: float) -> NDArray[np.bool_]:
    """(height, width) bool: the box grown by a share of its sides."""
    left, top, right, bottom = crop_around(xyxy, height, width, margin)
    inside = np.zeros((height, width), dtype=bool)
    inside[top:bottom, left:right] = True
    return inside


def _iou(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    union = int((a | b).sum())
    return float((a & b).sum()) / union if union else 0.0
