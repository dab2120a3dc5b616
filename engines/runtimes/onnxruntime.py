"""ONNX Runtime: runs a graph on the CPU, or with CUDA where the driver and the libraries are there."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from engines.bundle import GraphSpec
from engines.cuda_driver import n_cuda_devices
from engines.errors import GraphLoadError, RuntimeUnavailableError, TensorMismatchError
from engines.graph_nodes import graph_with_outputs
from engines.protocols import Availability, Runtime, Session
from engines.runtimes._onnxruntime.bound_session import BoundSession

_NAME = "onnxruntime"
GPU_MEMORY_VARIABLE = "PHRASEMASK_GPU_MEMORY_GB"
"""Environment variable: the most memory that ONNX Runtime may take for each graph on a GPU."""
CPU_THREADS_VARIABLE = "PHRASEMASK_CPU_THREADS"
"""Environment variable: how many processor cores ONNX Runtime may use for each graph; all of them where it is unset."""
_ERRORS_ONLY = 3
_ONCE_AN_IMAGE = "vision"
_log = logging.getLogger(__name__)


class OnnxRuntimeSession:
    """One graph in ONNX Runtime."""

    runtime = _NAME

    def __init__(self, session: Any, spec: GraphSpec, device: str) -> None:
        self.device = device
        self._session = session
        self._spec = spec
        self._outputs = [output.name for output in spec.inner_outputs or spec.outputs]

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Every declared output by name, on the host, or the inner ones where the graph has such."""
        self._spec.check_inputs(feeds)
        return dict(zip(self._outputs, self._session.run(self._outputs, dict(feeds)), strict=True))


def _availability() -> Availability:
    if importlib.util.find_spec("onnxruntime") is None:
        return Availability(False, "the package onnxruntime-gpu is not installed")
    return Availability(True)


def _devices() -> list[str]:
    return ["cpu", *(f"cuda:{index}" for index in range(n_cuda_devices()))]


def _load_graph(path: Path, spec: GraphSpec, device: str) -> Session:
    """Open a graph on `auto`, `cpu` or `cuda:N`. An explicit device that cannot be had raises; `auto` falls back."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    wanted = _resolve(device)
    model, options = _model_and_options(path, spec)
    try:
        session = onnxruntime.InferenceSession(model, options, providers=_providers(wanted))
    except Exception as error:  # noqa: BLE001 - the library raises its own classes, none of them public
        raise GraphLoadError(path, "ONNX Runtime", _first_line(error)) from None
    _check_declared(path, session, spec)
    loaded = _loaded_device(session, wanted, device)
    if loaded == "cpu":
        return OnnxRuntimeSession(session, spec, loaded)
    bound = BoundSession(session, spec, loaded)
    bound.warm_up()
    return bound


def _resolve(device: str) -> str:
    if device != "auto":
        return device
    return "cuda:0" if n_cuda_devices() else "cpu"


def _providers(device: str) -> list[Any]:
    if device == "cpu":
        return ["CPUExecutionProvider"]
    import onnxruntime

    onnxruntime.preload_dlls()
    return [("CUDAExecutionProvider", _cuda_options(device)), "CPUExecutionProvider"]


def _cuda_options(device: str) -> dict[str, Any]:
    """Memory grows by what is asked for, not to the next power of two, and to no more than a person allows."""
    options: dict[str, Any] = {
        "device_id": int(device.partition(":")[2]),
        "arena_extend_strategy": "kSameAsRequested",
    }
    limit_gb = os.environ.get(GPU_MEMORY_VARIABLE)
    if limit_gb:
        try:
            options["gpu_mem_limit"] = int(float(limit_gb) * 1e9)
        except ValueError:
            reason = f"{GPU_MEMORY_VARIABLE} is '{limit_gb}', wanted a number of gigabytes such as 6"
            raise RuntimeUnavailableError(f"device '{device}'", reason) from None
    return options


def _model_and_options(path: Path, spec: GraphSpec) -> tuple[str | bytes, Any]:
    """The file, or its content with the inner outputs in place of its own."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = _cpu_threads()
    # Threads that spin while they wait take the cores from reading, masks and the page (docs/benchmarks.md).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Measured at full size (docs/benchmarks.md): the arena keeps the 5 GiB of vision for good and gains nothing, while
    # without it an edit takes a fifth longer in the decoder.
    options.enable_cpu_mem_arena = spec.role != _ONCE_AN_IMAGE
    if not spec.inner_outputs:
        return str(path), options
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    return graph_with_outputs(path, [output.name for output in spec.inner_outputs]), options


def _cpu_threads() -> int:
    """0 means what the library finds best."""
    given = os.environ.get(CPU_THREADS_VARIABLE) or "0"
    if not given.isdecimal():
        raise RuntimeUnavailableError("ONNX Runtime", f"{CPU_THREADS_VARIABLE} is '{given}', wanted a number such as 4")
    return int(given)


def _check_declared(path: Path, session: Any, spec: GraphSpec) -> None:
    """The graph must have every tensor that the manifest promises."""
    for wanted, nodes in (
        (spec.inputs, session.get_inputs()),
        (spec.inner_outputs or spec.outputs, session.get_outputs()),
    ):
        names = [node.name for node in nodes]
        for tensor in wanted:
            if tensor.name not in names:
                raise TensorMismatchError(path.name, tensor.name, "absent", f"one of: {', '.join(names)}")


def _loaded_device(session: Any, wanted: str, asked: str) -> str:
    """The device that the session really uses: the library falls back to the CPU without a word."""
    if wanted == "cpu" or session.get_providers()[0] == "CUDAExecutionProvider":
        return wanted
    reason = 'its CUDA libraries did not load; install them with pip install "phrasemask[cuda]"'
    if asked != "auto":
        raise RuntimeUnavailableError(f"device '{asked}'", reason)
    _log.warning("a GPU is there, but ONNX Runtime runs on the CPU: %s", reason)
    return "cpu"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


RUNTIME = Runtime(
    name=_NAME,
    title="ONNX Runtime",
    availability=_availability,
    devices=_devices,
    load_graph=_load_graph,
    preference=1,
)
