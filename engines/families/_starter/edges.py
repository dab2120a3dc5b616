"""Two ways to bring a coarse mask to the edges of the picture."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GUIDE_RADIUS_SHARE = 0.008
_GUIDE_SMOOTHNESS = 1e-2
_COLOUR_SIDE_PX = 360
_COLOUR_ROUNDS = 3
_SURE_FOREGROUND = 0.85
_SURE_BACKGROUND = 0.03
_TRUST_IOU = 0.55
_MIN_PIXELS = 8
_SEED = 7
_grabcut_lock = threading.Lock()
"""OpenCV has one random generator, which GrabCut draws its first colour clusters from."""


def follow_edges(rgb: NDArray[np.uint8], coarse: NDArray[np.float32]) -> NDArray[np.float32]:
    """`coarse` (h, w) in [0, 1], smoothed but for the edges of the (h, w, 3) picture: a guided filter."""
    import cv2

    radius = max(1, round(_GUIDE_RADIUS_SHARE * max(coarse.shape)))
    guide = cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2GRAY).astype(np.float32) / 255

    def mean(values: Any) -> Any:
        return cv2.boxFilter(values, -1, (2 * radius + 1, 2 * radius + 1))

    mean_guide, mean_coarse = mean(guide), mean(coarse)
    variance = mean(guide * guide) - mean_guide * mean_guide
    slope = (mean(guide * coarse) - mean_guide * mean_coarse) / (variance + _GUIDE_SMOOTHNESS)
    return np.asarray(mean(slope) * guide + mean(mean_coarse - slope * mean_guide), dtype=np.float32)


def cut_by_colour(
    rgb: NDArray[np.uint8], salience: NDArray[np.float32], near: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """(h, w) bool: GrabCut seeded with the salience, inside `near`; None where its answer is not to be trusted."""
    import cv2

    height, width = salience.shape
    scale = min(1.0, _COLOUR_SIDE_PX / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    inside = np.where(near, salience, 0).astype(np.float32)
    small = cv2.resize(inside, size, interpolation=cv2.INTER_AREA)
    small_near = cv2.resize(near.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    cut = _grabcut(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), small, small_near)
    if cut is None or _iou(cut, small > 0.5) < _TRUST_IOU:
        return None
    soft = cv2.resize(cut.astype(np.uint8) * 255, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray((soft > 127) & near)


def _grabcut(
    rgb: NDArray[np.uint8], salience: NDArray[np.float32], near: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """None where one of the two sides is missing."""
    import cv2

    labels = np.where(salience > 0.5, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    sure = cv2.erode((salience > _SURE_FOREGROUND).astype(np.uint8), np.ones((3, 3), np.uint8))
    labels[sure > 0] = cv2.GC_FGD
    labels[(salience < _SURE_BACKGROUND) | ~near] = cv2.GC_BGD
    n_foreground = int(_is_foreground(labels).sum())
    if min(n_foreground, labels.size - n_foreground) < _MIN_PIXELS:
        return None
    with _grabcut_lock:
        cv2.setRNGSeed(_SEED)
        models = np.zeros((1, 65)), np.zeros((1, 65))
        cv2.grabCut(rgb, labels, None, *models, _COLOUR_ROUNDS, cv2.GC_INIT_WITH_MASK)
    return _is_foreground(labels)


def _is_foreground(labels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.asarray(labels % 2 == 1)  # sure and probable foreground are 1 and 3


def _iou(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    union = int((a | b).sum())
    return float((a & b).sum()) / union if union else 0.0
