from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from store_samples import decisions_of, drawing, found, suggest, suggestion

from annotator.errors import (
    AnnotationError,
    RevisionConflictError,
    UnknownAnnotationError,
    UnknownCategoryError,
    UnknownImageError,
)
from annotator.records import Decision
from annotator.store import ProjectStore, journal

ACCEPTED, PENDING, REJECTED = Decision.ACCEPTED, Decision.PENDING, Decision.REJECTED


@pytest.fixture
def store(tmp_path: Path):
    with ProjectStore.open(tmp_path) as store:
        store.sync_images(found("a.jpg", "b.jpg"))
        store.ensure_category("cat")
        store.ensure_category("dog")
        yield store


def test_a_decision_is_stored_with_done_as_one_action(store: ProjectStore) -> None:
    first, second = suggest(store, 1, 0.9, 0.8)
    revision = store.image(1).revision
    action = store.decide(1, {first: ACCEPTED, second: REJECTED}, revision, "accept 1, reject 1", done=True)
    assert decisions_of(store, 1) == {first: ACCEPTED, second: REJECTED}
    image = store.image(1)
    assert (image.done, image.revision) == (True, revision + 1)
    assert (action.image_id, action.label) == (1, "accept 1, reject 1")
    assert abs((datetime.now(UTC) - action.done_at).total_seconds()) < 60


def test_every_action_is_refused_on_an_image_that_changed_meanwhile(store: ProjectStore) -> None:
    (annotation_id,) = suggest(store, 1, 0.9)
    seen = store.image(1).revision
    store.decide(1, {annotation_id: ACCEPTED}, seen, "accept 1")
    actions = [
        lambda: store.decide(1, {annotation_id: REJECTED}, seen, "reject 1", done=True),
        lambda: store.relabel(1, {annotation_id: 2}, seen, "change to dog"),
        lambda: store.draw(1, drawing(), seen, "draw cat"),
        lambda: store.adopt(1, [suggestion(decision=ACCEPTED)], seen, "accept 1"),
        lambda: store.mark_done(1, True, seen, "done"),
    ]
    for act in actions:
        with pytest.raises(RevisionConflictError, match=r"a\.jpg was changed meanwhile .* look at it again") as caught:
            act()
        assert (caught.value.expected, caught.value.found) == (seen, seen + 1)
    assert decisions_of(store, 1) == {annotation_id: ACCEPTED}
    assert not store.image(1).done
    assert store.can_undo() == "accept 1"


def test_two_stores_on_one_project_cannot_overwrite_each_other_silently(tmp_path: Path, store: ProjectStore) -> None:
    (annotation_id,) = suggest(store, 1, 0.9)
    with ProjectStore.open(tmp_path) as other:
        seen = other.image(1).revision
        store.decide(1, {annotation_id: ACCEPTED}, store.image(1).revision, "accept 1")
        with pytest.raises(RevisionConflictError):
            other.decide(1, {annotation_id: REJECTED}, seen, "reject 1")
        other.decide(1, {annotation_id: REJECTED}, other.image(1).revision, "reject 1")
    assert decisions_of(store, 1) == {annotation_id: REJECTED}


def test_without_a_revision_nothing_is_checked(store: ProjectStore) -> None:
    (annotation_id,) = suggest(store, 1, 0.9)
    store.mark_done(1, True, None, "done")
    store.decide(1, {annotation_id: ACCEPTED}, None, "accept 1")
    assert decisions_of(store, 1) == {annotation_id: ACCEPTED}


def test_an_action_on_something_that_is_not_there_changes_nothing(store: ProjectStore) -> None:
    (mine,) = suggest(store, 1, 0.9)
    (of_other_image,) = suggest(store, 2, 0.9)
    with pytest.raises(UnknownAnnotationError):
        store.decide(1, {mine: ACCEPTED, of_other_image: ACCEPTED}, None, "accept 2")
    with pytest.raises(UnknownAnnotationError):
        store.relabel(1, {mine: 2, 999: 2}, None, "change to dog")
    with pytest.raises(UnknownCategoryError):
        store.relabel(1, {mine: 99}, None, "change to nothing")
    with pytest.raises(UnknownCategoryError):
        store.adopt(1, [suggestion(decision=ACCEPTED), suggestion(99)], None, "accept 1")
    with pytest.raises(UnknownImageError):
        store.mark_done(99, True, None, "done")
    assert decisions_of(store, 1) == {mine: PENDING}
    assert (store.can_undo(), store.annotation(mine).category_id) == (None, 1)


def test_what_a_person_drew_is_accepted_without_a_score(store: ProjectStore) -> None:
    _, annotation_id = store.draw(1, suggestion(score=0.4), store.image(1).revision, "draw cat")
    drawn = store.annotation(annotation_id)
    assert (drawn.drawn, drawn.score, drawn.decision) == (True, None, ACCEPTED)


def test_a_drawn_annotation_never_waits_for_a_decision(store: ProjectStore) -> None:
    _, annotation_id = store.draw(1, drawing(), None, "draw cat")
    with pytest.raises(AnnotationError, match="accepted or rejected"):
        store.decide(1, {annotation_id: PENDING}, None, "reset")
    with pytest.raises(AnnotationError, match="accepted or rejected"):
        store.adopt(1, [drawing(decision=PENDING)], None, "adopt")
    store.decide(1, {annotation_id: REJECTED}, None, "reject 1")
    assert decisions_of(store, 1) == {annotation_id: REJECTED}


def test_deciding_on_live_results_keeps_them_and_the_phrase_as_one_action(store: ProjectStore) -> None:
    with store.atomic():
        store.keep_phrase("striped cat", 1)
        new = [suggestion(score=0.9, decision=ACCEPTED), suggestion(score=0.4)]
        _, ids = store.adopt(1, new, store.image(1).revision, "accept 1", done=True)
    assert decisions_of(store, 1) == {ids[0]: ACCEPTED, ids[1]: PENDING}
    assert store.image(1).done

    assert store.undo().label == "accept 1"
    assert (store.annotations(1), store.image(1).done) == ([], False)
    assert store.redo().label == "accept 1"
    assert decisions_of(store, 1) == {ids[0]: ACCEPTED, ids[1]: PENDING}


def test_undo_and_redo_go_through_every_kind_of_action_and_back(store: ProjectStore) -> None:
    first, second = suggest(store, 1, 0.9, 0.8)
    states = []

    def remember() -> None:
        annotations = [store.annotations(1), store.annotations(2)]
        states.append((annotations, [image.done for image in store.images()]))

    remember()
    for act in [
        lambda: store.decide(1, {first: ACCEPTED, second: REJECTED}, None, "decide 2", done=True),
        lambda: store.relabel(1, {first: 2}, None, "change to dog"),
        lambda: store.draw(2, drawing(), None, "draw cat"),
        lambda: store.decide(1, {second: ACCEPTED}, None, "accept 1"),
        lambda: store.mark_done(1, False, None, "not done"),
        lambda: store.adopt(2, [suggestion(decision=REJECTED)], None, "reject 1", done=True),
    ]:
        act()
        remember()
    labels = ["decide 2", "change to dog", "draw cat", "accept 1", "not done", "reject 1"]
    forth = list(states)

    states.clear()
    for label in reversed(labels):
        assert (store.can_undo(), store.undo().label, store.can_redo()) == (label, label, label)
        remember()
    assert states == forth[-2::-1]
    assert (store.can_undo(), store.undo()) == (None, None)

    states.clear()
    for label in labels:
        assert (store.can_redo(), store.redo().label) == (label, label)
        remember()
    assert states == forth[1:]
    assert (store.can_redo(), store.redo()) == (None, None)


def test_undo_and_redo_survive_closing_the_project(tmp_path: Path, store: ProjectStore) -> None:
    _, annotation_id = store.draw(1, drawing(), None, "draw cat")
    before = store.annotation(annotation_id)
    store.close()
    with ProjectStore.open(tmp_path) as again:
        assert again.undo().label == "draw cat"
        assert again.annotations(1) == []
    with ProjectStore.open(tmp_path) as again:
        assert again.redo().label == "draw cat"
        assert again.annotations(1) == [before]


def test_undo_is_of_the_last_action_whatever_image_it_was_on(store: ProjectStore) -> None:
    store.mark_done(1, True, None, "done a")
    store.mark_done(2, True, None, "done b")
    revisions = [image.revision for image in store.images()]
    undone = store.undo()
    assert (undone.image_id, undone.label) == (2, "done b")
    assert [image.revision for image in store.images()] == [revisions[0], revisions[1] + 1]
    assert store.redo().image_id == 2
    assert [image.revision for image in store.images()] == [revisions[0], revisions[1] + 2]


def test_a_new_action_ends_what_could_be_redone(store: ProjectStore) -> None:
    _, drawn = store.draw(1, drawing(), None, "draw cat")
    store.undo()
    store.mark_done(1, True, None, "done")
    assert (store.can_redo(), store.redo()) == (None, None)
    assert store.annotations(1) == []
    _, again = store.draw(1, drawing(), None, "draw cat")
    assert again != drawn


def test_annotations_that_a_run_replaced_are_passed_over(store: ProjectStore) -> None:
    store.mark_done(2, True, None, "done b")
    gone, kept = suggest(store, 1, 0.9, 0.8)
    store.decide(1, {gone: ACCEPTED, kept: REJECTED}, None, "decide 2")
    store.undo()
    store.decide(1, {kept: ACCEPTED}, None, "accept 1")
    store.undo()
    suggest(store, 1, 0.7)
    assert store.redo() is None
    assert store.undo().label == "done b"


def test_an_adopted_suggestion_that_a_run_replaced_does_not_come_back(store: ProjectStore) -> None:
    store.adopt(1, [suggestion(score=0.9, decision=ACCEPTED), suggestion(score=0.4)], None, "accept 1")
    suggest(store, 1, 0.5)
    scores_before = [each.score for each in store.annotations(1)]
    store.undo()
    assert [each.score for each in store.annotations(1)] == [0.5]
    store.redo()
    assert [each.score for each in store.annotations(1)] == scores_before == [0.9, 0.5]


def test_the_journal_is_bounded_and_forgets_the_oldest(store: ProjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MAX_ACTIONS", 3)
    (annotation_id,) = suggest(store, 1, 0.9)
    for n in range(10):
        store.decide(1, {annotation_id: (ACCEPTED, REJECTED)[n % 2]}, None, f"step {n}")
    assert [store.undo().label for _ in range(3)] == ["step 9", "step 8", "step 7"]
    assert store.undo() is None
    assert decisions_of(store, 1) == {annotation_id: ACCEPTED}
    assert store._row("SELECT count(*) FROM change") == (3,)


def test_actions_of_many_threads_all_arrive(store: ProjectStore) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        actions = list(pool.map(lambda n: store.draw(1 + n % 2, drawing(), None, f"draw {n}"), range(80)))
    assert len({annotation_id for _, annotation_id in actions}) == 80
    assert [store.image(1).n_accepted, store.image(2).n_accepted] == [40, 40]
