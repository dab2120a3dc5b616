"""Shrunk copies of the pictures, for the page: made once, named by content, and the oldest dropped."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.images import write_preview


@dataclass(frozen=True)
class PreviewKind:
    """One size of copy: its folder, longest side in pixels, and how many files are kept."""

    name: str
    long_side_px: int
    limit_files: int


PREVIEW = PreviewKind("previews", 2048, 400)
THUMBNAIL = PreviewKind("thumbnails", 192, 20_000)


class Previews:
    """The copies of one project. Only these folders are ever served to the browser."""

    def __init__(self, project: Path) -> None:
        self.root = project / "shown"

    def path(self, kind: PreviewKind, sha256: str) -> Path | None:
        """The copy of a picture, by its content hash; None if it has not been made."""
        path = self._path(kind, sha256)
        return path if path.is_file() else None

    def make(self, kind: PreviewKind, sha256: str, rgb: NDArray[np.uint8]) -> Path:
        """The copy of a picture of (H, W, 3) RGB, made now if it is not there."""
        path = self._path(kind, sha256)
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_preview(rgb, path, kind.long_side_px, "JPEG")
            self._drop_oldest(kind)
        return path

    def clear(self) -> None:
        """Drop all copies; they are made again when they are needed."""
        shutil.rmtree(self.root, ignore_errors=True)

    def _path(self, kind: PreviewKind, sha256: str) -> Path:
        return self.root / kind.name / f"{sha256[:32]}.jpg"

    def _drop_oldest(self, kind: PreviewKind) -> None:
        files = list((self.root / kind.name).glob("*.jpg"))
        if len(files) <= kind.limit_files:
            return
        files.sort(key=_age)
        for path in files[: len(files) - kind.limit_files * 9 // 10]:
            path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
