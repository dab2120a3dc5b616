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

    def place(self, path: str) -> str:
        """Copy or link a picture; answers its path relative to `root`. Raises `ExportError` if the disk refuses."""
        if self._how == "none":
            return path
        picture = self._source / path
        try:
            is_upright = is_stored_upright(picture)
            if is_upright and PurePosixPath(path).suffix.lower() in _SAVED_AS:
                self._put(path, lambda draft: self._take_over(picture, draft))
                return path
            return self._put_upright(picture, path)
        except ImageError as error:
            self._tally.problems.append(f"{path}: its picture was not taken along: {error.reason}")
            return path

    def _put(self, path: str, write: Callable[[Path], None]) -> None:
        target = self._target / path
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

    def _put_upright(self, picture: Path, path: str) -> str:
        """Also where links were asked for: a link to a picture that lies on its side would not fit its masks."""
        kind = _SAVED_AS.get(PurePosixPath(path).suffix.lower())
        name = path if kind else f"{path}.png"
        pixels = Image.fromarray(read_image(picture).rgb)
        self._put(name, lambda draft: pixels.save(draft, kind or "PNG", **_NEARLY_AS_IT_WAS.get(kind or "PNG", {})))
        return name
