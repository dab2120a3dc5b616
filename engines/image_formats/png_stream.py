"""What Pillow does not tell about a PNG: damaged or missing rows, and the orientation before the pixels are read."""

from __future__ import annotations

import io
import zlib
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO

from engines.image_formats.orientation import orientation_of

HEADER_BYTES = 29
"""How much of a file's beginning holds its header."""

_SIGNATURE_BYTES = 8
_PIXELS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT")
_END_CHUNK = b"\0\0\0\0IEND\xaeB`\x82"
_MAX_TEXT_BYTES = 1 << 20
_RAW_EXIF = b"Raw profile type exif\0"
_XMP = b"XML:com.adobe.xmp\0"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# First row and column, and steps between rows and columns, of each pass of an interlaced picture.
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def png_orientation(stream: BinaryIO) -> int:
    """The orientation in the EXIF or text chunks, wherever they stand; the picture data are skipped."""
    exif, xmp = None, None
    for name, start, length in _chunks(stream):
        if name in (b"eXIf", b"tEXt", b"zTXt", b"iTXt") and length <= _MAX_TEXT_BYTES:
            stream.seek(start)
            content = stream.read(length)
            if name == b"eXIf":
                exif = content
            elif content.startswith(_RAW_EXIF):
                exif = exif or _raw_profile(name, content.removeprefix(_RAW_EXIF))
            elif content.startswith(_XMP):
                xmp = content
    return orientation_of(exif, xmp)


def png_size(header: bytes) -> tuple[int, int]:
    """Height and width, in a file with this beginning. Raises ValueError if it does not begin with its header."""
    if header[12:16] != b"IHDR" or len(header) < HEADER_BYTES:
        raise ValueError("the first chunk is not the header")
    return int.from_bytes(header[20:24], "big"), int.from_bytes(header[16:20], "big")


def only_pixels(data: bytes) -> bytes:
    """The same picture without texts, profiles and further frames, over which a decoder could stumble."""
    view = memoryview(data)
    kept = (
        view[start - 8 : start + length + 4] for name, start, length in _chunks(io.BytesIO(data)) if name in _PIXELS
    )
    return b"".join((view[:_SIGNATURE_BYTES], *kept, _END_CHUNK))


def count_frames(data: bytes) -> int:
    """Frames that the file claims to have, the first included."""
    for name, start, _ in _chunks(io.BytesIO(data)):
        if name == b"acTL":
            return int.from_bytes(data[start : start + 4], "big")
    return 1


def has_end(data: bytes) -> bool:
    """Whether the file goes on to the end marker; whatever may follow it does not matter."""
    last = deque(_chunks(io.BytesIO(data)), maxlen=1)
    end = last[0][1] + last[0][2] + 4 if last else _SIGNATURE_BYTES
    return data[end + 4 : end + 8] == b"IEND"


def has_sound_checksums(data: bytes) -> bool:
    """Whether every chunk that the picture is made of fits its checksum; one that the file cuts off does not count."""
    view = memoryview(data)
    for name, start, length in _chunks(io.BytesIO(data)):
        end = start + length
        checksum = view[end : end + 4]
        if name not in _PIXELS or len(checksum) < 4:
            continue
        if zlib.crc32(view[start - 4 : end]) != int.from_bytes(checksum, "big"):
            return False
    return True


def has_all_rows(data: bytes) -> bool:
    """Whether the packed data unpack to as many bytes as the header promises; they are counted, not kept."""
    missing = 0
    unpacker = zlib.decompressobj()
    for name, start, length in _chunks(io.BytesIO(data)):
        content = data[start : start + length]
        if name == b"IHDR":
            missing = _promised_bytes(content)
        elif name == b"IDAT":
            while content and missing > 0:
                missing -= len(unpacker.decompress(content, 1 << 16))
                content = unpacker.unconsumed_tail
    return missing <= 0


def is_interlaced(header: bytes) -> bool:
    """Whether a file with this beginning stores its rows in seven passes."""
    return header[28:29] == b"\1"


def bits_per_channel(header: bytes) -> int:
    """How many bits a channel has, in a file with this beginning."""
    return header[24]


def _promised_bytes(header: bytes) -> int:
    width, height = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:8], "big")
    bits = header[8] * _CHANNELS[header[9]]
    passes = _PASSES if header[12] else ((0, 0, 1, 1),)
    total = 0
    for row, column, row_step, column_step in passes:
        n_rows, n_columns = -((row - height) // row_step), -((column - width) // column_step)
        if n_columns > 0 and n_rows > 0:
            total += n_rows * (1 + (n_columns * bits + 7) // 8)
    return total


def _chunks(stream: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """Name, start of the content and its length, of each chunk up to the end of the picture."""
    position = _SIGNATURE_BYTES
    while True:
        stream.seek(position)
        header = stream.read(8)
        name, length = header[4:], int.from_bytes(header[:4], "big")
        if len(header) < 8 or name == b"IEND":
            return
        yield name, position + 8, length
        position += 12 + length


def _raw_profile(chunk: bytes, content: bytes) -> bytes | None:
    """EXIF that was written as lines of hexadecimal text, below a name and a length."""
    if chunk == b"zTXt":
        try:
            content = zlib.decompressobj().decompress(content[1:], _MAX_TEXT_BYTES)
        except zlib.error:
            return None
    try:
        return bytes.fromhex("".join(content.decode("latin-1").split("\n")[3:]))
    except ValueError:
        return None
