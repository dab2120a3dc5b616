"""A session puts tensors where an engine reads them, and brings back what it wrote; fakes stand for GPU and engine."""

from __future__ import annotations

import gc
import sys
from dataclasses import fields
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from fake_cuda import CopyKind, FakeCuda, FakeTensorrt
from tiny_models import check_doubling

from engines.bundle import GraphSpec, TensorSpec
from engines.errors import DeviceMemoryError, GraphLoadError, TensorMismatchError
from engines.protocols import KeepsOnDevice, run_kept
from engines.runtimes._tensorrt import session as module
from engines.tensorrt_engines.library import TENSORRT, Library

FEED = np.arange(3, dtype=np.float32)[None]


def spec_of(role: str) -> GraphSpec:
    return GraphSpec(
        role,
        "doubling.onnx",
        (TensorSpec("image", "float32", (1, None)),),
        (TensorSpec("double", "float32", (1, None)),),
    )


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    bindings = ModuleType("cuda.bindings")
    bindings.runtime = fake
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=bindings))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", fake)
    return fake


@pytest.fixture
def open_session(cuda):
    def opened(role="doubler", content=b"plan"):
        class WithFake(Library):
            def load_for_running(self):
                return FakeTensorrt(cuda)

        library = WithFake(**{field.name: getattr(TENSORRT, field.name) for field in fields(TENSORRT)})
        return module.open_session(content, spec_of(role), "cuda:1", library)

    return opened


def copied(cuda, kind):
    return sum(n_bytes for one, n_bytes in cuda.copies if one == kind)


def test_outputs_come_back_by_name_and_memory_is_given_back(cuda, open_session):
    session = open_session()
    for n in (5, 3):
        feed = np.arange(2 * n, dtype=np.float32)[None, ::2]
        check_doubling(session.run({"image": feed}), feed)
    gc.collect()
    assert not cuda.held
    assert (session.runtime, session.device, cuda.device) == ("tensorrt", "cuda:1", 1)
    del session
    gc.collect()
    assert not cuda.host_held


def test_outputs_can_stay_on_the_gpu_and_are_read_there(cuda, open_session):
    first, second = open_session(), open_session()
    assert isinstance(first, KeepsOnDevice)
    kept = run_kept(first, {"image": FEED})["double"]
    assert (kept.shape, kept.dtype, kept.ndim, kept.nbytes, kept.device) == ((1, 3), np.float32, 2, 12, "cuda:1")
    cuda.copies.clear()
    again = run_kept(second, {"image": kept})["double"]
    assert cuda.copies == []
    np.testing.assert_array_equal(np.asarray(again), FEED * 4)
    assert copied(cuda, CopyKind.cudaMemcpyDeviceToHost) == 12
    assert len(cuda.held) == 2
    del kept, again
    gc.collect()
    assert not cuda.held


def test_an_array_can_be_brought_to_the_gpu_ahead(cuda, open_session):
    session = open_session()
    there = session.upload(FEED[:, ::-1])
    cuda.copies.clear()
    kept = session.run_kept({"image": there})["double"]
    assert cuda.copies == []
    np.testing.assert_array_equal(np.asarray(kept), FEED[:, ::-1] * 2)


def test_one_row_is_brought_to_the_host_without_the_others(cuda, open_session):
    kept = run_kept(open_session(), {"image": FEED})["double"]
    cuda.copies.clear()
    assert float(np.asarray(kept[0][2])) == 4.0
    assert np.asarray(kept[0][-1], dtype=np.float64) == 4.0
    assert copied(cuda, CopyKind.cudaMemcpyDeviceToHost) == 8
    with pytest.raises(IndexError, match=r"row 1 of a tensor of shape \(1, 3\)"):
        kept[1]


def test_a_row_outlives_the_tensor_it_is_a_part_of(cuda, open_session):
    kept = run_kept(open_session(), {"image": FEED})["double"]
    row, own = kept[0], kept.kept_row(0)
    del kept
    gc.collect()
    assert len(cuda.held) == 2
    np.testing.assert_array_equal(np.asarray(row), FEED[0] * 2)
    del row
    gc.collect()
    assert len(cuda.held) == 1
    np.testing.assert_array_equal(np.asarray(own), FEED * 2)


def test_a_tensor_of_another_gpu_goes_by_way_of_the_host(cuda, open_session):
    kept = run_kept(open_session(), {"image": FEED})["double"]
    kept.device = "cuda:0"
    cuda.copies.clear()
    check_doubling(open_session().run({"image": kept}), FEED * 2)
    assert copied(cuda, CopyKind.cudaMemcpyHostToDevice) == 12


def test_sizes_that_the_engine_was_not_built_for_are_named(cuda, open_session):
    with pytest.raises(TensorMismatchError, match=r"'image' is \(1, 21\), wanted \(1, 1\) to \(1, 20\)"):
        open_session().run({"image": np.zeros((1, 21), np.float32)})
    gc.collect()
    assert not cuda.held


def test_an_engine_that_does_not_load_is_an_error(open_session):
    with pytest.raises(GraphLoadError, match=r"TensorRT cannot load doubling\.onnx: it gives no engine"):
        open_session(content=b"cut off")


def test_no_memory_is_an_error_of_its_own_that_leaves_nothing_held(cuda, open_session):
    session = open_session()
    cuda.left_bytes = 20
    with pytest.raises(DeviceMemoryError, match="cuda:1 has no memory left to run doubler"):
        session.run({"image": FEED})
    gc.collect()
    assert not cuda.held
    cuda.left_bytes = 10**6
    check_doubling(session.run({"image": FEED}), FEED)


def test_shapes_that_come_again_are_recorded_and_repeated_as_one_launch(cuda, open_session):
    session = open_session("decoder")
    answers = [run_kept(session, {"image": FEED + n})["double"] for n in range(6)]
    assert cuda.n_recorded_launches == 3
    for n, answer in enumerate(answers):
        np.testing.assert_array_equal(np.asarray(answer), (FEED + n) * 2)
    other = np.arange(5, dtype=np.float32)[None]
    check_doubling(session.run({"image": other}), other)
    assert cuda.n_recorded_launches == 3
    check_doubling(session.run({"image": answers[0]}), FEED * 2)
    assert cuda.n_recorded_launches == 4


def test_the_vision_graph_is_not_recorded(cuda, open_session):
    session = open_session("vision")
    for _ in range(6):
        session.run({"image": FEED})
    assert cuda.n_recorded_launches == 0


def test_what_cannot_be_recorded_runs_launch_by_launch(cuda, open_session):
    cuda.can_record = False
    session = open_session("text")
    for _ in range(6):
        check_doubling(session.run({"image": FEED}), FEED)
    assert cuda.n_recorded_launches == 0


def test_several_threads_do_not_disturb_each_other(cuda, open_session):
    from concurrent.futures import ThreadPoolExecutor

    session = open_session("decoder")
    feeds = [np.full((1, 1 + n % 4), n, np.float32) for n in range(60)]
    with ThreadPoolExecutor(4) as pool:
        for feed, outputs in zip(feeds, pool.map(lambda feed: session.run({"image": feed}), feeds), strict=True):
            check_doubling(outputs, feed)
