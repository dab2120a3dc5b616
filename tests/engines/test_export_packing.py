"""Weights that float16 holds exactly are stored as float16, and nothing else changes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.export.precision import pack_exact_halves


def write_graph(path, weights):
    """y = x · weights."""
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 64)) for name in "xy"]
    node = helper.make_node("MatMul", ["x", "weights"], ["y"])
    graph = helper.make_graph([node], "product", sides[:1], sides[1:], [numpy_helper.from_array(weights, "weights")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), str(path))


def answer(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.linspace(-3, 3, 64, dtype=np.float32)[None]})[0]


def random_weights():
    return np.random.default_rng(0).normal(0, 1, (64, 64)).astype(np.float32)


def test_weights_that_were_in_half_take_half_the_bytes_and_answer_the_same(tmp_path):
    path = tmp_path / "graph.onnx"
    write_graph(path, random_weights().astype(np.float16).astype(np.float32))
    before, size = answer(path), path.stat().st_size
    pack_exact_halves(path)
    assert path.stat().st_size < 0.55 * size
    assert np.array_equal(answer(path), before)


@pytest.mark.parametrize("value", [1 / 3, 1e6, 1e-9])
def test_a_matrix_with_one_number_that_half_lacks_stays_as_it_is(tmp_path, value):
    path = tmp_path / "graph.onnx"
    weights = np.ones((64, 64), np.float32)
    weights[5, 5] = value
    write_graph(path, weights)
    pack_exact_halves(path)
    stored = onnx.load(str(path)).graph.initializer[0]
    assert stored.name == "weights"
    assert np.array_equal(numpy_helper.to_array(stored), weights)
