"""Brings the pictures of a dataset along: upright, as every reader of the dataset will see them."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from PIL import Image

from annotator.exporters._draft import writing
from annotator.exporters.protocol import Tally
from engines.errors import ImageError
from engines.images import is_stored_upright, read_image

PICTURES_FOLDER = "images"
_SAVED_AS = {
    ".bmp": "BMP",
    ".jpeg": "JPEG",
    ".jpg": "JPEG",
    ".png": "PNG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
}
"""What trainers read; other pictures are written as PNG."""
_NEARLY_AS_IT_WAS: dict[str, dict[str, int]] = {
    "JPEG": {"quality": 97, "subsampling": 0},
    "WEBP": {"lossless": 1},
}


class Pictures:
    """The pictures of one part of a dataset, placed below a folder by the path that they have in the project."""

    def __init__(self, source: Path, target: Path, how: str, tally: Tally) -> None:
        """`how` is one of `protocol.PICTURES`; what cannot be placed is noted in `tally`."""
        self._source = source
        self._target = target
        self._how = how
        self._tally = tally

    @property
    def root(self) -> Path:
        """The folder that file names in the dataset are relative to."""
        return self._source if self._how == "none" else self._target

    def name_of(self, path: str) -> str:
        """Where a picture is placed, relative to `root`."""
        return path if self._how == "none" or _kind(path) else f"{path}.png"

    def place(self, path: str) -> str:
        """Copy or link a picture; answers its `name_of`. Raises `ExportError` if the disk refuses."""
        if self._how != "none":
            try:
                self._bring(self._source / path, self.name_of(path))
            except ImageError as error:
                self._tally.problems.append(f"{path}: its picture was not taken along: {error.reason}")
        return self.name_of(path)

    def _bring(self, picture: Path, name: str) -> None:
        if is_stored_upright(picture) and _kind(picture.name):
            self._put(name, lambda draft: self._take_over(picture, draft))
        else:
            self._put_upright(picture, name)

    def _put(self, name: str, write: Callable[[Path], None]) -> None:
        target = self._target / name
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{secrets.token_hex(8)}.part")
            try:
                write(draft)
                draft.replace(target)
            finally:
                draft.unlink(missing_ok=True)

    def _take_over(self, picture: Path, draft: Path) -> None:
        if self._how == "link":
            draft.symlink_to(picture.resolve())
        else:
            shutil.copyfile(picture, draft)

    def _put_upright(self, picture: Path, name: str) -> None:
        """Also where links were asked for: a link to a picture that lies on its side would not fit its masks."""
        kind = str(_kind(name))
        pixels = Image.fromarray(read_image(picture).rgb)
        self._put(name, lambda draft: pixels.save(draft, kind, **_NEARLY_AS_IT_WAS.get(kind, {})))


def _kind(name: str) -> str | None:
    return _SAVED_AS.get(PurePosixPath(name).suffix.lower())
