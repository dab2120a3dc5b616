"""Annotations: reading them, streaming them for an export, counting them, and inserting new ones."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterator
from typing import Any

from annotator.errors import AnnotationError, UnknownAnnotationError
from annotator.records import Annotation, Counts, Decision, ImageRecord, ImageState, NewAnnotation, phrase_key
from annotator.store.categories import Categories
from annotator.store.images import IMAGE_COLUMNS, image_from_row
from engines.masks import Mask

_COLUMNS = (
    "annotation_id, image_id, category_id, phrase, height, width, counts, x1, y1, x2, y2, score, bundle_id, decision"
)
_BEST_FIRST = "score IS NULL, score DESC, annotation_id"


class Annotations(Categories):
    """The annotations' part of the store."""

    def annotations(self, image_id: int, decisions: Collection[Decision] | None = None) -> list[Annotation]:
        """Those of one image with one of the decisions, or all of them.

        Best score first, then those drawn by a person, oldest first: numbers on the page stay when one is drawn.
        """
        return _read_annotations(self._rows, image_id, _decided(decisions), None)

    def annotation(self, annotation_id: int) -> Annotation:
        """The annotation of that id; raises `UnknownAnnotationError`."""
        row = self._row(f"SELECT {_COLUMNS} FROM annotation WHERE annotation_id = ?", (annotation_id,))  # noqa: S608
        if row is None:
            raise UnknownAnnotationError(annotation_id)
        return _from_row(row)

    def iter_annotated_images(
        self,
        decisions: Collection[Decision],
        min_score: float | None = None,
        include_reviewed_empty: bool = True,
    ) -> Iterator[tuple[ImageRecord, list[Annotation]]]:
        """Images by path, each with its annotations that have one of the decisions and at least that score.

        An image with none is given only if a person has marked it done and `include_reviewed_empty` is true. Drawn
        annotations have no score and pass every `min_score`. Missing images are given too: their annotations are kept.
        It streams from a snapshot, as saved when iteration begins: later actions do not show, and do not wait.
        """
        decided = _decided(decisions)
        with self._snapshot() as reader:

            def rows(sql: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
                return reader.execute(sql, values)

            candidates = f"SELECT {IMAGE_COLUMNS} FROM image WHERE done OR n_pending OR n_accepted OR n_rejected "  # noqa: S608
            for row in reader.execute(candidates + "ORDER BY path"):
                image = image_from_row(row)
                found = _read_annotations(rows, image.image_id, decided, min_score)
                if found or (image.done and include_reviewed_empty):
                    yield image, found

    def counts(self) -> Counts:
        """The project in numbers, as one consistent whole."""
        with self._snapshot() as reader:
            images = reader.execute(
                "SELECT count(*), coalesce(sum(missing), 0), coalesce(sum(NOT missing AND failure IS NOT NULL), 0) "
                "FROM image"
            ).fetchone()
            states = reader.execute(
                "SELECT done, NOT done AND n_pending + n_accepted + n_rejected > 0, count(*) FROM image "
                "WHERE NOT missing AND failure IS NULL GROUP BY 1, 2"
            ).fetchall()
            decided = reader.execute(
                "SELECT name, decision, count(annotation_id) FROM category LEFT JOIN annotation USING (category_id) "
                "GROUP BY category_id, decision ORDER BY category_id"
            ).fetchall()
        return _counts(images, states, decided)

    def _insert_annotation(self, image_id: int, new: NewAnnotation) -> int:
        """The new annotation's id. Raises `AnnotationError` or `UnknownCategoryError`."""
        _check_score(new)
        self._check_category(new.category_id)
        key = None if new.phrase is None else phrase_key(new.phrase)
        mask = new.mask
        return self._insert(
            "INSERT INTO annotation (image_id, category_id, phrase, phrase_key, height, width, counts, "
            "x1, y1, x2, y2, score, bundle_id, decision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(image_id, new.category_id, new.phrase, key, mask.height, mask.width, mask.counts),
                *(*new.xyxy, new.score, new.bundle_id, new.decision.value),
            ),
        )


def _check_score(new: NewAnnotation) -> None:
    if new.score is None and new.decision is Decision.PENDING:
        raise AnnotationError("an annotation drawn by a person is accepted or rejected, it cannot wait for a decision")
    if new.score is not None and not 0 <= new.score <= 1:
        raise AnnotationError(f"the score {new.score} is not a number from 0 to 1; report this with the model's name")
    if not all(math.isfinite(value) for value in new.xyxy):
        raise AnnotationError(f"the box {new.xyxy} is not made of finite numbers; report this with the model's name")


def _decided(decisions: Collection[Decision] | None) -> str:
    """A condition on `decision`; the values are the enumeration's own."""
    chosen = list(Decision) if decisions is None else sorted(set(decisions))
    return f"decision IN ({', '.join(repr(decision.value) for decision in chosen)})"


def _read_annotations(rows: Any, image_id: int, decided: str, min_score: float | None) -> list[Annotation]:
    """`rows` runs a statement; see `Annotations.annotations`."""
    sql = (
        f"SELECT {_COLUMNS} FROM annotation WHERE image_id = ? AND {decided} "  # noqa: S608
        f"AND (score IS NULL OR score >= ?) ORDER BY {_BEST_FIRST}"
    )
    return [_from_row(row) for row in rows(sql, (image_id, 0.0 if min_score is None else min_score))]


def _from_row(row: tuple[Any, ...]) -> Annotation:
    """A row of `_COLUMNS`."""
    annotation_id, image_id, category_id, phrase, height, width, counts, x1, y1, x2, y2, score, bundle_id, decision = (
        row
    )
    mask = Mask(height, width, counts)
    box = (x1, y1, x2, y2)
    return Annotation(annotation_id, image_id, category_id, phrase, mask, box, score, bundle_id, Decision(decision))


def _counts(images: tuple[int, int, int], states: list[Any], decided: list[Any]) -> Counts:
    n_images, n_missing, n_failed = images
    by_state = dict.fromkeys(ImageState, 0)
    for done, suggested, n in states:
        by_state[ImageState.DONE if done else ImageState.SUGGESTED if suggested else ImageState.UNTOUCHED] += n
    by_category: dict[str, dict[Decision, int]] = {}
    for name, decision, n in decided:
        of_category = by_category.setdefault(name, dict.fromkeys(Decision, 0))
        if decision is not None:
            of_category[Decision(decision)] = n
    totals = {decision: sum(of[decision] for of in by_category.values()) for decision in Decision}
    return Counts(n_images, by_state, n_failed, n_missing, totals, by_category)
