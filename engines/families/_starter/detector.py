"""Boxes of the 80 COCO categories: SSDLite-MobileNetV2 on the whole picture and on overlapping tiles of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines import boxes
from engines.protocols import Session

SCORE_FLOOR = 0.3
"""Hits below this are noise more often than objects."""
_INPUT_SIZE = 300
_TILE_SHARE = 0.6
_MAX_ASPECT = 2.0
_MAX_WINDOWS = 6
_SUPPRESS_IOU = 0.5
_SUPPRESS_CONTAINMENT = 0.8
_INSIDE_WHOLE = 0.5
_MIN_SIDE_FOR_TILES_PX = 32


@dataclass(frozen=True)
class Detections:
    """Found boxes, best first. `xyxy` float32 [N, 4] in pixels of the detected picture; `scores` float32 [N];
    `categories` int64 [N], COCO ids."""

    xyxy: NDArray[np.float32]
    scores: NDArray[np.float32]
    categories: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: Any) -> Detections:
        """The detections at these rows."""
        return Detections(self.xyxy[rows], self.scores[rows], self.categories[rows])


def detect(session: Session, rgb: NDArray[np.uint8]) -> Detections:
    """Every detection in an (H, W, 3) uint8 RGB picture that scores at least `SCORE_FLOOR`.

    Tiles find what is small in the whole picture. A tile's hit that lies mostly inside an object of the same category
    found in the whole picture is a part of it and is left out.
    """
    whole, *tiles = _windows(rgb.shape[0], rgb.shape[1])
    found = suppress(_detect_window(session, rgb, whole))
    if not tiles:
        return found
    parts = _join([_detect_window(session, rgb, tile) for tile in tiles])
    if len(found) and len(parts):
        same = parts.categories[:, None] == found.categories[None, :]
        parts = parts.take(~((boxes.containment(parts.xyxy, found.xyxy) > _INSIDE_WHOLE) & same).any(axis=1))
    return suppress(_join([found, parts]))


def suppress(detections: Detections) -> Detections:
    """Drop a box that overlaps or lies in a better one of the same category; best first."""
    kept: list[int] = []
    for category in np.unique(detections.categories):
        rows = np.flatnonzero(detections.categories == category)
        best = boxes.suppress(
            detections.xyxy[rows], detections.scores[rows], iou=_SUPPRESS_IOU, containment=_SUPPRESS_CONTAINMENT
        )
        kept.extend(rows[best].tolist())
    kept.sort(key=lambda row: (-detections.scores[row], row))
    return detections.take(np.array(kept, dtype=np.int64))


def _windows(height: int, width: int) -> list[tuple[int, int, int, int]]:
    """Windows as x1 y1 x2 y2, the whole picture first. A long strip is cut along its length instead of into quarters."""
    windows = [(0, 0, width, height)]
    if min(height, width) < _MIN_SIDE_FOR_TILES_PX:
        return windows
    if max(height, width) > _MAX_ASPECT * min(height, width):
        return windows + _strip_windows(height, width)
    tile_h, tile_w = round(height * _TILE_SHARE), round(width * _TILE_SHARE)
    lefts, tops = (0, width - tile_w), (0, height - tile_h)
    return windows + [(left, top, left + tile_w, top + tile_h) for top in tops for left in lefts]


def _strip_windows(height: int, width: int) -> list[tuple[int, int, int, int]]:
    long, short = max(height, width), min(height, width)
    count = min(_MAX_WINDOWS, int(np.ceil(1.5 * long / short)))
    length = max(short, round(1.5 * long / count))
    starts = np.linspace(0, long - length, count).round().astype(int).tolist()
    if width >= height:
        return [(start, 0, start + length, height) for start in starts]
    return [(0, start, width, start + length) for start in starts]


def _detect_window(session: Session, rgb: NDArray[np.uint8], window: tuple[int, int, int, int]) -> Detections:
    import cv2

    x1, y1, x2, y2 = window
    resized = cv2.resize(rgb[y1:y2, x1:x2], (_INPUT_SIZE, _INPUT_SIZE), interpolation=_interpolation(x2 - x1, y2 - y1))
    outputs = session.run({"image": (resized.astype(np.float32) / 127.5 - 1.0)[None]})
    rows, columns = np.nonzero(outputs["scores"][0] >= SCORE_FLOOR)
    relative = np.clip(outputs["boxes"][0, rows, 0][:, [1, 0, 3, 2]], 0.0, 1.0)
    xyxy = relative * [x2 - x1, y2 - y1, x2 - x1, y2 - y1] + [x1, y1, x1, y1]
    scores = np.clip(outputs["scores"][0, rows, columns], 0.0, 1.0)
    return Detections(xyxy.astype(np.float32), scores.astype(np.float32), columns.astype(np.int64) + 1)


def _interpolation(width: int, height: int) -> int:
    import cv2

    return int(cv2.INTER_AREA if min(width, height) > 2 * _INPUT_SIZE else cv2.INTER_LINEAR)


def _join(parts: list[Detections]) -> Detections:
    return Detections(
        np.concatenate([part.xyxy for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.categories for part in parts]),
    )
