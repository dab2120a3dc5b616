"""Turns TensorRT's nested build phases into one number that grows from 0 to 1, and can stop the build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engines.protocols import Progress


@dataclass
class _Phase:
    n_steps: int
    n_done: int = 0


class BuildProgress:
    """Adds up phases: a phase that runs inside another counts as a part of the step the other one is at."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._phases: dict[str, _Phase] = {}
        self._largest = 0.0
        self.stopped = False
        self.error: BaseException | None = None
        """What the listener raised. It must not pass through TensorRT, which would end the process."""

    def start(self, name: str, n_steps: int) -> None:
        """A phase begins."""
        self._phases[name] = _Phase(max(n_steps, 1))
        self._tell(name)

    def step(self, name: str, index: int) -> bool:
        """A step of a phase is done; answers whether to go on."""
        if name in self._phases:
            self._phases[name].n_done = index + 1
        self._tell(name)
        return not self.stopped

    def finish(self, name: str) -> None:
        """A phase ends, also after a stop. The last step of the outermost one is told of by nothing else."""
        self._phases.pop(name, None)
        if not self._phases:
            self._tell(name, 1.0)

    def _tell(self, name: str, share: float | None = None) -> None:
        if self.stopped:
            return
        self._largest = max(self._largest, self._share() if share is None else share)
        try:
            self.stopped = not self._progress(name, self._largest)
        except BaseException as error:  # noqa: BLE001 - raised again when the build has ended
            self.error, self.stopped = error, True

    def _share(self) -> float:
        share = 0.0
        for phase in reversed(self._phases.values()):
            share = min((phase.n_done + share) / phase.n_steps, 1.0)
        return share


def monitor(trt: Any, told: BuildProgress) -> Any:
    """An `IProgressMonitor` that tells `told`; to be kept alive until the build has ended."""

    class Monitor(trt.IProgressMonitor):
        def phase_start(self, name: str, parent: str | None, n_steps: int) -> None:
            told.start(name, n_steps)

        def step_complete(self, name: str, index: int) -> bool:
            return told.step(name, index)

        def phase_finish(self, name: str) -> None:
            told.finish(name)

    return Monitor()
