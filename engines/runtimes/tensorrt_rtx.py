"""TensorRT for RTX: engines for consumer cards of NVIDIA, which finish compiling where they run."""

from __future__ import annotations

from engines.runtimes._tensorrt.descriptor import tensorrt_runtime
from engines.tensorrt_engines.library import TENSORRT_RTX

RUNTIME = tensorrt_runtime(TENSORRT_RTX, preference=2)
