"""What Pillow does not tell about a JPEG: whether the picture data really reach the end of the picture.

A decoder that meets the end marker too early paints the rest grey and says nothing. Without that marker it complains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = b"\xff\xd9"
_START_OF_SCAN = 0xDA
_HUFFMAN_SEQUENTIAL = frozenset({0xC0, 0xC1})
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_NEXT_MARKER = re.compile(rb"\xff+[^\x00\xd0-\xd7\xff]")

# A decoder looks at most 8 bytes ahead. A run of ones is no valid code, so it cannot stand for missing picture data.
_LOOK_AHEAD = b"\xff\x00" * 8
# No valid code either, and enough of it to change the picture if any of its data are missing.
_FILLER = b"\xaa\x55" * 4096


def has_end(data: bytes) -> bool:
    """Whether the file holds the end of its first picture. Bytes after it do not matter."""
    scan = _first_scan(data)
    return scan is None or data.find(_END, scan[1]) >= 0


def without_early_end(data: bytes) -> bytes:
    """The same picture, with its end marker taken away where that makes a decoder refuse missing picture data.

    That works for pictures of one scan, which most are; others come back as they are (see `with_filler`).
    """
    scan = _first_scan(data)
    if scan is None or scan[0] not in _HUFFMAN_SEQUENTIAL:
        return data
    end = data.find(_END, scan[1])
    if data.find(bytes((0xFF, _START_OF_SCAN)), scan[1], end) >= 0:
        return data
    return data[:end] + _LOOK_AHEAD


def with_filler(data: bytes) -> bytes:
    """The same picture with bytes before its end that a decoder uses only if picture data are missing."""
    for position, marker, _ in _markers(data):
        if marker == _END[1]:
            return data[:position] + _FILLER + data[position:]
    return data


def _first_scan(data: bytes) -> tuple[int, int] | None:
    """The marker of the frame header, and where the data of the first scan begin."""
    frame = 0
    for _, marker, end in _markers(data):
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            frame = marker
        if marker == _START_OF_SCAN:
            return frame, end
    return None


def _markers(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Position, kind and end of each marker segment after the start marker."""
    position = 2
    while found := _NEXT_MARKER.search(data, position):
        start, marker = found.start(), data[found.end() - 1]
        end = found.end()
        if marker not in _WITHOUT_LENGTH and marker != _END[1]:
            end += int.from_bytes(data[end : end + 2], "big")
        yield start, marker, end
        position = end
