"""A tensor that lies on a GPU and stays there until a person's program asks for its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.runtimes._tensorrt.cuda_memory import Cuda, DeviceBuffer, Stream


class GpuTensor:
    """A contiguous array on a GPU. It owns its memory, or keeps alive the tensor it is a part of."""

    def __init__(
        self,
        cuda: Cuda,
        stream: Stream,
        device: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        buffer: DeviceBuffer,
    ) -> None:
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self._cuda, self._stream = cuda, stream
        self._buffer = buffer
        self.address = buffer.address

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __getitem__(self, row: int) -> GpuTensor:
        """One entry of the first axis, without copying."""
        if not -self.shape[0] <= row < self.shape[0]:
            raise IndexError(f"row {row} of a tensor of shape {self.shape}")
        part = GpuTensor(self._cuda, self._stream, self.device, self.shape[1:], self.dtype, self._buffer)
        part.address = self.address + (row % self.shape[0]) * part.nbytes
        return part

    def kept_row(self, row: int) -> GpuTensor:
        """One entry of the first axis with that axis, in memory of its own, so that the rest can be given back."""
        part = self[row]
        self._cuda.use()
        own = GpuTensor(
            self._cuda, self._stream, self.device, (1, *part.shape), self.dtype, self._cuda.allocate(part.nbytes)
        )
        self._cuda.copy(part.address, own.address, part.nbytes, self._stream)
        self._cuda.wait(self._stream)
        return own

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The numbers, brought to the host."""
        self._cuda.use()
        host = np.empty(self.shape, self.dtype)
        self._cuda.download(self.address, host, self._stream)
        self._cuda.wait(self._stream)
        return host if dtype is None else host.astype(dtype, copy=False)
