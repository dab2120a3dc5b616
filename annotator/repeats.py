"""Which instances show a thing once more: left out of what is stored, or hidden on the page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from annotator.records import Annotation, Decision, KeptPhrase, phrase_key
from engines.masks import Mask, containment_matrix, iou_matrix, suppress
from engines.suppression import SuppressionLimits
from engines.types import Instance

REPEAT_IOU = 0.5
"""An instance is not stored if its mask has this IoU, or a larger one, with an annotation of its category."""

DEFAULT_SUPPRESS_IOU, DEFAULT_SUPPRESS_CONTAINMENT = 0.5, 0.9
DEFAULT_LIMITS = SuppressionLimits(DEFAULT_SUPPRESS_IOU, DEFAULT_SUPPRESS_CONTAINMENT)
"""Of one category, masks of two things seldom share so much, while fragments of one thing lie wholly inside it."""

Found = tuple[KeptPhrase, Sequence[Instance]]
"""A kept phrase and what a model found for it on one image, best first."""


@dataclass(frozen=True)
class ChoiceRules:
    """Which of the instances found become suggestions."""

    limits: SuppressionLimits = DEFAULT_LIMITS
    across_categories: bool = False
    """A thing found for two categories is kept for one alone, the one with the better score."""
    min_area: int = 1
    """Instances with fewer pixels are noise."""


def places_not_there(kept: KeptPhrase, instances: Sequence[Instance], annotations: Sequence[Annotation]) -> list[int]:
    """Places of a phrase's instances that repeat no annotation of its category, whatever its decision.

    The phrase's own open suggestions do not count: the instances are to replace them.
    """
    others = [item for item in _without_open_ones(annotations, [kept]) if item.category_id == kept.category_id]
    repeats = _repeats([one.mask for one in instances], others, SuppressionLimits(REPEAT_IOU))
    return [place for place, repeat in enumerate(repeats) if not repeat]


def chosen_places(found: Sequence[Found], annotations: Sequence[Annotation], rules: ChoiceRules) -> list[list[int]]:
    """Places of the instances that become suggestions, ascending, for each phrase of one image.

    Phrases of one category are looked at together, best score first: of instances that repeat each other the best one
    stays, unless an annotation that is there, whatever its decision, shows the thing already. Open suggestions of these
    phrases do not count: the instances are to replace them.
    """
    others = _without_open_ones(annotations, [kept for kept, _ in found])
    chosen: list[list[int]] = [[] for _ in found]
    for members, there in _pools(found, others, rules.across_categories):
        for member, place in _best_of(found, members, there, rules):
            chosen[member].append(place)
    return [sorted(places) for places in chosen]


def hidden_ids(annotations: Sequence[Annotation], limits: SuppressionLimits) -> set[int]:
    """Ids of the open suggestions of one image that repeat an annotation of their category.

    What a person accepted, drew or rejected comes first, then suggestions by their score.
    """
    if not limits.active:
        return set()
    hidden: set[int] = set()
    for category_id in {item.category_id for item in annotations}:
        hidden |= _hidden_of([item for item in annotations if item.category_id == category_id], limits)
    return hidden


def places_shown(
    kept: KeptPhrase,
    instances: Sequence[Instance],
    places: Sequence[int],
    annotations: Sequence[Annotation],
    limits: SuppressionLimits,
) -> list[int]:
    """Those of a phrase's instances at `places`, best first, that would not be hidden as its suggestions."""
    if not limits.active:
        return list(places)
    others = [item for item in _without_open_ones(annotations, [kept]) if item.category_id == kept.category_id]
    repeats = _repeats([instances[place].mask for place in places], others, limits)
    left = [place for place, repeat in zip(places, repeats, strict=True) if not repeat]
    stay = suppress([instances[place].mask for place in left], limits.iou, limits.containment)
    return [left[index] for index in stay]


def _hidden_of(items: Sequence[Annotation], limits: SuppressionLimits) -> set[int]:
    """Of one category."""
    waiting = [item for item in items if item.decision is Decision.PENDING]
    waiting.sort(key=lambda item: -(item.score or 0.0))
    decided = [item for item in items if item.decision is not Decision.PENDING]
    shown: set[int] = set()
    for size in {_size(item.mask) for item in waiting}:
        alike = [item for item in waiting if _size(item.mask) == size]
        repeats = _repeats([item.mask for item in alike], decided, limits)
        left = [item for item, repeat in zip(alike, repeats, strict=True) if not repeat]
        kept = suppress([item.mask for item in left], limits.iou, limits.containment)
        shown |= {left[index].annotation_id for index in kept}
    return {item.annotation_id for item in waiting} - shown


def _pools(
    found: Sequence[Found], others: Sequence[Annotation], across_categories: bool
) -> Iterable[tuple[list[int], list[Annotation]]]:
    """Phrases, by their place in `found`, that are looked at together, each with the annotations they may repeat."""
    if across_categories:
        return [(list(range(len(found))), list(others))]
    return [
        (
            [member for member, (kept, _) in enumerate(found) if kept.category_id == category_id],
            [item for item in others if item.category_id == category_id],
        )
        for category_id in dict.fromkeys(kept.category_id for kept, _ in found)
    ]


def _best_of(
    found: Sequence[Found], members: Sequence[int], there: Sequence[Annotation], rules: ChoiceRules
) -> list[tuple[int, int]]:
    """(phrase, place) of what stays of one pool."""
    pool = [(member, place) for member in members for place in range(len(found[member][1]))]
    pool = [(member, place) for member, place in pool if found[member][1][place].mask.area >= rules.min_area]
    pool.sort(key=lambda at: -found[at[0]][1][at[1]].score)
    masks = [found[member][1][place].mask for member, place in pool]
    stored_once = replace(rules.limits, iou=min(rules.limits.iou or 1.0, REPEAT_IOU))
    new = np.flatnonzero(~_repeats(masks, there, stored_once))
    kept = suppress([masks[index] for index in new], rules.limits.iou, rules.limits.containment)
    return [pool[new[index]] for index in kept]


def _repeats(masks: Sequence[Mask], there: Sequence[Annotation], limits: SuppressionLimits) -> NDArray[np.bool_]:
    """Which of the masks, all of one image, show what an annotation shows.

    Part of a rejected annotation may be right where the whole was not, so lying inside one does not count.
    """
    alike = [item for item in there if masks and _size(item.mask) == _size(masks[0])]
    whole = [item.mask for item in alike if item.decision is not Decision.REJECTED]
    found = np.zeros(len(masks), dtype=bool)
    if alike and limits.iou is not None and limits.iou < 1:
        found |= iou_matrix(masks, [item.mask for item in alike]).max(axis=1) >= limits.iou
    if whole and limits.containment is not None and limits.containment < 1:
        found |= containment_matrix(masks, whole).max(axis=1) > limits.containment
    return found


def _without_open_ones(annotations: Sequence[Annotation], phrases: Collection[KeptPhrase]) -> list[Annotation]:
    """Without the open suggestions of these phrases."""
    keys = {phrase_key(kept.text) for kept in phrases}
    return [
        item
        for item in annotations
        if item.decision is not Decision.PENDING or phrase_key(item.phrase or "") not in keys
    ]


def _size(mask: Mask) -> tuple[int, int]:
    return mask.height, mask.width
