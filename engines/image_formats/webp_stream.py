"""What a WebP file says of itself before a decoder, which reserves memory as soon as it opens one, is let near it."""

from __future__ import annotations


def webp_size(head: bytes) -> tuple[int, int] | None:
    """Height and width in a WebP header; None if it is damaged."""
    form, body = head[12:16], head[20:30]
    if len(body) < 10:
        return None
    if form == b"VP8X":
        return 1 + int.from_bytes(body[7:10], "little"), 1 + int.from_bytes(body[4:7], "little")
    if form == b"VP8L" and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits >> 14 & 0x3FFF), 1 + (bits & 0x3FFF)
    if form == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        return int.from_bytes(body[8:10], "little") & 0x3FFF, int.from_bytes(body[6:8], "little") & 0x3FFF
    return None


def end_of_webp_bitstream(data: bytes) -> int | None:
    """Where the packed pixels of the first picture end; None if there are none."""
    position = 12
    while position + 8 <= len(data):
        end = position + 8 + int.from_bytes(data[position + 4 : position + 8], "little")
        if data[position : position + 4] in (b"VP8 ", b"VP8L"):
            return min(end, len(data))
        position = end + end % 2
    return None
