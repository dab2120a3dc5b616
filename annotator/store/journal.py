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

_ACTION_COLUMNS = "action_id, image_id, label, done_at, done_before, done_after"


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


class Journal(Suggestions):
    """The undo part of the store."""

    def undo(self) -> Action | None:
        """Take back the last action of the project, on whatever image; None if there is none left.

        Annotations that no longer exist are passed over, and so is an action of which nothing is left to take back.
        """
        return self._step(undone=0, newest_first=True)

    def redo(self) -> Action | None:
        """Do again the action that was undone last; None if there is none. Passes over like `undo`."""
        return self._step(undone=1, newest_first=False)

    def can_undo(self) -> str | None:
        """The label of the action that `undo` would take back."""
        row = self._row("SELECT label FROM action WHERE undone = 0 ORDER BY action_id DESC LIMIT 1")
        return None if row is None else str(row[0])

    def can_redo(self) -> str | None:
        """The label of the action that `redo` would do again."""
        row = self._row("SELECT label FROM action WHERE undone = 1 ORDER BY action_id LIMIT 1")
        return None if row is None else str(row[0])

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

    def _step(self, undone: int, newest_first: bool) -> Action | None:
        order = "DESC" if newest_first else "ASC"
        with self.atomic():
            while True:
                row = self._row(
                    f"SELECT {_ACTION_COLUMNS} FROM action WHERE undone = ? ORDER BY action_id {order} LIMIT 1",  # noqa: S608
                    (undone,),
                )
                if row is None:
                    return None
                action_id, image_id, label, done_at, done_before, done_after = row
                self._write("UPDATE action SET undone = ? WHERE action_id = ?", (1 - undone, action_id))
                n_changed = self._replay(action_id, backwards=not undone)
                n_changed += self._set_done(image_id, done_before, done_after, backwards=not undone)
                if n_changed:
                    self._bump_revision(image_id)
                    return Action(action_id, image_id, label, datetime.fromtimestamp(done_at, UTC))

    def _replay(self, action_id: int, backwards: bool) -> int:
        """Apply an action's changes; answers how many annotations were there to be changed."""
        rows = self._rows("SELECT * FROM change WHERE action_id = ? ORDER BY annotation_id", (action_id,))
        changes = [_change(row) for row in rows]
        return sum(self._take_back(change) if backwards else self._do_again(change) for change in changes)

    def _take_back(self, change: Change) -> int:
        if change.before is None:
            return self._move("annotation", "shelved_annotation", change.annotation_id)
        return self._judge(change.annotation_id, change.before)

    def _do_again(self, change: Change) -> int:
        if change.before is None:
            return self._move("shelved_annotation", "annotation", change.annotation_id)
        return self._judge(change.annotation_id, change.after)

    def _judge(self, annotation_id: int, to: Judgement) -> int:
        """1 if the annotation is there and was otherwise, else 0."""
        return self._write(
            "UPDATE annotation SET decision = ?1, category_id = ?2 "
            "WHERE annotation_id = ?3 AND (decision <> ?1 OR category_id <> ?2)",
            (to.decision.value, to.category_id, annotation_id),
        ).rowcount

    def _move(self, source: str, target: str, annotation_id: int) -> int:
        """An annotation whose making is undone waits on the shelf, out of sight, for a redo."""
        insert = f"INSERT INTO {target} SELECT * FROM {source} WHERE annotation_id = ?"  # noqa: S608
        self._write(insert, (annotation_id,))
        return self._write(f"DELETE FROM {source} WHERE annotation_id = ?", (annotation_id,)).rowcount  # noqa: S608

    def _set_done(self, image_id: int, before: int, after: int, backwards: bool) -> int:
        if before == after:
            return 0
        done = before if backwards else after
        return self._write("UPDATE image SET done = ?1 WHERE image_id = ?2 AND done <> ?1", (done, image_id)).rowcount

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
