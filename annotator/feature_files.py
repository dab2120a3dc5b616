"""Image features kept on the disk, so that a picture that was encoded once is not encoded again after a restart.

One file for each picture and vision graph, named by both. Several processes may share a folder. A file appears under
its name only when it is whole; what a power cut makes of it is found by its checksum, so nothing waits for the disk to
sync. A file that is cut off, altered or of something else is removed and counts as absent.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue

from annotator.feature_format import FeatureFileError, pack_features, packed_bytes, read_features, write_pieces
from engines.types import ImageFeatures

DEFAULT_LIMIT_BYTES = 20 * 10**9
_FORMAT = 1
_FILE = re.compile(r"[0-9a-f]{40}\.features")
_PART = re.compile(r"\.[0-9a-f]{16}\.features\.part")
_SHELF = re.compile(r"[0-9a-f]{2}")
_LEFT_BEHIND_S = 3600
"""A part that has not grown for so long belongs to a process that was killed."""
_WAITING = 2
"""Features that may wait for the disk; more are not kept, so that a slow disk holds up neither work nor memory."""
_LEFT_FREE_BYTES = 10**9
"""Left on the disk for the person's own work."""
_LAST_WRITES_S = 30.0
_NICE = 10
_log = logging.getLogger(__name__)


class FeatureFiles:
    """Features by vision graph and image in a folder, at most `limit_bytes` in all; safe to use from several threads.

    An image's content determines its size, and the graph's the size it is stretched to: both are part of the key.
    Features are written in the background. What hinders that, such as a full disk, is said once; then nothing more is
    written, and what is there is still read.
    """

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._has_given_up = False
        self._jobs: Queue[tuple[str, ImageFeatures] | None] = Queue(_WAITING)
        self._make_room(0)
        self._writer = threading.Thread(target=self._write_all, name="feature-files", daemon=True)
        self._writer.start()

    def get(self, features_id: str, image_id: str, bundle_id: str) -> ImageFeatures | None:
        """What the graph `features_id` made of the image, as features of the bundle `bundle_id`; None if not there."""
        path = self._path(features_id, image_id)
        try:
            features = read_features(path, _key(features_id, image_id), image_id, bundle_id)
        except FileNotFoundError:
            return None
        except FeatureFileError as error:
            _log.info("%s is removed: %s", path, error)
            _remove(path)
            return None
        except (OSError, MemoryError) as error:
            _log.info("%s cannot be read: %s", path, error)
            return None
        with suppress(OSError):
            os.utime(path)
        return features

    def put(self, features_id: str, features: ImageFeatures) -> None:
        """Keep features as soon as the disk has time; without a word they are not kept where it has none."""
        if not self._has_given_up:
            with suppress(Full):
                self._jobs.put_nowait((features_id, features))

    def close(self) -> None:
        """Write what waits and end; a disk that does not answer is not waited for long."""
        with suppress(Full):
            self._jobs.put(None, timeout=_LAST_WRITES_S)
        self._writer.join(_LAST_WRITES_S)

    def _path(self, features_id: str, image_id: str) -> Path:
        name = hashlib.sha256(_key(features_id, image_id).encode()).hexdigest()
        return self._folder / name[:2] / f"{name[:40]}.features"

    def _write_all(self) -> None:
        _let_others_go_first()
        while (job := self._jobs.get()) is not None:
            try:
                if not self._has_given_up:
                    self._write(*job)
            except OSError as error:
                self._give_up(error.strerror or str(error))
            except Exception as error:  # noqa: BLE001 - whatever a device or the disk does, the thread must live on
                self._give_up(str(error) or type(error).__name__)
            del job  # features are not held while waiting for the next ones

    def _write(self, features_id: str, features: ImageFeatures) -> None:
        path = self._path(features_id, features.image_id)
        if path.exists():
            return
        pieces = pack_features(_key(features_id, features.image_id), features)
        self._check_space(packed_bytes(pieces))
        self._make_room(packed_bytes(pieces))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{secrets.token_hex(8)}.features.part")
        try:
            with part.open("xb") as file:
                write_pieces(file, pieces)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _check_space(self, n_bytes: int) -> None:
        """Raise OSError where a file of this size is more than the limit or than the disk can spare."""
        if n_bytes > self._limit_bytes:
            raise OSError(errno.EFBIG, f"the limit is less than the {n_bytes / 1e9:.3g} GB of one picture")
        self._folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(self._folder).free < n_bytes + _LEFT_FREE_BYTES:
            raise OSError(errno.ENOSPC, f"the disk has less than {_LEFT_FREE_BYTES / 1e9:.3g} GB left")

    def _make_room(self, n_bytes: int) -> None:
        """Remove what was used least recently until so many bytes more keep the limit.

        All files are counted each time, since other processes may have written too.
        """
        found, n_held = [], n_bytes
        for entry in self._entries():
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if _FILE.fullmatch(entry.name):
                    found.append((status.st_mtime, status.st_size, Path(entry.path)))
                elif time.time() - status.st_mtime > _LEFT_BEHIND_S:
                    _remove(Path(entry.path))
                    continue
                n_held += status.st_size
        for _, size, path in sorted(found):
            if n_held <= self._limit_bytes:
                break
            n_held -= size if _remove(path) else 0

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        """Files of this cache and of its writers, and nothing that somebody else has put into the folder."""
        for shelf in _listed(self._folder):
            if _SHELF.fullmatch(shelf.name):
                names = (
                    entry for entry in _listed(shelf.path) if _FILE.fullmatch(entry.name) or _PART.fullmatch(entry.name)
                )
                yield from names

    def _give_up(self, reason: str) -> None:
        _log.warning("encoded pictures are not kept in %s: %s; work goes on without", self._folder, reason)
        self._has_given_up = True


def _key(features_id: str, image_id: str) -> str:
    return f"{_FORMAT}/{features_id}/{image_id}"


def _listed(folder: Path | str) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _remove(path: Path) -> bool:
    """Whether the file is gone by this."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _let_others_go_first() -> None:
    """This thread gets a core when nobody else wants one, where the system knows priorities of threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
