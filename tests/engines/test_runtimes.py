"""Runtimes: each is held to the same contract, and ONNX Runtime runs a tiny graph for real."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import onnxruntime
import pytest
from tiny_models import check_doubling, write_doubling_bundle

from engines.bundle import read_bundle
from engines.errors import GraphLoadError, RuntimeUnavailableError, TensorMismatchError, UnknownKindError
from engines.loader import choose_runtime, families, load_segmenter, runtimes
from engines.protocols import Family, Runtime
from engines.triton_repository import write_triton_repository


@pytest.fixture
def doubling(tmp_path):
    write_doubling_bundle(tmp_path)
    return read_bundle(tmp_path)


class CpuOnlySession(onnxruntime.InferenceSession):
    """What the library gives where CUDA was asked for and did not load: a session on the CPU, without a word."""

    def __init__(self, path, options, providers):
        super().__init__(path, options, providers=["CPUExecutionProvider"])


def load(runtime: Runtime, bundle, device="cpu"):
    graph = bundle.graphs["doubler"]
    return runtime.load_graph(bundle.file(graph.file), graph, device)


@pytest.mark.parametrize("name", list(runtimes()))
def test_every_runtime_keeps_the_contract(name, doubling, tmp_path):
    runtime = runtimes()[name]
    assert runtime.name == name
    assert runtime.title
    availability = runtime.availability()
    assert availability.usable or availability.reason
    if not availability.usable:
        pytest.skip(f"{runtime.title}: {availability.reason}")
    feed = np.arange(5, dtype=np.float32)[None]
    with device_of(runtime, doubling, tmp_path) as device:
        session = load(runtime, doubling, device)
        check_doubling(session.run({"image": feed}), feed)
        assert session.runtime == name
        assert session.device == device if runtime.check_device else session.device in runtime.devices()


@contextmanager
def device_of(runtime, bundle, tmp_path):
    """Where a runtime is asked to run: a server of our own for the one that needs a server."""
    if runtime.name != "triton":
        yield "auto"
        return
    from triton_server import serving

    write_triton_repository(bundle, tmp_path / "triton")
    with serving(tmp_path / "triton") as (address, _):
        yield address


@pytest.mark.parametrize("name", list(families()))
def test_every_family_keeps_the_contract(name):
    family = families()[name]
    assert isinstance(family, Family)
    assert family.name == name
    assert family.title
    assert callable(family.load)


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({}, r"'image' is not given, wanted float32\[1, \?\]"),
        ({"image": np.zeros((1, 2))}, r"is float64\[1, 2\], wanted float32\[1, \?\]"),
        ({"image": np.zeros((2, 2), np.float32)}, r"is float32\[2, 2\], wanted float32\[1, \?\]"),
        ({"image": np.zeros((1, 2), np.float32), "boxes": np.zeros(1)}, "'boxes' is given, wanted one of: image"),
    ],
)
def test_a_wrong_tensor_is_named_with_got_and_wanted(doubling, feeds, words):
    with pytest.raises(TensorMismatchError, match=words):
        load(choose_runtime(), doubling).run(feeds)


def test_a_graph_without_a_promised_tensor_is_refused(tmp_path):
    manifest = write_doubling_bundle(tmp_path)
    manifest["graphs"]["doubler"]["outputs"][0]["name"] = "triple"
    write_doubling_bundle(tmp_path, graphs=manifest["graphs"])
    with pytest.raises(TensorMismatchError, match="'triple' is absent, wanted one of: double"):
        load(choose_runtime(), read_bundle(tmp_path))


def test_a_file_that_is_no_graph_is_refused(doubling):
    doubling.file("doubling.onnx").write_bytes(b"not a graph")
    with pytest.raises(GraphLoadError, match=r"ONNX Runtime cannot load .*doubling\.onnx"):
        load(choose_runtime(), doubling)


def test_an_unknown_runtime_names_those_there_are():
    with pytest.raises(UnknownKindError, match="no runtime 'openvino'; choose one of: onnxruntime"):
        choose_runtime("openvino")


def test_a_device_that_is_not_there_is_refused_by_name(doubling):
    with pytest.raises(RuntimeUnavailableError, match=r"device 'cuda:99' cannot be used here: .* finds only cpu"):
        load_segmenter(doubling, device="cuda:99")


def test_a_gpu_whose_libraries_do_not_load_is_a_warning_or_a_refusal(doubling, monkeypatch, caplog):
    monkeypatch.setattr("engines.runtimes.onnxruntime.n_cuda_devices", lambda: 1)
    monkeypatch.setattr("onnxruntime.InferenceSession", CpuOnlySession)
    assert load(choose_runtime("onnxruntime"), doubling, "auto").device == "cpu"
    assert "ONNX Runtime runs on the CPU" in caplog.text
    with pytest.raises(RuntimeUnavailableError, match="CUDA libraries did not load"):
        load(choose_runtime("onnxruntime"), doubling, "cuda:0")


def test_a_bundle_of_an_unknown_family_is_refused(tmp_path):
    write_doubling_bundle(tmp_path, family="oracle")
    with pytest.raises(UnknownKindError, match="no model family 'oracle'"):
        load_segmenter(read_bundle(tmp_path))


def test_loading_writes_nothing_to_the_terminal(tmp_path):
    write_doubling_bundle(tmp_path)
    code = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from engines.bundle import read_bundle\n"
        "from engines.loader import choose_runtime\n"
        "bundle = read_bundle(Path(sys.argv[1])); graph = bundle.graphs['doubler']\n"
        "session = choose_runtime().load_graph(bundle.file(graph.file), graph, 'auto')\n"
        "session.run({'image': np.zeros((1, 3), np.float32)})\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
