"""The structure of a GIF, read block by block without unpacking anything."""

from __future__ import annotations

from collections.abc import Iterator

from engines.image_formats.frames import MAX_COUNTED

_EXTENSION, _FRAME = 0x21, 0x2C


def count_gif_frames(data: bytes) -> int:
    """Frames up to the trailer, or to where the file breaks off."""
    count = 0
    for count, _ in enumerate(_frame_headers(data), start=1):
        if count > MAX_COUNTED:
            break
    return count


def gif_size(data: bytes) -> tuple[int, int]:
    """Height and width of the canvas, which the first frame widens if it does not fit."""
    left, top, width, height = _four_numbers(next(_frame_headers(data), bytes(8)))
    canvas_width, canvas_height, _, _ = _four_numbers(data[6:14])
    return max(canvas_height, top + height), max(canvas_width, left + width)


def _frame_headers(data: bytes) -> Iterator[bytes]:
    """The 8 bytes of each frame that say where it stands: left, top, width, height."""
    try:
        position = 13 + _colour_table_bytes(data[10])
        while data[position] in (_EXTENSION, _FRAME):
            if data[position] == _FRAME:
                yield data[position + 1 : position + 9]
                position += 11 + _colour_table_bytes(data[position + 9])
            else:
                position += 2
            position = _after_blocks(data, position)
    except IndexError:
        return


def _four_numbers(field: bytes) -> tuple[int, int, int, int]:
    first, second, third, fourth = (int.from_bytes(field[start : start + 2], "little") for start in (0, 2, 4, 6))
    return first, second, third, fourth


def _colour_table_bytes(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after_blocks(data: bytes, position: int) -> int:
    while data[position]:
        position += data[position] + 1
    return position + 1
