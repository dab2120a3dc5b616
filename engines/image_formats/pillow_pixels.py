"""The pixels of a Pillow picture as RGB, tile by tile, so that conversions need little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engines.image_formats.depth import scale_to_8bit

WHITE_NOTE = "transparent parts shown on white"
_TILE_PIXELS = 1 << 16
"""Small enough that a tile stays in the cache of the processor, which is four times as fast as one big copy."""
_DEEP_MODES = frozenset({"I;16", "I;16L", "I;16B", "I;16N", "I", "F"})
_ALPHA_MODES = frozenset({"LA", "La", "PA", "RGBA", "RGBa"})


def rgb_from_pillow(image: Image.Image) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """The (H, W, 3) uint8 pixels of a picture of any mode, as stored, and notes on what was changed."""
    if image.mode in _DEEP_MODES:
        return rgb_from_values(np.asarray(image), image.info.get("transparency"))
    rgb = np.empty((image.height, image.width, 3), dtype=np.uint8)
    any_transparent = False
    for rows, columns, tile in _tiles(image):
        rgb[rows, columns], transparent = _tile_rgb(tile)
        any_transparent |= transparent
    return rgb, (WHITE_NOTE,) if any_transparent else ()


def rgb_from_values(
    values: NDArray[Any], key_value: Any = None, *, zero_is_white: bool = False
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Gray values (H, W) of any real type as RGB; pixels of `key_value`, if it is a number, are transparent."""
    gray, note = scale_to_8bit(values)
    if zero_is_white:
        gray = np.where(np.isfinite(values), 255 - gray, np.uint8(0))
    notes = [note] if note else []
    if isinstance(key_value, int) and (clear := values == key_value).any():
        gray = np.where(clear, np.uint8(255), gray)
        notes.append(WHITE_NOTE)
    return np.repeat(gray[:, :, None], 3, axis=2), tuple(notes)


def _tiles(image: Image.Image) -> Iterator[tuple[slice, slice, Image.Image]]:
    width = min(image.width, _TILE_PIXELS)
    height = max(1, _TILE_PIXELS // width)
    for top in range(0, image.height, height):
        for left in range(0, image.width, width):
            right, bottom = min(image.width, left + width), min(image.height, top + height)
            yield slice(top, bottom), slice(left, right), image.crop((left, top, right, bottom))


def _tile_rgb(tile: Image.Image) -> tuple[NDArray[np.uint8], bool]:
    """The tile's (h, w, 3) pixels, and whether any of them is transparent."""
    has_clear_colour = tile.mode == "P" and ("transparency" in tile.info or _has_clear_palette(tile))
    if tile.mode in _ALPHA_MODES or has_clear_colour:
        return _on_white(tile.convert("RGBA"))
    if tile.mode == "LAB":
        return np.asarray(_lab_to_rgb(tile)), False
    key_colour = tile.info.pop("transparency", None)  # Pillow would convert it, and warn of some
    pixels = np.asarray(tile if tile.mode == "RGB" else tile.convert("RGB"))
    return _without_key_colour(pixels, key_colour)


def _has_clear_palette(tile: Image.Image) -> bool:
    return tile.palette is not None and tile.palette.mode == "RGBA"


def _on_white(tile: Image.Image) -> tuple[NDArray[np.uint8], bool]:
    alpha = tile.getchannel("A")
    if alpha.getextrema() == (255, 255):
        return np.asarray(tile.convert("RGB")), False
    white = Image.new("RGB", tile.size, "white")
    white.paste(tile, mask=alpha)
    return np.asarray(white), True


def _without_key_colour(pixels: NDArray[np.uint8], key_colour: Any) -> tuple[NDArray[np.uint8], bool]:
    if not isinstance(key_colour, int | tuple):
        return pixels, False
    clear = (pixels == np.asarray(key_colour)).all(axis=2, keepdims=True)
    return np.where(clear, np.uint8(255), pixels), bool(clear.any())


def _lab_to_rgb(tile: Image.Image) -> Image.Image:
    from PIL import ImageCms

    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    converted = ImageCms.profileToProfile(tile, lab, srgb, outputMode="RGB")
    if converted is None:
        raise ValueError("Lab colours could not be converted")
    return converted
