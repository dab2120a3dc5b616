"""TensorRT: engines built for the NVIDIA GPU that is there."""

from __future__ import annotations

from engines.runtimes._tensorrt.descriptor import tensorrt_runtime
from engines.tensorrt_engines.library import TENSORRT

RUNTIME = tensorrt_runtime(TENSORRT, preference=3)
