"""Recipes, small plans and graphs for the tests of engines; what needs TensorRT for RTX asks for it by `rtx`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engines.tensorrt_engines.key import BuildOptions, Recipe
from engines.tensorrt_engines.library import TENSORRT_RTX
from engines.tensorrt_engines.profiles import InputProfile

ARCHITECTURE = "sm89"


def rtx() -> Any:
    """The module; the test is skipped where it is not installed. It builds without a GPU."""
    if not TENSORRT_RTX.version():
        pytest.skip('TensorRT for RTX is not installed (in a checkout: pip install -e ".[tensorrt-rtx]")')
    return TENSORRT_RTX.load()


def recipe(**changes: Any) -> Recipe:
    profile = InputProfile("boxes", (1, 1, 4), (1, 1, 4), (4, 20, 4))
    given: dict[str, Any] = {
        "graph_sha256": "ab" * 32,
        "outputs": (),
        "runtime": "tensorrt-rtx",
        "version": "1.7.1.116",
        "architecture": ARCHITECTURE,
        "precision": "fp16",
        "profiles": (profile,),
        "options": BuildOptions(),
    }
    return Recipe(**(given | changes))


def keep(folder: Any, content: bytes = b"plan", role: str = "decoder", **changes: Any) -> Any:
    """A record of an engine with that content in an `EngineFolder`."""
    return folder.keep(role, recipe(**changes), memoryview(content), 1.5, 9, {"tensorrt-rtx": "1.7.1.116"})


def write_graph(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> Path:
    """An ONNX file; domains of operations other than ONNX's own are declared."""
    from onnx import helper, save

    domains = {node.domain for node in nodes} - {""}
    opsets = [helper.make_opsetid("", 18), *(helper.make_opsetid(domain, 1) for domain in domains)]
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path
