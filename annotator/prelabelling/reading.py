"""Reads the pictures of a run: each file once, shrunk at once to what the model takes, so that few bytes wait."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from annotator.prelabelling.job import Job, Opened
from annotator.records import KeptPhrase
from annotator.workspace import Workspace
from engines.errors import UnreadableImageError
from engines.images import ReadImage, read_image

_MOST_READERS = 8


def n_readers() -> int:
    """Threads that read: one processor core is left to the model."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(_MOST_READERS, cores - 1))


class Reader:
    """Reads and shrinks one picture at a time; safe to use from several threads."""

    def __init__(self, workspace: Workspace, phrases: Sequence[KeptPhrase]) -> None:
        self._workspace = workspace
        self._phrases = phrases

    def read(self, job: Job) -> Job:
        """The job with its picture prepared for the model; untouched where nothing is to be done on it any more."""
        if not job.todo:
            return job
        job.image = self._workspace.store.image(job.image.image_id)  # a person may have reviewed it meanwhile
        if job.image.done:
            return job
        try:
            self._read(job)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one picture, the others go on
            job.fail(error)
        return job

    def _read(self, job: Job) -> None:
        path = self._workspace.folder.path(job.image.path)
        read = read_image(path)
        job.opened = _opened(path, read)
        if job.image.sha256 not in (None, read.sha256):
            job.todo = self._phrases  # it is another picture now: what was found before is of the old one
        job.prepared = self._workspace.predictor.prepare(read.rgb, read.sha256)


def _opened(path: Path, read: ReadImage) -> Opened:
    try:
        status = path.stat()
    except OSError as error:
        raise UnreadableImageError(path, error.strerror or "the file is gone") from None
    height, width = read.rgb.shape[:2]
    return Opened(read.sha256, height, width, status.st_size, status.st_mtime_ns)
