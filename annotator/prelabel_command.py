"""Runs a pre-labelling in the terminal: progress, Ctrl+C, and what is said in the end."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from annotator.errors import CommandError, ModelFailingError
from annotator.models import load_model
from annotator.prelabel import Prelabeller
from annotator.prelabelling.answering import Answering
from annotator.prelabelling.image_places import FolderPlace, ImagePlace, url_place
from annotator.prelabelling.on_ray import ray_crew
from annotator.prelabelling.processes import process_crew
from annotator.prelabelling.summary import PrelabelSummary
from annotator.terminal import DONE, NOTHING_DONE, SOME_FAILED, STOPPED, say
from engines.cuda_driver import n_cuda_devices
from engines.loader import AUTO


@dataclass(frozen=True)
class Elsewhere:
    """Options that have images answered outside this process. Raises `CommandError` for those that exclude others."""

    n_workers: int | None = None
    ray_address: str | None = None
    images_url: str | None = None
    cache_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.n_workers is not None and self.ray_address is not None:
            raise CommandError("--workers and --ray exclude each other: choose one")
        if self.images_url is not None and self.ray_address is None:
            raise CommandError("--images-url is for --ray: images of this machine are read from FOLDER")
        if self.cache_dir is not None and (self.n_workers is not None or self.ray_address is not None):
            raise CommandError("--cache-dir is for one process: leave it out, or --workers and --ray")
        if self.images_url is not None:
            url_place(self.images_url)

    def answering(self, folder: Path, model: str, runtime: str, device: str, *, force: bool) -> Answering | None:
        """Workers for the images of a folder; None for this process alone."""
        model = str(Path(model).resolve()) if Path(model).is_dir() else model
        images: ImagePlace = url_place(self.images_url) if self.images_url is not None else FolderPlace(folder)

        def load(chosen_device: str) -> partial[Any]:
            return partial(load_model, model, runtime, chosen_device, force=force)

        if self.ray_address is not None:
            return ray_crew(self.ray_address, device, load, images)
        if self.n_workers is not None:
            return process_crew(self.n_workers, lambda number: load(_spread(device, number)), images)
        return None


def _spread(device: str, number: int) -> str:
    """Workers take the GPUs in turn."""
    n_gpus = n_cuda_devices() if device == AUTO else 0
    return f"cuda:{number % n_gpus}" if n_gpus > 1 else device


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
