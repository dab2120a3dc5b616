"""Asks the model in a run: images in batches, phrases together, fewer at once where memory does not suffice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from annotator.errors import ModelReplacedError
from annotator.predictor import Answer, Predictor
from annotator.prelabelling.job import Job
from engines.errors import DeviceMemoryError
from engines.types import ImageFeatures, Phrase

Asked = TypeVar("Asked")
Got = TypeVar("Got")


class Portions:
    """Runs a model's call on as many things at once as fit into memory, learning how many do."""

    def __init__(self, at_once: int, thing: str, say: Callable[[str], None]) -> None:
        self.at_once = at_once
        self._thing = thing
        self._say = say

    def run(self, things: Sequence[Asked], call: Callable[[Sequence[Asked]], Sequence[Got]]) -> list[Got]:
        """The call's answers for all things. Raises `DeviceMemoryError` where even one is too much."""
        done: list[Got] = []
        while len(done) < len(things):
            portion = things[len(done) : len(done) + self.at_once]
            try:
                done += call(portion)
            except DeviceMemoryError as error:
                if len(portion) == 1:
                    raise
                self._halve(len(portion), error)
        return done

    def _halve(self, n: int, error: DeviceMemoryError) -> None:
        self.at_once = max(1, n // 2)
        self._say(f"{n} {self._thing} at once are too many ({error}); going on with {self.at_once}")


class Asking:
    """The model's two steps of a run, as iterators over jobs. Jobs that have failed, or need nothing, pass through."""

    def __init__(
        self,
        predictor: Predictor,
        bundle_id: str,
        score_threshold: float,
        n_phrases: int,
        say: Callable[[str], None],
    ) -> None:
        self._predictor = predictor
        self._bundle_id = bundle_id
        self._score_threshold = score_threshold
        self._images = Portions(predictor.images_at_once, "images", say)
        self._phrases = Portions(max(1, n_phrases), "phrases", say)

    def encoded(self, jobs: Iterable[Job], stopping: Callable[[], bool]) -> Iterator[Job]:
        """Jobs with their features, in order; ends early, without what is not encoded yet, when it is to stop."""
        batch: list[Job] = []
        for job in jobs:
            if stopping():
                return
            if job.prepared is None and not batch:
                yield job
                continue
            batch.append(job)
            if sum(one.prepared is not None for one in batch) >= self._images.at_once:
                yield from self._encode(batch)
                batch = []
        if not stopping():
            yield from self._encode(batch)

    def answered(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Jobs with their answers, in order."""
        for job in jobs:
            if job.features is not None:
                self._answer(job, job.features)
            yield job

    def _encode(self, batch: Sequence[Job]) -> Sequence[Job]:
        waiting = [job for job in batch if job.prepared is not None]
        try:
            self._encode_together(waiting)
        except Exception as error:  # noqa: BLE001 - whatever a model raises on one image, the others go on
            if len(waiting) == 1:
                waiting[0].fail(error)
            else:
                for job in waiting:
                    self._encode([job])
        return batch

    def _encode_together(self, jobs: Sequence[Job]) -> None:
        if self._predictor.info.bundle_id != self._bundle_id:
            raise ModelReplacedError
        images = [job.prepared for job in jobs if job.prepared is not None]
        found = self._images.run(images, lambda portion: self._predictor.encode_together(portion, ahead=True))
        for job, features in zip(jobs, found, strict=True):
            job.prepared, job.features = None, features

    def _answer(self, job: Job, features: ImageFeatures) -> None:
        phrases = [Phrase(kept.text) for kept in job.todo]
        try:
            job.answers = self._phrases.run(phrases, lambda portion: self._decode(features, portion))
            job.features = None
        except Exception as error:  # noqa: BLE001 - as above
            job.fail(error)

    def _decode(self, features: ImageFeatures, phrases: Sequence[Phrase]) -> list[Answer]:
        return self._predictor.decode(features, phrases, self._score_threshold, ahead=True)
