"""The folder of images that a project is about: what is in it, and nothing outside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from annotator.errors import FolderNotFoundError
from annotator.records import FoundImage
from engines.images import find_images


class ImageFolder:
    """An opened folder. Images are named by their path relative to it, with forward slashes."""

    def __init__(self, root: Path, left_out: Path) -> None:
        """`left_out`, the project, may lie inside the folder; the copies that it holds are not pictures of it."""
        if not root.is_dir():
            raise FolderNotFoundError(root)
        self.root = root.resolve()
        self._left_out = left_out.resolve()

    def find(self) -> Iterator[FoundImage]:
        """Every picture file, in the order it is shown; one that cannot be looked at has size and time 0."""
        for path in find_images(self.root):
            if path.is_relative_to(self._left_out):
                continue
            relative = path.relative_to(self.root).as_posix()
            try:
                status = path.stat()
            except OSError:
                yield FoundImage(relative, 0, 0)
            else:
                yield FoundImage(relative, status.st_size, status.st_mtime_ns)

    def path(self, relative: str) -> Path:
        """The file of an image."""
        return self.root / relative
