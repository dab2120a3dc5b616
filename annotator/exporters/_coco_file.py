"""Writes a COCO file row by row: one row on each line, annotations before images, so that memory stays flat."""

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

_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


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
            self.draft.write(_lines(annotations, self._n_annotations == 0))
            self._n_annotations += len(annotations)
        with writing(self.draft.path):
            self._images.write(_lines([image], self._n_images == 0))
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


def _lines(rows: Sequence[Row], are_first: bool) -> bytes:
    return (b"" if are_first else b",\n") + b",\n".join(_as_json(row) for row in rows)


def _as_json(value: Any) -> bytes:
    """Compact JSON; half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    return _to_json(value).encode("utf-8", "replace")
