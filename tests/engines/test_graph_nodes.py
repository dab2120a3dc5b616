"""Nodes of ONNX files, and files with other outputs, against the onnx package and ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from engines.errors import OnnxFileError
from engines.graph_nodes import graph_with_outputs, open_nodes


def value(name, dtype=TensorProto.FLOAT, shape=(2,)):
    return helper.make_tensor_value_info(name, dtype, shape)


def write(path, nodes, inputs, outputs, weights=(), **saving):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save_model(model, str(path), **saving)
    return path


def weight(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, dtype=np.float32), name)


@pytest.fixture
def chain(tmp_path):
    """`sum` = `x` + 1, `double` = 2 · `sum`, and `small` = `sum` − 1 beside it."""
    nodes = [
        helper.make_node("Add", ["x", "one"], ["sum"]),
        helper.make_node("Mul", ["sum", "two"], ["double"]),
        helper.make_node("Sub", ["sum", "one"], ["small"]),
    ]
    weights = [weight("one", 1, 1), weight("two", 2, 2)]
    return write(tmp_path / "a.onnx", nodes, [value("x")], [value("double"), value("small")], weights)


def test_a_tensor_inside_becomes_an_output_and_what_only_others_need_falls_away(chain):
    content = graph_with_outputs(chain, ["small", "sum"])
    graph = onnx.load_from_string(content).graph
    assert [node.op_type for node in graph.node] == ["Add", "Sub"]
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    small, total = session.run(None, {"x": np.array([3, 5], np.float32)})
    assert (small.tolist(), total.tolist()) == ([3, 5], [4, 6])


def test_all_else_of_the_file_stays(chain):
    before, after = onnx.load(str(chain)), onnx.load_from_string(graph_with_outputs(chain, ["double", "small"]))
    assert (after.opset_import, after.ir_version) == (before.opset_import, before.ir_version)
    assert (after.graph.node, after.graph.initializer) == (before.graph.node, before.graph.initializer)
    assert (after.graph.input, after.graph.name) == (before.graph.input, before.graph.name)
    assert [output.name for output in after.graph.output] == ["double", "small"]


def test_what_a_graph_inside_a_node_reads_stays(tmp_path):
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(operation, ["sum", "one"], [f"{name}_answer"])], name, [], [value(f"{name}_answer")]
        )
        for name, operation in (("then", "Mul"), ("else", "Sub"))
    }
    nodes = [
        helper.make_node("Add", ["x", "one"], ["sum"]),
        helper.make_node("If", ["yes"], ["chosen"], **branches),
        helper.make_node("Neg", ["chosen"], ["negative"]),
    ]
    inputs = [value("x"), value("yes", TensorProto.BOOL, ())]
    path = write(tmp_path / "a.onnx", nodes, inputs, [value("negative")], [weight("one", 1, 1)])
    session = onnxruntime.InferenceSession(graph_with_outputs(path, ["chosen"]), providers=["CPUExecutionProvider"])
    feeds = {"x": np.array([3, 5], np.float32), "yes": np.array(False)}
    assert session.run(None, feeds)[0].tolist() == [3, 5]


def test_the_maker_of_a_tensor_has_its_inputs_and_attributes(tmp_path):
    resize = helper.make_node("Resize", ["x", "", "scales"], ["large"], mode="linear", antialias=1)
    inputs, outputs = [value("x", shape=(1, 1, 2, 2))], [value("large", shape=(1, 1, 4, 4))]
    path = write(tmp_path / "a.onnx", [resize], inputs, outputs, [weight("scales", 1, 1, 2, 2)])
    with open_nodes(path) as nodes:
        node = nodes.maker("large")
        assert nodes.maker("x") is None
    assert (node.operation, node.inputs) == ("Resize", ("x", "", "scales"))
    assert node.attributes == {"mode": "linear", "antialias": 1}


@pytest.mark.parametrize(
    ("constant", "wanted"),
    [
        (numpy_helper.from_array(np.array(0.5, dtype=np.float32), "c"), 0.5),
        (helper.make_tensor("c", TensorProto.FLOAT, [], [0.25]), 0.25),
        (numpy_helper.from_array(np.array([0.5], dtype=np.float32), "c"), 0.5),
        (numpy_helper.from_array(np.array([0.5, 1], dtype=np.float32), "c"), None),
        (numpy_helper.from_array(np.array(2, dtype=np.int32), "c"), None),
        (helper.make_node("Constant", [], ["c"], value_float=0.125), 0.125),
        (helper.make_node("Constant", [], ["c"], value=helper.make_tensor("v", TensorProto.FLOAT, [], [3])), 3.0),
        (helper.make_node("Neg", ["x"], ["c"]), None),
    ],
)
def test_one_number_is_read_wherever_an_exporter_puts_it(constant, wanted, tmp_path):
    is_node = isinstance(constant, onnx.NodeProto)
    nodes = [*([constant] if is_node else []), helper.make_node("Identity", ["x"], ["y"])]
    path = write(tmp_path / "a.onnx", nodes, [value("x")], [value("y")], [] if is_node else [constant])
    with open_nodes(path) as read:
        assert read.constant("c") == wanted
        assert read.constant("nothing") is None


def test_what_is_no_onnx_file_is_named(tmp_path):
    path = tmp_path / "a.onnx"
    path.write_bytes(b"no graph")
    with pytest.raises(OnnxFileError, match=r"a\.onnx is no ONNX file or is cut off"):
        graph_with_outputs(path, ["y"])
