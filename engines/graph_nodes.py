"""The nodes of an ONNX file: which operation makes a tensor, and the file with tensors inside it as its outputs."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engines.errors import OnnxFileError
from engines.protobuf import Message, delimited

# Field numbers of ONNX's messages.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_WEIGHT, _GRAPH_OUTPUT = 1, 5, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_OPERATION, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_FLOAT, _ATTRIBUTE_NUMBER, _ATTRIBUTE_TEXT, _ATTRIBUTE_TENSOR = 1, 2, 3, 4, 5
_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 6, 11
_WEIGHT_DTYPE, _WEIGHT_FLOATS, _WEIGHT_NAME, _WEIGHT_RAW = 2, 4, 8, 9
_VALUE_NAME = 1
_FLOAT32, _FLOAT32_BYTES = 1, 4


@dataclass(frozen=True)
class Node:
    """One operation: its name, its input tensors by place ("" for one left out), and its text and number attributes."""

    operation: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, str | int]


class GraphNodes:
    """The nodes of a file by the tensors that they make."""

    def __init__(self, graph: Message) -> None:
        self._nodes: dict[str, Message] = {}
        for node in graph.messages(_GRAPH_NODE):
            self._nodes.update((_text(output), node) for output in node.messages(_NODE_OUTPUT))
        self._weights = {weight.text(_WEIGHT_NAME): weight for weight in graph.messages(_GRAPH_WEIGHT)}

    def maker(self, tensor: str) -> Node | None:
        """The node that makes a tensor; None for an input or a weight."""
        node = self._nodes.get(tensor)
        if node is None:
            return None
        inputs = tuple(_text(one) for one in node.messages(_NODE_INPUT))
        attributes = {one.text(_ATTRIBUTE_NAME): _value(one) for one in node.messages(_NODE_ATTRIBUTE)}
        return Node(node.text(_NODE_OPERATION), inputs, attributes)

    def constant(self, tensor: str) -> float | None:
        """The value of a tensor that is one float32 number, a weight or a constant; None for any other."""
        node = self._nodes.get(tensor)
        if node is None:
            return _number(self._weights[tensor]) if tensor in self._weights else None
        if node.text(_NODE_OPERATION) != "Constant":
            return None
        [value] = node.messages(_NODE_ATTRIBUTE)
        floats = value.messages(_ATTRIBUTE_FLOAT)
        return _float(floats[0].content()) if floats else _number(value.messages(_ATTRIBUTE_TENSOR)[0])


@contextmanager
def open_nodes(path: Path) -> Iterator[GraphNodes]:
    """The nodes of an ONNX file while it is open; raises `OnnxFileError` for anything else, or a file cut off."""
    with _model(path) as model:
        yield GraphNodes(model.messages(_MODEL_GRAPH)[-1])


def graph_with_outputs(path: Path, outputs: Sequence[str]) -> bytes:
    """The content of an ONNX file whose outputs are these tensors in place of its own, without the nodes that only its
    own need: ONNX Runtime would run those all the same. Raises `OnnxFileError` as `open_nodes` does."""
    with _model(path) as model:
        graph = model.messages(_MODEL_GRAPH)[-1]
        nodes = [delimited(_GRAPH_NODE, node.content()) for node in _needed(graph, outputs)]
        values = [delimited(_GRAPH_OUTPUT, delimited(_VALUE_NAME, name.encode())) for name in outputs]
        content = b"".join([*nodes, graph.fields_but(_GRAPH_NODE, _GRAPH_OUTPUT), *values])
        return model.fields_but(_MODEL_GRAPH) + delimited(_MODEL_GRAPH, content)


def _needed(graph: Message, outputs: Sequence[str]) -> list[Message]:
    """The nodes that make these tensors, in their order: each stands after those that it reads from."""
    wanted, needed = set(outputs), []
    for node in reversed(graph.messages(_GRAPH_NODE)):
        if not wanted.isdisjoint(_text(output) for output in node.messages(_NODE_OUTPUT)):
            needed.append(node)
            wanted.update(_read_by(node))
    return needed[::-1]


def _read_by(node: Message) -> Iterator[str]:
    """Every tensor that a node reads, also in the graphs inside it."""
    yield from (_text(one) for one in node.messages(_NODE_INPUT))
    for attribute in node.messages(_NODE_ATTRIBUTE):
        for graph in (*attribute.messages(_ATTRIBUTE_GRAPH), *attribute.messages(_ATTRIBUTE_GRAPHS)):
            yield from (_text(output.messages(_VALUE_NAME)[0]) for output in graph.messages(_GRAPH_OUTPUT))
            for inner in graph.messages(_GRAPH_NODE):
                yield from _read_by(inner)


@contextmanager
def _model(path: Path) -> Iterator[Message]:
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield Message(content)
    except (OSError, ValueError, IndexError):
        raise OnnxFileError(path) from None


def _text(message: Message) -> str:
    return message.content().decode("utf-8")


def _value(attribute: Message) -> str | int:
    numbers = attribute.numbers(_ATTRIBUTE_NUMBER)
    return numbers[-1] if numbers else attribute.text(_ATTRIBUTE_TEXT)


def _number(weight: Message) -> float | None:
    values = [value.content() for value in weight.messages(_WEIGHT_RAW) or weight.messages(_WEIGHT_FLOATS)]
    is_one = weight.numbers(_WEIGHT_DTYPE) == [_FLOAT32] and [len(value) for value in values] == [_FLOAT32_BYTES]
    return _float(values[0]) if is_one else None


def _float(content: bytes) -> float:
    return float(struct.unpack("<f", content)[0])
