"""The mask canvas of the page: plain JavaScript and CSS files, and the two functions that read them.

In the browser it is `new PhrasemaskCanvas.MaskCanvas(element, callbacks)`; `canvas.js` documents it.
"""

from __future__ import annotations

from importlib.resources import files

_SCRIPTS = (
    "rle.js",
    "outline.js",
    "palette.js",
    "shapes.js",
    "view.js",
    "tags.js",
    "painter.js",
    "stage.js",
    "picture.js",
    "gestures.js",
    "canvas.js",
)
"""In the order in which they use each other."""


def canvas_scripts() -> str:
    """The JavaScript that defines `window.PhrasemaskCanvas`, for one `<script>` element in the page's head."""
    return "\n".join(_read_text(name) for name in _SCRIPTS)


def canvas_css() -> str:
    """The canvas's style sheet, for one `<style>` element in the page's head."""
    return _read_text("canvas.css")


def _read_text(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")
