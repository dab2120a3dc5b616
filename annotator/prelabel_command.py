"""Runs a pre-labelling in the terminal: progress, Ctrl+C, and what is said in the end."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from annotator.errors import ModelFailingError
from annotator.prelabel import Prelabeller
from annotator.prelabelling.summary import PrelabelSummary
from annotator.terminal import DONE, NOTHING_DONE, SOME_FAILED, STOPPED, say


def run_prelabelling(run: Prelabeller, *, as_json: bool) -> int:
    """Run to the end or to Ctrl+C and report; answers the exit code.

    The first Ctrl+C ends after the images in work, the second at once; what was stored is safe either way.
    """
    failing: ModelFailingError | None = None
    try:
        with _ctrl_c_stops(run):
            _walk(run)
    except ModelFailingError as error:
        failing = error
    code = _report(run.summary, as_json=as_json)
    if failing is not None:
        say(f"error: {failing}")
        return NOTHING_DONE
    return code


def _walk(run: Prelabeller) -> None:
    from tqdm import tqdm

    n_notes = 0
    with tqdm(total=len(run.images), unit="image", delay=1, disable=None, smoothing=0.05) as bar:
        for progress in run.run():
            bar.update(progress.n_looked_at - bar.n)
            for note in run.summary.notes[n_notes:]:
                bar.write(note, file=sys.stderr)
            n_notes = len(run.summary.notes)


@contextmanager
def _ctrl_c_stops(run: Prelabeller) -> Iterator[None]:
    """Signals can be taken by the main thread alone; elsewhere Ctrl+C is not ours."""
    if current_thread() is not main_thread():
        yield
        return

    def on_first(_number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, on_second)
        run.stop()
        say("stopping after the images in work; press Ctrl+C again to stop at once")

    def on_second(_number: int, _frame: Any) -> None:
        os.write(2, b"stopped at once; run it again to go on\n")
        os._exit(STOPPED)

    before = signal.signal(signal.SIGINT, on_first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _report(summary: PrelabelSummary, *, as_json: bool) -> int:
    """Say what was done; the exit code."""
    for text, sentence in summary.understood.items():
        say(f"'{text}': {sentence}")
    for path, reason in summary.failures.items():
        say(f"failed {path}: {reason}")
    print(json.dumps(summary.as_json(), indent=2, ensure_ascii=False) if as_json else "\n".join(summary.lines()))
    if summary.stopped:
        say(f"stopped after {summary.n_looked_at} of {summary.n_images} images; run it again to go on")
        return STOPPED
    if summary.failures and len(summary.failures) == summary.n_looked_at:
        return NOTHING_DONE
    return SOME_FAILED if summary.failures else DONE
