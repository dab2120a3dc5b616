"""What is kept of an encoded picture: a copy of bounded size, the detections, and the outlines asked for so far."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.families._starter.detector import Detections
from engines.families._starter.outline import Outline
from engines.masks import Mask
from engines.types import ImageFeatures

_WORKING_PIXELS = 3_000_000


class OutlineMemo:
    """Outlines by detection row, each made at most once. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outlines: dict[int, Outline] = {}
        self._masks: dict[int, Mask | None] = {}

    def outline(self, row: int, make: Callable[[], Outline]) -> Outline:
        """The outline of a row, made by `make` the first time."""
        with self._lock:
            if row not in self._outlines:
                self._outlines[row] = make()
            return self._outlines[row]

    def mask(self, row: int, make: Callable[[], Mask | None]) -> Mask | None:
        """The finished mask of a row (None: empty), made by `make` the first time; `make` may ask for outlines."""
        if row not in self._masks:
            self._masks[row] = make()
        return self._masks[row]


def working_copy(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An own copy of at most three megapixels, each side at least one."""
    import cv2

    height, width = rgb.shape[:2]
    scale = (_WORKING_PIXELS / (height * width)) ** 0.5
    if scale >= 1:
        return np.array(rgb, dtype=np.uint8, order="C")
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA))


def to_tensors(rgb: NDArray[np.uint8], detections: Detections) -> tuple[dict[str, Any], int]:
    """The tensors of `ImageFeatures`, and the bytes they take once every outline has been made."""
    tensors = {
        "rgb": rgb,
        "xyxy": detections.xyxy,
        "scores": detections.scores,
        "categories": detections.categories,
        "outlines": OutlineMemo(),
    }
    arrays = sum(value.nbytes for value in tensors.values() if isinstance(value, np.ndarray))
    sides = detections.xyxy[:, 2:] - detections.xyxy[:, :2]
    outlines = int((1.6 * sides[:, 0] * sides[:, 1]).sum()) + 4096 * len(detections)
    return tensors, arrays + outlines


def detections_of(tensors: Mapping[str, Any]) -> Detections:
    """The detections kept in the tensors, in pixels of the working copy."""
    return Detections(tensors["xyxy"], tensors["scores"], tensors["categories"])


def whole_pixels(xyxy: NDArray[Any], height: int, width: int) -> tuple[int, int, int, int]:
    """The box rounded to whole pixels of an image, at least one pixel wide and high."""
    x1, y1, x2, y2 = (int(np.floor(value + 0.5)) for value in xyxy)
    x1, y1 = min(max(x1, 0), width - 1), min(max(y1, 0), height - 1)
    return x1, y1, min(max(x2, x1 + 1), width), min(max(y2, y1 + 1), height)


def full_size_mask(outline: Outline, image: ImageFeatures, bounds: tuple[int, int, int, int] | None = None) -> Mask:
    """A non-empty outline as a mask of the upright original, smoothed where the copy was smaller.

    With `bounds` (x1 y1 x2 y2, whole pixels of the original) nothing outside them; never empty.
    """
    work_height, work_width = image.tensors["rgb"].shape[:2]
    rows, columns = np.flatnonzero(outline.pixels.any(axis=1)), np.flatnonzero(outline.pixels.any(axis=0))
    part = outline.pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    corners = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]) + [outline.left, outline.top] * 2
    scale = np.array([image.width / work_width, image.height / work_height] * 2)
    x1, y1, x2, y2 = whole_pixels(corners * scale, image.height, image.width)
    pixels = np.zeros((image.height, image.width), dtype=np.uint8, order="F")
    pixels[y1:y2, x1:x2] = _scaled(part, y2 - y1, x2 - x1)
    return Mask.encode(pixels if bounds is None else _kept_inside(pixels, bounds))


def _scaled(part: NDArray[np.bool_], height: int, width: int) -> NDArray[np.bool_]:
    import cv2

    scaled = cv2.resize(part.astype(np.uint8) * 255, (width, height), interpolation=cv2.INTER_LINEAR) > 127
    return np.asarray(scaled) if scaled.any() else np.ones((height, width), dtype=bool)


def _kept_inside(pixels: NDArray[np.uint8], bounds: tuple[int, int, int, int]) -> NDArray[np.uint8]:
    """Only what lies in the bounds; all of the bounds where that is nothing."""
    x1, y1, x2, y2 = bounds
    inside = np.zeros_like(pixels)
    inside[y1:y2, x1:x2] = pixels[y1:y2, x1:x2]
    if not inside.any():
        inside[y1:y2, x1:x2] = 1
    return inside
