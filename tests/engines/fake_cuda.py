"""CUDA's runtime on the memory of the host, and a TensorRT engine that doubles its input."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from types import SimpleNamespace

import numpy as np

Status = IntEnum("Status", {"cudaSuccess": 0, "cudaErrorMemoryAllocation": 2, "cudaErrorStreamCaptureInvalidated": 901})
CopyKind = IntEnum(
    "CopyKind", {"cudaMemcpyHostToDevice": 1, "cudaMemcpyDeviceToHost": 2, "cudaMemcpyDeviceToDevice": 3}
)
OK = Status.cudaSuccess


class FakeCuda:
    """Has `left_bytes` of memory; work put on a stream is done at once, but while it is recorded only noted."""

    cudaError_t = Status
    cudaMemcpyKind = CopyKind
    cudaHostAllocDefault = 0
    cudaStreamCaptureMode = SimpleNamespace(cudaStreamCaptureModeThreadLocal=1)

    def __init__(self):
        self.held = {}
        self.host_held = {}
        self.left_bytes = 10**9
        self.device = None
        self.copies = []
        self.recording = None
        self.can_record = True
        self.n_recorded_launches = 0

    def cudaSetDevice(self, index):
        self.device = index
        return (OK,)

    def cudaStreamCreate(self):
        return OK, 7

    def cudaStreamSynchronize(self, stream):
        return (OK,)

    def cudaMalloc(self, n_bytes):
        if n_bytes > self.left_bytes:
            return Status.cudaErrorMemoryAllocation, None
        self.left_bytes -= n_bytes
        buffer = ctypes.create_string_buffer(n_bytes)
        self.held[ctypes.addressof(buffer)] = buffer
        return OK, ctypes.addressof(buffer)

    def cudaFree(self, address):
        self.left_bytes += len(self.held.pop(address))
        return (OK,)

    def cudaHostAlloc(self, n_bytes, flags):
        buffer = ctypes.create_string_buffer(n_bytes)
        self.host_held[ctypes.addressof(buffer)] = buffer
        return OK, ctypes.addressof(buffer)

    def cudaFreeHost(self, address):
        del self.host_held[address]
        return (OK,)

    def cudaMemcpyAsync(self, target, source, n_bytes, kind, stream):
        self.copies.append((kind, n_bytes))
        ctypes.memmove(target, source, n_bytes)
        return (OK,)

    def cudaStreamBeginCapture(self, stream, mode):
        self.recording = []
        return (OK,)

    def cudaStreamEndCapture(self, stream):
        recorded, self.recording = self.recording, None
        return (OK, recorded) if self.can_record else (Status.cudaErrorStreamCaptureInvalidated, None)

    def cudaGraphInstantiate(self, graph, flags):
        return OK, graph

    def cudaGraphDestroy(self, graph):
        return (OK,)

    def cudaGraphLaunch(self, graph, stream):
        self.n_recorded_launches += 1
        for work in graph:
            work()
        return (OK,)


class DoublingContext:
    """Doubles what lies at one address to another; takes up to 20 numbers."""

    def __init__(self, cuda):
        self._cuda = cuda
        self.addresses = {}
        self.shape = None

    def set_input_shape(self, name, shape):
        self.shape = shape
        return shape[1] <= 20

    def get_tensor_shape(self, name):
        return self.shape

    def set_tensor_address(self, name, address):
        self.addresses[name] = address

    def execute_async_v3(self, stream):
        addresses, shape = dict(self.addresses), self.shape

        def double():
            read, written = (
                np.ctypeslib.as_array(ctypes.cast(addresses[name], ctypes.POINTER(ctypes.c_float)), shape)
                for name in ("image", "double")
            )
            np.multiply(read, 2, out=written)

        if self._cuda.recording is None:
            double()
        else:
            self._cuda.recording.append(double)
        return True


class FakeTensorrt:
    """As much of the module as a session uses; only the content `plan` is an engine."""

    class ILogger:
        Severity = IntEnum("Severity", {"ERROR": 1})

    def __init__(self, cuda):
        self.contexts = []

        def new_context():
            self.contexts.append(DoublingContext(cuda))
            return self.contexts[-1]

        self.engine = SimpleNamespace(
            create_execution_context=new_context,
            get_tensor_dtype=lambda name: "float32",
            get_tensor_profile_shape=lambda name, index: ((1, 1), (1, 1), (1, 20)),
        )

    def nptype(self, dtype):
        return np.dtype(dtype)

    def init_libnvinfer_plugins(self, log, namespace):
        return True

    def Runtime(self, log):
        return SimpleNamespace(deserialize_cuda_engine=lambda content: self.engine if content == b"plan" else None)
