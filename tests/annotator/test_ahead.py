"""Work that runs ahead of the person."""

from __future__ import annotations

import threading

from annotator.ahead import RunAhead
from engines.errors import PhraseError


def test_a_newer_job_replaces_one_that_waits():
    ahead = RunAhead()
    started, release, done = threading.Event(), threading.Event(), threading.Event()
    ran = []

    def first():
        started.set()
        release.wait(5)
        ran.append("first")

    ahead.ask(first)
    assert started.wait(5)
    ahead.ask(lambda: ran.append("dropped"))
    ahead.ask(lambda: (ran.append("last"), done.set()))
    release.set()
    assert done.wait(5)
    ahead.stop()
    assert ran == ["first", "last"]


def test_a_job_that_fails_does_not_end_the_work():
    ahead = RunAhead()
    failed, done = threading.Event(), threading.Event()

    def fail():
        failed.set()
        raise PhraseError

    ahead.ask(fail)
    assert failed.wait(5)
    ahead.ask(done.set)
    assert done.wait(5)
    ahead.stop()
