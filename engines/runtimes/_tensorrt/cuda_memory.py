"""Memory of a GPU, streams and recorded launches, by NVIDIA's own Python package; every status is looked at."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.errors import CudaCallError, DeviceMemoryError

Stream: TypeAlias = Any


class DeviceBuffer:
    """Bytes on a GPU, given back when nothing refers to them any more."""

    def __init__(self, address: int, nbytes: int, free: Callable[[int], None]) -> None:
        self.address = address
        self.nbytes = nbytes
        self._finalizer = weakref.finalize(self, free, address)

    def free(self) -> None:
        """Give it back now."""
        self._finalizer()


class Cuda:
    """One GPU, as `cuda.bindings.runtime` has it. The graph's name goes into errors."""

    def __init__(self, index: int, graph: str) -> None:
        from cuda.bindings import runtime

        self._api: Any = runtime
        self._index = index
        self._graph = graph

    def use(self) -> None:
        """Work on this GPU; CUDA keeps that by thread."""
        self._call(self._api.cudaSetDevice(self._index))

    def stream(self) -> Stream:
        """A new stream."""
        return self._call(self._api.cudaStreamCreate())

    def wait(self, stream: Stream) -> None:
        """Until all that was put on the stream is done."""
        self._call(self._api.cudaStreamSynchronize(stream))

    def allocate(self, nbytes: int) -> DeviceBuffer:
        """Raises `DeviceMemoryError` when the GPU has not so much left."""
        address = int(self._call(self._api.cudaMalloc(max(nbytes, 1))))
        return DeviceBuffer(address, nbytes, self._free)

    def pinned(self, nbytes: int) -> NDArray[np.uint8]:
        """Host memory that the GPU reaches directly, uint8 [nbytes]; given back when nothing refers to it any more."""
        address = int(self._call(self._api.cudaHostAlloc(max(nbytes, 1), self._api.cudaHostAllocDefault)))
        raw = (ctypes.c_ubyte * max(nbytes, 1)).from_address(address)
        weakref.finalize(raw, self._free_host, address)
        array: NDArray[np.uint8] = np.frombuffer(memoryview(raw), dtype=np.uint8)
        return array

    def upload(self, source: NDArray[Any], address: int, stream: Stream) -> None:
        """From a contiguous array."""
        kind = self._api.cudaMemcpyKind.cudaMemcpyHostToDevice
        self._call(self._api.cudaMemcpyAsync(address, source.ctypes.data, source.nbytes, kind, stream))

    def download(self, address: int, target: NDArray[Any], stream: Stream) -> None:
        """Into a contiguous array."""
        kind = self._api.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self._call(self._api.cudaMemcpyAsync(target.ctypes.data, address, target.nbytes, kind, stream))

    def copy(self, source: int, target: int, nbytes: int, stream: Stream) -> None:
        """Within the GPU."""
        kind = self._api.cudaMemcpyKind.cudaMemcpyDeviceToDevice
        self._call(self._api.cudaMemcpyAsync(target, source, nbytes, kind, stream))

    def record(self, stream: Stream, work: Callable[[], None]) -> Callable[[], None]:
        """What `work` puts on the stream, as one launch that can be repeated."""
        api = self._api
        self._call(api.cudaStreamBeginCapture(stream, api.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal))
        try:
            work()
        finally:
            graph = self._call(api.cudaStreamEndCapture(stream))
        launchable = self._call(api.cudaGraphInstantiate(graph, 0))
        self._call(api.cudaGraphDestroy(graph))
        return lambda: self._call(api.cudaGraphLaunch(launchable, stream))

    def _free(self, address: int) -> None:
        """Also at the end of the process, when the driver may be gone: there is nothing to say then."""
        self._api.cudaFree(address)

    def _free_host(self, address: int) -> None:
        self._api.cudaFreeHost(address)

    def _call(self, answer: tuple[Any, ...]) -> Any:
        """What a CUDA function gives beside its status."""
        status, *values = answer
        if status == self._api.cudaError_t.cudaErrorMemoryAllocation:
            raise DeviceMemoryError(f"cuda:{self._index}", self._graph)
        if status != self._api.cudaError_t.cudaSuccess:
            raise CudaCallError(f"cuda:{self._index}", self._graph, status.name)
        return values[0] if values else None
