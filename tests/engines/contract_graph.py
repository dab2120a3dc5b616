"""A graph of our small SAM 3 that can be changed: inputs and outputs renamed, turned, cut, and written again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from engines.bundle import read_bundle

FLOAT, BOOL, INT64, INT32, UINT8 = (
    *(TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8),
)


@dataclass(frozen=True)
class Source:
    """The bundle whose graphs are taken, and the sizes of their tensors."""

    folder: Path
    side: int
    width: int
    tokens: int
    queries: int
    levels: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, folder: Path) -> Source:
        graphs = read_bundle(folder).graphs
        shapes = {spec.name: spec.shape for graph in graphs.values() for spec in (*graph.inputs, *graph.outputs)}
        levels = tuple((1, *shapes[f"features_{level}"][1:]) for level in range(3))
        tokens, queries = shapes["input_ids"][1], shapes["mask_logits"][1]
        return cls(folder, shapes["image"][-1], levels[0][1], tokens, queries, levels)

    @property
    def mask_side(self) -> int:
        return self.levels[0][-1]

    def level(self, number: int) -> tuple[int, ...]:
        """Shape of the features of a level, also of the fourth one that some exporters add."""
        return self.levels[number] if number < 3 else (1, self.width, self.grid // 2, self.grid // 2)

    @property
    def grid(self) -> int:
        """Cells on a side of the coarsest level."""
        return self.levels[2][-1]


class Graph:
    """One of our graphs, to be given other inputs and outputs."""

    def __init__(self, source: Source, role: str) -> None:
        self.source = source
        self.model = onnx.load(str(source.folder / f"{role}.onnx"))
        self.graph = self.model.graph
        self.before: list[onnx.NodeProto] = []
        self.after: list[onnx.NodeProto] = []
        for side in (self.graph.input, self.graph.output):
            del side[:]

    def takes(self, name: str, dtype: int, shape: tuple[int | str, ...]) -> None:
        self.graph.input.append(helper.make_tensor_value_info(name, dtype, shape))

    def gives(self, name: str, dtype: int, shape: tuple[int | str, ...]) -> None:
        self.graph.output.append(helper.make_tensor_value_info(name, dtype, shape))

    def constant(self, name: str, values: NDArray) -> None:
        self.graph.initializer.append(numpy_helper.from_array(values, name))

    def first(self, operation: str, inputs: str, outputs: str, **attributes: object) -> None:
        self.before.append(helper.make_node(operation, inputs.split(), outputs.split(), **attributes))

    def then(self, operation: str, inputs: str, outputs: str, **attributes: object) -> None:
        self.after.append(helper.make_node(operation, inputs.split(), outputs.split(), **attributes))

    def maker(self, tensor: str) -> onnx.NodeProto:
        [node] = [node for node in self.graph.node if tensor in node.output]
        return node

    def users(self, tensor: str) -> list[onnx.NodeProto]:
        return [node for node in self.graph.node if tensor in node.input]

    def rewire(self, old: str, new: str) -> None:
        """All that read one tensor read another."""
        for node in self.users(old):
            node.input[:] = [new if name == old else name for name in node.input]

    def save(self, path: Path, external: bool) -> None:
        nodes = [*self.before, *self.graph.node, *self.after]
        del self.graph.node[:], self.graph.value_info[:]
        self.graph.node.extend(nodes)
        _prune(self.graph)
        onnx.save_model(
            self.model, str(path), save_as_external_data=external, location=f"{path.name}.data", size_threshold=1024
        )
        onnx.checker.check_model(str(path))


def _prune(graph: onnx.GraphProto) -> None:
    """Take out what no output needs."""
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    weights = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(weights)
