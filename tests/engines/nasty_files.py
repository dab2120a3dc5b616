"""Writes a folder of pictures that other tools stumble over, each with what must become of it.

    for nasty in make_nasty_files(folder): ...

Expectations follow from how a file was made, never from what the project answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import nasty_broken
import nasty_pictures
from nasty_scene import Expected


@dataclass(frozen=True)
class NastyFile:
    """One file: either it has a `size` (height, width) when read upright, or words of its `refusal`.

    `pixels` are ((row, column), (red, green, blue)) true within `tolerance`; `note` is part of one of the notes;
    `package` names the optional package without which the file is refused; `is_found` tells whether a search of the
    folder may list it.
    """

    path: Path
    size: tuple[int, int] | None = None
    refusal: str | None = None
    pixels: tuple[tuple[tuple[int, int], tuple[int, int, int]], ...] = ()
    tolerance: int = 2
    note: str | None = None
    package: str | None = None
    is_found: bool = True


def make_nasty_files(folder: Path) -> list[NastyFile]:
    """Write all of them into an existing empty folder and tell what to expect of each."""
    return [
        *_written(folder, nasty_pictures.all_pictures()),
        *_written(folder, nasty_broken.all_broken()),
        *_odd_names(folder),
    ]


def make_file_system_oddities(folder: Path) -> list[NastyFile]:
    """Write what is no plain file: links, pipes, folders. Only where the system has them."""
    (folder / "dir_named.jpg").mkdir()
    (folder / "dangling.jpg").symlink_to("missing.jpg")
    (folder / "own_link.jpg").symlink_to("own_link.jpg")
    (folder / "loop").symlink_to(".", target_is_directory=True)
    os.mkfifo(folder / "pipe.jpg")
    oddities = [
        NastyFile(folder / "dir_named.jpg", refusal="folder", is_found=False),
        NastyFile(folder / "dangling.jpg", refusal="link to a file that is not there"),
        NastyFile(folder / "own_link.jpg", refusal="cannot be read"),
        NastyFile(folder / "pipe.jpg", refusal="pipe"),
    ]
    forbidden = folder / "no_read.jpg"
    forbidden.write_bytes(nasty_pictures.plain_jpeg().content)
    forbidden.chmod(0)
    if not os.access(forbidden, os.R_OK):  # the superuser reads everything
        oddities.append(NastyFile(forbidden, refusal="permission"))
    return oddities


def _written(folder: Path, files: Iterator[Expected]) -> Iterator[NastyFile]:
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        is_found = path.suffix != "" and not file.name.startswith(".")
        yield NastyFile(path, file.size, file.refusal, file.pixels, file.tolerance, file.note, file.package, is_found)


def _odd_names(folder: Path) -> Iterator[NastyFile]:
    names = [
        "名前 with space & émoji 🐈.jpg",
        "percent%20hash#1.jpg",
        "UPPER.JPG",
        "two..dots..jpg",
        "x" * 200 + ".jpg",
        "-rf.jpg",
        "quote'\"<b>.jpg",
        "line\nbreak.jpg",
        "e\u0301_nfd.jpg",
        "\u00e9_nfd.jpg",
        "sub1/IMG_0001.jpg",
        "sub2/IMG_0001.jpg",
        ".hidden.jpg",
        ".folder/inside.jpg",
        "no_suffix",
    ]
    yield from _written(folder, (replace(nasty_pictures.plain_jpeg(), name=name) for name in names))
