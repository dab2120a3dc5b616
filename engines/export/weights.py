"""Weights read from files, one after another, so that memory holds no more than what is wanted."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engines.export.errors import CheckpointError, first_line
from engines.export.extra import import_or_explain
from engines.export.meta_keys import DETECTOR_PREFIX, to_transformers

_VIDEO_PREFIX = "detector_model."


def read_weights(files: Sequence[Path], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Of the weights whose shapes `wanted` has under transformers' names, those that the files hold, in float32.

    Raises `CheckpointError` for a wrong shape, a broken file, or one with more than weights in it.
    """
    read = _read_safetensors if files[0].suffix == ".safetensors" else _read_meta
    found: dict[str, Any] = {}
    for path in files:
        for name, tensor in read(path, wanted.keys().__contains__):
            if tensor.shape != wanted[name]:
                got, shape = list(tensor.shape), list(wanted[name])
                raise CheckpointError(path, f"its weight {name} is {got}, wanted {shape}")
            found[name] = tensor.float().contiguous()
    return found


def _read_safetensors(path: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    safetensors = import_or_explain("safetensors")
    try:
        with safetensors.safe_open(str(path), framework="pt") as file:
            for key in file.keys():  # noqa: SIM118 - the reader is no dictionary
                name = key.removeprefix(_VIDEO_PREFIX)
                if is_wanted(name):
                    yield name, file.get_tensor(key)
    except safetensors.SafetensorError as error:
        raise _damaged(path, error) from None


def _read_meta(path: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    for name, tensor in to_transformers(_detector(path)):
        if is_wanted(name):
            yield name, tensor


def _detector(path: Path) -> dict[str, Any]:
    """Only tensors are unpickled: a file with anything that could run is refused before it does."""
    torch = import_or_explain("torch")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        raise CheckpointError(path, "it holds more than weights and could run code; take it from its authors") from None
    except Exception as error:  # noqa: BLE001 - a damaged archive fails in many ways
        raise _damaged(path, error) from None
    state = state.get("model", state) if isinstance(state, dict) else {}
    detector = {
        key.partition(DETECTOR_PREFIX)[2]: value
        for key, value in (state.items() if isinstance(state, dict) else ())
        if isinstance(key, str) and DETECTOR_PREFIX in key and isinstance(value, torch.Tensor)
    }
    if not detector:
        raise CheckpointError(path, "it holds no weights of SAM 3's detector")
    return detector


def _damaged(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(path, f"the file is cut off or damaged ({first_line(error)}); download it again")
