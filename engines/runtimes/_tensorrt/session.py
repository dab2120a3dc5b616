"""Runs one engine: inputs go to the GPU by name, the engine runs on a stream of its own, outputs come back by name.

What lies on the GPU already, such as the features of an image, is read where it lies. Shapes that come again and again,
as those of an edited phrase do, are recorded as one launch.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engines.bundle import GraphSpec
from engines.errors import CudaCallError, GraphLoadError, TensorMismatchError
from engines.runtimes._tensorrt.cuda_memory import Cuda, DeviceBuffer
from engines.runtimes._tensorrt.gpu_tensor import GpuTensor
from engines.tensorrt_engines.library import Library
from engines.tensorrt_engines.messages import message_log
from engines.tensorrt_engines.provide import device_index

_RECORDED_ROLES = ("text", "decoder")
"""What runs at each edit. The vision graph takes so long that the launches do not count."""
_RECORD_AFTER = 3
_log = logging.getLogger(__name__)

Shapes: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]


def open_session(engine: bytes, spec: GraphSpec, device: str, library: Library) -> TensorrtSession:
    """Load an engine on `cuda:N`. Raises `GraphLoadError` with TensorRT's own words, `RuntimeUnavailableError`."""
    return TensorrtSession(library.load_for_running(), engine, spec, device, library)


class TensorrtSession:
    """One engine with its execution contexts, its stream and the lock that keeps runs apart."""

    def __init__(self, trt: Any, engine: bytes, spec: GraphSpec, device: str, library: Library) -> None:
        self.runtime, self.device = library.runtime, device
        self._trt, self._spec, self._library = trt, spec, library
        self._messages = message_log(trt)
        self._messages.clear()
        self._cuda = Cuda(device_index(device), spec.role)
        self._lock = threading.Lock()
        self._cuda.use()
        trt.init_libnvinfer_plugins(self._messages, "")
        self._runtime = self._must(trt.Runtime(self._messages), "no runtime")
        self._engine = self._must(self._runtime.deserialize_cuda_engine(engine), "no engine")
        self._context = self._new_context()
        self._stream = self._cuda.stream()
        self._landing = np.empty(0, np.uint8)
        self._n_seen: Counter[Shapes] = Counter()
        self._recording: _Recording | None = None
        self._may_record = spec.role in _RECORDED_ROLES

    def run(self, feeds: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Every declared output by name, on the host. Raises `TensorMismatchError` for sizes it was not built for, and
        `DeviceMemoryError`."""
        kept = self.run_kept(feeds)
        with self._lock:
            self._cuda.use()
            return {name: self._fetched(tensor) for name, tensor in kept.items()}

    def run_kept(self, feeds: Mapping[str, Any]) -> dict[str, GpuTensor]:
        """As `run`, with outputs that stay on the GPU. Feeds may be arrays, or tensors that stayed there."""
        self._spec.check_inputs(feeds)
        shapes = tuple((name, tuple(feed.shape)) for name, feed in sorted(feeds.items()))
        with self._lock:
            self._cuda.use()
            recording = self._recording_of(shapes)
            if recording is not None:
                return self._repeat(recording, feeds)
            return self._launch(feeds)

    def upload(self, array: NDArray[Any]) -> GpuTensor:
        """The array on the GPU."""
        whole = np.ascontiguousarray(array)
        with self._lock:
            self._cuda.use()
            tensor = self._tensor(whole.shape, whole.dtype)
            self._cuda.upload(whole, tensor.address, self._stream)
            self._cuda.wait(self._stream)
        return tensor

    def _launch(self, feeds: Mapping[str, Any]) -> dict[str, GpuTensor]:
        held: list[Any] = []
        for name, feed in feeds.items():
            self._set_shape(self._context, name, tuple(feed.shape))
            self._context.set_tensor_address(name, self._address_of(feed, held))
        outputs = {spec.name: self._new_output(self._context, spec.name) for spec in self._spec.outputs}
        for name, tensor in outputs.items():
            self._context.set_tensor_address(name, tensor.address)
        self._execute(self._context)
        self._cuda.wait(self._stream)
        return outputs

    def _address_of(self, feed: Any, held: list[Any]) -> int:
        """Where the GPU finds a feed; what was brought there is held until the run is over."""
        if isinstance(feed, GpuTensor) and feed.device == self.device:
            return feed.address
        array = np.ascontiguousarray(feed)
        buffer = self._cuda.allocate(array.nbytes)
        held += [array, buffer]
        self._cuda.upload(array, buffer.address, self._stream)
        return buffer.address

    def _fetched(self, tensor: GpuTensor) -> NDArray[Any]:
        """By way of pinned memory, which is several times faster to reach and kept for the next time."""
        if self._landing.nbytes < tensor.nbytes:
            self._landing = self._cuda.pinned(tensor.nbytes)
        landed = self._landing[: tensor.nbytes]
        self._cuda.download(tensor.address, landed, self._stream)
        self._cuda.wait(self._stream)
        return landed.copy().view(tensor.dtype).reshape(tensor.shape)

    # ---- recorded launches

    def _recording_of(self, shapes: Shapes) -> _Recording | None:
        """The recording for these shapes; made when they have come a few times, if there is none of other shapes."""
        if self._recording is not None:
            return self._recording if self._recording.shapes == shapes else None
        self._n_seen[shapes] += 1
        if self._may_record and self._n_seen[shapes] > _RECORD_AFTER:
            try:
                self._recording = self._record(shapes)
            except (CudaCallError, GraphLoadError) as error:
                self._may_record = False
                _log.info("%s runs launch by launch: %s", self._spec.role, error)
        return self._recording

    def _record(self, shapes: Shapes) -> _Recording:
        """With a context of its own, since one context must not change its shapes under a recording."""
        context = self._new_context()
        dtypes = {spec.name: np.dtype(spec.dtype) for spec in self._spec.inputs}
        inputs: dict[str, DeviceBuffer] = {}
        for name, shape in shapes:
            self._set_shape(context, name, shape)
            inputs[name] = self._cuda.allocate(int(np.prod(shape)) * dtypes[name].itemsize)
            context.set_tensor_address(name, inputs[name].address)
        outputs = {spec.name: self._new_output(context, spec.name) for spec in self._spec.outputs}
        for name, tensor in outputs.items():
            context.set_tensor_address(name, tensor.address)
        self._execute(context)  # what a change of shapes puts off is done here, outside the recording
        self._cuda.wait(self._stream)
        launch = self._cuda.record(self._stream, lambda: self._execute(context))
        return _Recording(shapes, context, inputs, outputs, launch)

    def _repeat(self, recording: _Recording, feeds: Mapping[str, Any]) -> dict[str, GpuTensor]:
        arrays = []
        for name, feed in feeds.items():
            target = recording.inputs[name].address
            if isinstance(feed, GpuTensor) and feed.device == self.device:
                self._cuda.copy(feed.address, target, feed.nbytes, self._stream)
            else:
                arrays.append(np.ascontiguousarray(feed))
                self._cuda.upload(arrays[-1], target, self._stream)
        recording.launch()
        kept = {name: self._same_place(tensor) for name, tensor in recording.outputs.items()}
        self._cuda.wait(self._stream)
        return kept

    def _same_place(self, tensor: GpuTensor) -> GpuTensor:
        """A copy: the next launch writes over the recorded outputs."""
        copy = self._tensor(tensor.shape, tensor.dtype)
        self._cuda.copy(tensor.address, copy.address, tensor.nbytes, self._stream)
        return copy

    # ---- TensorRT

    def _set_shape(self, context: Any, name: str, shape: tuple[int, ...]) -> None:
        if not context.set_input_shape(name, shape):
            least, _, most = self._engine.get_tensor_profile_shape(name, 0)
            raise TensorMismatchError(self._spec.role, name, str(shape), f"{tuple(least)} to {tuple(most)}")

    def _new_output(self, context: Any, name: str) -> GpuTensor:
        shape = tuple(context.get_tensor_shape(name))
        if -1 in shape:
            raise self._failed(f"the size of the output '{name}' depends on what is found, which is not supported")
        return self._tensor(shape, np.dtype(self._trt.nptype(self._engine.get_tensor_dtype(name))))

    def _tensor(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> GpuTensor:
        buffer = self._cuda.allocate(int(np.prod(shape)) * dtype.itemsize)
        return GpuTensor(self._cuda, self._stream, self.device, shape, dtype, buffer)

    def _execute(self, context: Any) -> None:
        if not context.execute_async_v3(int(self._stream)):
            raise self._failed("the run did not start")

    def _new_context(self) -> Any:
        return self._must(self._engine.create_execution_context(), "no execution context")

    def _must(self, made: Any, otherwise: str) -> Any:
        if made is None:
            raise self._failed(f"it gives {otherwise}")
        return made

    def _failed(self, reason: str) -> GraphLoadError:
        said = "; ".join([reason, *self._messages.last_errors()])
        return GraphLoadError(Path(self._spec.file), self._library.title, said)


class _Recording:
    """A launch of fixed shapes with the memory that it reads and writes."""

    def __init__(
        self,
        shapes: Shapes,
        context: Any,
        inputs: Mapping[str, DeviceBuffer],
        outputs: Mapping[str, GpuTensor],
        launch: Callable[[], None],
    ) -> None:
        self.shapes = shapes
        self.inputs = inputs
        self.outputs = outputs
        self.launch = launch
        self._context = context
