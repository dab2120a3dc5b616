"""Signatures of ONNX files, against the onnx package."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from sam3_shapes import BUNDLE

from engines.bundle import TensorSpec, read_bundle
from engines.errors import OnnxFileError
from engines.graph_signature import read_signature


def model_of(inputs, outputs, weights=()):
    nodes = [helper.make_node("Identity", [inputs[0].name], [outputs[0].name])]
    return helper.make_model(helper.make_graph(nodes, "graph", inputs, outputs, list(weights)))


@pytest.mark.parametrize("role", ["vision", "text", "decoder"])
def test_the_signature_is_what_the_manifest_and_the_onnx_package_say(role):
    spec, path = read_bundle(BUNDLE).graphs[role], BUNDLE / f"{role}.onnx"
    signature = read_signature(path)
    assert signature.inputs == spec.inputs
    assert signature.outputs == spec.outputs
    weights = onnx.load(str(path)).graph.initializer
    assert sum(signature.weights_by_dtype.values()) == sum(prod(tensor.dims) for tensor in weights)
    assert signature.bytes_by_data_file == {}


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "uint32", "uint64"]
)
def test_every_dtype_has_its_name(dtype, tmp_path):
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    value = helper.make_tensor_value_info("x", number, [])
    other = helper.make_tensor_value_info("y", number, ["batch", 3, None])
    onnx.save_model(model_of([value], [other]), str(tmp_path / "a.onnx"))
    signature = read_signature(tmp_path / "a.onnx")
    assert signature.inputs == (TensorSpec("x", dtype, ()),)
    assert signature.outputs == (TensorSpec("y", dtype, (None, 3, None)),)
    assert str(signature) == f"x {dtype}[] → y {dtype}[?, 3, ?]"


def test_weights_among_the_inputs_of_an_old_file_are_no_inputs_and_minus_one_is_any_size(tmp_path):
    names = ("x", "weight")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [-1, 2]) for name in names]
    weight = numpy_helper.from_array(np.ones((1, 2), dtype=np.float32), "weight")
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])
    onnx.save_model(model_of(values, [output], [weight]), str(tmp_path / "a.onnx"))
    assert read_signature(tmp_path / "a.onnx").inputs == (TensorSpec("x", "float32", (None, 2)),)


def test_files_of_weights_are_named_with_the_length_they_must_have(tmp_path):
    model = onnx.load(str(BUNDLE / "text.onnx"))
    onnx.save_model(model, str(tmp_path / "a.onnx"), save_as_external_data=True, location="a.onnx.data")
    [(name, n_bytes)] = read_signature(tmp_path / "a.onnx").bytes_by_data_file.items()
    assert name == "a.onnx.data"
    assert n_bytes == (tmp_path / "a.onnx.data").stat().st_size


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"version https://git-lfs.github.com/spec/v1\n", b"\x08\x07"])
def test_what_is_no_onnx_file_is_named(content, tmp_path):
    path = tmp_path / "a.onnx"
    path.write_bytes(content)
    with pytest.raises(OnnxFileError, match=re.escape(f"{path} is no ONNX file or is cut off; copy it again")):
        read_signature(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_a_file_that_is_cut_off_is_named(share, tmp_path):
    content, path = (BUNDLE / "text.onnx").read_bytes(), tmp_path / "a.onnx"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(OnnxFileError, match="cut off"):
        read_signature(path)
