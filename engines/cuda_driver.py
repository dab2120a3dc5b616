"""Asks the NVIDIA driver what is there, without loading any CUDA library of a runtime."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


@cache
def n_cuda_devices() -> int:
    """Number of CUDA devices that the driver reports; 0 without a driver."""
    try:
        driver = ctypes.CDLL(_DRIVER_LIBRARY)
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value
