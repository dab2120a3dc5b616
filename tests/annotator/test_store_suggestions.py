from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from store_samples import BUNDLE, OTHER_BUNDLE, drawing, found, square, suggest, suggestion

from annotator.errors import AnnotationError, UnknownCategoryError, UnknownImageError
from annotator.records import Decision, NewAnnotation
from annotator.store import ProjectStore
from engines.errors import PhraseError
from engines.types import Instance


@pytest.fixture
def store(tmp_path: Path):
    with ProjectStore.open(tmp_path) as store:
        store.sync_images(found("a.jpg", "b.jpg"))
        store.ensure_category("cat")
        yield store


def test_a_models_answer_is_stored_and_read_back_unchanged(store: ProjectStore) -> None:
    box = np.array([2.25, 1.0, 5.1, 4.7], dtype=np.float32)
    instance = Instance(square(), box, 0.625)
    new = NewAnnotation.from_instance(instance, 1, "striped cat", BUNDLE)
    (annotation_id,) = store.replace_suggestions(1, "striped cat", 1, BUNDLE, 0.5, [new])
    stored = store.annotation(annotation_id)
    assert (stored.image_id, stored.category_id, stored.phrase, stored.bundle_id) == (1, 1, "striped cat", BUNDLE)
    assert (stored.mask, stored.score, stored.decision, stored.drawn) == (square(), 0.625, "pending", False)
    assert np.array_equal(np.array(stored.xyxy, dtype=np.float32), box)
    assert store.image(1).state == "suggested"


def test_a_new_run_replaces_pending_suggestions_of_its_phrase_and_nothing_else(store: ProjectStore) -> None:
    accepted, rejected, _ = suggest(store, 1, 0.9, 0.8, 0.7)
    store.decide(1, {accepted: Decision.ACCEPTED, rejected: Decision.REJECTED}, None, "decide 2")
    _, drawn = store.draw(1, drawing(phrase="striped cat"), None, "draw cat")
    (other_phrase,) = suggest(store, 1, 0.6, phrase="mug")
    (other_image,) = suggest(store, 2, 0.6)

    new = suggest(store, 1, 0.65, 0.55, phrase=" STRIPED  cat")

    left = {each.annotation_id: each.decision for each in store.annotations(1)}
    human = {accepted: "accepted", rejected: "rejected", drawn: "accepted"}
    assert left == {**human, other_phrase: "pending", new[0]: "pending", new[1]: "pending"}
    assert [each.annotation_id for each in store.annotations(2)] == [other_image]


def test_every_run_bumps_the_revision_even_when_it_finds_nothing(store: ProjectStore) -> None:
    before = store.image(1).revision
    assert suggest(store, 1) == []
    assert store.image(1).revision == before + 1
    assert store.image(1).state == "untouched"


def test_a_run_is_one_phrase_on_one_image_by_one_model_at_one_threshold(store: ProjectStore) -> None:
    assert not store.has_run(1, "striped cat", BUNDLE, 0.5)
    suggest(store, 1)
    assert store.has_run(1, "STRIPED  cat", BUNDLE, 0.5)
    assert store.has_run(1, "striped cat", BUNDLE, float(np.float32(0.5)))
    assert store.has_run(1, "striped cat", BUNDLE)
    assert not store.has_run(2, "striped cat", BUNDLE, 0.5)
    assert not store.has_run(1, "cat", BUNDLE, 0.5)
    assert not store.has_run(1, "striped cat", OTHER_BUNDLE, 0.5)
    assert not store.has_run(1, "striped cat", BUNDLE, 0.4)
    assert store.finished_runs(BUNDLE, 0.5) == {(1, "striped cat")}
    assert store.finished_runs(BUNDLE, 0.4) == store.finished_runs(OTHER_BUNDLE, 0.5) == set()


def test_a_run_is_in_force_until_another_model_or_threshold_replaces_its_suggestions(store: ProjectStore) -> None:
    for image_id in (1, 2):
        store.replace_suggestions(image_id, "cat", 1, BUNDLE, 0.5, [suggestion()])
    assert store.runs_in_force(BUNDLE, 0.5) == {(1, "cat"), (2, "cat")}
    store.replace_suggestions(1, "cat", 1, BUNDLE, 0.7, [])
    store.replace_suggestions(1, "dog", 1, OTHER_BUNDLE, 0.5, [])
    assert store.runs_in_force(BUNDLE, 0.5) == {(2, "cat")}
    assert store.runs_in_force(BUNDLE, 0.7) == {(1, "cat")}
    store.replace_suggestions(2, "cat", 1, OTHER_BUNDLE, 0.5, [])
    assert store.runs_in_force(BUNDLE, 0.5) == set()
    assert store.finished_runs(BUNDLE, 0.5) == {(1, "cat"), (2, "cat")}


def test_runs_from_before_a_moment_are_left_out_on_request(store: ProjectStore) -> None:
    store.replace_suggestions(1, "cat", 1, BUNDLE, 0.5, [])
    moment = time.time()
    store.replace_suggestions(2, "cat", 1, BUNDLE, 0.5, [])
    assert store.runs_in_force(BUNDLE, 0.5, moment) == {(2, "cat")}


def test_runs_are_counted_apart_by_model_threshold_and_phrase(store: ProjectStore) -> None:
    store.replace_suggestions(1, "cat", 1, BUNDLE, 0.5, [suggestion(), suggestion()])
    store.replace_suggestions(2, "Cat", 1, BUNDLE, 0.5, [suggestion()])
    store.replace_suggestions(1, "cat", 1, OTHER_BUNDLE, 0.5, [])
    store.replace_suggestions(1, "cat", 1, BUNDLE, 0.7, [suggestion()])
    totals = [
        (one.bundle_id, one.score_threshold, one.phrase_key, one.n_images, one.n_suggestions)
        for one in store.run_totals()
    ]
    assert totals == [(BUNDLE, 0.5, "cat", 2, 3), (OTHER_BUNDLE, 0.5, "cat", 1, 0), (BUNDLE, 0.7, "cat", 1, 1)]
    first = store.run_totals()[0]
    assert 0 < first.first_at <= first.last_at <= time.time()


def test_a_threshold_that_went_through_float32_is_the_same_run(store: ProjectStore) -> None:
    store.replace_suggestions(1, "cat", 1, BUNDLE, float(np.float32(0.3)), [])
    assert store.has_run(1, "cat", BUNDLE, 0.3)


def test_forgotten_runs_are_done_again_and_their_suggestions_stay_until_then(store: ProjectStore) -> None:
    for image_id in (1, 2):
        for phrase in ("striped cat", "mug"):
            suggest(store, image_id, 0.9, phrase=phrase)
    assert store.forget_runs(phrase="Striped cat", image_id=1) == 1
    assert store.finished_runs(BUNDLE, 0.5) == {(1, "mug"), (2, "striped cat"), (2, "mug")}
    assert store.forget_runs(phrase="mug") == 2
    assert store.forget_runs(bundle_id=OTHER_BUNDLE) == 0
    assert store.forget_runs() == 1
    assert len(store.annotations(1)) == len(store.annotations(2)) == 2


def test_suggestions_above_a_bar_may_come_accepted(store: ProjectStore) -> None:
    new = [suggestion(score=0.99, decision=Decision.ACCEPTED), suggestion(score=0.6)]
    store.replace_suggestions(1, "striped cat", 1, BUNDLE, 0.5, new)
    assert [each.decision for each in store.annotations(1)] == ["accepted", "pending"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.01, 1.01, None])
def test_a_score_that_is_no_score_is_refused_and_the_earlier_run_stays(store: ProjectStore, score) -> None:
    before = suggest(store, 1, 0.9)
    with pytest.raises(AnnotationError, match="score"):
        suggest(store, 1, 0.8, score)
    assert [each.annotation_id for each in store.annotations(1)] == before


def test_a_box_that_is_not_finite_is_refused(store: ProjectStore) -> None:
    with pytest.raises(AnnotationError, match="finite"):
        store.replace_suggestions(1, "cat", 1, BUNDLE, 0.5, [suggestion(xyxy=(0.0, 0.0, float("inf"), 1.0))])


def test_unknown_images_categories_and_empty_phrases_are_refused(store: ProjectStore) -> None:
    with pytest.raises(UnknownImageError):
        suggest(store, 9, 0.9)
    with pytest.raises(UnknownCategoryError):
        suggest(store, 1, 0.9, category_id=9)
    with pytest.raises(PhraseError):
        suggest(store, 1, 0.9, phrase="  ")
    assert store.finished_runs(BUNDLE, 0.5) == set()


def test_a_run_takes_no_longer_in_a_large_project(store: ProjectStore) -> None:
    store.sync_images(found(*(f"{n}.jpg" for n in range(2_000))))
    image_ids = [image.image_id for image in store.images()]

    def n_steps_of_a_run(image_id: int) -> int:
        steps = []
        store._connection.set_progress_handler(lambda: steps.append(1), 10)
        suggest(store, image_id, 0.9)
        store._connection.set_progress_handler(None, 0)
        return len(steps)

    first = n_steps_of_a_run(image_ids[0])
    with store.atomic():
        for image_id in image_ids:
            suggest(store, image_id, 0.9)
    assert n_steps_of_a_run(image_ids[0]) <= first + 20
