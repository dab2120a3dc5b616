"""Which picture of the folder each file name of a dataset means; only the project's own pictures are looked at."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from annotator.records import ImageRecord

_Parts = tuple[str, ...]


class PictureNameError(Exception):
    """A name by which no one picture can be told; the text says why."""


class _Match(NamedTuple):
    """How well a picture fits a name; the greater, the better."""

    n_parts: int
    """Folders and name that are equal, counted from the end, those above the opened folder included."""
    is_whole_path: bool
    """The picture's whole path in the folder is among them."""
    is_spelt_alike: bool
    """Also where two spellings that look the same are told apart."""
    image: ImageRecord

    @property
    def rank(self) -> tuple[int, bool, bool]:
        return self.n_parts, self.is_whole_path, self.is_spelt_alike


class PictureNames:
    """The pictures that all file names of one dataset mean, found together, so that none is given to two names.

    A name means a picture when it ends with the picture's path in the folder, or is the end of it: `train/sub/a.png`
    is `sub/a.png`, and so is `a.png`, but `other/a.png` is not. Of several, the one with more of its path in common.
    """

    def __init__(self, root: Path, images: Iterable[ImageRecord], file_names: Iterable[str]) -> None:
        """`root` is the opened folder's absolute path: names may begin above it."""
        self._root = _parts(str(root))
        self._by_path: dict[_Parts, list[ImageRecord]] = defaultdict(list)
        self._by_end: dict[_Parts, list[ImageRecord]] = defaultdict(list)
        for image in images:
            parts = _parts(image.path)
            self._by_path[parts].append(image)
            for start in range(1, len(parts)):
                self._by_end[parts[start:]].append(image)
        self._matches: dict[str, _Match] = {}
        self._faults: dict[str, str] = {}
        for name in dict.fromkeys(file_names):
            self._look_up(name)
        self._settle()

    def find(self, file_name: str) -> ImageRecord:
        """The picture. Raises `PictureNameError` where there is none, or several may be meant."""
        if (fault := self._faults.get(file_name)) is not None:
            raise PictureNameError(fault)
        return self._matches[file_name].image

    def _look_up(self, name: str) -> None:
        matches = self._candidates(name)
        if not matches:
            self._faults[name] = "there is no such picture in the folder"
            return
        best = max(matches, key=lambda match: match.rank)
        n_alike = sum(match.rank == best.rank for match in matches)
        if n_alike > 1:
            self._faults[name] = f"{n_alike} pictures of the folder have that name; write its sub-folder too"
        else:
            self._matches[name] = best

    def _candidates(self, name: str) -> list[_Match]:
        parts = _parts(name)
        whole = [image for start in range(len(parts)) for image in self._by_path.get(parts[start:], ())]
        return [self._match(name, parts, image) for image in (*whole, *self._by_end.get(parts, ()))]

    def _match(self, name: str, parts: _Parts, image: ImageRecord) -> _Match:
        inside = _parts(image.path)
        n_parts = _n_common(parts, (*self._root, *inside))
        return _Match(n_parts, n_parts >= len(inside), _ends_alike(name, image.path), image)

    def _settle(self) -> None:
        """Of several names for one picture the best match keeps it; of equal ones none, since one would be wrong."""
        names_of: dict[int, list[str]] = defaultdict(list)
        for name, match in self._matches.items():
            names_of[match.image.image_id].append(name)
        for names in names_of.values():
            if len(names) > 1:
                self._refuse_all_but_the_best(names)

    def _refuse_all_but_the_best(self, names: Sequence[str]) -> None:
        best = max(self._matches[name].rank for name in names)
        first, *others = [name for name in names if self._matches[name].rank == best]
        for name in names:
            path = self._matches[name].image.path
            if name != first:
                self._faults[name] = f"it would be the picture {path}, as {first} is"
            elif others:
                self._faults[name] = f"it would be the picture {path}, as {others[0]} is"


def _parts(path: str) -> _Parts:
    """Folders and name. Some systems separate them by backslashes, and write an accent as a character of its own."""
    spelt = unicodedata.normalize("NFC", path).replace("\\", "/")
    return tuple(part for part in spelt.split("/") if part not in ("", ".", ".."))


def _n_common(one: _Parts, other: _Parts) -> int:
    n = 0
    for mine, its in zip(reversed(one), reversed(other), strict=False):
        if mine != its:
            break
        n += 1
    return n


def _ends_alike(name: str, path: str) -> bool:
    return f"/{name}".endswith(f"/{path}") or f"/{path}".endswith(f"/{name}")
