"""Asks the NVIDIA driver what is there, without loading any CUDA library of a runtime."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
# Of the driver's enumeration CUdevice_attribute.
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76


@cache
def n_cuda_devices() -> int:
    """Number of CUDA devices that the driver reports; 0 without a driver."""
    driver = _driver()
    count = ctypes.c_int(0)
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


@cache
def gpu_architecture(index: int) -> str:
    """Such as `sm89`: what code for the GPU of that index must be made for; empty where there is no such GPU."""
    driver = _driver()
    device, major, minor = (ctypes.c_int(0) for _ in range(3))
    if driver is None or driver.cuDeviceGet(ctypes.byref(device), index) != 0:
        return ""
    for value, attribute in ((major, _CAPABILITY_MAJOR), (minor, _CAPABILITY_MINOR)):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device) != 0:
            return ""
    return f"sm{major.value}{minor.value}"


def gpu_memory_used(index: int) -> int:
    """Bytes in use on the GPU of that index, by whatever program; 0 where there is no such GPU."""
    driver = _driver()
    device, context = ctypes.c_int(0), ctypes.c_void_p()
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    if driver is None or driver.cuDeviceGet(ctypes.byref(device), index) != 0:
        return 0
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) != 0:
        return 0
    try:
        if driver.cuCtxPushCurrent_v2(context) != 0:
            return 0
        status = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        return total.value - free.value if status == 0 else 0
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(device)


@cache
def _driver() -> ctypes.CDLL | None:
    try:
        driver = ctypes.CDLL(_DRIVER_LIBRARY)
    except OSError:
        return None
    return driver if driver.cuInit(0) == 0 else None
