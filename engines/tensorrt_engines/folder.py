"""Where a bundle's engines are kept: its folder `engines/`, or where that is read-only, a folder of the user's cache.

An engine is there once its record is, and the record is written last; both appear whole or not at all.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engines.errors import EngineFolderError
from engines.tensorrt_engines.key import Recipe
from engines.tensorrt_engines.record import EngineRecord, Verdict, now, read_record

FOLDER_NAME = "engines"
_LOCK_NAME = "building.lock"
_KEY_DIGITS = 16
_OURS = re.compile(rf"[\w-]+-[0-9a-f]{{{_KEY_DIGITS}}}\.(engine|json)(\.new)?")
_LOOK_AGAIN_S = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Engine:
    """A whole engine, ready to be loaded."""

    content: bytes
    record: EngineRecord


class EngineFolder:
    """Engines of one bundle, of all its roles and all runtimes."""

    def __init__(self, bundle_folder: Path) -> None:
        self.places = (bundle_folder / FOLDER_NAME, _cache_place(bundle_folder))

    def records(self) -> list[EngineRecord]:
        """Every whole engine with its record, newest first; those in the bundle's folder before those in the cache."""
        found = []
        for place in self.places:
            here = [record for path in _listed(place) if path.suffix == ".json" and (record := read_record(path))]
            found += sorted(here, key=lambda record: record.built_at, reverse=True)
        return found

    def find(self, role: str, recipe: Recipe, exactly: bool = False) -> EngineRecord | None:
        """The engine of this recipe, or unless `exactly`, one that can do the same on the same GPU."""
        return next(iter(self._matching(role, recipe, exactly)), None)

    def load(self, role: str, recipe: Recipe, exactly: bool = False) -> Engine | None:
        """As `find`, with its content; a damaged engine is passed over with a warning."""
        for record in self._matching(role, recipe, exactly):
            content = self.content(record)
            if content is not None:
                return Engine(content, record)
            _log.warning("the engine %s is damaged and is built again", record.path)
        return None

    def content(self, record: EngineRecord) -> bytes | None:
        """The engine; None where it is not what was written."""
        try:
            content = record.path.read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == record.sha256 else None

    def keep(
        self, role: str, recipe: Recipe, content: memoryview, build_s: float, n_layers: int, tools: dict[str, str]
    ) -> EngineRecord:
        """Write an engine and its record; raises `EngineFolderError`."""
        path = self.writable() / f"{_file_role(role)}-{recipe.key[:_KEY_DIGITS]}.engine"
        digest = hashlib.sha256(content).hexdigest()
        record = EngineRecord(
            path, role, recipe, digest, content.nbytes, now(), round(build_s, 3), n_layers, tools, Verdict()
        )
        try:
            write_whole(path, content)
            write_whole(_record_path(record), record.as_json())
        except OSError as error:
            raise EngineFolderError([path.parent], error.strerror or str(error)) from None
        return record

    def judge(self, record: EngineRecord, verdict: Verdict) -> EngineRecord:
        """Write down what a check of the engine has shown; raises `EngineFolderError`."""
        judged = record.judged(verdict)
        try:
            write_whole(_record_path(judged), judged.as_json())
        except OSError as error:
            raise EngineFolderError([record.path.parent], error.strerror or str(error)) from None
        return judged

    def clean(self, is_current: Callable[[EngineRecord], bool]) -> list[str]:
        """Delete engines that are not current, damaged ones, and what a killed process left; answers the files' names.

        To be called inside `alone`.
        """
        current = [one for one in self.records() if is_current(one) and self.content(one) is not None]
        kept = {path for record in current for path in (record.path, _record_path(record))}
        dropped = [path for place in self.places for path in _listed(place) if path not in kept]
        for path in sorted(dropped, key=lambda path: path.suffix != ".json"):  # an engine is gone with its record
            path.unlink(missing_ok=True)
        return [path.name for path in dropped]

    def timings(self, name: str) -> bytes:
        """What earlier builds have measured, or nothing."""
        for place in self.places:
            path = place / f"{name}.timings"
            if path.is_file():
                return path.read_bytes()
        return b""

    def keep_timings(self, name: str, content: bytes) -> None:
        """Write down what a build has measured, for the next one."""
        write_whole(self.writable() / f"{name}.timings", content)

    @contextmanager
    def alone(self, go_on: Callable[[], bool]) -> Iterator[bool]:
        """Hold the folder against all other processes and threads that build, as soon as it is free.

        Answers False where `go_on`, which is asked while waiting, did. A process that ends lets go, however it ends.
        """
        import filelock

        lock = filelock.FileLock(self.writable() / _LOCK_NAME)
        while True:
            try:
                lock.acquire(timeout=_LOOK_AGAIN_S, poll_interval=_LOOK_AGAIN_S / 4)
                break
            except filelock.Timeout:
                if not go_on():
                    yield False
                    return
        try:
            yield True
        finally:
            lock.release()

    def _matching(self, role: str, recipe: Recipe, exactly: bool) -> list[EngineRecord]:
        """Those of exactly this recipe first."""
        same_role = [record for record in self.records() if record.role == role]
        exact = [record for record in same_role if record.key == recipe.key]
        others = [record for record in same_role if record.key != recipe.key and record.recipe.serves(recipe)]
        return exact if exactly else exact + others

    def writable(self) -> Path:
        """The first place that takes files, made if need be; raises `EngineFolderError`."""
        reason = ""
        for place in self.places:
            try:
                place.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=place):
                    return place
            except OSError as error:
                reason = error.strerror or str(error)
        raise EngineFolderError(self.places, reason)


def write_whole(path: Path, content: bytes | memoryview) -> None:
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


def _cache_place(bundle_folder: Path) -> Path:
    import platformdirs

    folder = bundle_folder.resolve()
    digest = hashlib.sha256(str(folder).encode("utf-8", "surrogatepass")).hexdigest()
    cache = platformdirs.user_cache_path("phrasemask", appauthor=False)
    return cache / FOLDER_NAME / f"{folder.name}-{digest[:8]}"


def _listed(place: Path) -> list[Path]:
    """Our files there; a folder may hold other things."""
    if not place.is_dir():
        return []
    return sorted(path for path in place.iterdir() if _OURS.fullmatch(path.name))


def _record_path(record: EngineRecord) -> Path:
    return record.path.with_suffix(".json")


def _file_role(role: str) -> str:
    """A role comes from a manifest and may hold anything."""
    return re.sub(r"[^\w-]", "_", role)
