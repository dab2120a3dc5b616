"""A dataset that is a whole folder: written beside its destination, and put in its place only when it is complete."""

from __future__ import annotations

import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from annotator.exporters._draft import LEFT_BEHIND_S, writing
from annotator.exporters.protocol import ExportError

MARKER = ".phrasemask-export"
"""An empty file in each folder that we wrote: only such a folder is ever replaced."""


class FolderDraft:
    """The next version of the folder `out`. Leaving the `with` block without `commit` keeps what was there."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out.with_name(f".{out.name}.{secrets.token_hex(6)}.part")
        self._before = out.with_name(f".{out.name}.before")

    def __enter__(self) -> Self:
        with writing(self.out):
            self._recover()
            if self.out.exists() and not self._is_ours():
                raise ExportError(f"{self.out} holds other files; give a folder that is empty or not there yet")
            self.folder.mkdir(parents=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name: str, content: bytes) -> Path:
        """A file of the folder; answers where it will be."""
        path = self.folder / name
        with writing(self.out / name):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.out / name

    def commit(self) -> None:
        """Take the destination's place. A process that is killed in the middle leaves the earlier folder aside, from
        where the next export brings it back."""
        with writing(self.out):
            (self.folder / MARKER).touch()
            if self.out.exists():
                self.out.rename(self._before)
            self.folder.rename(self.out)
            shutil.rmtree(self._before, ignore_errors=True)

    def _is_ours(self) -> bool:
        return self.out.is_dir() and ((self.out / MARKER).exists() or not any(self.out.iterdir()))

    def _recover(self) -> None:
        self.out.parent.mkdir(parents=True, exist_ok=True)
        if self._before.exists() and not self.out.exists():
            self._before.rename(self.out)
        for left in self.out.parent.glob(f".{self.out.name}.*.part"):
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > LEFT_BEHIND_S:
                    shutil.rmtree(left, ignore_errors=True)
