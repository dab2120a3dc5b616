"""What a person does: each method is one action, stored whole and undoable, refused if the image changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from annotator.errors import AnnotationError, UnknownAnnotationError
from annotator.records import Action, Annotation, Decision, NewAnnotation
from annotator.store.journal import Change, Journal, Judgement


class Review(Journal):
    """The human part of the store.

    `expected_revision` is the image's revision as the person saw it; `RevisionConflictError` if it has changed since,
    None to act whatever has changed. `label` names the action for undo, such as: accept 3.
    """

    def decide(
        self,
        image_id: int,
        decisions: Mapping[int, Decision],
        expected_revision: int | None,
        label: str,
        done: bool | None = None,
    ) -> Action:
        """Set the decision of annotations by id, and `done` of their image unless None."""
        with self.atomic():
            image = self._checked_image(image_id, expected_revision)
            found = self._annotations_by_id(image_id, decisions)
            changes = [
                _changed(found[annotation_id], Judgement(Decision(decision), found[annotation_id].category_id))
                for annotation_id, decision in decisions.items()
            ]
            return self._perform(image, label, changes, done)

    def relabel(
        self, image_id: int, categories: Mapping[int, int], expected_revision: int | None, label: str
    ) -> Action:
        """Set the category of annotations by id."""
        with self.atomic():
            image = self._checked_image(image_id, expected_revision)
            found = self._annotations_by_id(image_id, categories)
            for category_id in set(categories.values()):
                self._check_category(category_id)
            changes = [
                _changed(found[annotation_id], Judgement(found[annotation_id].decision, category_id))
                for annotation_id, category_id in categories.items()
            ]
            return self._perform(image, label, changes, None)

    def draw(
        self, image_id: int, annotation: NewAnnotation, expected_revision: int | None, label: str
    ) -> tuple[Action, int]:
        """Add what a person drew: stored as accepted and without a score. Answers its id too."""
        drawn = replace(annotation, score=None, decision=Decision.ACCEPTED)
        action, (annotation_id,) = self.adopt(image_id, [drawn], expected_revision, label)
        return action, annotation_id

    def adopt(
        self,
        image_id: int,
        new: Sequence[NewAnnotation],
        expected_revision: int | None,
        label: str,
        done: bool | None = None,
    ) -> tuple[Action, list[int]]:
        """Add annotations with their decisions, and set `done` unless None. Answers their ids, in the same order."""
        with self.atomic():
            image = self._checked_image(image_id, expected_revision)
            ids = [self._insert_annotation(image_id, each) for each in new]
            changes = [
                Change(annotation_id, None, Judgement(each.decision, each.category_id))
                for annotation_id, each in zip(ids, new, strict=True)
            ]
            return self._perform(image, label, changes, done), ids

    def mark_done(self, image_id: int, done: bool, expected_revision: int | None, label: str) -> Action:
        """Say that an image is reviewed, or that it is not."""
        with self.atomic():
            return self._perform(self._checked_image(image_id, expected_revision), label, (), done)

    def _annotations_by_id(self, image_id: int, wanted: Iterable[int]) -> dict[int, Annotation]:
        """All annotations of the image; raises `UnknownAnnotationError` if a wanted one is not there."""
        found = {each.annotation_id: each for each in self.annotations(image_id)}
        for annotation_id in wanted:
            if annotation_id not in found:
                raise UnknownAnnotationError(annotation_id)
        return found


def _changed(annotation: Annotation, after: Judgement) -> Change:
    if annotation.drawn and after.decision is Decision.PENDING:
        raise AnnotationError("an annotation drawn by a person is accepted or rejected, it cannot wait for a decision")
    return Change(annotation.annotation_id, Judgement(annotation.decision, annotation.category_id), after)
