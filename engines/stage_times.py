"""How long each stage of an answer takes: graphs are wrapped, so that families need not know of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.protocols import DeviceTensor, KeepsOnDevice, Session

UPLOAD, DOWNLOAD = "upload", "download"


@dataclass(frozen=True)
class Percentiles:
    """Milliseconds within which half, 95 % and 99 % of the runs were done, and how many runs there were."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    n: int

    @classmethod
    def of(cls, times_ms: Sequence[float]) -> Percentiles:
        """Of at least one time."""
        p50, p95, p99 = (float(value) for value in np.percentile(times_ms, (50, 95, 99)))
        return cls(p50, p95, p99, len(times_ms))


class StageTimes:
    """Milliseconds by stage. What runs several times within one `turn` is added up to one entry of it."""

    def __init__(self) -> None:
        self.entries: dict[str, list[float]] = defaultdict(list)
        self._turn: dict[str, float] = {}

    def add(self, stage: str, milliseconds: float) -> None:
        """Note time of the turn."""
        self._turn[stage] = self._turn.get(stage, 0.0) + milliseconds

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note how long the block takes."""
        started = time.perf_counter()
        yield
        self.add(stage, (time.perf_counter() - started) * 1000)

    @property
    def turn_ms(self) -> float:
        """All that was noted in the turn so far."""
        return sum(self._turn.values())

    def end_turn(self) -> dict[str, float]:
        """Close the turn; answers its times."""
        turn, self._turn = self._turn, {}
        for stage, milliseconds in turn.items():
            self.entries[stage].append(milliseconds)
        return turn

    def summary(self) -> dict[str, Percentiles]:
        """Of all closed turns, by stage in the order in which they came."""
        return {stage: Percentiles.of(times) for stage, times in self.entries.items()}


def timed_session(session: Session, stage: str, times: StageTimes) -> Session:
    """The session, with its runs noted as `stage`; what travels to and from a device is noted apart."""
    if isinstance(session, KeepsOnDevice):
        return _TimedDeviceSession(session, stage, times)
    return _TimedSession(session, stage, times)


class _TimedSession:
    def __init__(self, session: Any, stage: str, times: StageTimes) -> None:
        self.runtime, self.device = session.runtime, session.device
        self._session, self._stage, self._times = session, stage, times

    def run(self, feeds: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        with self._times.timed(self._stage):
            outputs: dict[str, NDArray[Any]] = self._session.run(feeds)
        return outputs


class _TimedDeviceSession(_TimedSession):
    def run(self, feeds: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        return {name: np.asarray(tensor) for name, tensor in self.run_kept(feeds).items()}

    def run_kept(self, feeds: Mapping[str, Any]) -> dict[str, DeviceTensor]:
        with self._times.timed(UPLOAD):
            there = {name: self._there(feed) for name, feed in feeds.items()}
        with self._times.timed(self._stage):
            outputs = self._session.run_kept(there)
        return {name: _TimedTensor(tensor, self._times) for name, tensor in outputs.items()}

    def upload(self, array: NDArray[Any]) -> DeviceTensor:
        tensor: DeviceTensor = self._session.upload(array)
        return tensor

    def _there(self, feed: Any) -> Any:
        if isinstance(feed, _TimedTensor):
            return feed.tensor
        return self._session.upload(feed) if isinstance(feed, np.ndarray) else feed


class _TimedTensor:
    """A tensor on a device that notes how long its numbers take to the host."""

    def __init__(self, tensor: Any, times: StageTimes) -> None:
        self.tensor, self._times = tensor, times
        self.shape, self.dtype, self.device = tensor.shape, tensor.dtype, tensor.device
        self.ndim, self.nbytes = tensor.ndim, tensor.nbytes

    def __getitem__(self, row: int) -> Any:
        with self._times.timed(DOWNLOAD):
            part = self.tensor[row]
        return part if isinstance(part, np.ndarray | np.generic) else _TimedTensor(part, self._times)

    def kept_row(self, row: int) -> _TimedTensor:
        return _TimedTensor(self.tensor.kept_row(row), self._times)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        with self._times.timed(DOWNLOAD):
            return np.asarray(self.tensor, dtype=dtype)
