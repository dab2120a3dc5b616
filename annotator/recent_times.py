"""How long the last encodings and edits took, for a person who wants to see when it slows."""

from __future__ import annotations

from collections import deque
from threading import Lock

from engines.stage_times import Percentiles

N_RECENT = 100
STAGES = ("encode", "phrase", "decode", "edit")
"""An image encoded; of an edit, the phrase encoded and instances decoded; the edit as a whole."""


class RecentTimes:
    """Milliseconds of the last runs of each stage."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {stage: deque(maxlen=N_RECENT) for stage in STAGES}
        self._lock = Lock()

    def add(self, stage: str, milliseconds: float) -> None:
        """Note a run of a stage, one of `STAGES`."""
        with self._lock:
            self._times[stage].append(milliseconds)

    def of(self, stage: str) -> list[float]:
        """Oldest first."""
        with self._lock:
            return list(self._times[stage])

    def last(self, stage: str) -> float | None:
        """The newest; None before the first."""
        times = self.of(stage)
        return times[-1] if times else None

    def summary(self) -> dict[str, Percentiles]:
        """Of the stages that have run."""
        return {stage: Percentiles.of(times) for stage in STAGES if (times := self.of(stage))}
