"""Engines are really built here, for a GPU that is not: TensorRT for RTX can."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from contract_models import CONTRACTS, write_contract
from engine_recipes import ARCHITECTURE, rtx, write_graph
from sam3_shapes import BUNDLE
from tiny_models import write_doubling_bundle

from engines.bundle import SHIPPED_MODELS, GraphSpec, TensorSpec, read_bundle
from engines.errors import EngineBuildError, EngineCancelledError, OnnxFileError
from engines.export.calibration import quantise_with_scales
from engines.loader import open_bundle
from engines.tensorrt_engines.build import build_engine
from engines.tensorrt_engines.key import BuildOptions, recipe_for
from engines.tensorrt_engines.library import PORTABLE, TENSORRT_RTX
from engines.tensorrt_engines.profiles import InputProfile
from engines.tensorrt_engines.provide import keep_going

PLAIN = BuildOptions()
LACKING = {
    # What our test models of these kinds have that the library lacks; ONNX Runtime runs them.
    ("sam3_samexporter", "vision"): "UInt8",
    ("sam3_samexporter", "decoder"): r"NonZero\): this operation is not supported",
    ("sam3_osam", "vision"): "UInt8",
    ("sam3_osam", "decoder"): r"NonZero\): this operation is not supported",
}


@pytest.fixture(autouse=True)
def trt():
    return rtx()


def build(bundle, role, progress=keep_going, architecture=ARCHITECTURE, options=PLAIN, **changes):
    spec = bundle.graphs[role]
    path = bundle.file(spec.file)
    made = replace(recipe_for(TENSORRT_RTX, path, spec, architecture, options), **changes)
    return build_engine(TENSORRT_RTX, path, made, b"", progress)


def build_graph(path, progress=keep_going, **specs):
    """A graph of one file with the given inputs, shape by name."""
    inputs = tuple(TensorSpec(name, "float32", shape) for name, shape in specs.items())
    spec = GraphSpec("odd", path.name, inputs, ())
    return build_engine(TENSORRT_RTX, path, recipe_for(TENSORRT_RTX, path, spec, ARCHITECTURE), b"", progress)


@pytest.mark.parametrize("role", ["vision", "text", "decoder"])
def test_each_graph_of_sam3_becomes_an_engine_for_all_its_sizes(role):
    built = build(read_bundle(BUNDLE), role)
    assert built.content.nbytes > 1_000_000
    assert built.n_layers > 100
    assert built.build_s > 0


@pytest.mark.parametrize("role", ["detector", "salience"])
def test_each_graph_of_the_starter_becomes_an_engine(role):
    assert build(read_bundle(SHIPPED_MODELS / "starter"), role).n_layers > 100


@pytest.mark.parametrize("role", ["vision", "text", "decoder"])
def test_each_graph_of_a_half_precision_export_becomes_an_engine(fp16_bundle, role):
    assert build(fp16_bundle, role).n_layers > 50


@pytest.mark.parametrize(
    ("role", "feed"),
    [
        ("vision", {"image": np.random.default_rng(0).integers(0, 255, (1, 3, 168, 168), dtype=np.uint8)}),
        ("text", {"input_ids": np.array([[49406, 2442, 7220, 49407, *[0] * 28]], np.int32)}),
    ],
)
def test_a_graph_with_fixed_int8_scales_becomes_an_engine(tmp_path, role, feed):
    pytest.importorskip("onnx", reason="the extra [export] is not installed")
    bundle = read_bundle(BUNDLE)
    spec = bundle.graphs[role]
    quantise_with_scales(bundle.file(spec.file), tmp_path / spec.file, external=False, feeds=[feed])
    made = recipe_for(TENSORRT_RTX, tmp_path / spec.file, spec, ARCHITECTURE, PLAIN)
    assert build_engine(TENSORRT_RTX, tmp_path / spec.file, made, b"", keep_going).n_layers > 100


def test_the_doubling_graph_becomes_an_engine(tmp_path):
    write_doubling_bundle(tmp_path)
    assert build(read_bundle(tmp_path), "doubler").n_layers >= 1


@pytest.mark.parametrize("role", ["vision", "text", "decoder"])
@pytest.mark.parametrize("name", CONTRACTS)
def test_graphs_of_others_become_engines_or_name_what_is_lacking(name, role, tmp_path):
    bundle = open_bundle(write_contract(name, tmp_path / name))
    if (name, role) not in LACKING:
        assert build(bundle, role).n_layers > 100
        return
    with pytest.raises(EngineBuildError, match=LACKING[name, role]):
        build(bundle, role)


@pytest.mark.parametrize("options", [BuildOptions(workspace_gb=1), BuildOptions(version_compatible=True)])
def test_options_reach_the_build(options):
    assert build(read_bundle(BUNDLE), "text", options=options).content.nbytes > 1_000_000


def test_too_little_workspace_is_an_error_in_the_librarys_own_words():
    with pytest.raises(EngineBuildError, match=r"text\.onnx: no engine can be built of it: .*workspace"):
        build(read_bundle(BUNDLE), "text", options=BuildOptions(workspace_gb=0.001))


def test_one_engine_can_be_built_for_all_gpus():
    assert build(read_bundle(BUNDLE), "text", architecture=PORTABLE).content.nbytes > 1_000_000


def test_an_architecture_that_the_library_does_not_know_is_refused():
    with pytest.raises(EngineBuildError, match=r"it builds for .*sm89.*, not sm90"):
        build(read_bundle(BUNDLE), "text", architecture="sm90")


def test_what_an_architecture_cannot_run_names_the_node():
    """Turing has no float32 matrix products in this library."""
    with pytest.raises(EngineBuildError, match=r"node_MatMul_18.*Turing"):
        build(read_bundle(BUNDLE), "text", architecture="sm75")


def test_an_unsupported_operation_is_named_with_its_node(tmp_path):
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Relu", ["a"], ["r"], name="fine"),
        helper.make_node("Frobnicate", ["r"], ["b"], domain="my.operations", name="/neck/odd"),
    ]
    value = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "ab"}
    path = write_graph(tmp_path / "planted.onnx", nodes, [value["a"]], [value["b"]])
    wanted = r"planted\.onnx: .*node '/neck/odd' \(Frobnicate\): this operation is not supported"
    with pytest.raises(EngineBuildError, match=wanted):
        build_graph(path, a=(1, 4))


def test_many_nodes_of_a_missing_operation_are_named_once(tmp_path):
    from onnx import TensorProto, helper

    nodes = [helper.make_node("Det", [one], [other], name=f"/{one}") for one, other in ("ab", "cd", "ef")]
    scalar = [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "bdf"]
    matrix = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "ace"]
    path = write_graph(tmp_path / "planted.onnx", nodes, matrix, scalar)
    with pytest.raises(EngineBuildError) as refused:
        build_graph(path, a=(4, 4), c=(4, 4), e=(4, 4))
    assert refused.value.reason == "node '/a' (Det): this operation is not supported, nor are 2 more of its kind"


def test_shapes_that_do_not_fit_are_named_with_their_node(tmp_path):
    from onnx import TensorProto, helper

    node = helper.make_node("MatMul", ["a", "c"], ["b"], name="/product")
    value = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("a", [4, 4]), ("c", [3, 4]), ("b", [4, 4]))
    }
    path = write_graph(tmp_path / "planted.onnx", [node], [value["a"], value["c"]], [value["b"]])
    with pytest.raises(EngineBuildError, match=r"node '/product' \(MatMul\): .*must match") as refused:
        build_graph(path, a=(4, 4), c=(3, 4))
    assert "cudaError" not in str(refused.value)


def test_whole_numbers_of_64_bits_are_taken(tmp_path):
    from onnx import TensorProto, helper

    node = helper.make_node("Add", ["a", "a"], ["b"], name="/sum")
    value = [helper.make_tensor_value_info(name, TensorProto.INT64, [None, 32]) for name in "ab"]
    path = write_graph(tmp_path / "long.onnx", [node], value[:1], value[1:])
    assert build_graph(path, a=(None, 32)).n_layers >= 1


def test_sizes_that_the_graph_cannot_have_are_refused(tmp_path):
    """The range is for an input of four axes; the graph has two."""
    write_doubling_bundle(tmp_path)
    profile = InputProfile("image", (1, 1, 1, 1), (1, 1, 1, 1), (1, 2, 1, 1))
    with pytest.raises(EngineBuildError, match=r"doubling\.onnx"):
        build(read_bundle(tmp_path), "doubler", profiles=(profile,))


def test_a_free_axis_without_a_range_is_refused_by_name(tmp_path):
    write_doubling_bundle(tmp_path)
    with pytest.raises(EngineBuildError, match="the input 'image' has the shape"):
        build(read_bundle(tmp_path), "doubler", profiles=())


def test_a_file_that_is_no_graph_is_refused(tmp_path):
    (tmp_path / "junk.onnx").write_bytes(b"not a graph")
    with pytest.raises(OnnxFileError, match=r"junk\.onnx"):
        build_graph(tmp_path / "junk.onnx")


def test_progress_grows_from_nothing_to_nearly_all():
    told: list[tuple[str, float]] = []
    build(read_bundle(BUNDLE), "text", lambda what, share: told.append((what, share)) is None)
    shares = np.array([share for _, share in told])
    assert shares[0] == 0
    assert shares[-1] == 1
    assert np.diff(shares).max() < 0.5
    assert (np.diff(shares) >= 0).all()
    assert len({what for what, _ in told}) > 5


@pytest.mark.parametrize("at", [0.0, 0.1, 0.4])
def test_a_build_stops_where_it_is_told_to(at):
    told: list[float] = []

    def stop(_what: str, share: float) -> bool:
        told.append(share)
        return share < at

    with pytest.raises(EngineCancelledError, match=r"text\.onnx was stopped"):
        build(read_bundle(BUNDLE), "text", stop)
    assert sum(share >= at for share in told) == 1
    assert build(read_bundle(BUNDLE), "text").n_layers > 100


def test_an_error_of_who_listens_comes_through():
    def fail(_what: str, share: float) -> bool:
        if share > 0:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        build(read_bundle(BUNDLE), "text", fail)


def test_an_error_tells_nothing_of_an_earlier_build(tmp_path):
    write_doubling_bundle(tmp_path)
    with pytest.raises(EngineBuildError):
        build(read_bundle(BUNDLE), "text", options=BuildOptions(workspace_gb=0.001))
    with pytest.raises(EngineBuildError) as refused:
        build(read_bundle(tmp_path), "doubler", profiles=())
    assert "workspace" not in str(refused.value)


def test_threads_build_one_after_the_other(tmp_path):
    write_doubling_bundle(tmp_path)
    bundle = read_bundle(tmp_path)
    running: list[int] = []

    def work() -> None:
        def note(_what: str, _share: float) -> bool:
            running.append(threading.get_ident())
            return True

        build(bundle, "doubler", note)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(first != second for first, second in pairwise(running)) == 2
