"""One graph of ONNX Runtime on a device: inputs and outputs are bound there, so that nothing travels without need."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import GraphSpec
from engines.errors import DeviceMemoryError

_OF_MEMORY = ("out of memory", "Failed to allocate memory", "ALLOC_FAILED", "bad allocation")
"""What CUDA, its libraries and ONNX Runtime's own arena say when a GPU is full."""


class OrtTensor:
    """A tensor that ONNX Runtime keeps on a device. All of it is fetched when the first row is asked for, and kept."""

    def __init__(self, value: Any, device: str) -> None:
        self.value = value
        self.device = device
        self.shape = tuple(value.shape())
        self.dtype = _dtype(value)
        self._host: NDArray[Any] | None = None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __getitem__(self, row: int) -> NDArray[Any]:
        """One entry of the first axis, on the host: this library cannot take a part of what lies on the device."""
        entry: NDArray[Any] = self._kept_on_host()[row]
        return entry

    def kept_row(self, row: int) -> OrtTensor:
        """One entry with its axis, in memory of its own on the device."""
        import onnxruntime

        kind, _, index = self.device.partition(":")
        part = np.ascontiguousarray(self._kept_on_host()[row : row + 1])
        return OrtTensor(onnxruntime.OrtValue.ortvalue_from_numpy(part, kind, int(index or 0)), self.device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The numbers, brought to the host; whoever asks for all of them has a copy of its own."""
        host: NDArray[Any] = self.value.numpy() if self._host is None else self._host
        return host if dtype is None else host.astype(dtype, copy=False)

    def _kept_on_host(self) -> NDArray[Any]:
        """One row is seldom the only one."""
        if self._host is None:
            self._host = self.value.numpy()
        return self._host


class BoundSession:
    """A session whose outputs can stay on its device."""

    runtime = "onnxruntime"

    def __init__(self, session: Any, spec: GraphSpec, device: str) -> None:
        self.device = device
        self._session = session
        self._spec = spec
        self._outputs = [output.name for output in spec.inner_outputs or spec.outputs]
        self._kind, _, index = device.partition(":")
        self._index = int(index or 0)
        self._lock = threading.Lock()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Every declared output by name, on the host. Raises `DeviceMemoryError`."""
        return {name: value.numpy() for name, value in self._run(feeds, "cpu", 0).items()}

    def run_kept(self, feeds: Mapping[str, Any]) -> dict[str, OrtTensor]:
        """As `run`, with outputs that stay on the device."""
        outputs = self._run(feeds, self._kind, self._index)
        return {name: OrtTensor(value, self.device) for name, value in outputs.items()}

    def upload(self, array: NDArray[Any]) -> OrtTensor:
        """The array on the device."""
        import onnxruntime

        whole = np.ascontiguousarray(array)
        return OrtTensor(onnxruntime.OrtValue.ortvalue_from_numpy(whole, self._kind, self._index), self.device)

    def warm_up(self) -> None:
        """Run once on zeros, so that the first picture does not wait for libraries and kernels."""
        self._run(self._spec.zeros(), self._kind, self._index)

    def _run(self, feeds: Mapping[str, Any], kind: str, index: int) -> dict[str, Any]:
        self._spec.check_inputs(feeds)
        binding = self._session.io_binding()
        for name, feed in feeds.items():
            if isinstance(feed, OrtTensor) and feed.device == self.device:
                binding.bind_ortvalue_input(name, feed.value)
            else:
                binding.bind_cpu_input(name, np.ascontiguousarray(feed))
        for name in self._outputs:
            binding.bind_output(name, kind, index)
        with self._lock:
            self._run_bound(binding)
        return dict(zip(self._outputs, binding.get_outputs(), strict=True))

    def _run_bound(self, binding: Any) -> None:
        try:
            binding.synchronize_inputs()
            self._session.run_with_iobinding(binding)
            binding.synchronize_outputs()
        except Exception as error:
            if any(words in str(error) for words in _OF_MEMORY):
                raise DeviceMemoryError(self.device, self._spec.role) from None
            raise


def _dtype(value: Any) -> np.dtype[Any]:
    """From the library's own words, such as `tensor(float16)`, without fetching anything."""
    name = value.data_type().removeprefix("tensor(").removesuffix(")")
    dtype: np.dtype[Any] = np.dtype({"float": "float32", "double": "float64"}.get(name, name))
    return dtype
