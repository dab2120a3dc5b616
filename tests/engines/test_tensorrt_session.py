"""A session puts tensors where an engine reads them, and brings back what it wrote; fakes stand for GPU and engine."""

from __future__ import annotations

import ctypes
from dataclasses import fields
from enum import IntEnum
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_models import check_doubling

from engines.bundle import GraphSpec, TensorSpec
from engines.errors import GraphLoadError, TensorMismatchError
from engines.runtimes._tensorrt import session as module
from engines.tensorrt_engines.library import TENSORRT, Library

SPEC = GraphSpec(
    "doubler",
    "doubling.onnx",
    (TensorSpec("image", "float32", (1, None)),),
    (TensorSpec("double", "float32", (1, None)),),
)
Status = IntEnum("Status", {"cudaSuccess": 0, "cudaErrorMemoryAllocation": 2})


class FakeCuda:
    """CUDA's runtime on the memory of the host."""

    def __init__(self):
        self.cudaError_t = Status
        self.cudaMemcpyKind = SimpleNamespace(cudaMemcpyHostToDevice=1, cudaMemcpyDeviceToHost=2)
        self.held = {}
        self.n_left = 100
        self.device = None

    def cudaSetDevice(self, index):
        self.device = index
        return (Status.cudaSuccess,)

    def cudaStreamCreate(self):
        return Status.cudaSuccess, 7

    def cudaStreamSynchronize(self, stream):
        return (Status.cudaSuccess,)

    def cudaMalloc(self, n_bytes):
        self.n_left -= 1
        if self.n_left < 0:
            return Status.cudaErrorMemoryAllocation, None
        buffer = ctypes.create_string_buffer(n_bytes)
        self.held[ctypes.addressof(buffer)] = buffer
        return Status.cudaSuccess, ctypes.addressof(buffer)

    def cudaFree(self, address):
        del self.held[address]
        return (Status.cudaSuccess,)

    def cudaMemcpyAsync(self, target, source, n_bytes, kind, stream):
        ctypes.memmove(target, source, n_bytes)
        return (Status.cudaSuccess,)


class FakeContext:
    """Doubles what lies at one address to another."""

    def __init__(self):
        self.addresses = {}

    def set_input_shape(self, name, shape):
        self.shape = shape
        return shape[1] <= 20

    def get_tensor_shape(self, name):
        return self.shape

    def set_tensor_address(self, name, address):
        self.addresses[name] = address

    def execute_async_v3(self, stream):
        read, written = (
            np.ctypeslib.as_array(ctypes.cast(self.addresses[name], ctypes.POINTER(ctypes.c_float)), self.shape)
            for name in ("image", "double")
        )
        np.multiply(read, 2, out=written)
        return True


class FakeModule:
    class ILogger:
        Severity = IntEnum("Severity", {"ERROR": 1})

    engine: object = SimpleNamespace(
        create_execution_context=FakeContext,
        get_tensor_dtype=lambda name: "float32",
        get_tensor_profile_shape=lambda name, index: ((1, 1), (1, 1), (1, 20)),
    )

    def nptype(self, dtype):
        return np.dtype(dtype)

    def init_libnvinfer_plugins(self, log, namespace):
        return True

    def Runtime(self, log):
        return SimpleNamespace(deserialize_cuda_engine=lambda content: self.engine if content == b"plan" else None)


class WithFake(Library):
    def load_for_running(self):
        return FakeModule()


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(module, "_cuda", lambda: fake)
    return fake


def open_session(content=b"plan"):
    library = WithFake(**{field.name: getattr(TENSORRT, field.name) for field in fields(TENSORRT)})
    return module.open_session(content, SPEC, "cuda:1", library)


def test_outputs_come_back_by_name_and_memory_is_given_back(cuda):
    session = open_session()
    for n in (5, 3):
        feed = np.arange(2 * n, dtype=np.float32)[None, ::2]
        check_doubling(session.run({"image": feed}), feed)
    assert not cuda.held
    assert (session.runtime, session.device, cuda.device) == ("tensorrt", "cuda:1", 1)


def test_sizes_that_the_engine_was_not_built_for_are_named(cuda):
    with pytest.raises(TensorMismatchError, match=r"'image' is \(1, 21\), wanted \(1, 1\) to \(1, 20\)"):
        open_session().run({"image": np.zeros((1, 21), np.float32)})
    assert not cuda.held


def test_an_engine_that_does_not_load_is_an_error(cuda):
    with pytest.raises(GraphLoadError, match=r"TensorRT cannot load doubling\.onnx: it gives no engine"):
        open_session(b"cut off")


def test_no_memory_is_an_error_that_leaves_nothing_held(cuda):
    session = open_session()
    cuda.n_left = 1
    with pytest.raises(GraphLoadError, match="CUDA says cudaErrorMemoryAllocation"):
        session.run({"image": np.zeros((1, 3), np.float32)})
    assert not cuda.held
