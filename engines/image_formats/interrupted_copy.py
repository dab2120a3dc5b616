"""Finds files whose end was never written: formats without checksums show such a picture half grey, without a word."""

from __future__ import annotations

from engines.image_formats.signature import ImageKind
from engines.image_formats.webp_stream import end_of_webp_bitstream


def is_zero_filled(kind: ImageKind, data: bytes, n_pixels: int) -> bool:
    """Whether the packed picture data end in more zero bytes than any encoder writes.

    Encoders end a plain white picture in up to one zero byte for 10,000 pixels, and others in next to none.
    """
    end = _end_of_picture_data(kind, data)
    if end is None:
        return False
    n_zeros = end - len(data[:end].rstrip(b"\0"))
    return n_zeros > 256 + n_pixels // 1000


def _end_of_picture_data(kind: ImageKind, data: bytes) -> int | None:
    if kind is ImageKind.WEBP:
        return end_of_webp_bitstream(data)
    if kind in (ImageKind.AVIF, ImageKind.HEIF):
        return _end_of_media_box(data)
    return None


def _end_of_media_box(data: bytes) -> int | None:
    position = 0
    while position + 8 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        if size == 1:
            size = int.from_bytes(data[position + 8 : position + 16], "big")
        end = position + size if size >= 8 else len(data)
        if data[position + 4 : position + 8] == b"mdat":
            return min(end, len(data))
        position = end
    return None
