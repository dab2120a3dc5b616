"""Boxes of the 80 COCO categories: SSDLite-MobileNetV2 on several views of the picture, which must agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines import boxes
from engines.families._starter.agreement import Candidate, agree
from engines.families._starter.views import View, views_of
from engines.protocols import Session

SCORE_FLOOR = 0.3
"""Hits below this are noise more often than objects."""
_HIT_FLOOR = 0.1
"""A view's hit below the floor can still confirm what another view sees."""
_SUPPRESS_IOU = 0.5
_SUPPRESS_CONTAINMENT = 0.8
_SAME_THING_IOU = 0.75
_SAME_THING_IOU_IN_GROUP = 0.5
_GROUPS = (
    frozenset(range(2, 10)),  # vehicles
    frozenset(range(16, 26)),  # animals
    frozenset({44, 46, 47, 51, 64, 86}),  # bottle, wine glass, cup, bowl, potted plant, vase
    frozenset({52, 53, 54, 55, 56, 57, 58, 59, 60, 61}),  # food
    frozenset({15, 62, 63, 65, 67}),  # furniture
    frozenset({27, 31, 33}),  # bags
    frozenset({72, 73, 77, 78, 79, 82}),  # screens and appliances
)
"""Categories (COCO ids) that the detector takes for one another: one thing is only one of them."""


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
    """Every detection in an (H, W, 3) uint8 RGB picture that scores at least `SCORE_FLOOR`."""
    views = views_of(rgb.shape[0], rgb.shape[1])
    hits = [hit for index, view in enumerate(views) for hit in _look(session, rgb, view, index)]
    area = float(rgb.shape[0] * rgb.shape[1])
    found = [candidate for candidate in agree(hits, len(views), area) if candidate.score >= SCORE_FLOOR]
    found.sort(key=lambda candidate: -candidate.score)
    everything = Detections(
        np.array([one.xyxy for one in found], dtype=np.float32).reshape(-1, 4),
        np.array([one.score for one in found], dtype=np.float32),
        np.array([one.category for one in found], dtype=np.int64),
    )
    return _one_category_each(_suppress(everything))


def _look(session: Session, rgb: NDArray[np.uint8], view: View, index: int) -> list[Candidate]:
    """Hits of one view without repeats of the same category."""
    outputs = session.run({"image": view.look(rgb)})
    rows, columns = np.nonzero(outputs["scores"][0] >= _HIT_FLOOR)
    raw = Detections(
        view.to_picture(outputs["boxes"][0, rows, 0][:, [1, 0, 3, 2]]),
        np.clip(outputs["scores"][0, rows, columns], 0.0, 1.0).astype(np.float32),
        columns.astype(np.int64) + 1,
    )
    areas = boxes.area(raw.xyxy)
    largest = view.largest_share * rgb.shape[0] * rgb.shape[1]
    kept = _suppress(raw.take(np.flatnonzero((areas > 0) & (areas <= largest))))
    return [
        Candidate(kept.xyxy[row], float(kept.scores[row]), int(kept.categories[row]), view.is_tile, index)
        for row in range(len(kept))
    ]


def _suppress(detections: Detections) -> Detections:
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


def _one_category_each(detections: Detections) -> Detections:
    """Of boxes around the same thing, the best category only."""
    overlap = boxes.iou_matrix(detections.xyxy, detections.xyxy)
    kept: list[int] = []
    for row in range(len(detections)):
        limits = [_limit(int(detections.categories[row]), int(detections.categories[other])) for other in kept]
        if not (overlap[row, kept] > np.array(limits, dtype=np.float64)).any():
            kept.append(row)
    return detections.take(np.array(kept, dtype=np.int64))


def _limit(category: int, other: int) -> float:
    if category == other:
        return 1.0
    alike = any(category in group and other in group for group in _GROUPS)
    return _SAME_THING_IOU_IN_GROUP if alike else _SAME_THING_IOU
