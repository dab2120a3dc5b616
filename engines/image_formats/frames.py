"""Pictures of which only the first is read: counting the others, and saying so."""

from __future__ import annotations

import struct

MAX_COUNTED = 10_000


def first_of(count: int, noun: str) -> tuple[str, ...]:
    """The note for a picture that is the first of several; none for the only one."""
    if count > MAX_COUNTED:
        return (f"first of more than {MAX_COUNTED} {noun}",)
    return (f"first of {count} {noun}",) if count > 1 else ()


def count_tiff_pages(data: bytes) -> int:
    """Pages of a TIFF or BigTIFF, up to a page directory that is not in the file or was seen before."""
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in (b"+\0", b"\0+")
    count_format, entry_bytes, offset_format = ("Q", 20, "Q") if big else ("H", 12, "I")
    seen: set[int] = set()
    try:
        (offset,) = struct.unpack_from(order + offset_format, data, 8 if big else 4)
        while offset and offset not in seen and len(seen) <= MAX_COUNTED:
            (n_entries,) = struct.unpack_from(order + count_format, data, offset)
            after = offset + struct.calcsize(order + count_format) + entry_bytes * n_entries
            if after > len(data):
                break
            seen.add(offset)
            (offset,) = struct.unpack_from(order + offset_format, data, after)
    except struct.error:
        return len(seen)
    return len(seen)
