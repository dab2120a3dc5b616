"""Pre-labelling in the background: one run at a time in a program, watched and stopped from any thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from threading import Lock, Thread
from typing import Any

from annotator.errors import CommandError, PrelabelRunningError
from annotator.prelabel import Prelabeller
from annotator.prelabelling.options import PrelabelOptions
from annotator.prelabelling.summary import PrelabelProgress, PrelabelSummary
from annotator.records import KeptPhrase
from annotator.workspace import Workspace
from engines.errors import PhrasemaskError

N_FAILURES_SHOWN = 100

_log = logging.getLogger(__name__)


class JobPhase(Enum):
    """Where a run is."""

    NONE = "none"
    """None was started since the program was."""
    LOADING = "loading"
    """The model is loaded, and the project looked through."""
    RUNNING = "running"
    STOPPING = "stopping"
    """The images in work are finished."""
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_under_way(self) -> bool:
        """Whether another run has to wait."""
        return self in (JobPhase.LOADING, JobPhase.RUNNING, JobPhase.STOPPING)


@dataclass(frozen=True)
class JobState:
    """A run as it is seen from outside."""

    number: int = 0
    """Which run of this program it is; 0 before the first."""
    phase: JobPhase = JobPhase.NONE
    n_images: int = 0
    n_looked_at: int = 0
    images_per_s: float | None = None
    seconds_left: float | None = None
    seconds: float = 0.0
    n_done: int = 0
    n_reviewed: int = 0
    n_already: int = 0
    n_failed: int = 0
    n_suggestions: dict[str, int] = field(default_factory=dict)
    """New suggestions by phrase."""
    understood: dict[str, str] = field(default_factory=dict)
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Path and reason of the latest `N_FAILURES_SHOWN`."""
    notes: list[str] = field(default_factory=list)
    error: str = ""
    """Why it failed, in one sentence."""

    def as_json(self) -> dict[str, Any]:
        """Plain values for the page."""
        return {**vars(self), "phase": self.phase.value}


class PrelabelJob:
    """The one place of a program where a run can be under way; what it says outlives whoever asked for it.

    Its thread is the only one that writes; the person at the page goes first at the model.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._state = JobState()
        self._worked_on: list[str] = []
        self._run: Prelabeller | None = None
        self._stopping = False
        self._thread: Thread | None = None

    @property
    def state(self) -> JobState:
        """How far it is."""
        with self._lock:
            return self._state

    def start(self, phrases: Sequence[KeptPhrase], options: PrelabelOptions) -> JobState:
        """Begin a run over the project. Raises `PrelabelRunningError` while one is under way, and `CommandError`
        without phrases."""
        if not phrases:
            raise CommandError("no phrase is chosen; tick at least one, or add one such as coffee cup=cup")
        with self._lock:
            if self._state.phase.is_under_way:
                raise PrelabelRunningError
            counts = {kept.text: 0 for kept in phrases}
            self._state = JobState(self._state.number + 1, JobPhase.LOADING, n_suggestions=counts)
            self._worked_on, self._run, self._stopping = [], None, False
            self._thread = Thread(target=self._work, args=(phrases, options), name="prelabel", daemon=True)
            self._thread.start()
            return self._state

    def stop(self) -> None:
        """End after the images in work; does nothing when none is under way."""
        with self._lock:
            if not self._state.phase.is_under_way:
                return
            self._stopping = True
            self._state = replace(self._state, phase=JobPhase.STOPPING)
            if self._run is not None:
                self._run.stop()

    def close(self) -> None:
        """Stop, and wait until the images in work are stored."""
        self.stop()
        if self._thread is not None:
            self._thread.join()

    @property
    def n_worked_on(self) -> int:
        """Images that were done or failed."""
        with self._lock:
            return len(self._worked_on)

    def worked_on(self, since: int, most: int) -> list[str]:
        """Paths of at most so many images that were done or failed, in order, without the first `since`."""
        with self._lock:
            return self._worked_on[since : since + most]

    def _work(self, phrases: Sequence[KeptPhrase], options: PrelabelOptions) -> None:
        try:
            run = Prelabeller(self._workspace, phrases, options)
            self._note_begin(run)
            for progress in run.run():
                self._note(run.summary, progress)
            self._end(JobPhase.STOPPED if run.summary.stopped else JobPhase.FINISHED, run.summary)
        except PhrasemaskError as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the page must be able to say it
            _log.exception("pre-labelling failed")
            self._fail(f"pre-labelling met a fault ({type(error).__name__}: {error}); start it again, it goes on there")

    def _note_begin(self, run: Prelabeller) -> None:
        with self._lock:
            self._run = run
            if self._stopping:
                run.stop()
            else:
                self._state = replace(self._state, phase=JobPhase.RUNNING)
            self._state = replace(self._state, n_images=run.summary.n_images)

    def _note(self, summary: PrelabelSummary, progress: PrelabelProgress) -> None:
        with self._lock:
            if summary.n_worked_on > len(self._worked_on):
                self._worked_on.append(progress.path)
            self._state = replace(_counted(self._state, summary), seconds_left=progress.seconds_left)

    def _end(self, phase: JobPhase, summary: PrelabelSummary) -> None:
        self._leave(lambda state: replace(_counted(state, summary), phase=phase, seconds_left=None))

    def _fail(self, sentence: str) -> None:
        self._leave(lambda state: replace(state, phase=JobPhase.FAILED, seconds_left=None, error=sentence))

    def _leave(self, change: Callable[[JobState], JobState]) -> None:
        with self._lock:
            self._run = None
            self._state = change(self._state)


def _counted(state: JobState, summary: PrelabelSummary) -> JobState:
    """Copies of what the run goes on changing."""
    return replace(
        state,
        n_looked_at=summary.n_looked_at,
        images_per_s=summary.images_per_s,
        seconds=summary.seconds,
        n_done=summary.n_done,
        n_reviewed=summary.n_reviewed,
        n_already=summary.n_already,
        n_failed=len(summary.failures),
        n_suggestions=dict(summary.n_suggestions),
        understood=dict(summary.understood),
        failures=list(islice(reversed(summary.failures.items()), N_FAILURES_SHOWN)),
        notes=list(summary.notes),
    )
