"""One file of image features: how it is laid out, written and read.

    16 bytes    the name of the format
     8 bytes    length of the description, least byte first
       …        description: JSON, filled up with spaces to a multiple of 64 bytes
       …        tensors in the order of the description, rows first, each filled up with zeros to a multiple of 64 bytes
    32 bytes    sha256 of all that stands before

Floating point numbers are stored in half precision where that keeps them, and read back as what they were.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from engines.types import ImageFeatures

_NAME = b"phrasemask feat1"
_LENGTH_BYTES = 8
_SHA256_BYTES = hashlib.sha256().digest_size
_ALIGNMENT = 64
_STORED_KINDS = "fiub"
_HALF_MAX = float(np.finfo(np.float16).max)
_HALF_LEAST_PEAK = 2.0**-8
"""Where all numbers are smaller, half precision would round them by more than 10⁻⁵ of the largest."""


class FeatureFileError(ValueError):
    """A file that does not hold the features that are asked for, or features that no file can hold."""


def pack_features(key: str, features: ImageFeatures) -> list[memoryview]:
    """What comes before the checksum, piece by piece. Tensors on a device are brought to the host.

    Raises `FeatureFileError` for tensors of anything but numbers.
    """
    arrays = {name: np.asarray(tensor) for name, tensor in features.tensors.items()}
    if any(array.dtype.kind not in _STORED_KINDS for array in arrays.values()):
        raise FeatureFileError("tensors hold something else than numbers")
    stored = {name: _halved(array) for name, array in arrays.items()}
    description = {
        "key": key,
        "size": [features.height, features.width],
        "tensors": [[name, array.dtype.name, stored[name].dtype.name, array.shape] for name, array in arrays.items()],
    }
    text = json.dumps(description).encode()
    head = len(_NAME) + _LENGTH_BYTES + len(text)
    text += b" " * _fill(head)
    pieces = [memoryview(_NAME), memoryview(len(text).to_bytes(_LENGTH_BYTES, "little")), memoryview(text)]
    for array in stored.values():
        pieces += [_raw(array), memoryview(bytes(_fill(array.nbytes)))]
    return pieces


def packed_bytes(pieces: list[memoryview]) -> int:
    """Size of the file that holds the pieces."""
    return sum(len(piece) for piece in pieces) + _SHA256_BYTES


def write_pieces(file: BinaryIO, pieces: list[memoryview]) -> None:
    """The pieces and their checksum."""
    checksum = hashlib.sha256()
    for piece in pieces:
        checksum.update(piece)
        file.write(piece)
    file.write(checksum.digest())


def read_features(path: Path, key: str, image_id: str, bundle_id: str) -> ImageFeatures:
    """The features in a file, as those of an image and a bundle.

    Raises `FeatureFileError` where the file is not whole or was written for another key, and OSError.
    """
    content = _checked_content(path)
    try:
        return _unpacked(content, key, image_id, bundle_id)
    except (ValueError, KeyError, TypeError) as error:
        raise FeatureFileError(str(error)) from None


def _checked_content(path: Path) -> NDArray[np.uint8]:
    """All bytes before the checksum. A file of another kind is not read further than its name."""
    with path.open("rb") as file:
        if file.read(len(_NAME)) != _NAME:
            raise FeatureFileError("it is a file of another kind")
        file.seek(0)
        content = np.fromfile(file, dtype=np.uint8)
    body, checksum = content[:-_SHA256_BYTES], content[-_SHA256_BYTES:]
    if hashlib.sha256(body.data).digest() != checksum.tobytes():
        raise FeatureFileError("it is cut off or altered")
    return body


def _unpacked(content: NDArray[np.uint8], key: str, image_id: str, bundle_id: str) -> ImageFeatures:
    start = len(_NAME) + _LENGTH_BYTES
    end = start + int.from_bytes(content[len(_NAME) : start].tobytes(), "little")
    description = json.loads(content[start:end].tobytes())
    if description["key"] != key:
        raise ValueError("it holds other features")
    height, width = (int(side) for side in description["size"])
    tensors: dict[str, NDArray[Any]] = {}
    for name, dtype, stored, shape in description["tensors"]:
        start, end = end, end + int(np.prod(shape, dtype=np.int64)) * np.dtype(stored).itemsize
        tensors[name] = content[start:end].view(stored).reshape(shape).astype(dtype, copy=False)
        end += _fill(end)
    return ImageFeatures(bundle_id, image_id, height, width, tensors, sum(one.nbytes for one in tensors.values()))


def _halved(array: NDArray[Any]) -> NDArray[Any]:
    """In half precision, unless the numbers are no floats, or too large or too small for it."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 2 or not array.size:
        return array
    peak = float(np.maximum(array.max(), -array.min()))
    return array.astype(np.float16) if peak == 0 or _HALF_LEAST_PEAK <= peak <= _HALF_MAX else array


def _raw(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _fill(n_bytes: int) -> int:
    return -n_bytes % _ALIGNMENT
