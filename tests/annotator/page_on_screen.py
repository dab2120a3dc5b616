"""The page in a real browser: over a fake model in this process, or as a person starts it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotator.workspace import Workspace

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
TIMEOUT_MS = 20_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(workspace: Workspace) -> Iterator[str]:
    """The address of the page over an open workspace."""
    from annotator.ui.shell import open_page

    port = free_port()
    with open_page(workspace, "127.0.0.1", port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def started(*arguments: str | Path) -> Iterator[str]:
    """The address of the page, started by the command line as a person does."""
    port = free_port()
    command = [sys.executable, str(ROOT / "app.py"), "serve", *map(str, arguments), "--port", str(port), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_until_up(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _wait_until_up(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=1).close()
        except OSError:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the page did not come up in 30 s")


class PageOnScreen:
    """What a person sees and does, in words."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.faults: list[str] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._note)
        page.on("request", lambda request: self._check_address(request.url))
        page.goto(address)
        page.wait_for_selector(".queue-item.is-current")

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.faults.append(message.text)

    def _check_address(self, url: str) -> None:
        if not re.match(r"(http://127\.0\.0\.1:|data:|blob:)", url):
            self.faults.append(f"the page asked the network for {url}")

    def state(self, expression: str) -> Any:
        return self.page.evaluate(f"(() => {{ const page = window.phrasemask; return {expression}; }})()")

    def wait(self, condition: str) -> None:
        self.page.wait_for_function(
            f"(() => {{ const page = window.phrasemask; return Boolean(page) && ({condition}); }})()"
        )

    def open(self, name: str) -> None:
        self.page.click(f".queue-item[title^='{name}']")
        self.wait(f"page.state.view.image.path === {json.dumps(name)} && !page.state.activity")

    def type_phrase(self, text: str) -> None:
        self.page.keyboard.press("/")
        self.page.keyboard.type(text)
        self.wait(f"page.state.draft?.text === {json.dumps(text)} && !page.state.asked")

    def keep_phrase(self, text: str) -> None:
        self.type_phrase(text)
        self.page.keyboard.press("Enter")
        self.wait(f"page.state.view.phrases.some((kept) => kept.text === {json.dumps(text)})")

    def press(self, key: str, until: str) -> None:
        self.page.keyboard.press(key)
        self.wait(until)

    def rows(self) -> list[tuple[str, str]]:
        """Label and decision of each line of the list of instances."""
        return [
            (row.inner_text(), row.evaluate("node => node.parentElement.dataset.decision"))
            for row in self.page.query_selector_all(".instance-name")
        ]

    def on_screen(self, x: float, y: float) -> tuple[float, float]:
        """Where a pixel of the original is on the screen."""
        host = self.page.locator(".canvas-host").bounding_box()
        place = self.page.evaluate("([x, y]) => window.phrasemask.canvas.view.toScreen(x, y)", [x, y])
        return host["x"] + place[0], host["y"] + place[1]

    def middle_of_first(self) -> tuple[float, float]:
        """The middle of the first visible instance's box, in pixels of the original."""
        x1, y1, x2, y2 = self.state("page.visibleInstances()[0].xyxy")
        return (x1 + x2) / 2, (y1 + y2) / 2

    def click_pixel(self, x: float, y: float) -> None:
        self.page.mouse.click(*self.on_screen(x, y))

    def drag_pixels(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.page.mouse.move(*self.on_screen(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.on_screen(*end), steps=4)
        self.page.mouse.up()
