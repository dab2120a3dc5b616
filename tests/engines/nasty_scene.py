"""The picture that most nasty files show, and what is expected of a file that shows it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

HEIGHT, WIDTH = 32, 48
RED, GREEN, BLUE, GRAY = (255, 0, 0), (0, 255, 0), (0, 0, 255), (200, 200, 200)
CORNERS = (((4, 4), RED), ((4, 43), GREEN), ((27, 4), BLUE), ((27, 43), GRAY))
"""One pixel well inside each quarter: every turn and every flip shows."""

# What was done to the upright scene, by the definition of each orientation, to get the picture as stored.
_STORED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@dataclass(frozen=True)
class Expected:
    """A file's name and bytes, and what must become of it (see `NastyFile`)."""

    name: str
    content: bytes
    size: tuple[int, int] | None = None
    refusal: str | None = None
    pixels: tuple[tuple[tuple[int, int], tuple[int, int, int]], ...] = ()
    tolerance: int = 2
    note: str | None = None
    package: str | None = None


def scene() -> NDArray[np.uint8]:
    """(32, 48, 3) RGB with a colour in each quarter."""
    rgb = np.empty((HEIGHT, WIDTH, 3), dtype=np.uint8)
    rgb[:16, :24], rgb[:16, 24:], rgb[16:, :24], rgb[16:, 24:] = RED, GREEN, BLUE, GRAY
    return rgb


def scene_image() -> Image.Image:
    """The scene for Pillow."""
    return Image.fromarray(scene())


def stored_as(orientation: int) -> Image.Image:
    """The scene as it is stored under an orientation."""
    image = scene_image()
    return image.transpose(_STORED[orientation]) if orientation in _STORED else image


def noise_image(height: int = 64, width: int = 96) -> Image.Image:
    """A picture that does not pack well, so that cutting its file cuts the picture."""
    return Image.fromarray(np.random.default_rng(7).integers(1, 256, (height, width, 3), dtype=np.uint8))


def shows_scene(
    name: str, content: bytes, tolerance: int = 2, *, note: str | None = None, package: str | None = None
) -> Expected:
    """A file that must be read as the upright scene."""
    return Expected(name, content, (HEIGHT, WIDTH), None, CORNERS, tolerance, note, package)


def shows_gray(
    name: str, content: bytes, left: int, right: int, *, note: str | None = None, package: str | None = None
) -> Expected:
    """A file of the scene's size, whose left and right halves must have these gray values."""
    pixels = (((8, 8), (left,) * 3), ((8, 40), (right,) * 3))
    return Expected(name, content, (HEIGHT, WIDTH), None, pixels, 1, note, package)


def refused(name: str, content: bytes, words: str, package: str | None = None) -> Expected:
    """A file that must be refused in these words."""
    return Expected(name, content, refusal=words, package=package)


def heif(image: Image.Image, **options: object) -> bytes:
    """The bytes of a picture as pillow-heif writes them."""
    import pillow_heif

    stream = io.BytesIO()
    pillow_heif.from_pillow(image).save(stream, **options)
    return stream.getvalue()


def tifffile_bytes(values: NDArray[Any], **options: object) -> bytes:
    """The bytes of a TIFF as tifffile writes it."""
    import tifffile

    stream = io.BytesIO()
    tifffile.imwrite(stream, values, **options)
    return stream.getvalue()
