"""Pre-labels a folder: every phrase on every image that nobody has reviewed, resumable after any stop.

Reading and asking the model go on where images are answered (`annotator.prelabelling.answering`): in threads of this
process, in other processes, or on a cluster. The thread that takes the progress stores, at the same time. It alone
writes, all of an image in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from threading import Event

from annotator.errors import ModelFailingError
from annotator.prelabelling.answering import Answering, Here, Question
from annotator.prelabelling.job import Failure, Job
from annotator.prelabelling.options import PrelabelOptions
from annotator.prelabelling.redo import forget_redo, redone_since
from annotator.prelabelling.summary import PrelabelProgress, PrelabelSummary
from annotator.records import ImageRecord, KeptPhrase, phrase_key
from annotator.suggesting import Run, store_found
from annotator.workspace import Workspace
from engines.errors import ImageError


class Prelabeller:
    """One run over a project: take the steps of `run()`; `stop()` ends it after the images that are encoded.

    Making one loads the model, if it is not loaded yet, where images are answered: in this process, or `answering`.
    """

    def __init__(
        self,
        workspace: Workspace,
        phrases: Sequence[KeptPhrase],
        options: PrelabelOptions,
        answering: Answering | None = None,
    ) -> None:
        self._workspace = workspace
        self._phrases = phrases
        self._options = options
        self._stopping = Event()
        self._n_equal_failures = 0
        self._last_failure = ""
        self._n_to_do = 0
        self._answering = answering or Here(workspace)
        self._model = self._answering.begin(Question(phrases, options.score_threshold))
        self._run_by = Run(self._model.info.bundle_id, options.score_threshold, options.accept_above)
        self.images = workspace.store.images(include_missing=False)
        self.summary = PrelabelSummary(n_images=len(self.images), n_suggestions={item.text: 0 for item in phrases})

    def stop(self) -> None:
        """End soon, from any thread: what is encoded is still answered and stored, and no other image is begun."""
        self._stopping.set()

    def run(self) -> Iterator[PrelabelProgress]:
        """Work through the images, yielding after each, when it is stored. Closing the iterator stops at once.

        Raises `ModelFailingError` when too many images in a row fail alike, and what is wrong with the project or the
        model rather than with an image, such as a full disk.
        """
        self._workspace.note_model(self._model.info)
        self.summary.understood |= self._model.understood
        finished = self._finished_runs()
        self._n_to_do = sum(not image.done and bool(self._missing(image, finished)) for image in self.images)
        started = time.perf_counter()
        with ExitStack() as ends:
            say = self.summary.notes.append
            for job in self._answering.answered(self._begun(finished), self._stopping.is_set, say, ends):
                self._store(job)
                self.summary.seconds = time.perf_counter() - started
                yield self._progress(job)
        self.summary.stopped = self.summary.n_looked_at < len(self.images)
        if self._options.redo and not self.summary.stopped:
            forget_redo(self._workspace.store)

    def _begun(self, finished: set[tuple[int, str]]) -> Iterator[Job]:
        """A job for each image, none of them kept, until the run is told to stop."""
        for image in self.images:
            if self._stopping.is_set():
                return
            missing = self._missing(image, finished)
            if not missing and not image.done and self._is_replaced(image):
                missing = list(self._phrases)
            if missing and not image.done:
                image = self._workspace.store.image(image.image_id)  # noqa: PLW2901 - it may be reviewed meanwhile
            yield Job(image, missing)

    def _missing(self, image: ImageRecord, finished: set[tuple[int, str]]) -> list[KeptPhrase]:
        return [kept for kept in self._phrases if (image.image_id, phrase_key(kept.text)) not in finished]

    def _is_replaced(self, image: ImageRecord) -> bool:
        """Whether the file is another picture than the one it was run on. Read only where its size or time differs."""
        try:
            return self._workspace.pictures.measure(image).sha256 != image.sha256
        except ImageError:
            return True

    def _finished_runs(self) -> set[tuple[int, str]]:
        store, run, options = self._workspace.store, self._run_by, self._options
        since = redone_since(store, run.bundle_id, self._phrases, options) if options.redo else 0.0
        return store.runs_in_force(run.bundle_id, run.score_threshold, since)

    def _store(self, job: Job) -> None:
        if job.failure is not None:
            self._note_failure(job, job.failure)
        elif job.answers is not None:
            self._store_answers(job)
        elif job.image.done:
            self.summary.n_reviewed += 1
        else:
            self.summary.n_already += 1

    def _store_answers(self, job: Job) -> None:
        found = [(kept, answer.instances) for kept, answer in zip(job.todo, job.answers or (), strict=True)]
        image_id = job.image.image_id
        with self._workspace.store.atomic():
            self._record_opened(job)
            stored = store_found(self._workspace.store, image_id, found, self._run_by, self._options.rules)
            reviewed = self._workspace.store.image(image_id).done
        for kept in job.todo:
            self.summary.n_suggestions[kept.text] += stored.get(kept.phrase_id, 0)
        self._n_equal_failures = 0
        if reviewed:
            self.summary.n_reviewed += 1
        else:
            self.summary.n_done += 1

    def _record_opened(self, job: Job) -> None:
        if (seen := job.opened) is not None:
            self._workspace.store.record_opened(
                job.image.image_id, seen.sha256, seen.height, seen.width, seen.size_bytes, seen.mtime_ns
            )

    def _note_failure(self, job: Job, failure: Failure) -> None:
        reason = failure.reason
        if failure.is_of_file:
            self._workspace.store.record_failure(job.image.image_id, reason)
        else:
            self._record_opened(job)
        self._n_equal_failures = self._n_equal_failures + 1 if reason == self._last_failure else 1
        self._last_failure = reason
        self.summary.failures[job.image.path] = reason
        if 0 < self._options.max_equal_errors <= self._n_equal_failures:
            raise ModelFailingError(self._n_equal_failures, reason)

    def _progress(self, job: Job) -> PrelabelProgress:
        summary = self.summary
        rate = summary.images_per_s
        n_left = max(0, self._n_to_do - summary.n_worked_on)
        left = 0.0 if not n_left else None if rate is None else n_left / rate
        return PrelabelProgress(job.image.path, summary.n_images, summary.n_looked_at, rate, left)
