"""Stores what a model found as suggestions: which of it is new, in place of what, and by which run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from annotator.records import Decision, KeptPhrase, NewAnnotation
from annotator.repeats import ChoiceRules, Found, chosen_places, places_not_there
from annotator.store import ProjectStore
from engines.types import Instance


@dataclass(frozen=True)
class Run:
    """What is stored as one run: a model at a score threshold."""

    bundle_id: str
    score_threshold: float
    accept_above: float | None = None
    """Suggestions at or above this score are stored as accepted."""


def store_answer(
    store: ProjectStore, image_id: int, kept: KeptPhrase, instances: Sequence[Instance], run: Run
) -> dict[int, int]:
    """Store what is found for one phrase, in place of its earlier suggestions; the new ids by place in `instances`.

    An instance that repeats another annotation of its category is left out; duplicates among the new ones are kept.
    """
    with store.atomic():
        fresh = places_not_there(kept, instances, store.annotations(image_id))
        ids = _replace(store, image_id, kept, [instances[place] for place in fresh], run)
    return dict(zip(fresh, ids, strict=True))


def store_found(
    store: ProjectStore, image_id: int, found: Sequence[Found], run: Run, rules: ChoiceRules
) -> dict[int, int]:
    """Store what the rules leave of what is found for several phrases, in place of their earlier suggestions, as one
    action.

    Returns how many by `phrase_id`. Phrases that have been forgotten since are left out, and all of them where a person
    has reviewed the image since.
    """
    with store.atomic():
        if store.image(image_id).done:
            return {}
        now_kept = {kept.phrase_id: kept for kept in store.kept_phrases()}
        found = [(now_kept[kept.phrase_id], one) for kept, one in found if kept.phrase_id in now_kept]
        chosen = chosen_places(found, store.annotations(image_id), rules)
        for (kept, instances), places in zip(found, chosen, strict=True):
            _replace(store, image_id, kept, [instances[place] for place in places], run)
    return {kept.phrase_id: len(places) for (kept, _), places in zip(found, chosen, strict=True)}


def _replace(
    store: ProjectStore, image_id: int, kept: KeptPhrase, instances: Sequence[Instance], run: Run
) -> list[int]:
    new = [_suggestion(instance, kept, run) for instance in instances]
    return store.replace_suggestions(image_id, kept.text, kept.category_id, run.bundle_id, run.score_threshold, new)


def _suggestion(instance: Instance, kept: KeptPhrase, run: Run) -> NewAnnotation:
    sure = run.accept_above is not None and instance.score >= run.accept_above
    decision = Decision.ACCEPTED if sure else Decision.PENDING
    return NewAnnotation.from_instance(instance, kept.category_id, kept.text, run.bundle_id, decision)
