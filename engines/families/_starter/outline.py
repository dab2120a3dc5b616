"""The outline of the thing in a box: salience of the crop around it, at the margin that fits the box best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines import boxes
from engines.families._starter.edges import cut_by_colour, follow_edges

_MARGINS = (0.25, 0.5, 0.12)
"""Shares of the box's sides that a crop shows around it. Another is tried only where the last does not fit the box."""
_GOOD_FIT_IOU = 0.85
_BETTER_FIT = 0.03
_BOX_MARGIN = 0.05
_SMALL_PART = 0.10
_MIN_SHARE_OF_BOX = 0.02
_SMALLEST_BOX_PX = 4
"""Nothing can be told apart in a box with a shorter side."""
_CLOSE_UP_SHARE = 0.4
_AT_BORDER_SHARE = 0.05
_FOREGROUND = 0.5

SalienceFn = Callable[[NDArray[np.uint8]], NDArray[np.float32]]


@dataclass(frozen=True)
class Outline:
    """A mask of part of a picture: `pixels` (h, w) bool, with its top left corner at `left`, `top`."""

    left: int
    top: int
    pixels: NDArray[np.bool_]


@dataclass(frozen=True)
class _Crop:
    """A part of a picture: `rgb` (h, w, 3), `near` (h, w) bool where the thing may be, `salience` (h, w) in [0, 1]."""

    left: int
    top: int
    rgb: NDArray[np.uint8]
    near: NDArray[np.bool_]
    salience: NDArray[np.float32]

    @property
    def pixels(self) -> NDArray[np.bool_]:
        return largest_parts((self.salience > _FOREGROUND) & self.near)


def trace(rgb: NDArray[np.uint8], xyxy: NDArray[Any], salience: SalienceFn) -> Outline:
    """The thing in a detected box (pixels of `rgb`); empty only when nothing in the box stands out."""
    crop = _best_crop(rgb, xyxy, salience, _BOX_MARGIN)
    if _is_close_up(xyxy, rgb.shape[0], rgb.shape[1]):
        pixels = cut_by_colour(crop.rgb, crop.salience, crop.near)
        if pixels is not None:
            return Outline(crop.left, crop.top, largest_parts(pixels))
    soft = follow_edges(crop.rgb, crop.salience)
    return Outline(crop.left, crop.top, largest_parts((soft > _FOREGROUND) & crop.near))


def trace_drawn(rgb: NDArray[np.uint8], xyxy: NDArray[Any], salience: SalienceFn) -> Outline:
    """The thing in a box drawn by a person, never outside it and never empty.

    Where the salience finds next to nothing in the box, the box's inscribed ellipse seeds a cut by colour; where that
    finds nothing either, the ellipse is the answer. A box of few pixels is the answer itself.
    """
    left, top, right, bottom = crop_around(xyxy, rgb.shape[0], rgb.shape[1], 0.0)
    if min(right - left, bottom - top) < _SMALLEST_BOX_PX:
        return Outline(left, top, np.ones((bottom - top, right - left), dtype=bool))
    crop = _best_crop(rgb, xyxy, salience, 0.0)
    enough = max(1.0, _MIN_SHARE_OF_BOX * crop.near.sum())
    pixels = largest_parts((follow_edges(crop.rgb, crop.salience) > _FOREGROUND) & crop.near)
    if pixels.sum() >= enough:
        return Outline(crop.left, crop.top, pixels)
    ellipse = _ellipse(crop.near)
    seed = np.where(ellipse, 0.7, np.where(crop.near, 0.3, 0.0)).astype(np.float32)
    cut = cut_by_colour(crop.rgb, seed, crop.near)
    return Outline(crop.left, crop.top, cut if cut is not None and cut.sum() >= enough else ellipse)


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


def _best_crop(rgb: NDArray[np.uint8], xyxy: NDArray[Any], salience: SalienceFn, box_margin: float) -> _Crop:
    """The first crop whose mask has nearly the box, or else the one whose mask comes nearest to it."""
    best = _crop(rgb, xyxy, salience, _MARGINS[0], box_margin)
    best_fit = _fit(best, xyxy)
    for margin in _MARGINS[1:]:
        if best_fit >= _GOOD_FIT_IOU:
            break
        other = _crop(rgb, xyxy, salience, margin, box_margin)
        fit = _fit(other, xyxy)
        if fit > best_fit + _BETTER_FIT:
            best, best_fit = other, fit
    return best


def _crop(rgb: NDArray[np.uint8], xyxy: NDArray[Any], salience: SalienceFn, margin: float, box_margin: float) -> _Crop:
    left, top, right, bottom = crop_around(xyxy, rgb.shape[0], rgb.shape[1], margin)
    part = rgb[top:bottom, left:right]
    x1, y1, x2, y2 = crop_around(xyxy, rgb.shape[0], rgb.shape[1], box_margin)
    near = np.zeros(part.shape[:2], dtype=bool)
    near[y1 - top : y2 - top, x1 - left : x2 - left] = True
    return _Crop(left, top, part, near, salience(part))


def _fit(crop: _Crop, xyxy: NDArray[Any]) -> float:
    """IoU of the box with the tight box of the crop's mask."""
    pixels = crop.pixels
    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    if rows.size == 0:
        return 0.0
    tight = [crop.left + columns[0], crop.top + rows[0], crop.left + columns[-1] + 1, crop.top + rows[-1] + 1]
    return float(boxes.iou_matrix([tight], [xyxy])[0, 0])


def _is_close_up(xyxy: NDArray[Any], height: int, width: int) -> bool:
    """Whether the box fills much of the picture and is cut by its border, where the salience is weak."""
    x1, y1, x2, y2 = (float(value) for value in xyxy)
    dx, dy = _AT_BORDER_SHARE * width, _AT_BORDER_SHARE * height
    at_border = x1 < dx or y1 < dy or x2 > width - dx or y2 > height - dy
    return at_border and (x2 - x1) * (y2 - y1) > _CLOSE_UP_SHARE * height * width


def _ellipse(near: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The ellipse inscribed in a filled rectangle; never empty."""
    rows, columns = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
    y = (np.arange(near.shape[0]) - rows.mean()) / (rows.size / 2)
    x = (np.arange(near.shape[1]) - columns.mean()) / (columns.size / 2)
    return np.asarray(near & (x[None, :] ** 2 + y[:, None] ** 2 <= 1.0 + 1e-6))
