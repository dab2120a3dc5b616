"""What goes on in the background of a run: order, bounds, errors, and an end without threads left over."""

from __future__ import annotations

import threading
import time

import pytest

from annotator.prelabelling.threads import in_background, made_ahead


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive(), thread.name


def counting(n, seen):
    for number in range(n):
        seen.append(number)
        yield number


def wait_for(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came true")


def test_all_items_come_in_order():
    with in_background(counting(100, []), 3, "test") as items:
        assert list(items) == list(range(100))


def test_no_more_than_the_limit_waits():
    seen = []
    with in_background(counting(100, seen), 3, "test") as items:
        assert next(items) == 0
        wait_for(lambda: len(seen) == 5)  # one taken, three waiting, one in hand
        time.sleep(0.05)
        assert len(seen) == 5


def test_an_error_comes_after_what_was_made_before_it():
    def failing():
        yield 1
        raise OSError("the disk is gone")

    with in_background(failing(), 3, "test") as items:
        assert next(items) == 1
        with pytest.raises(OSError, match="the disk is gone"):
            next(items)


def test_leaving_early_closes_the_source_in_its_thread():
    closed = []

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.append(threading.current_thread().name)

    with in_background(endless(), 2, "the-thread") as items:
        next(items)
    assert closed == ["the-thread"]


def test_a_chain_of_threads_ends_when_the_last_is_left():
    seen = []
    with (
        in_background(counting(1000, seen), 2, "first") as first,
        in_background((2 * number for number in first), 2, "second") as second,
    ):
        assert next(second) == 0
    assert len(seen) < 20


def test_items_made_by_several_threads_come_in_order():
    def slow_if_even(number):
        time.sleep(0.002 * (number % 2 == 0))
        return -number

    assert list(made_ahead(range(30), slow_if_even, 4, 6, "test")) == [-number for number in range(30)]


def test_only_so_many_are_begun_ahead():
    begun = []
    made = made_ahead(range(100), lambda number: begun.append(number) or number, 2, 4, "test")
    assert next(made) == 0
    wait_for(lambda: len(begun) == 5)
    time.sleep(0.05)
    assert len(begun) == 5
    made.close()
