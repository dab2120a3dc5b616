"""Makes one candidate of what several views of a picture see at the same place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engines import boxes
from engines.families._starter.views import SMALL_SHARE

_SAME_PLACE_IOU = 0.5
_PART_CONTAINMENT = 0.5
_LEAST_WHOLE_SCORE = 0.25
_UNCONFIRMED_TRUST = 0.6
"""What only one of several views sees, or tiles alone, is real less often than its score says."""
_SMALL_UNCONFIRMED_TRUST = 0.8


@dataclass(frozen=True)
class Candidate:
    """A box (float32 [4], px) of a category (COCO id), and the view that sees it."""

    xyxy: NDArray[np.float32]
    score: float
    category: int
    in_tiles_only: bool
    view: int


def agree(hits: Iterable[Candidate], n_views: int, picture_area: float) -> list[Candidate]:
    """Candidates with the best score of their views, lowered where the views do not confirm one another.

    The box is the mean of the views that show the thing whole, weighted by score. A tile's hit that no other view
    confirms and that lies half inside a candidate of its category is a part of that, and is left out.
    """
    ordered = sorted(hits, key=lambda hit: -hit.score)
    groups: list[list[Candidate]] = []
    for hit in [*(hit for hit in ordered if not hit.in_tiles_only), *(hit for hit in ordered if hit.in_tiles_only)]:
        group = _group_at(hit, groups)
        if group is not None:
            group.append(hit)
        elif not (hit.in_tiles_only and _is_part(hit, groups)):
            groups.append([hit])
    return [_merge(group, n_views, picture_area) for group in groups]


def _group_at(hit: Candidate, groups: list[list[Candidate]]) -> list[Candidate] | None:
    """The group whose first hit lies most nearly where this one does."""
    same = [group for group in groups if group[0].category == hit.category]
    if not same:
        return None
    overlap = boxes.iou_matrix([hit.xyxy], [group[0].xyxy for group in same])[0]
    best = int(overlap.argmax())
    return same[best] if overlap[best] > _SAME_PLACE_IOU else None


def _is_part(hit: Candidate, groups: list[list[Candidate]]) -> bool:
    same = [group[0].xyxy for group in groups if group[0].category == hit.category]
    return bool(same) and bool((boxes.containment([hit.xyxy], same)[0] > _PART_CONTAINMENT).any())


def _merge(group: list[Candidate], n_views: int, picture_area: float) -> Candidate:
    shown = [hit for hit in group if not hit.in_tiles_only] or group[:1]
    weights = np.array([hit.score for hit in shown])
    xyxy = ((np.array([hit.xyxy for hit in shown]) * weights[:, None]).sum(axis=0) / weights.sum()).astype(np.float32)
    is_small = float(boxes.area([xyxy])[0]) < SMALL_SHARE * picture_area
    trust = 1.0 if n_views == 1 else _trust(group, is_small)
    return replace(group[0], xyxy=xyxy, score=trust * max(hit.score for hit in group))


def _trust(group: list[Candidate], is_small: bool) -> float:
    """What the best score of a group is multiplied by."""
    several = len({hit.view for hit in group}) > 1
    whole = max((hit.score for hit in group if not hit.in_tiles_only), default=0.0)
    if several and (is_small or whole >= _LEAST_WHOLE_SCORE):
        return 1.0
    return _SMALL_UNCONFIRMED_TRUST if is_small else _UNCONFIRMED_TRUST
