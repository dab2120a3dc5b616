"""A picture whose header has been read and whose pixels can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.image_formats.orientation import UPRIGHT, swaps_sides
from engines.image_formats.source import PictureSource

Pixels: TypeAlias = tuple[NDArray[np.uint8], tuple[str, ...]]
"""(H, W, 3) RGB as stored, and notes for a person on what was left out or changed."""


@dataclass(frozen=True)
class OpenedPicture:
    """Size in pixels as stored, before turning; `decode` may be called once, while the source's stream is open."""

    height: int
    width: int
    decode: Callable[[], Pixels]
    orientation: int = UPRIGHT

    @property
    def upright_size(self) -> tuple[int, int]:
        """Height and width as the picture is meant to be seen."""
        return (self.width, self.height) if swaps_sides(self.orientation) else (self.height, self.width)


Opener: TypeAlias = Callable[[PictureSource], OpenedPicture]
"""Reads the header of a source. Raises an `ImageError`, or anything that a decoder raises on damaged data."""
