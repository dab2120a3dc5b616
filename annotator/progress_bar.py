"""A bar for work of minutes that reports how far it is, and that Ctrl+C stops in good order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

from engines.protocols import Progress


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on a terminal. Ctrl+C must not raise while a library calls back, so it only leaves a note."""
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
