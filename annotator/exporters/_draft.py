"""A file that is written beside its destination and takes its place only when it is whole."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from annotator.exporters.protocol import ExportError

LEFT_BEHIND_S = 24 * 3600
"""A draft that nobody has written to for so long belongs to a run that was killed."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the system's refusal to write into an `ExportError` about `path`."""
    try:
        yield
    except ExportError:
        raise
    except OSError as error:
        raise ExportError.unwritable(path, error) from error


class Draft:
    """The next version of `path`. Leaving the `with` block without `commit` removes it and keeps what was there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.draft_path = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")

    def __enter__(self) -> Self:
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _remove_left_behind(self.path)
            self._file = self.draft_path.open("xb")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with suppress(OSError):  # what cannot be flushed any more is thrown away
            self._file.close()
        self.draft_path.unlink(missing_ok=True)

    def write(self, content: bytes) -> None:
        """Appends."""
        with writing(self.path):
            self._file.write(content)

    def finish(self) -> None:
        """Brings everything to the disk and closes the draft, which can then be read at `draft_path`."""
        with writing(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def commit(self) -> None:
        """Takes the destination's place; call `finish` first."""
        with writing(self.path):
            self.draft_path.replace(self.path)


def _remove_left_behind(path: Path) -> None:
    for draft in path.parent.glob(f".{path.name}.*.part"):
        if time.time() - draft.stat().st_mtime > LEFT_BEHIND_S:
            draft.unlink(missing_ok=True)
