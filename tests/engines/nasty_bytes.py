"""Picture files written byte by byte, for what no library would write: bombs, wrong headers, missing rows."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

from numpy.typing import NDArray
from PIL import Image


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    """The bytes of a picture as Pillow writes them."""
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def png(height: int, width: int, colour: int, bits: int, rows: bytes, *extra: bytes, interlaced: bool = False) -> bytes:
    """A PNG of a colour type with these unpacked row bytes and extra chunks before the picture data."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    chunks = [png_chunk(b"IHDR", header), *extra, png_chunk(b"IDAT", zlib.compress(rows)), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def png_chunk(name: bytes, content: bytes) -> bytes:
    """One chunk with its length and checksum."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png_of(values: NDArray[Any], colour: int, *extra: bytes) -> bytes:
    """A PNG of (H, W) or (H, W, C) values of 8 or 16 bits, rows unfiltered."""
    big_endian = values.astype(values.dtype.newbyteorder(">"))
    rows = b"".join(b"\0" + row.tobytes() for row in big_endian)
    return png(values.shape[0], values.shape[1], colour, 8 * values.dtype.itemsize, rows, *extra)


def with_chunk_before_end(data: bytes, chunk: bytes) -> bytes:
    """A PNG with one more chunk after its picture data."""
    return data[:-12] + chunk + data[-12:]


def tiff(order: str, tags: dict[int, tuple[int, tuple[int, ...]]], strip: bytes) -> bytes:
    """A TIFF of one strip; `order` is ">" or "<", tags are type (3 or 4) and values, offsets are filled in."""
    tags = {**tags, 273: (4, (8,)), 279: (4, (len(strip),))}
    directory = 8 + len(strip) + len(strip) % 2
    after = directory + 2 + 12 * len(tags) + 4
    entries, outside = b"", b""
    for tag in sorted(tags):
        number_type, numbers = tags[tag]
        content = struct.pack(order + {3: "H", 4: "I"}[number_type] * len(numbers), *numbers)
        if len(content) > 4:
            content, outside = struct.pack(order + "I", after + len(outside)), outside + content
        entries += struct.pack(order + "HHI", tag, number_type, len(numbers)) + content.ljust(4, b"\0")
    head = {">": b"MM\0*", "<": b"II*\0"}[order] + struct.pack(order + "I", directory)
    body = head + strip + b"\0" * (len(strip) % 2)
    return body + struct.pack(order + "H", len(tags)) + entries + bytes(4) + outside


def looping_tiff(content: bytes) -> bytes:
    """A TIFF of `tiff` whose only page names itself as the next."""
    order = ">" if content[:2] == b"MM" else "<"
    (directory,) = struct.unpack_from(order + "I", content, 4)
    (n_entries,) = struct.unpack_from(order + "H", content, directory)
    after = directory + 2 + 12 * n_entries
    return content[:after] + struct.pack(order + "I", directory) + content[after + 4 :]


def tiff_tags(
    height: int, width: int, bits: tuple[int, ...], photometric: int
) -> dict[int, tuple[int, tuple[int, ...]]]:
    """The tags that every TIFF has."""
    return {
        256: (4, (width,)),
        257: (4, (height,)),
        258: (3, bits),
        259: (3, (1,)),
        262: (3, (photometric,)),
        277: (3, (len(bits),)),
        278: (4, (height,)),
    }


def exif_with(orientation: int, order: str = ">") -> bytes:
    """EXIF with an orientation and nothing else."""
    head = {">": b"MM\0*", "<": b"II*\0"}[order]
    entry = struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return b"Exif\0\0" + head + struct.pack(order + "IH", 8, 1) + entry + bytes(4)


def gif_claiming(canvas: tuple[int, int], frame: tuple[int, int]) -> bytes:
    """A GIF whose header and first frame claim these widths and heights, with hardly any data."""
    screen = b"GIF89a" + struct.pack("<HH", *canvas) + b"\xf0\0\0" + bytes(6)
    return screen + b"," + struct.pack("<HHHH", 0, 0, *frame) + b"\0\x02\x02\x4c\x01\0;"


def webp_claiming(width: int, height: int) -> bytes:
    """A WebP that claims a canvas of this size and holds a small picture."""
    small = encoded(Image.new("RGB", (8, 8)), "WEBP", lossless=True)[12:]
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + canvas + small
    return b"RIFF" + struct.pack("<I", len(body)) + body


def jpeg_claiming(height: int, width: int, data: bytes) -> bytes:
    """A JPEG with another size in its frame header."""
    frame = max(data.find(marker) for marker in (b"\xff\xc0", b"\xff\xc2"))
    return data[: frame + 5] + struct.pack(">HH", height, width) + data[frame + 9 :]


def bmp_claiming(width: int, height: int) -> bytes:
    """A BMP with another size in its header."""
    data = encoded(Image.new("RGB", (8, 8)), "BMP")
    return data[:18] + struct.pack("<ii", width, height) + data[26:]


def jpeg_2000_claiming(width: int, height: int) -> bytes:
    """A JPEG 2000 with another size in its codestream and box headers."""
    data = bytearray(encoded(Image.new("RGB", (64, 64)), "JPEG2000"))
    box = data.find(b"ihdr") + 4
    data[box : box + 8] = struct.pack(">II", height, width)
    size = data.find(b"\xff\x51") + 6
    data[size : size + 8] = struct.pack(">II", width, height)
    return bytes(data)
