"""Copies of bundles, and what is done to them: weights changed, the manifest made to fit again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from engines.compare import PAGE_FILE, REPORT_FILE


def copy_bundle(folder: Path, target: Path) -> Path:
    """Without the report of its check."""
    return shutil.copytree(folder, target, ignore=shutil.ignore_patterns(REPORT_FILE, PAGE_FILE))


def rewrite_manifest(folder: Path, **changes: object) -> None:
    """So that the manifest fits the files again."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    files = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in manifest["files"]}
    path.write_text(json.dumps({**manifest, **changes, "files": files}), "utf-8")


def spoil(folder: Path, role: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    """Change each large weight of a graph."""
    path = folder / f"{role}.onnx"
    model = onnx.load(str(path))
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype.kind == "f" and values.size >= 512:
            tensor.CopyFrom(onnx.numpy_helper.from_array(change(values).astype(values.dtype), tensor.name))
    onnx.save(model, str(path))
    rewrite_manifest(folder)


def with_noise(values: NDArray[Any]) -> NDArray[Any]:
    return values + np.random.default_rng(0).normal(0, 0.5 * values.std(dtype=np.float64), values.shape)
