"""Any sequence of actions, undo and redo, against a plain model of what should be there."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from store_samples import BUNDLE, drawing, found, suggestion

from annotator.records import Decision
from annotator.store import ProjectStore

IMAGES = (1, 2)
CATEGORIES = (1, 2)
PHRASES = ("striped cat", "mug")
images, categories, phrases = map(st.sampled_from, (IMAGES, CATEGORIES, PHRASES))
decisions = st.sampled_from(Decision)
human_decisions = st.sampled_from([Decision.ACCEPTED, Decision.REJECTED])
dones = st.sampled_from([None, True, False])

Judged = tuple[Decision, int]


@dataclass
class Step:
    image_id: int
    label: str
    changes: dict[int, tuple[Judged | None, Judged]]
    done: tuple[bool, bool]


@dataclass
class Model:
    """`judged` holds what exists: annotation id → decision and category."""

    judged: dict[int, Judged] = field(default_factory=dict)
    image_of: dict[int, int] = field(default_factory=dict)
    phrase_of: dict[int, str | None] = field(default_factory=dict)
    shelf: set[int] = field(default_factory=set)
    done: dict[int, bool] = field(default_factory=lambda: dict.fromkeys(IMAGES, False))
    past: list[Step] = field(default_factory=list)
    future: list[Step] = field(default_factory=list)

    def on(self, image_id: int) -> dict[int, Judged]:
        return {each: judged for each, judged in self.judged.items() if self.image_of[each] == image_id}

    def add(self, image_id: int, annotation_id: int, phrase: str | None, judged: Judged) -> None:
        self.judged[annotation_id] = judged
        self.image_of[annotation_id] = image_id
        self.phrase_of[annotation_id] = phrase

    def perform(
        self, image_id: int, label: str, changes: dict[int, tuple[Judged | None, Judged]], done: bool | None
    ) -> None:
        self.future.clear()
        self.shelf.clear()
        after = self.done[image_id] if done is None else done
        self.past.append(Step(image_id, label, changes, (self.done[image_id], after)))
        self.judged.update({each: change[1] for each, change in changes.items()})
        self.done[image_id] = after

    def undo_target(self) -> Step | None:
        return next((step for step in reversed(self.past) if self._has_effect(step, 0)), None)

    def redo_target(self) -> Step | None:
        return next((step for step in reversed(self.future) if self._has_effect(step, 1)), None)

    def undo(self) -> None:
        self._move(self.past, self.future, self.undo_target(), 0)

    def redo(self) -> None:
        self._move(self.future, self.past, self.redo_target(), 1)

    def _has_effect(self, step: Step, to: int) -> bool:
        if step.done[0] != step.done[1] and self.done[step.image_id] != step.done[to]:
            return True
        return any(self._is_there(each, change, to) for each, change in step.changes.items())

    def _is_there(self, annotation_id: int, change: tuple[Judged | None, Judged], to: int) -> bool:
        if change[0] is None:
            return annotation_id in (self.judged, self.shelf)[to]
        return annotation_id in self.judged and self.judged[annotation_id] != change[to]

    def _move(self, source: list[Step], target: list[Step], step: Step | None, to: int) -> None:
        while step is not None and (not target or target[-1] is not step):
            target.append(source.pop())
        if step is None:
            return
        if step.done[0] != step.done[1]:
            self.done[step.image_id] = step.done[to]
        for annotation_id, change in step.changes.items():
            if self._is_there(annotation_id, change, to):
                self._set(annotation_id, change, to)

    def _set(self, annotation_id: int, change: tuple[Judged | None, Judged], to: int) -> None:
        if change[to] is None:
            del self.judged[annotation_id]
            self.shelf.add(annotation_id)
        else:
            self.shelf.discard(annotation_id)
            self.judged[annotation_id] = change[to]


class AnyUse(RuleBasedStateMachine):
    """Every rule does one thing to the store and the same to the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.model = Model()
        self.n_actions = 0
        self.revisions = dict.fromkeys(IMAGES, 0)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @initialize()
    def make(self) -> None:
        self.store = ProjectStore.open(Path(self.folder.name))
        self.store.sync_images(found("1.jpg", "2.jpg"))
        for name in ("cat", "dog"):
            self.store.ensure_category(name)

    def _label(self) -> str:
        self.n_actions += 1
        return f"action {self.n_actions}"

    @rule(image_id=images, phrase=phrases, category_id=categories, scores=st.lists(st.floats(0, 1), max_size=3))
    def run(self, image_id: int, phrase: str, category_id: int, scores: list[float]) -> None:
        new = [suggestion(score=score) for score in scores]
        ids = self.store.replace_suggestions(image_id, phrase.upper(), category_id, BUNDLE, 0.5, new)
        for each, (decision, _) in self.model.on(image_id).items():
            if decision is Decision.PENDING and self.model.phrase_of[each] == phrase:
                del self.model.judged[each]
        for each in ids:
            self.model.add(image_id, each, phrase, (Decision.PENDING, category_id))

    @precondition(lambda self: self.model.judged)
    @rule(data=st.data(), done=dones)
    def decide(self, data: st.DataObject, done: bool | None) -> None:
        image_id = self.model.image_of[data.draw(st.sampled_from(sorted(self.model.judged)))]
        on_image = self.model.on(image_id)
        chosen = data.draw(st.sets(st.sampled_from(sorted(on_image)), min_size=1))
        made = {
            each: data.draw(human_decisions if self.model.phrase_of[each] is None else decisions) for each in chosen
        }
        label = self._label()
        self.store.decide(image_id, made, self.store.image(image_id).revision, label, done)
        changes = {each: (on_image[each], (decision, on_image[each][1])) for each, decision in made.items()}
        self.model.perform(image_id, label, changes, done)

    @precondition(lambda self: self.model.judged)
    @rule(data=st.data(), category_id=categories)
    def relabel(self, data: st.DataObject, category_id: int) -> None:
        annotation_id = data.draw(st.sampled_from(sorted(self.model.judged)))
        image_id, judged = self.model.image_of[annotation_id], self.model.judged[annotation_id]
        label = self._label()
        self.store.relabel(image_id, {annotation_id: category_id}, None, label)
        self.model.perform(image_id, label, {annotation_id: (judged, (judged[0], category_id))}, None)

    @rule(image_id=images, category_id=categories)
    def draw(self, image_id: int, category_id: int) -> None:
        label = self._label()
        _, annotation_id = self.store.draw(image_id, drawing(category_id), None, label)
        self._added(image_id, label, {annotation_id: (Decision.ACCEPTED, category_id)}, None, None)

    @rule(image_id=images, phrase=phrases, made=st.lists(st.tuples(decisions, categories), max_size=3), done=dones)
    def adopt(self, image_id: int, phrase: str, made: list[Judged], done: bool | None) -> None:
        label = self._label()
        new = [suggestion(category_id, phrase, decision=decision) for decision, category_id in made]
        _, ids = self.store.adopt(image_id, new, None, label, done)
        self._added(image_id, label, dict(zip(ids, made, strict=True)), phrase, done)

    def _added(self, image_id: int, label: str, made: dict[int, Judged], phrase: str | None, done: bool | None) -> None:
        for annotation_id, judged in made.items():
            self.model.add(image_id, annotation_id, phrase, judged)
        self.model.perform(image_id, label, {each: (None, judged) for each, judged in made.items()}, done)

    @rule(image_id=images, done=st.booleans())
    def mark_done(self, image_id: int, done: bool) -> None:
        label = self._label()
        self.store.mark_done(image_id, done, None, label)
        self.model.perform(image_id, label, {}, done)

    @rule()
    def undo(self) -> None:
        target, undone = self.model.undo_target(), self.store.undo()
        assert (undone and undone.label) == (target and target.label)
        self.model.undo()

    @rule()
    def redo(self) -> None:
        target, redone = self.model.redo_target(), self.store.redo()
        assert (redone and redone.label) == (target and target.label)
        self.model.redo()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = ProjectStore.open(Path(self.folder.name), create=False)

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        for image in self.store.images():
            stored = {
                each.annotation_id: (each.decision, each.category_id) for each in self.store.annotations(image.image_id)
            }
            assert stored == self.model.on(image.image_id)
            assert image.done == self.model.done[image.image_id]
            numbers = [[judged[0] for judged in stored.values()].count(decision) for decision in Decision]
            assert [image.n_pending, image.n_accepted, image.n_rejected] == numbers
            assert image.revision >= self.revisions[image.image_id]
            self.revisions[image.image_id] = image.revision

    @invariant()
    def undo_and_redo_are_offered_as_in_the_model(self) -> None:
        undo, redo = self.model.undo_target(), self.model.redo_target()
        assert (self.store.can_undo(), self.store.can_redo()) == (undo and undo.label, redo and redo.label)


AnyUse.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
test_any_use_of_the_store_agrees_with_a_plain_model = AnyUse.TestCase
