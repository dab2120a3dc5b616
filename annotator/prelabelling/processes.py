"""Workers that are processes of this machine. They end with the program, however it ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any

from annotator.prelabelling.answering import Question
from annotator.prelabelling.crew import Crew
from annotator.prelabelling.image_places import ImagePlace
from annotator.prelabelling.job import Job
from annotator.prelabelling.reading import n_cores
from annotator.prelabelling.worker import AT_ONCE, Reply, WorkerBody, WorkerSetup, keep_to_share
from engines.protocols import Segmenter


def process_crew(n_workers: int, load: Callable[[int], Callable[[], Segmenter]], images: ImagePlace) -> Crew:
    """So many processes, each with its share of the processor's cores; `load` of its number loads its model."""
    n_threads = max(1, n_cores() // n_workers)

    def start(question: Question) -> Sequence[ProcessWorker]:
        setups = (WorkerSetup(load(number), images, question) for number in range(n_workers))
        return [ProcessWorker(setup, n_threads) for setup in setups]

    return Crew(start)


class ProcessWorker:
    """One process at a time; `hello` starts a new one when it is gone."""

    def __init__(self, setup: WorkerSetup, n_threads: int) -> None:
        self._setup = setup
        self._n_threads = n_threads
        self._running: _Running | None = None

    def hello(self) -> Future[Reply]:
        """Start the process and load the model."""
        self.close()
        self._running = _Running(self._setup, self._n_threads)
        return self._running.ask("hello")

    def answer(self, jobs: Sequence[Job]) -> Future[Reply]:
        """Answer a few images."""
        if self._running is None:
            raise ValueError("the process was not started")
        return self._running.ask("answer", jobs)

    @property
    def pid(self) -> int | None:
        """Of its process."""
        return self._running.process.pid if self._running else None

    def close(self) -> None:
        """End the process at once."""
        if self._running is not None:
            self._running.end()
        self._running = None


class _Running:
    """A started process and what was asked of it. When it is gone, all that waits fails, and so does what comes."""

    def __init__(self, setup: WorkerSetup, n_threads: int) -> None:
        context = get_context("spawn")  # a fork would copy the threads' locks and the GPU's state
        self._ours, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, setup, n_threads), daemon=True, name="prelabel")
        self.process.start()
        theirs.close()
        self._numbers = count()
        self._lock = Lock()
        self._waiting: dict[int, Future[Reply]] = {}
        self._listener = Thread(target=self._listen, name="prelabel-listen", daemon=True)
        self._listener.start()

    def ask(self, method: str, *arguments: Any) -> Future[Reply]:
        future: Future[Reply] = Future()
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = future
            try:
                self._ours.send((number, method, arguments))
            except OSError as error:
                self._waiting.pop(number).set_exception(error)
        return future

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self._listener.join()
        self._ours.close()

    def _listen(self) -> None:
        try:
            while True:
                number, reply = self._ours.recv()
                self._taken(number).set_result(reply)
        except (EOFError, OSError):
            self._lose_all()

    def _taken(self, number: int) -> Future[Reply]:
        with self._lock:
            return self._waiting.pop(number)

    def _lose_all(self) -> None:
        self.process.join()
        with self._lock:
            lost, self._waiting = self._waiting, {}
        for future in lost.values():
            future.set_exception(EOFError(f"exit code {self.process.exitcode}"))


def _serve(connection: Connection, setup: WorkerSetup, n_threads: int) -> None:
    """The process: answers what is asked until nobody is there to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches the parent too, which ends this process in time
    keep_to_share(n_threads)
    body, sending = WorkerBody(setup), Lock()

    def work(number: int, method: str, arguments: tuple[Any, ...]) -> None:
        reply = getattr(body, method)(*arguments)
        with sending:
            connection.send((number, reply))

    with ThreadPoolExecutor(AT_ONCE) as threads:
        try:
            while True:
                threads.submit(work, *connection.recv())
        except (EOFError, OSError):
            os._exit(0)  # not waiting for the model, whose answer nobody would take
