"""ONNX Runtime with inputs and outputs bound to a device: tested on the CPU, which is one to the library too."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import onnxruntime
import pytest
from tiny_models import check_doubling, write_doubling_bundle

from engines.bundle import read_bundle
from engines.errors import DeviceMemoryError, RuntimeUnavailableError, TensorMismatchError
from engines.protocols import KeepsOnDevice, run_kept
from engines.runtimes._onnxruntime.bound_session import BoundSession
from engines.runtimes.onnxruntime import GPU_MEMORY_VARIABLE, RUNTIME, _cuda_options

FEED = np.arange(5, dtype=np.float32)[None]


@pytest.fixture
def bundle(tmp_path):
    write_doubling_bundle(tmp_path)
    return read_bundle(tmp_path)


@pytest.fixture
def session(bundle):
    path = bundle.file("doubling.onnx")
    inner = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return BoundSession(inner, bundle.graphs["doubler"], "cpu")


def test_outputs_come_back_by_name(session):
    assert isinstance(session, KeepsOnDevice)
    check_doubling(session.run({"image": FEED}), FEED)
    with pytest.raises(TensorMismatchError):
        session.run({"image": FEED.astype(np.float64)})


def test_outputs_stay_and_are_fed_again_without_a_copy(session):
    kept = run_kept(session, {"image": FEED})["double"]
    assert (kept.shape, kept.dtype, kept.ndim, kept.nbytes, kept.device) == ((1, 5), np.float32, 2, 20, "cpu")
    again = session.run_kept({"image": kept})["double"]
    np.testing.assert_array_equal(np.asarray(again), FEED * 4)
    np.testing.assert_array_equal(again[0], FEED[0] * 4)
    np.testing.assert_array_equal(np.asarray(again.kept_row(0), dtype=np.float64), FEED * 4)


def test_a_tensor_fetched_as_a_whole_holds_no_second_copy_on_the_host(session):
    kept = run_kept(session, {"image": FEED})["double"]
    copy = weakref.ref(np.asarray(kept))
    gc.collect()
    assert copy() is None
    np.testing.assert_array_equal(kept[0], FEED[0] * 2)


def test_an_array_can_be_brought_to_the_device_ahead(session):
    there = session.upload(FEED[:, ::-1])
    check_doubling(session.run({"image": there}), FEED[:, ::-1])


def test_warming_up_runs_the_graph_on_zeros(session):
    session.warm_up()
    assert session._spec.zeros()["image"].shape == (1, 1)


@pytest.mark.parametrize(
    "words",
    [
        "CUDA failure 2: out of memory ; GPU=0",
        "Failed to allocate memory for requested buffer of size 111",
        "CUBLAS_STATUS_ALLOC_FAILED",
    ],
)
def test_a_full_gpu_is_an_error_of_its_own(session, words):
    class Full:
        def io_binding(self):
            return session_binding

        def run_with_iobinding(self, binding):
            raise RuntimeError(words)

    session_binding = session._session.io_binding()
    session._session = Full()
    with pytest.raises(DeviceMemoryError, match="cpu has no memory left to run doubler"):
        session.run({"image": FEED})


def test_another_failure_keeps_its_own_words(session):
    binding = session._session.io_binding()

    class Broken:
        def io_binding(self):
            return binding

        def run_with_iobinding(self, binding):
            raise RuntimeError("the kernel is not there")

    session._session = Broken()
    with pytest.raises(RuntimeError, match="the kernel is not there"):
        session.run({"image": FEED})


def test_memory_grows_by_what_is_asked_for_and_to_a_limit_on_request(monkeypatch):
    monkeypatch.delenv(GPU_MEMORY_VARIABLE, raising=False)
    assert _cuda_options("cuda:1") == {"device_id": 1, "arena_extend_strategy": "kSameAsRequested"}
    monkeypatch.setenv(GPU_MEMORY_VARIABLE, "1.5")
    assert _cuda_options("cuda:0")["gpu_mem_limit"] == 1_500_000_000
    monkeypatch.setenv(GPU_MEMORY_VARIABLE, "much")
    with pytest.raises(RuntimeUnavailableError, match="is 'much', wanted a number of gigabytes"):
        _cuda_options("cuda:0")


def test_on_a_gpu_graphs_are_bound_and_warmed_up(bundle, monkeypatch):
    class OnGpu(onnxruntime.InferenceSession):
        def __init__(self, path, options, providers):
            assert providers[0][0] == "CUDAExecutionProvider"
            super().__init__(path, options, providers=["CPUExecutionProvider"])

        def get_providers(self):
            return ["CUDAExecutionProvider", "CPUExecutionProvider"]

    warmed = []
    monkeypatch.setattr(onnxruntime, "InferenceSession", OnGpu)
    monkeypatch.setattr(BoundSession, "warm_up", lambda self: warmed.append(self.device))
    session = RUNTIME.load_graph(bundle.file("doubling.onnx"), bundle.graphs["doubler"], "cuda:0")
    assert isinstance(session, BoundSession)
    assert warmed == ["cuda:0"]
