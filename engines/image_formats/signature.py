"""Tells a picture's format by its first bytes; file names lie too often to be asked."""

from __future__ import annotations

from enum import StrEnum

HEAD_BYTES = 4096
"""How much of a file's beginning the functions of this module want to see."""


class ImageKind(StrEnum):
    """The formats that can be opened, by the names that people know."""

    JPEG = "JPEG"
    PNG = "PNG"
    GIF = "GIF"
    WEBP = "WebP"
    BMP = "BMP"
    TIFF = "TIFF"
    AVIF = "AVIF"
    HEIF = "HEIF"
    JPEG_2000 = "JPEG 2000"
    PNM = "PNM"
    DICOM = "DICOM"


_PREFIXES = (
    (b"\xff\xd8\xff", ImageKind.JPEG),
    (b"\x89PNG\r\n\x1a\n", ImageKind.PNG),
    (b"GIF87a", ImageKind.GIF),
    (b"GIF89a", ImageKind.GIF),
    (b"BM", ImageKind.BMP),
    (b"II*\0", ImageKind.TIFF),
    (b"MM\0*", ImageKind.TIFF),
    (b"II+\0", ImageKind.TIFF),
    (b"MM\0+", ImageKind.TIFF),
    (b"\0\0\0\x0cjP  \r\n\x87\n", ImageKind.JPEG_2000),
    (b"\xff\x4f\xff\x51", ImageKind.JPEG_2000),
)
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})

_FOREIGN_PREFIXES = (
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\xff\x0a", "a JPEG XL picture, which cannot be read here"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL picture, which cannot be read here"),
    (b"8BPS", "a Photoshop document"),
    (b"v/1\x01", "an OpenEXR picture, which cannot be read here"),
    (b"\0\x05\x16\x07", "a macOS side file"),
    (b"\x1a\x45\xdf\xa3", "a video"),
    (b"version https://git-lfs", "a Git LFS pointer: run git lfs pull"),
)


def detect_kind(head: bytes) -> ImageKind | None:
    """The format of a file that begins with `head`, or None if it is no picture that can be opened."""
    if head[128:132] == b"DICM":  # first, because the 128 bytes before it may look like a TIFF
        return ImageKind.DICOM
    for prefix, kind in _PREFIXES:
        if head.startswith(prefix):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return ImageKind.WEBP
    if head[:1] == b"P" and head[1:2] in b"123456f" and head[2:3].isspace():
        return ImageKind.PNM
    return _kind_by_brand(head)


def describe_foreign(head: bytes) -> str:
    """What a file that is no picture seems to be, to end the sentence "the content is …"."""
    if not head.strip(b"\0"):
        return "only zero bytes: the copy was interrupted"
    for prefix, name in _FOREIGN_PREFIXES:
        if head.startswith(prefix):
            return name
    if head[4:8] == b"ftyp":
        return "a video"
    text = _as_text(head)
    return "of no known picture format" if text is None else _kind_of_text(text)


def _kind_by_brand(head: bytes) -> ImageKind | None:
    if head[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = {head[8:12], *(head[start : start + 4] for start in range(16, end - 3, 4))}
    if brands & _AVIF_BRANDS:
        return ImageKind.AVIF
    return ImageKind.HEIF if brands & _HEIF_BRANDS else None


def _as_text(head: bytes) -> str | None:
    try:
        text = head[: HEAD_BYTES - 4].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 8:
            return None
        text = head[: error.start].decode("utf-8-sig")
    printable = all(character.isprintable() or character.isspace() for character in text)
    return text if printable else None


def _kind_of_text(text: str) -> str:
    start = text.lstrip().lower()
    if start.startswith(("<!doctype html", "<html")):
        return "a web page (HTML), probably an error page that was saved instead of the picture"
    if start.startswith("<svg") or "<svg" in start[:1000]:
        return "an SVG drawing"
    return "plain text"
