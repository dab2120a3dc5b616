"""What goes into an ONNX file and comes out, read without its weights: a file of 2 GB takes milliseconds.

Only those fields of the file that name tensors are looked into; the weights are stepped over.
"""

from __future__ import annotations

import mmap
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path

from engines.bundle import TensorSpec
from engines.errors import OnnxFileError
from engines.protobuf import Message

_NEGATIVE = 2**63
_DTYPES = dict(
    enumerate(
        "undefined float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64 complex64 "
        "complex128 bfloat16".split()
    )
)
# Field numbers of ONNX's messages.
_MODEL_GRAPH = 7
_GRAPH_WEIGHT, _GRAPH_INPUT, _GRAPH_OUTPUT = 5, 11, 12
_VALUE_NAME, _VALUE_TYPE, _TYPE_TENSOR, _TENSOR_DTYPE, _TENSOR_SHAPE, _SHAPE_AXIS, _AXIS_SIZE = 1, 2, 1, 1, 2, 1, 1
_WEIGHT_SIZES, _WEIGHT_DTYPE, _WEIGHT_NAME, _WEIGHT_PLACE, _PLACE_KEY, _PLACE_VALUE = 1, 2, 8, 13, 1, 2


@dataclass(frozen=True)
class GraphSignature:
    """Inputs and outputs of a graph, how many bytes of which files beside it it reads, and its weights by dtype."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    bytes_by_data_file: dict[str, int]
    """Files named relative to the graph's folder; a file must be at least this long."""
    weights_by_dtype: dict[str, int]
    """How many numbers of each dtype the weights hold."""

    def __str__(self) -> str:
        sides = [", ".join(f"{spec.name} {spec}" for spec in side) or "nothing" for side in (self.inputs, self.outputs)]
        return " → ".join(sides)


def read_signature(path: Path) -> GraphSignature:
    """The signature of an ONNX file; raises `OnnxFileError` for anything else, or a file that is cut off."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _signature(Message(content))
    except (OSError, ValueError, IndexError):
        raise OnnxFileError(path) from None


def _signature(model: Message) -> GraphSignature:
    graphs = model.messages(_MODEL_GRAPH)
    if not graphs:
        raise ValueError("no graph")
    graph = graphs[-1]
    names: set[str] = set()
    files: dict[str, int] = {}
    dtypes: Counter[str] = Counter()
    for weight in graph.messages(_GRAPH_WEIGHT):
        names.add(weight.text(_WEIGHT_NAME))
        dtypes[_dtype(weight, _WEIGHT_DTYPE)] += prod(weight.numbers(_WEIGHT_SIZES))
        place = {entry.text(_PLACE_KEY): entry.text(_PLACE_VALUE) for entry in weight.messages(_WEIGHT_PLACE)}
        if "location" in place:
            end = int(place.get("offset") or 0) + int(place.get("length") or 0)
            files[place["location"]] = max(end, files.get(place["location"], 0))
    # Old files list weights among the inputs as well.
    inputs = [spec for spec in map(_spec, graph.messages(_GRAPH_INPUT)) if spec.name not in names]
    return GraphSignature(tuple(inputs), tuple(map(_spec, graph.messages(_GRAPH_OUTPUT))), files, dict(dtypes))


def _spec(value: Message) -> TensorSpec:
    tensor = value.messages(_VALUE_TYPE)[-1].messages(_TYPE_TENSOR)[-1]
    axes = [axis for shape in tensor.messages(_TENSOR_SHAPE)[-1:] for axis in shape.messages(_SHAPE_AXIS)]
    shape = tuple(_size(axis.numbers(_AXIS_SIZE)) for axis in axes)
    return TensorSpec(value.text(_VALUE_NAME), _dtype(tensor, _TENSOR_DTYPE), shape)


def _size(numbers: list[int]) -> int | None:
    """None for an axis that may vary: it has a name, or -1, which reads as a huge number here."""
    return numbers[-1] if numbers and numbers[-1] < _NEGATIVE else None


def _dtype(message: Message, field: int) -> str:
    number = (message.numbers(field) or [0])[-1]
    return _DTYPES.get(number, f"type {number}")
