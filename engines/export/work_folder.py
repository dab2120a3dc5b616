"""Where a bundle is put together: a folder beside its place that takes the place only when all of it is there.

Finished parts survive an interrupted export and are not made again; a part is either whole or absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from engines.bundle import MANIFEST_NAME
from engines.compare import PAGE_FILE, REPORT_FILE
from engines.errors import PhrasemaskError
from engines.export.errors import ExportFailedError, ExportSettingError
from engines.tensorrt_engines.folder import FOLDER_NAME as ENGINES

_JOURNAL = "parts.json"
Report = TypeVar("Report")


class WorkFolder:
    """`OUT.partial`, with the parts that are done. `fingerprint` names all that the parts depend on."""

    def __init__(self, out: Path, fingerprint: str) -> None:
        _refuse(out, _strangers(out))
        self.out = out
        self.folder = out.with_name(f"{out.name}.partial")
        self._fingerprint = fingerprint
        self._parts: dict[str, dict[str, str]] = {}

    def open(self) -> None:
        """Take over what an export with the same fingerprint has finished; what others left is removed.

        Raises `ExportSettingError` for a folder that no export has made, `ExportFailedError` where none can be made.
        """
        journal = _read_journal(self.folder / _JOURNAL)
        if journal is None:
            _refuse(self.folder, {name for name in _contents(self.folder) if not name.startswith(_JOURNAL)})
        try:
            if journal is not None and journal.get("fingerprint") == self._fingerprint:
                self._parts = journal["parts"]
            elif self.folder.exists():
                shutil.rmtree(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            for unfinished in self.folder.glob("*.unfinished"):
                shutil.rmtree(unfinished)
            self._write_journal()
        except OSError as error:
            raise self._abandon(error) from None

    def has(self, part: str) -> bool:
        """Whether the part is there, unchanged."""
        files = self._parts.get(part)
        return files is not None and all(
            (self.folder / name).is_file() and sha256_of(self.folder / name) == sha256 for name, sha256 in files.items()
        )

    def files_of(self, part: str) -> list[str]:
        """Names of the files of a finished part."""
        return sorted(self._parts[part])

    def make(self, part: str, write: Callable[[Path], None]) -> None:
        """Let `write` fill an empty folder; its files are the part, which is not made where it is there.

        Raises `ExportFailedError`, or what `write` refuses the checkpoint with, and leaves nothing then.
        """
        if self.has(part):
            return
        room = self.folder / f"{part}.unfinished"
        with self._nothing_left_on_failure():
            room.mkdir()
            write(room)
            names = sorted(path.relative_to(room).as_posix() for path in room.rglob("*") if path.is_file())
            files = {name: sha256_of(room / name) for name in names}
            for name in names:
                self._move_in(room, name)
            shutil.rmtree(room)
            self._parts[part] = files
            self._write_journal()

    def describe(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, with every file's sha256: the folder is a bundle from now on, not yet in its place."""
        files = {name: sha256 for part in self._parts.values() for name, sha256 in part.items()}
        content = json.dumps({**manifest, "files": files}, indent=2, ensure_ascii=False) + "\n"
        with self._nothing_left_on_failure():
            write_whole(self.folder / MANIFEST_NAME, content.encode())

    def finish(self, check: Callable[[Path], Report]) -> Report:
        """Let `check` look at the bundle and add to it, then move it to its place. Answers what `check` does."""
        with self._nothing_left_on_failure():
            report = check(self.folder)
            (self.folder / _JOURNAL).unlink()
            self._take_place()
        return report

    @contextmanager
    def _nothing_left_on_failure(self) -> Iterator[None]:
        try:
            yield
        except PhrasemaskError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        except OSError as error:
            raise self._abandon(error) from None

    def _abandon(self, error: OSError) -> ExportFailedError:
        """Remove everything that was written; answers the error to raise."""
        shutil.rmtree(self.folder, ignore_errors=True)
        return ExportFailedError(self.out, error.strerror or str(error))

    def _move_in(self, room: Path, name: str) -> None:
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with (room / name).open("rb+") as stream:
            os.fsync(stream.fileno())
        (room / name).replace(target)

    def _write_journal(self) -> None:
        content = json.dumps({"fingerprint": self._fingerprint, "parts": self._parts}, indent=2)
        write_whole(self.folder / _JOURNAL, content.encode())

    def _take_place(self) -> None:
        """An older bundle is moved aside first, so that there is a whole one at any time but an instant."""
        old = self.out.with_name(f"{self.out.name}.replaced")
        if self.out.exists():
            if (old / MANIFEST_NAME).is_file():
                shutil.rmtree(old)
            self.out.replace(old)
        self.folder.replace(self.out)
        if (old / MANIFEST_NAME).is_file():
            shutil.rmtree(old, ignore_errors=True)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by one with this content, at once."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        with fresh.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def sha256_of(path: Path) -> str:
    """Of a file's content, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _refuse(folder: Path, strangers: set[str]) -> None:
    """A folder with something else in it is never replaced."""
    if strangers:
        wanted = f"one that is new, empty, or holds nothing but a model (there is {min(strangers)})"
        raise ExportSettingError("the folder to write to", folder, wanted)


def _strangers(bundle: Path) -> set[str]:
    """Files in the folder that belong to no bundle; what TensorRT built from the older graphs does."""
    try:
        manifest = json.loads((bundle / MANIFEST_NAME).read_bytes())
        ours = {MANIFEST_NAME, REPORT_FILE, PAGE_FILE, *manifest["files"]}
    except (OSError, ValueError, TypeError, KeyError):
        ours = set()
    return {name for name in _contents(bundle) - ours if not (ours and name.startswith(f"{ENGINES}/"))}


def _contents(folder: Path) -> set[str]:
    """Of a file, its own name."""
    if not folder.is_dir():
        return {folder.name} if folder.exists() else set()
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def _read_journal(path: Path) -> dict[str, Any] | None:
    """None where there is none; an empty one where it cannot be read."""
    try:
        journal: dict[str, Any] = json.loads(path.read_bytes())
        return journal if isinstance(journal, dict) else {}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return {}
