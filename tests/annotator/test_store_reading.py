from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from store_samples import BUNDLE, drawing, found, suggest, suggestion

from annotator.errors import UnknownAnnotationError
from annotator.records import Decision, FoundImage
from annotator.store import ProjectStore

ACCEPTED, PENDING, REJECTED = [Decision.ACCEPTED], [Decision.PENDING], [Decision.REJECTED]


@pytest.fixture
def store(tmp_path: Path):
    """
    1.jpg: accepted .9 and pending .6; 2.jpg: rejected .8, done; 3.jpg: drawn, done; 4.jpg: nothing, done;
    5.jpg: nothing; 6.jpg: pending .7, and its file vanished.
    """
    with ProjectStore.open(tmp_path) as store:
        store.sync_images(found(*(f"{n}.jpg" for n in range(1, 7))))
        store.ensure_category("cat")
        store.ensure_category("dog")
        accepted, _ = suggest(store, 1, 0.9, 0.6)
        store.decide(1, {accepted: Decision.ACCEPTED}, None, "accept 1")
        (rejected,) = suggest(store, 2, 0.8)
        store.decide(2, {rejected: Decision.REJECTED}, None, "reject 1", done=True)
        store.draw(3, drawing(), None, "draw cat")
        store.mark_done(3, True, None, "done")
        store.mark_done(4, True, None, "done")
        suggest(store, 6, 0.7)
        store.sync_images(found(*(f"{n}.jpg" for n in range(1, 6))))
        yield store


def _seen(pairs) -> dict[str, list[float | None]]:
    return {image.path: [each.score for each in annotations] for image, annotations in pairs}


def test_annotations_come_best_first_and_drawn_ones_last(store: ProjectStore) -> None:
    _, drawn = store.draw(5, drawing(), None, "draw cat")
    scores = suggest(store, 5, 0.6, 0.9, 0.6, phrase="mug")
    order = [each.annotation_id for each in store.annotations(5)]
    assert order == [scores[1], scores[0], scores[2], drawn]


def test_annotations_can_be_read_by_decision(store: ProjectStore) -> None:
    assert [each.score for each in store.annotations(1, ACCEPTED)] == [0.9]
    assert [each.score for each in store.annotations(1, PENDING)] == [0.6]
    assert len(store.annotations(1, ACCEPTED + PENDING)) == 2
    assert store.annotations(1, []) == []
    with pytest.raises(UnknownAnnotationError):
        store.annotation(999)


@pytest.mark.parametrize(
    ("decisions", "min_score", "reviewed_empty", "expected"),
    [
        (ACCEPTED, None, True, {"1.jpg": [0.9], "2.jpg": [], "3.jpg": [None], "4.jpg": []}),
        (ACCEPTED, None, False, {"1.jpg": [0.9], "3.jpg": [None]}),
        (ACCEPTED, 0.95, False, {"3.jpg": [None]}),
        (PENDING, None, False, {"1.jpg": [0.6], "6.jpg": [0.7]}),
        (PENDING, 0.65, False, {"6.jpg": [0.7]}),
        (REJECTED, None, False, {"2.jpg": [0.8]}),
        (list(Decision), 0.7, False, {"1.jpg": [0.9], "2.jpg": [0.8], "3.jpg": [None], "6.jpg": [0.7]}),
        ([], None, False, {}),
    ],
)
def test_images_stream_with_the_annotations_asked_for(
    store: ProjectStore, decisions, min_score, reviewed_empty, expected
) -> None:
    assert _seen(store.iter_annotated_images(decisions, min_score, reviewed_empty)) == expected


def test_a_stream_shows_the_project_as_it_was_when_it_began(store: ProjectStore) -> None:
    stream = store.iter_annotated_images(ACCEPTED)
    first = next(stream)
    store.mark_done(5, True, None, "done")
    store.draw(4, drawing(), None, "draw cat")
    assert _seen([first, *stream]) == {"1.jpg": [0.9], "2.jpg": [], "3.jpg": [None], "4.jpg": []}
    assert "5.jpg" in _seen(store.iter_annotated_images(ACCEPTED))


def test_a_stream_that_is_dropped_half_way_holds_nothing_back(store: ProjectStore) -> None:
    stream = store.iter_annotated_images(ACCEPTED)
    next(stream)
    stream.close()
    store.mark_done(5, True, None, "done")


def test_a_stream_of_many_annotations_stays_flat_in_memory(tmp_path: Path) -> None:
    with ProjectStore.open(tmp_path / "large") as store:
        store.sync_images(FoundImage(f"{n}.jpg", 1, 1) for n in range(1_000))
        store.ensure_category("cat")
        with store.atomic():
            for image_id in range(1, 1_001):
                store.replace_suggestions(image_id, "cat", 1, BUNDLE, 0.5, [suggestion()] * 10)
        tracemalloc.start()
        n = sum(len(annotations) for _, annotations in store.iter_annotated_images(PENDING))
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert n == 10_000
    assert peak_bytes < 500_000


def test_counts_tell_each_image_once_and_every_annotation(store: ProjectStore) -> None:
    store.record_failure(5, "cut off")
    counts = store.counts()
    assert (counts.n_images, counts.n_failed, counts.n_missing) == (6, 1, 1)
    assert counts.images == {"untouched": 0, "suggested": 1, "done": 3}
    assert counts.annotations == {"pending": 2, "accepted": 2, "rejected": 1}
    nothing = dict.fromkeys(Decision, 0)
    assert counts.by_category == {"cat": counts.annotations, "dog": nothing}


def test_an_empty_project_counts_to_zero(tmp_path: Path) -> None:
    with ProjectStore.open(tmp_path / "empty") as store:
        counts = store.counts()
        assert list(store.iter_annotated_images(list(Decision))) == []
    assert (counts.n_images, counts.n_failed, counts.n_missing, counts.by_category) == (0, 0, 0, {})
    assert set(counts.images.values()) == set(counts.annotations.values()) == {0}


def test_an_images_numbers_agree_with_its_annotations(store: ProjectStore) -> None:
    for image in store.images():
        decisions = [each.decision for each in store.annotations(image.image_id)]
        assert (image.n_pending, image.n_accepted, image.n_rejected) == tuple(map(decisions.count, Decision))
