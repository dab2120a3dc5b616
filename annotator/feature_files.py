"""Image features kept on the disk, so that a picture that was encoded once is not encoded again after a restart.

One file for each picture and vision graph: a zip of arrays as `numpy.savez` writes it, whose checksums are compared on
reading. Floating point numbers are stored in half precision. Several processes may share a folder; a file that is cut
off, altered or of something else is removed and counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue
from threading import Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.types import ImageFeatures

DEFAULT_LIMIT_BYTES = 20 * 10**9
_FORMAT = 1
_DESCRIPTION = "description"
_SUFFIX = ".features"
_PART_SUFFIX = ".part"
_LEFT_BEHIND_S = 3600
"""A part that has not grown for so long belongs to a process that was killed."""
_WAITING = 2
"""Features that may wait for the disk; more are not kept, so that a slow disk holds up neither work nor memory."""
_HALF_MAX = float(np.finfo(np.float16).max)
_log = logging.getLogger(__name__)

_Job = tuple[Path, str, ImageFeatures]


class FeatureFiles:
    """Features by vision graph and image in a folder, at most `limit_bytes` in all; safe to use from several threads.

    A disk that is full or cannot be written is said once; work goes on without it.
    """

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._lock = Lock()
        self._has_failed = False
        self._jobs: Queue[_Job | None] = Queue(_WAITING)
        self._n_bytes = self._shrink()
        self._writer = Thread(target=self._write_all, name="feature-files", daemon=True)
        self._writer.start()

    def get(self, features_id: str, image_id: str, bundle_id: str) -> ImageFeatures | None:
        """What the graph `features_id` made of the image, as features of the bundle `bundle_id`; None if not there."""
        path = self._path(features_id, image_id)
        try:
            features = _read(path, _key(features_id, image_id), image_id, bundle_id)
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            _log.info("%s is not whole and is removed: %s", path, error)
            with suppress(OSError):
                path.unlink()
            return None
        return features

    def put(self, features_id: str, features: ImageFeatures) -> None:
        """Keep features, as soon as the disk has time; nothing happens where it has none."""
        with suppress(Full):
            self._jobs.put_nowait((self._path(features_id, features.image_id), features_id, features))

    def close(self) -> None:
        """Write what waits and end."""
        self._jobs.put(None)
        self._writer.join()

    def _path(self, features_id: str, image_id: str) -> Path:
        name = hashlib.sha256(_key(features_id, image_id).encode()).hexdigest()
        return self._folder / name[:2] / f"{name[:40]}{_SUFFIX}"

    def _write_all(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._write(*job)
            except OSError as error:
                self._say_once(error)

    def _write(self, path: Path, features_id: str, features: ImageFeatures) -> None:
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{secrets.token_hex(8)}{_PART_SUFFIX}")
        try:
            with part.open("xb") as file:
                _write(file, _key(features_id, features.image_id), features)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        with self._lock:
            self._n_bytes += path.stat().st_size
            if self._n_bytes > self._limit_bytes:
                self._n_bytes = self._shrink()

    def _shrink(self) -> int:
        """Remove what was used least recently until the limit is kept; answers the bytes that are left."""
        found = []
        for path in self._folder.glob(f"*/*{_SUFFIX}"):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        left = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if left <= self._limit_bytes:
                break
            with suppress(OSError):
                path.unlink()
                left -= size
        self._remove_left_behind()
        return left

    def _remove_left_behind(self) -> None:
        for part in self._folder.glob(f"*/.*{_PART_SUFFIX}"):
            with suppress(OSError):
                if time.time() - part.stat().st_mtime > _LEFT_BEHIND_S:
                    part.unlink()

    def _say_once(self, error: OSError) -> None:
        if not self._has_failed:
            reason = error.strerror or str(error)
            _log.warning("features are not kept in %s: %s; work goes on without", self._folder, reason)
        self._has_failed = True


def _key(features_id: str, image_id: str) -> str:
    return f"{_FORMAT}/{features_id}/{image_id}"


def _write(file: Any, key: str, features: ImageFeatures) -> None:
    arrays = {name: np.asarray(tensor) for name, tensor in features.tensors.items()}
    description = {
        "key": key,
        "size": [features.height, features.width],
        "dtypes": {name: str(array.dtype) for name, array in arrays.items()},
    }
    stored = {f"tensor/{name}": _halved(array) for name, array in arrays.items()}
    text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    np.savez(file, allow_pickle=False, **{_DESCRIPTION: text}, **stored)


def _read(path: Path, key: str, image_id: str, bundle_id: str) -> ImageFeatures:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        description = json.loads(archive[_DESCRIPTION].tobytes())
        if description["key"] != key:
            raise ValueError("it holds other features")
        dtypes: Mapping[str, str] = description["dtypes"]
        tensors = {name: archive[f"tensor/{name}"].astype(dtype, copy=False) for name, dtype in dtypes.items()}
    height, width = (int(side) for side in description["size"])
    nbytes = sum(tensor.nbytes for tensor in tensors.values())
    return ImageFeatures(bundle_id, image_id, height, width, tensors, nbytes)


def _halved(array: NDArray[Any]) -> NDArray[Any]:
    """In half precision, unless the numbers are no floats or too large for it."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 2 or not float(np.abs(array).max(initial=0.0)) <= _HALF_MAX:
        return array
    return array.astype(np.float16)
