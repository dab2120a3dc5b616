"""The page over a fake model, in a real browser."""

from __future__ import annotations

import pytest
from browser_support import launch_chromium
from fake_segmenter import FakeSegmenter
from page_on_screen import PageOnScreen, served
from projects import open_workspace, write_pictures


@pytest.fixture(scope="module")
def browser():
    with launch_chromium() as chromium:
        yield chromium


@pytest.fixture
def segmenter():
    return FakeSegmenter()


@pytest.fixture
def workspace(tmp_path, segmenter):
    write_pictures(tmp_path / "images", "a.png", "b.png", "c & é #1%.png", "sub/a.png")
    (tmp_path / "images" / "broken.jpg").write_bytes(b"<html>404</html>")
    opened = open_workspace(tmp_path, segmenter)
    yield opened
    opened.close()


@pytest.fixture
def address(workspace):
    with served(workspace) as url:
        yield url


@pytest.fixture
def screen(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    on_screen = PageOnScreen(page, address)
    yield on_screen
    page.close()
    assert on_screen.faults == []
