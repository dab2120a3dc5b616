"""What the exported graphs are made of: only what other runtimes take too, and no number that float16 lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_checkpoints import CONTEXT, GRID, N_QUERIES, SIDE, WIDTH

from engines.graph_signature import read_signature

ROLES = ("vision", "text", "decoder")
# What TensorRT or ONNX Runtime's CPU lacks, or makes shapes depend on values.
FORBIDDEN = set(
    "Attention BitShift Einsum GridSample If IsInf IsNaN Loop MultiHeadAttention NonMaxSuppression NonZero OneHot "
    "RoiAlign RotaryEmbedding Scan Scatter ScatterElements ScatterND Unique Where".split()
)
LARGEST_HALF = 65504


@pytest.fixture(params=["fp32", "fp16", "int8"])
def any_bundle(request):
    return request.getfixturevalue({"fp32": "bundle"}.get(request.param, f"{request.param}_bundle"))


def graph(bundle, role):
    import onnx

    return onnx.load(str(bundle.file(bundle.graphs[role].file)))


def constants(model):
    import onnx

    for tensor in model.graph.initializer:
        yield tensor.name, onnx.numpy_helper.to_array(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "value" and node.op_type == "Constant":
                yield node.name, onnx.numpy_helper.to_array(attribute.t)


@pytest.mark.parametrize("role", ROLES)
def test_no_operation_is_one_that_another_runtime_lacks(any_bundle, role):
    found = {node.op_type for node in graph(any_bundle, role).graph.node}
    assert not found & FORBIDDEN
    assert "TopK" not in found or role == "decoder"


def test_the_decoder_chooses_its_best_instances_by_one_operation(any_bundle):
    """TensorRT has it for a constant number of instances, which it is."""
    model = graph(any_bundle, "decoder")
    chosen = [node.input[1] for node in model.graph.node if node.op_type == "TopK"]
    assert len(chosen) == 1
    assert dict(constants(model))[chosen[0]].tolist() == [any_bundle.max_instances]


@pytest.mark.parametrize("role", ROLES)
def test_every_number_in_a_graph_is_finite_in_float16_too(any_bundle, role):
    for name, values in constants(graph(any_bundle, role)):
        if values.dtype.kind == "f":
            assert np.abs(values).max(initial=0) <= LARGEST_HALF, name


@pytest.mark.parametrize("role", ROLES)
def test_a_graph_is_plain_onnx_and_tells_nothing_of_the_machine_that_made_it(bundle, role):
    import onnx

    model = graph(bundle, role)
    onnx.checker.check_model(model)
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 18)]
    assert not model.functions
    content = bundle.file(bundle.graphs[role].file).read_bytes()
    assert str(Path(__file__).parents[2]).encode() not in content
    assert b"site-packages" not in content


@pytest.mark.parametrize("role", ROLES)
def test_the_manifest_declares_the_tensors_that_the_graph_has(any_bundle, role):
    spec = any_bundle.graphs[role]
    found = read_signature(any_bundle.file(spec.file))
    assert [(one.name, one.dtype) for one in found.inputs] == [(one.name, one.dtype) for one in spec.inputs]
    assert [(one.name, one.dtype) for one in found.outputs] == [(one.name, one.dtype) for one in spec.outputs]


def test_the_tensors_are_those_of_the_contract(bundle):
    specs = {role: [str(spec) for spec in (*graph.inputs, *graph.outputs)] for role, graph in bundle.graphs.items()}
    levels = [GRID * 4, GRID * 2, GRID]
    assert specs["vision"] == [
        f"uint8[?, 3, {SIDE}, {SIDE}]",
        *[f"float32[?, {WIDTH}, {side}, {side}]" for side in levels],
    ]
    assert specs["text"] == [f"int32[?, {CONTEXT}]", f"float32[?, {CONTEXT}, {WIDTH}]"]
    assert specs["decoder"] == [
        *[f"float32[1, {WIDTH}, {side}, {side}]" for side in levels],
        f"float32[?, {CONTEXT}, {WIDTH}]",
        f"bool[?, {CONTEXT}]",
        "float32[?, ?, 4]",
        "int32[?, ?]",
        f"float32[?, {N_QUERIES}]",
        "float32[?, 1]",
        f"float32[?, {N_QUERIES}, 4]",
        f"float32[?, {N_QUERIES}, {GRID * 4}, {GRID * 4}]",
    ]
