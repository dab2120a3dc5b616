"""Runs one engine: inputs go to the GPU by name, the engine runs on a stream of its own, outputs come back by name."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import GraphSpec
from engines.errors import GraphLoadError, TensorMismatchError
from engines.tensorrt_engines.library import Library
from engines.tensorrt_engines.messages import message_log
from engines.tensorrt_engines.provide import device_index


def open_session(engine: bytes, spec: GraphSpec, device: str, library: Library) -> TensorrtSession:
    """Load an engine on `cuda:N`. Raises `GraphLoadError` with TensorRT's own words, `RuntimeUnavailableError`."""
    trt = library.load_for_running()
    return TensorrtSession(trt, engine, spec, device, library)


class TensorrtSession:
    """One engine with its execution context, its stream and the lock that keeps runs apart."""

    def __init__(self, trt: Any, engine: bytes, spec: GraphSpec, device: str, library: Library) -> None:
        self.runtime, self.device = library.runtime, device
        self._trt, self._spec, self._library = trt, spec, library
        self._log = message_log(trt)
        self._log.clear()
        self._cuda = _cuda()
        self._lock = threading.Lock()
        self._use_device()
        trt.init_libnvinfer_plugins(self._log, "")
        self._runtime = self._must(trt.Runtime(self._log), "no runtime")
        self._engine = self._must(self._runtime.deserialize_cuda_engine(engine), "no engine")
        self._context = self._must(self._engine.create_execution_context(), "no execution context")
        self._stream = self._call(self._cuda.cudaStreamCreate())

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Every declared output by name, on the host. Raises `TensorMismatchError` for sizes it was not built for."""
        self._spec.check_inputs(feeds)
        with self._lock:
            self._use_device()
            buffers: list[Any] = []
            try:
                return self._run(feeds, buffers)
            finally:
                for buffer in buffers:
                    self._call(self._cuda.cudaFree(buffer))

    def _run(self, feeds: Mapping[str, NDArray[Any]], buffers: list[Any]) -> dict[str, NDArray[Any]]:
        held = {name: np.ascontiguousarray(array) for name, array in feeds.items()}
        for name, array in held.items():
            self._set_input(name, array, buffers)
        outputs = {spec.name: self._output(spec.name, buffers) for spec in self._spec.outputs}
        if not self._context.execute_async_v3(int(self._stream)):
            raise self._failed("the run did not start")
        for array, buffer in outputs.values():
            back = self._cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost
            self._call(self._cuda.cudaMemcpyAsync(array.ctypes.data, buffer, array.nbytes, back, self._stream))
        self._call(self._cuda.cudaStreamSynchronize(self._stream))
        return {name: array for name, (array, _) in outputs.items()}

    def _set_input(self, name: str, array: NDArray[Any], buffers: list[Any]) -> None:
        if not self._context.set_input_shape(name, array.shape):
            least, _, most = self._engine.get_tensor_profile_shape(name, 0)
            raise TensorMismatchError(self._spec.role, name, str(array.shape), f"{tuple(least)} to {tuple(most)}")
        buffer = self._buffer(name, array.nbytes, buffers)
        there = self._cuda.cudaMemcpyKind.cudaMemcpyHostToDevice
        self._call(self._cuda.cudaMemcpyAsync(buffer, array.ctypes.data, array.nbytes, there, self._stream))

    def _output(self, name: str, buffers: list[Any]) -> tuple[NDArray[Any], Any]:
        shape = tuple(self._context.get_tensor_shape(name))
        if -1 in shape:
            raise self._failed(f"the size of the output '{name}' depends on what is found, which is not supported yet")
        array = np.empty(shape, dtype=self._trt.nptype(self._engine.get_tensor_dtype(name)))
        return array, self._buffer(name, array.nbytes, buffers)

    def _buffer(self, name: str, n_bytes: int, buffers: list[Any]) -> Any:
        buffer = self._call(self._cuda.cudaMalloc(max(n_bytes, 1)))
        buffers.append(buffer)
        self._context.set_tensor_address(name, int(buffer))
        return buffer

    def _use_device(self) -> None:
        """CUDA keeps the device by thread."""
        self._call(self._cuda.cudaSetDevice(device_index(self.device)))

    def _call(self, answer: tuple[Any, ...]) -> Any:
        """What a CUDA function gives beside its status."""
        status, *values = answer
        if status != self._cuda.cudaError_t.cudaSuccess:
            raise self._failed(f"CUDA says {status.name}")
        return values[0] if values else None

    def _must(self, made: Any, otherwise: str) -> Any:
        if made is None:
            raise self._failed(f"it gives {otherwise}")
        return made

    def _failed(self, reason: str) -> GraphLoadError:
        said = "; ".join([reason, *self._log.last_errors()])
        return GraphLoadError(Path(self._spec.file), self._library.title, said)


def _cuda() -> Any:
    from cuda.bindings import runtime

    return runtime
