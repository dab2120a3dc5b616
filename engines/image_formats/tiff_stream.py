"""The structure of a TIFF or BigTIFF, read without unpacking anything."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from engines.image_formats.frames import MAX_COUNTED

_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
# The tags without which a decoder takes the pixels for something else: depth, strips, tiles, palette, kind of values.
_LAYOUT_TAGS = frozenset({258, 273, 279, 320, 324, 325, 338, 339})


@dataclass(frozen=True)
class _Layout:
    """The field sizes of one file: byte order, and the formats of a count and of an offset."""

    order: str
    count: str
    offset: str

    @property
    def entry_bytes(self) -> int:
        """Tag, type, count, and a field for a value or its offset."""
        return 4 + 2 * struct.calcsize(self.offset)


def count_tiff_pages(data: bytes) -> int:
    """Pages, up to a page directory that is not whole in the file or was seen before."""
    layout = _layout(data)
    seen: set[int] = set()
    try:
        offset = _first_directory(data, layout)
        while offset and offset not in seen and len(seen) <= MAX_COUNTED:
            after = _end_of_entries(data, layout, offset)
            if after > len(data):
                break
            seen.add(offset)
            (offset,) = struct.unpack_from(layout.order + layout.offset, data, after)
    except struct.error:
        return len(seen)
    return len(seen)


def has_whole_first_directory(data: bytes) -> bool:
    """Whether the first page's directory is in the file, with the values that tell how its pixels are stored."""
    layout = _layout(data)
    try:
        directory = _first_directory(data, layout)
        after = _end_of_entries(data, layout, directory)
        start = directory + struct.calcsize(layout.order + layout.count)
        ends = [_end_of_value(data, layout, entry) for entry in range(start, after, layout.entry_bytes)]
    except struct.error:
        return False
    return after <= len(data) and all(end <= len(data) for end in ends)


def _layout(data: bytes) -> _Layout:
    order = "<" if data[:2] == b"II" else ">"
    return _Layout(order, "Q", "Q") if data[2:4] in (b"+\0", b"\0+") else _Layout(order, "H", "I")


def _first_directory(data: bytes, layout: _Layout) -> int:
    (offset,) = struct.unpack_from(layout.order + layout.offset, data, 8 if layout.offset == "Q" else 4)
    return int(offset)


def _end_of_entries(data: bytes, layout: _Layout, directory: int) -> int:
    count_format = layout.order + layout.count
    (n_entries,) = struct.unpack_from(count_format, data, directory)
    return int(directory + struct.calcsize(count_format) + layout.entry_bytes * n_entries)


def _end_of_value(data: bytes, layout: _Layout, entry: int) -> int:
    """Where an entry's value ends, if it stands elsewhere and tells how pixels are stored; else 0."""
    tag, number_type, count = struct.unpack_from(layout.order + "HH" + layout.offset, data, entry)
    n_bytes = count * _TYPE_BYTES.get(number_type, 0)
    field_bytes = struct.calcsize(layout.offset)
    if tag not in _LAYOUT_TAGS or n_bytes <= field_bytes:
        return 0
    (offset,) = struct.unpack_from(layout.order + layout.offset, data, entry + 4 + field_bytes)
    return int(offset + n_bytes)
