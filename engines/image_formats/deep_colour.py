"""Colour pictures of 16 bits a channel, of which Pillow keeps only the high byte: too little where they are dark."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from engines.image_formats.depth import scale_to_8bit
from engines.image_formats.picture import Pixels
from engines.image_formats.pillow_pixels import rgb_from_pillow

_BRIGHT_HIGH_BYTE = 64
"""A value of more than 14 bits: the full scale is 65535, and the high byte is the 8-bit value."""

_DEEP_LAYOUT = re.compile(r"(RGB[AX]?;16)([LBN])")
_OTHER_BYTE = {"L": "B", "B": "L", "N": "B" if sys.byteorder == "little" else "L"}


def rgb_from_16_bit_colours(image: Image.Image, reopen: Callable[[], ImageFile.ImageFile]) -> Pixels:
    """The pixels of a loaded RGB(A) picture with 16 bits a channel, by the rule of `scale_to_8bit`.

    `reopen` opens the same file again. Layouts whose low bytes cannot be had keep the 8 bits that Pillow gives.
    """
    key_colour = image.info.pop("transparency", None)
    high_bytes = np.asarray(image)
    if key_colour is not None or high_bytes[..., :3].max(initial=0) < _BRIGHT_HIGH_BYTE:
        low_bytes = _low_bytes(reopen())
        if low_bytes is not None:
            values = high_bytes[..., :3].astype(np.uint16) * np.uint16(256) + low_bytes[..., :3]
            return _scaled(values, _alpha(values, high_bytes, key_colour))
    return rgb_from_pillow(image)


def _low_bytes(image: ImageFile.ImageFile) -> NDArray[np.uint8] | None:
    """The picture decoded as if its values were stored in the other byte order."""
    if not image.tile or not all(_DEEP_LAYOUT.fullmatch(_layout(tile.args)) for tile in image.tile):
        return None
    image.tile = [tile._replace(args=_other_order(tile.args)) for tile in image.tile]
    image.load()
    return np.asarray(image)


def _layout(args: Any) -> str:
    return str(args[0] if isinstance(args, tuple) else args)


def _other_order(args: Any) -> Any:
    layout = _DEEP_LAYOUT.sub(lambda match: match[1] + _OTHER_BYTE[match[2]], _layout(args))
    return (layout, *args[1:]) if isinstance(args, tuple) else layout


def _scaled(values: NDArray[np.uint16], alpha: NDArray[np.uint8] | None) -> Pixels:
    colours, note = scale_to_8bit(values)
    rgb, notes = rgb_from_pillow(Image.fromarray(colours if alpha is None else np.dstack([colours, alpha])))
    return rgb, (note, *notes) if note else notes


def _alpha(values: NDArray[np.uint16], high_bytes: NDArray[np.uint8], key_colour: Any) -> NDArray[np.uint8] | None:
    if high_bytes.shape[2] == 4:
        return high_bytes[..., 3]
    if not isinstance(key_colour, tuple):
        return None
    return np.where((values == np.asarray(key_colour)).all(axis=2), np.uint8(0), np.uint8(255))
