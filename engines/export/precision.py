"""What is done to an exported graph for its precision."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.export.errors import ExportSettingError
from engines.export.extra import import_or_explain

PRECISIONS = ("fp32", "fp16", "int8", "int8-qdq")
"""int8 scales activations as they come, which ONNX Runtime can; int8-qdq has fixed scales, which TensorRT needs."""
QUANTISED_ROLES = ("vision", "text")
"""The decoder stays float32 in an int8 bundle: it is a small part of the time and the first to lose masks."""
_WORTH_PACKING = 1024


def check_precision(precision: str) -> None:
    """Raise `ExportSettingError` for one that there is none of."""
    if precision not in PRECISIONS:
        raise ExportSettingError("the precision", precision, f"one of {', '.join(PRECISIONS)}")


def quantise(source: Path, target: Path, external: bool) -> None:
    """Weights of matrix products to int8, one scale for each output channel; activations are scaled as they come."""
    quantization = import_or_explain("onnxruntime.quantization")
    with without_advice():
        quantization.quantize_dynamic(
            str(source),
            str(target),
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=quantization.QuantType.QInt8,
            use_external_data_format=external,
            extra_options={"MatMulConstBOnly": True},
        )


@contextmanager
def without_advice() -> Iterator[None]:
    """The quantiser advises a step for graphs that were not simplified, in the root logger; these are."""
    root = logging.getLogger()
    root.addFilter(_is_grave)
    try:
        yield
    finally:
        root.removeFilter(_is_grave)


def _is_grave(record: logging.LogRecord) -> bool:
    return record.levelno > logging.WARNING


def pack_exact_halves(path: Path) -> None:
    """Store weights that float16 holds exactly as float16, and let the graph widen them: same values, half the file.

    A checkpoint that was published in half precision has only such weights. For graphs without external data.
    """
    onnx = import_or_explain("onnx")
    model = onnx.load(str(path))
    graph, casts = model.graph, []
    for tensor in list(graph.initializer):
        packed = _exact_half(onnx.numpy_helper.to_array(tensor))
        if packed is None:
            continue
        graph.initializer.remove(tensor)
        graph.initializer.append(onnx.numpy_helper.from_array(packed, f"{tensor.name}_half"))
        cast = onnx.helper.make_node("Cast", [f"{tensor.name}_half"], [tensor.name], to=onnx.TensorProto.FLOAT)
        casts.append(cast)
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    path.write_bytes(model.SerializeToString())


def _exact_half(values: NDArray[Any]) -> NDArray[np.float16] | None:
    if values.dtype != np.float32 or values.size < _WORTH_PACKING:
        return None
    with np.errstate(over="ignore"):
        halved = values.astype(np.float16)
    return halved if np.array_equal(halved.astype(np.float32), values) else None
