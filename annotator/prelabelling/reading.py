"""Reads the pictures of a run: each file once, shrunk at once to what the model takes, so that few bytes wait."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from annotator.predictor import Predictor
from annotator.prelabelling.image_places import ImagePlace
from annotator.prelabelling.job import Job, Opened
from annotator.records import KeptPhrase
from engines.errors import UnreadableImageError
from engines.images import ReadImage, read_image

_MOST_READERS = 8


def n_readers() -> int:
    """Threads that read: one processor core is left to the model."""
    return max(1, min(_MOST_READERS, n_cores() - 1))


def n_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Reader:
    """Reads and shrinks one picture at a time; safe to use from several threads."""

    def __init__(self, images: ImagePlace, predictor: Predictor, phrases: Sequence[KeptPhrase]) -> None:
        self._images = images
        self._predictor = predictor
        self._phrases = phrases

    def read(self, job: Job) -> Job:
        """The job with its picture prepared for the model; untouched where nothing is to be done on it."""
        if not job.is_wanted:
            return job
        try:
            self._read(job)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one picture, the others go on
            job.fail(error)
        return job

    def _read(self, job: Job) -> None:
        with self._images.file(job.image.path) as path:
            read = read_image(path)
            job.opened = _opened(path, read)
        if job.image.sha256 not in (None, read.sha256):
            job.todo = self._phrases  # it is another picture now: what was found before is of the old one
        job.prepared = self._predictor.prepare(read.rgb, read.sha256)


def _opened(path: Path, read: ReadImage) -> Opened:
    try:
        status = path.stat()
    except OSError as error:
        raise UnreadableImageError(path, error.strerror or "the file is gone") from None
    height, width = read.rgb.shape[:2]
    return Opened(read.sha256, height, width, status.st_size, status.st_mtime_ns)
