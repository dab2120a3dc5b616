"""What runs inside a worker, a process of its own: reads images and asks its own model about them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from annotator.predictor import Predictor
from annotator.prelabelling.answering import LoadedModel, Question
from annotator.prelabelling.asking import Asking
from annotator.prelabelling.image_places import ImagePlace
from annotator.prelabelling.job import Job
from annotator.prelabelling.reading import Reader, n_readers
from annotator.prelabelling.threads import made_ahead
from engines.errors import PhrasemaskError
from engines.protocols import Segmenter
from engines.runtimes.onnxruntime import CPU_THREADS_VARIABLE

AT_ONCE = 2
"""Portions that a worker has in hand: while one is answered, the next is read."""


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker needs to know; all of it can be sent to another process."""

    load: Callable[[], Segmenter]
    images: ImagePlace
    question: Question


@dataclass(frozen=True)
class Reply:
    """What a worker sends back: answers hold masks as run lengths, boxes and scores."""

    jobs: Sequence[Job] = ()
    notes: Sequence[str] = ()
    model: LoadedModel | None = None
    refusal: str = ""
    """Why it cannot work at all, in one sentence."""


class WorkerBody:
    """The inside of a worker; up to `AT_ONCE` threads use it."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._predictor = Predictor(setup.load)
        self._reader = Reader(setup.images, self._predictor, setup.question.phrases)
        self._question = setup.question
        self._beginning = Lock()
        self._asking: Asking | None = None
        self._notes: list[str] = []

    def hello(self) -> Reply:
        """Load the model."""
        return _reply(lambda: Reply(model=LoadedModel.of(self._predictor, self._question.phrases)))

    def answer(self, jobs: Sequence[Job]) -> Reply:
        """Answer a few images."""
        return _reply(lambda: self._answer(jobs))

    def _answer(self, jobs: Sequence[Job]) -> Reply:
        asking = self._asked()
        read = made_ahead(jobs, self._reader.read, min(n_readers(), len(jobs)), len(jobs), "prelabel-read")
        done = list(asking.answered(asking.encoded(read, lambda: False)))
        with self._beginning:
            notes, self._notes[:] = list(self._notes), []
        return Reply(done, notes)

    def _asked(self) -> Asking:
        """One for all portions: it learns how much fits into memory."""
        with self._beginning:
            if self._asking is None:
                asked, bundle_id = self._question, self._predictor.info.bundle_id
                n_phrases = len(asked.phrases)
                self._asking = Asking(self._predictor, bundle_id, asked.score_threshold, n_phrases, self._notes.append)
            return self._asking


def _reply(work: Callable[[], Reply]) -> Reply:
    """Errors travel as sentences, since many cannot be sent to another process."""
    try:
        return work()
    except PhrasemaskError as error:
        return Reply(refusal=str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, it must reach the person
        return Reply(refusal=f"a worker met a fault ({type(error).__name__}: {error}); run it again to go on")


def cpu_share(n_threads: int) -> dict[str, str]:
    """Environment variables that keep a worker to so many threads."""
    return {CPU_THREADS_VARIABLE: str(n_threads), "OMP_NUM_THREADS": str(n_threads)}


def keep_to_share(n_threads: int) -> None:
    """Keep this process to so many threads; before the model is loaded."""
    import cv2

    os.environ.update(cpu_share(n_threads))
    cv2.setNumThreads(n_threads)
