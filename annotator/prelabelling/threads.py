"""Work that goes on in the background while the next step uses what is ready, with a bound on how much waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Generic, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class _Channel(Generic[Item]):
    """Items from one thread to another, in order; the giving thread waits while `limit` of them are not taken."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[Item] = deque()
        self._changed = Condition()
        self._ended = False
        self._abandoned = False
        self._error: BaseException | None = None

    def give(self, item: Item) -> bool:
        """Hand an item on; False when nobody takes any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._abandoned or len(self._items) < self._limit)
            if not self._abandoned:
                self._items.append(item)
                self._changed.notify_all()
            return not self._abandoned

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more comes; an error is raised to the taking thread after what is there."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def abandon(self) -> None:
        """Nothing more is taken."""
        with self._changed:
            self._abandoned = True
            self._items.clear()
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Item]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._ended)
                if not self._items:
                    break
                item = self._items.popleft()
                self._changed.notify_all()
            yield item
        if self._error is not None:
            raise self._error


@contextmanager
def in_background(source: Iterator[Item], limit: int, name: str) -> Iterator[Iterator[Item]]:
    """The items of `source`, made by a thread of its own, at most `limit` ahead of those taken.

    What `source` raises is raised to the taker. On leaving, the thread is waited for; `source` is closed in it.
    """
    channel: _Channel[Item] = _Channel(limit)

    def work() -> None:
        error: BaseException | None = None
        try:
            for item in source:
                if not channel.give(item):
                    break
        except BaseException as raised:  # noqa: BLE001 - it is the taker's, whatever it is
            error = raised
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()
            channel.end(error)

    thread = Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        yield iter(channel)
    finally:
        channel.abandon()
        thread.join()


def made_ahead(
    items: Iterable[Item], make: Callable[[Item], Made], n_workers: int, n_ahead: int, name: str
) -> Iterator[Made]:
    """`make` of each item, in order, by some threads, at most `n_ahead` items begun beyond the one asked for."""
    begun: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(n_workers, thread_name_prefix=name) as workers:
        try:
            for item in items:
                begun.append(workers.submit(make, item))
                if len(begun) > n_ahead:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            workers.shutdown(wait=False, cancel_futures=True)
