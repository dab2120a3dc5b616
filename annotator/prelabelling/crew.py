"""Hands images out to workers, a few at a time, and takes the answers back in order; does again what a lost one had."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from annotator.errors import WorkerError
from annotator.prelabelling.answering import LoadedModel, Question
from annotator.prelabelling.job import Failure, Job
from annotator.prelabelling.worker import AT_ONCE, Reply

MOST_LOSSES = 3
"""An image is given up after so many workers were lost over it, and a run when a worker is lost so often on loading."""
_LOST_OVER_IMAGE = Failure(
    f"{MOST_LOSSES} workers died while they had this image, the last two with no other; memory may not suffice for it",
    is_of_file=False,
)
_PORTIONS_PER_MEMBER = 4
_MOST_PASSED_OVER = 1000


class Worker(Protocol):
    """A process somewhere. Its futures have a `Reply`, or any error at all when it is lost."""

    def hello(self) -> Future[Reply]:
        """Load the model; after a loss, in a new process."""

    def answer(self, jobs: Sequence[Job]) -> Future[Reply]:
        """Answer a few images."""

    def close(self) -> None:
        """End it at once: it keeps nothing."""


@dataclass(eq=False)
class _Portion:
    """Jobs that follow each other; a worker gets those on which something is to be done."""

    jobs: list[Job]
    n_losses: int = 0
    is_done: bool = False

    @property
    def wanted(self) -> list[Job]:
        return [job for job in self.jobs if job.is_wanted]

    def take(self, answered: Sequence[Job]) -> None:
        new = {job.image.image_id: job for job in answered}
        self.jobs = [new.get(job.image.image_id, job) for job in self.jobs]
        self.is_done = True

    def apart(self) -> list[_Portion]:
        """Its jobs one by one, so that the one that a worker dies of, if there is any, harms no other."""
        return [_Portion([job], self.n_losses, is_done=not job.is_wanted) for job in self.jobs]


@dataclass(eq=False)
class _Member:
    """A worker as the crew knows it."""

    worker: Worker
    is_ready: bool = False
    n_lost_loading: int = 0
    portions: list[_Portion] = field(default_factory=list)

    @property
    def has_room(self) -> bool:
        """A portion over which a worker was lost is worked on alone."""
        return self.is_ready and len(self.portions) < AT_ONCE and not any(one.n_losses for one in self.portions)


class Crew:
    """Images answered by workers that `start` makes; no more is begun ahead than a few portions for each."""

    def __init__(self, start: Callable[[Question], Sequence[Worker]]) -> None:
        self._start = start
        self._members: list[_Member] = []
        self._model: LoadedModel | None = None
        self._then: dict[Future[Reply], Callable[[Future[Reply]], None]] = {}
        self._window: list[_Portion] = []
        self._again: deque[_Portion] = deque()
        self._notes: list[str] = []

    def begin(self, question: Question) -> LoadedModel:
        """Start the workers and wait for the first one's model; the others join when theirs is loaded."""
        self._members = [_Member(worker) for worker in self._start(question)]
        try:
            for member in self._members:
                self._greet(member)
            while self._model is None:
                self._wait()
        except BaseException:
            self.close()
            raise
        return self._model

    def close(self) -> None:
        """End the workers."""
        for member in self._members:
            member.worker.close()

    def answered(
        self, jobs: Iterator[Job], stopping: Callable[[], bool], say: Callable[[str], None], ends: ExitStack
    ) -> Iterator[Job]:
        """The jobs in their order. What was handed out is answered also when it is `stopping`: `jobs` end then."""
        ends.callback(self.close)
        portions = self._portions(jobs)
        while True:
            self._hand_out(portions)
            while self._window and self._window[0].is_done:
                yield from self._window.pop(0).jobs
            if not self._window and self._is_at_end(portions):
                return
            if self._window and not self._window[0].is_done:
                self._wait()
            while self._notes:
                say(self._notes.pop(0))

    def _is_at_end(self, portions: Iterator[_Portion]) -> bool:
        portion = next(portions, None)
        if portion is not None:
            self._put(portion)
        return portion is None

    def _portions(self, jobs: Iterator[Job]) -> Iterator[_Portion]:
        at_once = self._model.images_at_once if self._model is not None else 1
        batch: list[Job] = []
        n_wanted = 0
        for job in jobs:
            batch.append(job)
            n_wanted += job.is_wanted
            if n_wanted == at_once or len(batch) == _MOST_PASSED_OVER:
                yield _Portion(batch)
                batch, n_wanted = [], 0
        if batch:
            yield _Portion(batch)

    def _hand_out(self, portions: Iterator[_Portion]) -> None:
        """First, to workers that have nothing else, what was lost; then new portions."""
        idle = (member for member in self._members if member.is_ready and not member.portions)
        for member, _ in zip(idle, range(len(self._again)), strict=False):
            self._give(member, self._again.popleft())
        while not self._again and self._has_room():
            portion = next(portions, None)
            if portion is None:
                return
            self._put(portion)

    def _has_room(self) -> bool:
        in_work = len(self._window) < _PORTIONS_PER_MEMBER * len(self._members)
        return in_work and any(member.has_room for member in self._members)

    def _put(self, portion: _Portion) -> None:
        """At the end of those in work. The least busy worker gets it."""
        self._window.append(portion)
        if not portion.wanted:
            portion.is_done = True
            return
        free = [member for member in self._members if member.has_room]
        if free:
            self._give(min(free, key=lambda member: len(member.portions)), portion)
        else:
            self._again.append(portion)

    def _give(self, member: _Member, portion: _Portion) -> None:
        member.portions.append(portion)
        self._then[member.worker.answer(portion.wanted)] = lambda future: self._take(member, portion, future)

    def _take(self, member: _Member, portion: _Portion, future: Future[Reply]) -> None:
        member.portions.remove(portion)
        if future.exception() is not None:
            self._redo(portion)
            self._replace(member)
        else:
            reply = self._checked(future)
            self._notes += reply.notes
            portion.take(reply.jobs)

    def _redo(self, portion: _Portion) -> None:
        portion.n_losses += 1
        if portion.n_losses >= MOST_LOSSES:
            portion.jobs[0].failure = _LOST_OVER_IMAGE
            portion.is_done = True
            return
        place = self._window.index(portion)
        self._window[place : place + 1] = apart = portion.apart()
        self._again.extend(one for one in apart if not one.is_done)

    def _replace(self, member: _Member) -> None:
        if member.is_ready:
            self._notes.append("a worker died; its images are done again")
            self._greet(member)

    def _greet(self, member: _Member) -> None:
        member.is_ready = False
        self._then[member.worker.hello()] = lambda future: self._join(member, future)

    def _join(self, member: _Member, future: Future[Reply]) -> None:
        if future.exception() is not None:
            member.n_lost_loading += 1
            if member.n_lost_loading >= MOST_LOSSES:
                raise WorkerError(
                    f"a worker died {MOST_LOSSES} times while it loaded the model ({future.exception()}); memory may "
                    "not suffice for so many, start fewer"
                )
            self._greet(member)
            return
        model = self._checked(future).model
        self._model = self._model or model
        if model is None or self._model is None or model.info.bundle_id != self._model.info.bundle_id:
            raise WorkerError("workers have different models of that name; put the same files on each machine")
        member.n_lost_loading, member.is_ready = 0, True

    def _checked(self, future: Future[Reply]) -> Reply:
        reply = future.result()
        if reply.refusal:
            raise WorkerError(reply.refusal)
        return reply

    def _wait(self) -> None:
        """Until something comes from a worker, and deal with it."""
        done, _ = wait(self._then, return_when=FIRST_COMPLETED)
        for future in done:
            self._then.pop(future)(future)
