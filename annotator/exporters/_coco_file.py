"""Writes a COCO file image by image: a line for each, annotations before images, so that memory stays flat."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from annotator.exporters._coco_rows import LICENSES, Row
from annotator.exporters._draft import Draft, writing

ANNOTATIONS_START = b'"annotations":[\n'
IMAGES_START = b'],\n"images":[\n'
END = b"]}\n"

_IMAGES_IN_MEMORY_BYTES = 4 * 2**20

_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


class CocoFile:
    """The next version of one COCO file; as with `Draft`, nothing is replaced before `commit`."""

    def __init__(self, path: Path) -> None:
        self.draft = Draft(path)
        self._n_annotations = 0
        self._n_images = 0

    def __enter__(self) -> Self:
        self.draft.__enter__()
        # The images come in between the annotations; they are few, wait here, and end the file.
        self._images: IO[bytes] = tempfile.SpooledTemporaryFile(
            _IMAGES_IN_MEMORY_BYTES, dir=str(self.draft.path.parent)
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._images.close()
        self.draft.__exit__(kind, error, tb)

    def start(self, info: Row, categories: Sequence[Row]) -> None:
        """Everything that comes before the annotations."""
        for name, value in (("info", info), ("licenses", LICENSES), ("categories", categories)):
            opening = "{" if name == "info" else ""
            self.draft.write(f'{opening}"{name}":'.encode() + _as_json(value) + b",\n")
        self.draft.write(ANNOTATIONS_START)

    def add(self, image: Row, annotations: Sequence[Row]) -> None:
        """One image with its annotations."""
        if annotations:
            self.draft.write(_line(annotations, self._n_annotations == 0))
            self._n_annotations += len(annotations)
        with writing(self.draft.path):
            self._images.write(_line([image], self._n_images == 0))
        self._n_images += 1

    def finish(self) -> None:
        """The images and the end; the draft is then whole on the disk."""
        self.draft.write(b"\n" * (self._n_annotations > 0) + IMAGES_START)
        with writing(self.draft.path):
            self._images.seek(0)
            shutil.copyfileobj(self._images, self.draft)
        self.draft.write(b"\n" * (self._n_images > 0) + END)
        self.draft.finish()

    def commit(self) -> None:
        """Takes the destination's place."""
        self.draft.commit()


def _line(rows: Sequence[Row], is_first: bool) -> bytes:
    """A part of a JSON list, without its brackets: encoding many rows at once is faster than one by one."""
    return (b"" if is_first else b",\n") + _as_json(rows)[1:-1]


def _as_json(value: Any) -> bytes:
    """Compact JSON; half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    return _to_json(value).encode("utf-8", "replace")
