"""Tiny ONNX graphs and bundles, each with an answer that is plain from its definition."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np


def write_doubling_graph(path: Path) -> None:
    """`double` = 2 · `image`, float32 [1, ?]."""
    from onnx import TensorProto, helper, save

    node = helper.make_node("Add", ["image", "image"], ["double"])
    value = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None]) for name in ("image", "double")}
    graph = helper.make_graph([node], "doubling", [value["image"]], [value["double"]])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)


def check_doubling(outputs: dict[str, Any], feed: Any) -> None:
    assert list(outputs) == ["double"]
    np.testing.assert_array_equal(outputs["double"], 2 * feed)


def write_doubling_bundle(folder: Path, **changes: Any) -> dict[str, Any]:
    """A bundle of one graph with role `doubler`; `changes` replace fields of the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    write_doubling_graph(folder / "doubling.onnx")
    manifest: dict[str, Any] = {
        "manifest_version": 1,
        "name": folder.name,
        "title": "Doubling",
        "family": "starter",
        "precision": "fp32",
        "image_size": 8,
        "licence": "Apache-2.0",
        "graphs": {
            "doubler": {
                "file": "doubling.onnx",
                "inputs": [{"name": "image", "dtype": "float32", "shape": [1, None]}],
                "outputs": [{"name": "double", "dtype": "float32", "shape": [1, None]}],
            }
        },
        "files": {"doubling.onnx": hashlib.sha256((folder / "doubling.onnx").read_bytes()).hexdigest()},
    }
    manifest.update(changes)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return manifest
