"""The ways in which the detector looks at one picture: whole, mirrored, smaller, closer, and in overlapping tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

INPUT_SIZE_PX = 300
_BORDER_PX = 37
_CLOSER_SHARE = 0.8
_TILE_SHARE = 0.6
_SMALL_TILE_SHARE = 0.45
SMALL_SHARE = 0.02
"""A box below a fiftieth of the picture is often too small for the views of the whole picture."""
_MAX_ASPECT = 2.0
_MAX_WINDOWS = 6
_MIN_SIDE_FOR_PARTS_PX = 32


@dataclass(frozen=True)
class View:
    """A window of the picture (x1 y1 x2 y2 px) as the detector sees it.

    `border_px` of the detector's input on each side repeat the window's edge mirrored. `is_tile`: the window may cut
    through things, so that what is found in it alone may be a part of something. `largest_share`: hits that take up
    more of the picture are not for this view.
    """

    window: tuple[int, int, int, int]
    mirrored: bool = False
    border_px: int = 0
    is_tile: bool = False
    largest_share: float = 1.0

    def look(self, rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The detector's input: float32 [1, 300, 300, 3] in [-1, 1]."""
        import cv2

        x1, y1, x2, y2 = self.window
        size = INPUT_SIZE_PX - 2 * self.border_px
        shrinks = min(x2 - x1, y2 - y1) > 2 * size
        seen = cv2.resize(
            rgb[y1:y2, x1:x2], (size, size), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        )
        if self.border_px:
            border = self.border_px
            seen = cv2.copyMakeBorder(seen, border, border, border, border, cv2.BORDER_REFLECT)
        if self.mirrored:
            seen = np.ascontiguousarray(seen[:, ::-1])
        return np.asarray((seen.astype(np.float32) / 127.5 - 1.0)[None])

    def to_picture(self, relative_xyxy: NDArray[Any]) -> NDArray[np.float32]:
        """Boxes as shares of the detector's input → pixels of the picture, cut at the window."""
        x1, y1, x2, y2 = self.window
        boxes = np.asarray(relative_xyxy, dtype=np.float64)
        if self.mirrored:
            boxes = np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], axis=1)
        border = self.border_px / INPUT_SIZE_PX
        boxes = np.clip((boxes - border) / (1 - 2 * border), 0.0, 1.0)
        width, height = x2 - x1, y2 - y1
        return (boxes * [width, height, width, height] + [x1, y1, x1, y1]).astype(np.float32)


def views_of(height: int, width: int) -> list[View]:
    """The views of a picture of this size, the whole picture first."""
    whole = (0, 0, width, height)
    if min(height, width) < _MIN_SIDE_FOR_PARTS_PX:
        return [View(whole)]
    if max(height, width) > _MAX_ASPECT * min(height, width):
        return [View(whole), *(View(window) for window in _along_the_strip(height, width))]
    closer = _centred(height, width, _CLOSER_SHARE)
    views = [View(whole), View(whole, mirrored=True), View(whole, border_px=_BORDER_PX), View(closer)]
    views += [View(window, is_tile=True) for window in _grid(height, width, _TILE_SHARE, 2)]
    small = _grid(height, width, _SMALL_TILE_SHARE, 3)
    return views + [View(window, is_tile=True, largest_share=SMALL_SHARE) for window in small]


def _centred(height: int, width: int, share: float) -> tuple[int, int, int, int]:
    x, y = round(width * (1 - share) / 2), round(height * (1 - share) / 2)
    return x, y, width - x, height - y


def _grid(height: int, width: int, share: float, count: int) -> list[tuple[int, int, int, int]]:
    """`count` × `count` overlapping windows whose sides are a share of the picture's."""
    tile_h, tile_w = round(height * share), round(width * share)
    lefts = np.linspace(0, width - tile_w, count).round().astype(int).tolist()
    tops = np.linspace(0, height - tile_h, count).round().astype(int).tolist()
    return [(x, y, x + tile_w, y + tile_h) for y in tops for x in lefts]


def _along_the_strip(height: int, width: int) -> list[tuple[int, int, int, int]]:
    """Overlapping windows of a long strip, at most six."""
    long, short = max(height, width), min(height, width)
    count = min(_MAX_WINDOWS, int(np.ceil(1.5 * long / short)))
    length = min(long, max(short, round(1.5 * long / count)))
    starts = np.linspace(0, long - length, count).round().astype(int).tolist()
    if width >= height:
        return [(start, 0, start + length, height) for start in starts]
    return [(0, start, width, start + length) for start in starts]
