"""Runs one job ahead of the person, such as the next image of the queue; a newer job replaces one not begun."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Condition, Thread

from engines.errors import PhrasemaskError

_log = logging.getLogger(__name__)


class RunAhead:
    """A background thread with room for one waiting job."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._job: Callable[[], None] | None = None
        self._stopping = False
        self._thread = Thread(target=self._work, name="run-ahead", daemon=True)
        self._thread.start()

    def ask(self, job: Callable[[], None]) -> None:
        """Do this when the job in work is finished; a job that was waiting is dropped."""
        with self._condition:
            self._job = job
            self._condition.notify()

    def stop(self) -> None:
        """End after the job in work."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        self._thread.join()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except PhrasemaskError as error:
                _log.info("running ahead: %s", error)
            except Exception:  # noqa: BLE001 - the thread must live on, whatever one image does
                _log.exception("running ahead failed; the image is worked on again when it is opened")

    def _next(self) -> Callable[[], None] | None:
        with self._condition:
            self._condition.wait_for(lambda: self._job is not None or self._stopping)
            job, self._job = self._job, None
            return None if self._stopping else job
