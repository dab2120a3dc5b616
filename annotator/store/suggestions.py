"""What models answer: suggestions that wait for a decision, and which runs are finished."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from annotator.errors import AnnotationError
from annotator.records import NewAnnotation, RunTotal, phrase_key
from annotator.store.annotations import Annotations
from engines.types import Phrase


class Suggestions(Annotations):
    """The model output's part of the store. A run is one phrase on one image by one model at one score threshold."""

    def replace_suggestions(
        self,
        image_id: int,
        phrase: str,
        category_id: int,
        bundle_id: str,
        score_threshold: float,
        suggestions: Sequence[NewAnnotation],
    ) -> list[int]:
        """Store a finished run as one action; answers the ids of the new annotations.

        The image's pending suggestions for this phrase, of whatever model, make room for the new ones, which all get
        `phrase`, `category_id` and `bundle_id`. What a person accepted, rejected or drew is neither changed nor
        removed, so leave suggestions that repeat it out.
        """
        text = Phrase(phrase).text
        with self.atomic():
            self.image(image_id)
            self._check_category(category_id)
            # Left to choose, SQLite goes through all of the project's suggestions for the phrase.
            self._write(
                "DELETE FROM annotation INDEXED BY annotation_by_image "
                "WHERE image_id = ? AND phrase_key = ? AND decision = 'pending' AND score IS NOT NULL",
                (image_id, phrase_key(text)),
            )
            ids = [
                self._insert_suggestion(
                    image_id, replace(new, phrase=text, category_id=category_id, bundle_id=bundle_id)
                )
                for new in suggestions
            ]
            self._record_run(image_id, text, bundle_id, score_threshold, len(ids))
            self._bump_revision(image_id)
            return ids

    def has_run(self, image_id: int, phrase: str, bundle_id: str, score_threshold: float | None = None) -> bool:
        """Whether that run is finished, also if it found nothing; at whatever threshold if that is None."""
        threshold = None if score_threshold is None else _rounded(score_threshold)
        row = self._row(
            "SELECT 1 FROM finished_run WHERE image_id = ? AND phrase_key = ? AND bundle_id = ? "
            "AND score_threshold = coalesce(?, score_threshold)",
            (image_id, phrase_key(phrase), bundle_id, threshold),
        )
        return row is not None

    def finished_runs(self, bundle_id: str, score_threshold: float) -> set[tuple[int, str]]:
        """(image_id, `records.phrase_key` of the phrase) of all finished runs of that model at that threshold."""
        rows = self._rows(
            "SELECT image_id, phrase_key FROM finished_run WHERE bundle_id = ? AND score_threshold = ?",
            (bundle_id, _rounded(score_threshold)),
        )
        return {(image_id, key) for image_id, key in rows}

    def runs_in_force(self, bundle_id: str, score_threshold: float, since_s: float = 0.0) -> set[tuple[int, str]]:
        """As `finished_runs`, without those whose suggestions another model or threshold has replaced since.

        Those finished before `since_s`, seconds since 1970, are left out too.
        """
        rows = self._rows(
            "SELECT image_id, phrase_key FROM finished_run AS mine WHERE bundle_id = ? AND score_threshold = ? "
            "AND finished_at >= ? AND NOT EXISTS (SELECT 1 FROM finished_run AS other WHERE "
            "other.image_id = mine.image_id AND other.phrase_key = mine.phrase_key "
            "AND other.finished_at > mine.finished_at)",
            (bundle_id, _rounded(score_threshold), since_s),
        )
        return {(image_id, key) for image_id, key in rows}

    def run_totals(self) -> list[RunTotal]:
        """Images and suggestions of each finished run, phrase by phrase, the run begun first coming first."""
        rows = self._rows(
            "SELECT bundle_id, score_threshold, phrase_key, count(*), sum(n_suggestions), min(finished_at), "
            "max(finished_at) FROM finished_run GROUP BY bundle_id, score_threshold, phrase_key "
            "ORDER BY min(finished_at)"
        )
        return [RunTotal(*row) for row in rows]

    def forget_runs(self, phrase: str | None = None, image_id: int | None = None, bundle_id: str | None = None) -> int:
        """Have runs done again: of that phrase, image and model, each None meaning any. Answers how many.

        Suggestions stay until the new run replaces them.
        """
        key = None if phrase is None else phrase_key(phrase)
        with self.atomic():
            return self._write(
                "DELETE FROM finished_run WHERE phrase_key = coalesce(?, phrase_key) "
                "AND image_id = coalesce(?, image_id) AND bundle_id = coalesce(?, bundle_id)",
                (key, image_id, bundle_id),
            ).rowcount

    def _insert_suggestion(self, image_id: int, new: NewAnnotation) -> int:
        if new.score is None:
            raise AnnotationError("a model's suggestion has no score; report this with the model's name")
        return self._insert_annotation(image_id, new)

    def _record_run(self, image_id: int, phrase: str, bundle_id: str, score_threshold: float, n: int) -> None:
        self._write(
            "INSERT OR REPLACE INTO finished_run "
            "(image_id, phrase_key, bundle_id, score_threshold, n_suggestions, finished_at) VALUES (?, ?, ?, ?, ?, ?)",
            (image_id, phrase_key(phrase), bundle_id, _rounded(score_threshold), n, time.time()),
        )


def _rounded(score_threshold: float) -> float:
    """So that a threshold that went through float32 is still the same run."""
    return round(score_threshold, 6)
