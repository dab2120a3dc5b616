"""The journal of a person's actions: each is stored with what it changed, so that undo survives a restart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from annotator.records import Action, Decision, ImageRecord
from annotator.store.suggestions import Suggestions

MAX_ACTIONS = 10_000
"""Older actions can no longer be undone; what they did stays."""


@dataclass(frozen=True)
class Judgement:
    """What an annotation is to a person: its decision and category."""

    decision: Decision
    category_id: int


@dataclass(frozen=True)
class Change:
    """One annotation before and after an action; `before` None: the action made it."""

    annotation_id: int
    before: Judgement | None
    after: Judgement


@dataclass(frozen=True)
class _Way:
    """Undo or redo, in SQL."""

    next_action: str
    """The nearest action that would have any effect now."""
    turn_over: str
    """Moves that action, and those passed over before it, to the other side."""


_ACTION = (
    "SELECT action_id, image_id, label, done_at, done_before, done_after FROM action JOIN image USING (image_id) WHERE "
)
_CHANGED = "EXISTS (SELECT 1 FROM change AS it JOIN annotation AS now USING (annotation_id) WHERE it.action_id = "
_UNDO = _Way(
    next_action=f"{_ACTION} undone = 0 AND ((done_before <> done_after AND done <> done_before) "
    f"OR {_CHANGED} action.action_id "
    "AND (decision_before IS NULL OR decision <> decision_before OR category_id <> category_before))) "
    "ORDER BY action_id DESC LIMIT 1",
    turn_over="UPDATE action SET undone = 1 WHERE undone = 0 AND action_id >= ?",
)
_REDO = _Way(
    next_action=f"{_ACTION} undone = 1 AND ((done_before <> done_after AND done <> done_after) "  # noqa: S608
    f"OR {_CHANGED} action.action_id "
    "AND decision_before IS NOT NULL AND (decision <> decision_after OR category_id <> category_after)) "
    "OR EXISTS (SELECT 1 FROM change AS it JOIN shelved_annotation USING (annotation_id) "
    "WHERE it.action_id = action.action_id)) ORDER BY action_id LIMIT 1",
    turn_over="UPDATE action SET undone = 0 WHERE undone = 1 AND action_id <= ?",
)


class Journal(Suggestions):
    """The undo part of the store."""

    def undo(self) -> Action | None:
        """Take back the last action of the project, on whatever image; None if there is none left.

        Annotations that no longer exist are passed over, and so is an action of which nothing is left to take back.
        """
        return self._step(_UNDO)

    def redo(self) -> Action | None:
        """Do again the action that was undone last; None if there is none. Passes over like `undo`."""
        return self._step(_REDO)

    def can_undo(self) -> str | None:
        """The label of the action that `undo` would take back."""
        row = self._row(_UNDO.next_action)
        return None if row is None else str(row[2])

    def can_redo(self) -> str | None:
        """The label of the action that `redo` would do again."""
        row = self._row(_REDO.next_action)
        return None if row is None else str(row[2])

    def _perform(self, image: ImageRecord, label: str, changes: Sequence[Change], done: bool | None) -> Action:
        """Apply changes to existing annotations and `done`, and enter them; annotations made are there already."""
        self._forget_undone()
        done_after = image.done if done is None else done
        now = time.time()
        action_id = self._insert(
            "INSERT INTO action (image_id, label, done_at, done_before, done_after) VALUES (?, ?, ?, ?, ?)",
            (image.image_id, label, now, image.done, done_after),
        )
        self._write_many("INSERT INTO change VALUES (?, ?, ?, ?, ?, ?)", (_values(action_id, each) for each in changes))
        for change in changes:
            self._judge(change.annotation_id, change.after)
        self._write(
            "UPDATE image SET done = ?, revision = revision + 1, labelled_sha256 = sha256 WHERE image_id = ?",
            (done_after, image.image_id),
        )
        self._forget_oldest()
        return Action(action_id, image.image_id, label, datetime.fromtimestamp(now, UTC))

    def _step(self, way: _Way) -> Action | None:
        with self.atomic():
            row = self._row(way.next_action)
            if row is None:
                return None
            action_id, image_id, label, done_at, done_before, done_after = row
            self._write(way.turn_over, (action_id,))
            for change in self._rows("SELECT * FROM change WHERE action_id = ? ORDER BY annotation_id", (action_id,)):
                self._replay(_change(change), way)
            if done_before != done_after:
                done = done_before if way is _UNDO else done_after
                self._write("UPDATE image SET done = ? WHERE image_id = ?", (done, image_id))
            self._bump_revision(image_id)
            return Action(action_id, image_id, label, datetime.fromtimestamp(done_at, UTC))

    def _replay(self, change: Change, way: _Way) -> None:
        """An annotation whose making is undone waits on the shelf, out of sight, for a redo."""
        if change.before is not None:
            self._judge(change.annotation_id, change.before if way is _UNDO else change.after)
        elif way is _UNDO:
            self._move("annotation", "shelved_annotation", change.annotation_id)
        else:
            self._move("shelved_annotation", "annotation", change.annotation_id)

    def _judge(self, annotation_id: int, to: Judgement) -> None:
        """Does nothing for an annotation that no longer exists."""
        self._write(
            "UPDATE annotation SET decision = ?1, category_id = ?2 "
            "WHERE annotation_id = ?3 AND (decision <> ?1 OR category_id <> ?2)",
            (to.decision.value, to.category_id, annotation_id),
        )

    def _move(self, source: str, target: str, annotation_id: int) -> None:
        insert = f"INSERT INTO {target} SELECT * FROM {source} WHERE annotation_id = ?"  # noqa: S608
        self._write(insert, (annotation_id,))
        self._write(f"DELETE FROM {source} WHERE annotation_id = ?", (annotation_id,))  # noqa: S608

    def _forget_undone(self) -> None:
        """A new action ends the branch that could have been redone."""
        self._write("DELETE FROM action WHERE undone = 1")
        self._write("DELETE FROM shelved_annotation")

    def _forget_oldest(self) -> None:
        self._write(
            "DELETE FROM action WHERE action_id <= "
            "(SELECT action_id FROM action ORDER BY action_id DESC LIMIT 1 OFFSET ?)",
            (MAX_ACTIONS,),
        )


def _values(action_id: int, change: Change) -> tuple[Any, ...]:
    before, after = change.before, change.after
    return (
        action_id,
        change.annotation_id,
        None if before is None else before.decision.value,
        after.decision.value,
        None if before is None else before.category_id,
        after.category_id,
    )


def _change(row: tuple[Any, ...]) -> Change:
    _, annotation_id, decision_before, decision_after, category_before, category_after = row
    before = None if decision_before is None else Judgement(Decision(decision_before), category_before)
    return Change(annotation_id, before, Judgement(Decision(decision_after), category_after))
