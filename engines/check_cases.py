"""Pictures drawn for the check of a bundle, and what is asked about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

_FINER = 4
_COLOURS = {
    "red": "#d62728",
    "blue": "#1f4fd8",
    "green": "#2ca02c",
    "yellow": "#f2d21b",
    "black": "#141414",
    "grey": "#9c9c9c",
    "sand": "#cdc1a8",
}


@dataclass(frozen=True)
class Shape:
    """A flat shape; centre and radius as shares of the side of the picture."""

    kind: str
    colour: str
    x: float
    y: float
    radius: float

    @property
    def cxcywh(self) -> tuple[float, float, float, float]:
        """Its box, as shares of the picture."""
        return self.x, self.y, 2 * self.radius, 2 * self.radius


@dataclass(frozen=True)
class CheckCase:
    """One question: the index of a picture, a phrase, and boxes with labels 1 (like this) or 0 (not like this)."""

    picture: int
    phrase: str
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    labels: tuple[int, ...] = ()


_FIRST = (
    Shape("circle", "red", 0.24, 0.26, 0.14),
    Shape("square", "blue", 0.72, 0.24, 0.13),
    Shape("triangle", "green", 0.27, 0.74, 0.15),
    Shape("circle", "red", 0.74, 0.73, 0.12),
)
_SECOND = (
    Shape("square", "yellow", 0.25, 0.70, 0.13),
    Shape("circle", "blue", 0.28, 0.25, 0.13),
    Shape("circle", "black", 0.75, 0.30, 0.14),
    Shape("triangle", "red", 0.72, 0.75, 0.14),
)
_BACKGROUNDS = ("grey", "sand")
CASES = (
    CheckCase(0, "red circle"),
    CheckCase(0, "blue square"),
    CheckCase(0, "black triangle"),
    CheckCase(0, "visual", (_FIRST[0].cxcywh,), (1,)),
    CheckCase(1, "circle"),
    CheckCase(1, "yellow square"),
    CheckCase(1, "circle", (_SECOND[2].cxcywh,), (0,)),
    CheckCase(1, "visual", (_SECOND[3].cxcywh,), (1,)),
)


def draw_pictures(side: int) -> list[Image.Image]:
    """Two square RGB pictures of that side in pixels."""
    return [_draw(shapes, side, ground) for shapes, ground in zip((_FIRST, _SECOND), _BACKGROUNDS, strict=True)]


def _draw(shapes: Sequence[Shape], side: int, background: str) -> Image.Image:
    large = Image.new("RGB", (side * _FINER, side * _FINER), _COLOURS[background])
    pen = ImageDraw.Draw(large)
    for shape in shapes:
        x, y, radius = (value * side * _FINER for value in (shape.x, shape.y, shape.radius))
        if shape.kind == "circle":
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_COLOURS[shape.colour])
            continue
        n_corners, turn = (4, math.pi / 4) if shape.kind == "square" else (3, -math.pi / 2)
        angles = [turn + 2 * math.pi * index / n_corners for index in range(n_corners)]
        pen.polygon([(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles], fill=_COLOURS[shape.colour])
    return large.reduce(_FINER)
