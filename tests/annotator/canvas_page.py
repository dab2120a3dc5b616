"""The mask canvas on a bare page, and instances to show on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page
from pycocotools import mask as coco_mask

from annotator.ui.canvas import canvas_css, canvas_scripts

VIEWPORT = {"width": 640, "height": 480}
HEIGHT, WIDTH = 300, 400

_PAGE = """<style>{css} body {{ margin: 0 }} #host {{ width: 100vw; height: 100vh }}</style><div id="host"></div>"""
_START = """() => {
  window.told = [];
  const note = (name) => (...values) => { window.told.push([name, ...values]); };
  const callbacks = { onBox: (xyxy) => { window.told.push(["onBox", xyxy]); return window.boxAnswer; } };
  for (const name of ["onHover", "onToggle", "onViewChange", "onPaint", "onProblem"]) callbacks[name] = note(name);
  window.canvas = new PhrasemaskCanvas.MaskCanvas(document.getElementById("host"), callbacks);
}"""
_PICTURE = """([width, height]) => {
  const picture = document.createElement("canvas");
  [picture.width, picture.height] = [width, height];
  const pen = picture.getContext("2d");
  pen.fillStyle = "rgb(90, 90, 90)";
  pen.fillRect(0, 0, width, height);
  return picture.toDataURL("image/png");
}"""
_SETTLE = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@dataclass
class CanvasPage:
    """A page with a canvas on it and what its callbacks told."""

    page: Page

    def restart(self) -> None:
        """An empty canvas on an empty page."""
        self.page.goto("about:blank")
        self.page.set_viewport_size(VIEWPORT)
        self.page.mouse.move(0, 0)
        self.page.set_content(_PAGE.format(css=canvas_css()))
        self.page.add_script_tag(content=canvas_scripts())
        self.page.evaluate(_START)

    def call(self, expression: str, argument: Any = None) -> Any:
        return self.page.evaluate(f"(argument) => canvas.{expression}", argument)

    def show(
        self, instances: list[dict[str, Any]], *, image_id: str = "one", size: tuple[int, int] = (HEIGHT, WIDTH)
    ) -> None:
        url = self.page.evaluate(_PICTURE, [size[1], size[0]])
        self.call("setImage(argument)", {"id": image_id, "url": url, "width": size[1], "height": size[0]})
        self.page.wait_for_function("canvas.picture !== null")
        self.call("setInstances(argument)", instances)
        self.settle()

    def settle(self) -> None:
        self.page.evaluate(_SETTLE)
        self.page.wait_for_function("!canvas.view.isMoving")
        self.page.evaluate(_SETTLE)

    def told(self, name: str) -> list[Any]:
        return [values[0] if values else None for told, *values in self.page.evaluate("window.told") if told == name]

    def screen(self, x: float, y: float) -> tuple[float, float]:
        """Where the point of the original is on the screen."""
        return tuple(self.call("view.toScreen(...argument)", [x, y]))

    def click(self, x: float, y: float) -> None:
        self.page.mouse.click(*self.screen(x, y))

    def drag(self, start: tuple[float, float], end: tuple[float, float], *, release: bool = True) -> None:
        """Drag between two points of the screen."""
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        self.page.mouse.move(*end)
        if release:
            self.page.mouse.up()
        self.settle()

    def color_at(self, layer: str, x: float, y: float) -> list[int]:
        """RGBA of a layer where the point of the original is."""
        return self.page.evaluate(
            """([layer, x, y]) => {
              const { ratio, contexts } = canvas.stage.painter;
              const [left, top] = canvas.view.toScreen(x, y);
              return [...contexts[layer].getImageData(Math.floor(left * ratio), Math.floor(top * ratio), 1, 1).data];
            }""",
            [layer, x, y],
        )


@contextmanager
def open_canvas(browser: Browser, **options: Any) -> Iterator[CanvasPage]:
    """A canvas in a window of its own; any error in the page fails the test."""
    page = browser.new_page(viewport=VIEWPORT, **options)
    page.set_default_timeout(5000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    canvas = CanvasPage(page)
    canvas.restart()
    yield canvas
    page.close()
    assert errors == []


def rectangle(x1: int, y1: int, x2: int, y2: int, size: tuple[int, int] = (HEIGHT, WIDTH)) -> NDArray[np.uint8]:
    mask = np.zeros(size, np.uint8)
    mask[y1:y2, x1:x2] = 1
    return mask


def instance(name: str, mask: NDArray[np.uint8], **fields: Any) -> dict[str, Any]:
    rle = coco_mask.encode(np.asfortranarray(mask))
    x, y, width, height = coco_mask.toBbox(rle).tolist()
    described = {
        "id": name,
        "number": 1,
        "counts": rle["counts"].decode(),
        "height": mask.shape[0],
        "width": mask.shape[1],
        "xyxy": [x, y, x + width, y + height],
        "score": 0.9,
        "decision": "pending",
        "drawn": False,
        "color_index": 0,
        "label": "thing",
    }
    return described | fields
