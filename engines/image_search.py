"""Finds the picture files of a folder, in an order that a person expects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

IMAGE_SUFFIXES: frozenset[str] = frozenset(
    f".{name}"
    for group in (
        ("jpg", "jpeg", "jpe", "jfif", "mpo"),
        ("png", "apng", "gif", "bmp", "dib", "webp", "tif", "tiff"),
        ("avif", "avifs", "heic", "heics", "heif", "heifs", "hif"),
        ("jp2", "j2k", "j2c", "jpc", "jpx", "jpf", "jxl"),
        ("ppm", "pgm", "pbm", "pnm", "pfm"),
        ("dcm", "dicom"),
    )
    for name in group
)
"""Lower case, with the dot. Not all of these can be read: such a file is named with the reason, not overlooked."""

_DIGITS = re.compile(r"(\d+)")


def find_images(folder: Path, recursive: bool = True) -> Iterator[Path]:
    """The picture files in a folder by their suffix, then those of its sub-folders; 2 comes before 10.

    Hidden files and folders (a leading dot) are passed over, and links to folders are not followed. Links to nowhere,
    files without permission and sub-folders that cannot be listed come too, so that opening them names what is wrong.
    Raises FileNotFoundError, NotADirectoryError or PermissionError for the folder itself.
    """
    return _images_from(folder, _entries(folder), recursive)


def _images_from(folder: Path, entries: list[os.DirEntry[str]], recursive: bool) -> Iterator[Path]:
    waiting = _sub_folders(folder, entries) if recursive else []
    yield from _images_in(folder, entries)
    while waiting:
        folder = waiting.pop()
        try:
            entries = _entries(folder)
        except OSError:
            yield folder
            continue
        yield from _images_in(folder, entries)
        waiting += _sub_folders(folder, entries)


def _images_in(folder: Path, entries: list[os.DirEntry[str]]) -> Iterator[Path]:
    for entry in entries:
        if Path(entry.name).suffix.lower() in IMAGE_SUFFIXES and not _is_folder(entry):
            yield folder / entry.name


def _sub_folders(folder: Path, entries: list[os.DirEntry[str]]) -> list[Path]:
    """The last one first, so that they can be taken from the end."""
    return [folder / entry.name for entry in reversed(entries) if _is_folder(entry) and not _is_link(entry)]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted((entry for entry in found if not entry.name.startswith(".")), key=_natural_order)


def _natural_order(entry: os.DirEntry[str]) -> tuple[list[str | int], str]:
    parts: list[str | int] = list(_DIGITS.split(entry.name.casefold()))
    parts[1::2] = [int(digits) for digits in parts[1::2]]
    return parts, entry.name


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_link(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() or entry.is_junction() if hasattr(entry, "is_junction") else entry.is_symlink()
