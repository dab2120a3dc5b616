"""A real Chromium for the tests of the page and for benchmarks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_HINT = (
    "no Chromium was found, so the page was not tested in a browser; install one (Debian: apt-get install chromium) "
    "or name it in PHRASEMASK_CHROMIUM"
)


def find_chromium() -> str | None:
    """The path of a Chromium or Chrome: the one that PHRASEMASK_CHROMIUM names, or the first on the PATH."""
    named = os.environ.get("PHRASEMASK_CHROMIUM")
    if named:
        return shutil.which(named)
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@contextmanager
def launch_chromium() -> Iterator[Browser]:
    """A headless browser, closed at the end.

    Without one the test is skipped with the install hint, or fails when PHRASEMASK_REQUIRE_BROWSER is 1.
    Playwright allows one at a time in a thread: use it in fixtures of module scope or below.
    """
    path = find_chromium()
    if path is None:
        refuse = pytest.fail if os.environ.get("PHRASEMASK_REQUIRE_BROWSER") == "1" else pytest.skip
        refuse(_HINT)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
