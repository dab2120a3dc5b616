"""Builds a model's engines from the command line: a bar while it lasts, Ctrl+C to stop, a line for each engine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, current_thread, main_thread
from types import FrameType

from annotator.models import EngineRow, engine_row
from engines.bundle import ModelBundle
from engines.protocols import Progress
from engines.tensorrt_engines.key import BuildOptions
from engines.tensorrt_engines.library import Library
from engines.tensorrt_engines.provide import clean_engines, compile_bundle

_SHOWN_KEY_DIGITS = 12
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def compile_model(
    library: Library, bundle: ModelBundle, architecture: str, options: BuildOptions, *, clean: bool
) -> list[str]:
    """Build what is not built; a line for each engine, and for each file that was cleaned away.

    Raises what `compile_bundle` does: `EngineCancelledError` after Ctrl+C.
    """
    bundle.verify()
    with _bar() as progress:
        records = compile_bundle(library, bundle, architecture, options, progress)
        dropped = clean_engines(library, bundle, records, progress) if clean else []
    lines = [f"{engine_line(engine_row(record))}, {record.path}" for record in records]
    return [*lines, *(f"deleted {name}" for name in dropped)]


def engine_line(row: EngineRow) -> str:
    """One engine in one line."""
    verdict = f"{row.verdict}, see {row.report}" if row.report else row.verdict
    return (
        f"engine {row.role}: {row.runtime} {row.version} for {row.architecture}, key {row.key[:_SHOWN_KEY_DIGITS]}, "
        f"{row.size_bytes / 1e6:.1f} MB, {age(datetime.fromisoformat(row.built_at))} old, {verdict}"
    )


def age(since: datetime) -> str:
    """How long ago that was, in the largest unit that fits."""
    seconds = max((datetime.now(UTC) - since).total_seconds(), 0)
    for unit_s, unit in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        n = int(seconds // unit_s)
        if n:
            return f"{n} {unit}{'s' if n > 1 else ''}"
    return "less than a minute"


@contextmanager
def _bar() -> Iterator[Progress]:
    """A bar on a terminal. Ctrl+C must not raise while TensorRT calls back, so it only leaves a note."""
    from tqdm import tqdm

    stop = Event()
    with tqdm(total=100, unit="%", disable=None, bar_format="{desc:<50.50} {percentage:3.0f}%|{bar}|") as bar:

        def tell(what: str, share: float) -> bool:
            bar.set_description_str(what, refresh=False)
            bar.n = round(share * 100, 1)
            bar.refresh()
            return not stop.is_set()

        with _on_interrupt(stop):
            yield tell


@contextmanager
def _on_interrupt(stop: Event) -> Iterator[None]:
    """Signals reach the main thread alone."""
    if current_thread() is not main_thread():
        yield
        return

    def note(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    earlier = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)
