"""Builds an engine of an ONNX graph by its recipe. Whatever TensorRT refuses becomes an error with its own words."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from engines.errors import EngineBuildError, EngineCancelledError
from engines.graph_nodes import graph_with_outputs
from engines.protocols import Progress
from engines.tensorrt_engines.key import Recipe
from engines.tensorrt_engines.library import PORTABLE, Library
from engines.tensorrt_engines.messages import message_log
from engines.tensorrt_engines.monitor import BuildProgress, monitor
from engines.tensorrt_engines.profiles import InputProfile

_GIB = 2**30
_SHOWN_ERRORS = 4
_NO_DRIVER_NOISE = "catchCudaError"
"""In what the parser adds to each error where there is no GPU."""
_ONE_AT_A_TIME = threading.Lock()
"""Messages go to one logger, and kernels are measured: builds must not run side by side."""
Made = TypeVar("Made")


@dataclass(frozen=True)
class Built:
    """A new engine."""

    content: memoryview
    build_s: float
    n_layers: int
    timings: bytes
    """What was measured; empty for a library that measures nothing."""


def build_engine(library: Library, path: Path, recipe: Recipe, timings: bytes, progress: Progress) -> Built:
    """Build the engine of the graph in `path`.

    Raises `EngineBuildError` naming node or layer, `EngineCancelledError` where `progress` says not to go on, and
    `RuntimeUnavailableError`.
    """
    trt = library.load()
    with _ONE_AT_A_TIME:
        return _Build(library, trt, path, recipe).run(timings, progress)


class _Build:
    """One build; it holds what TensorRT needs to be kept alive meanwhile."""

    def __init__(self, library: Library, trt: Any, path: Path, recipe: Recipe) -> None:
        self._library, self._trt, self._path, self._recipe = library, trt, path, recipe
        self._log = message_log(trt)
        self._log.clear()

    def run(self, timings: bytes, progress: Progress) -> Built:
        start = time.perf_counter()
        told = BuildProgress(progress)
        if not progress("reading the graph", 0.0):
            raise EngineCancelledError(self._path)
        self._trt.init_libnvinfer_plugins(self._log, "")
        builder = self._must(lambda: self._trt.Builder(self._log), "no builder")
        network = self._must(lambda: builder.create_network(_strongly_typed(self._trt)), "no network")
        parser = self._must(lambda: self._trt.OnnxParser(network, self._log), "no parser")
        if not self._parse(parser):
            raise EngineBuildError(self._path, self._library.title, "; ".join(_parser_errors(parser)))
        config = self._config(builder, network)
        measured = self._take_timings(config, timings)
        config.progress_monitor = watching = monitor(self._trt, told)
        plan = builder.build_serialized_network(network, config)
        del watching
        if told.error is not None:
            raise told.error
        if told.stopped:
            raise EngineCancelledError(self._path)
        if plan is None:
            raise self._failed("it gave no engine")
        kept = bytes(memoryview(measured.serialize())) if measured is not None else b""
        return Built(memoryview(plan), time.perf_counter() - start, network.num_layers, kept)

    def _parse(self, parser: Any) -> bool:
        """Weights beside the graph are read from the file's folder."""
        if not self._recipe.outputs:
            return bool(parser.parse_from_file(str(self._path)))
        return bool(parser.parse(graph_with_outputs(self._path, self._recipe.outputs), str(self._path)))

    def _config(self, builder: Any, network: Any) -> Any:
        config = self._must(builder.create_builder_config, "no builder configuration")
        options = self._recipe.options
        if options.workspace_gb is not None:
            workspace = self._trt.MemoryPoolType.WORKSPACE
            config.set_memory_pool_limit(workspace, int(options.workspace_gb * _GIB))
        if options.version_compatible:
            config.set_flag(self._trt.BuilderFlag.VERSION_COMPATIBLE)
            # The lean runtime inside the engine would be code of the library's, run from the model's folder.
            config.set_flag(self._trt.BuilderFlag.EXCLUDE_LEAN_RUNTIME)
        self._choose_architecture(config)
        self._add_profile(builder, network, config)
        return config

    def _choose_architecture(self, config: Any) -> None:
        """The library that can build for other GPUs builds for all from Ampere on unless told; the other for this."""
        portable = self._recipe.architecture == PORTABLE
        if not self._library.cross_compiles:
            if portable:
                config.hardware_compatibility_level = self._trt.HardwareCompatibilityLevel.AMPERE_PLUS
            return
        if portable:
            return
        known = self._trt.ComputeCapability.__members__
        name = self._recipe.architecture.upper()
        if name not in known:
            listed = ", ".join(one.lower() for one in known if one.startswith("SM"))
            raise self._failed(f"it builds for {listed}, not {self._recipe.architecture}")
        config.num_compute_capabilities = 1
        if not config.set_compute_capability(known[name], 0):
            raise self._failed(f"it does not take the architecture {self._recipe.architecture}")

    def _add_profile(self, builder: Any, network: Any, config: Any) -> None:
        profile = self._must(builder.create_optimization_profile, "no optimisation profile")
        wanted = {one.tensor: one for one in self._recipe.profiles}
        for tensor in (network.get_input(index) for index in range(network.num_inputs)):
            if tensor.name in wanted:
                self._set_profile(profile, tensor, wanted[tensor.name])
            elif -1 in tuple(tensor.shape):
                raise self._failed(f"the input '{tensor.name}' has the shape {tuple(tensor.shape)}, not as declared")
        if config.add_optimization_profile(profile) < 0:
            raise self._failed("it refuses the range of sizes")

    def _set_profile(self, profile: Any, tensor: Any, wanted: InputProfile) -> None:
        sizes = (tensor.name, wanted.least, wanted.usual, wanted.most)
        try:
            if tensor.is_shape_tensor:
                profile.set_shape_input(*sizes)
            elif len(tensor.shape):
                profile.set_shape(*sizes)
        except (TypeError, ValueError, RuntimeError) as error:
            raise self._failed(f"it refuses the sizes of the input '{tensor.name}' ({error})") from None

    def _take_timings(self, config: Any, timings: bytes) -> Any:
        """The cache to read out after the build; None for a library that measures nothing."""
        if not self._library.keeps_timings:
            return None
        measured = config.create_timing_cache(timings)
        if measured is None or not config.set_timing_cache(measured, False):
            # Of another version or another GPU.
            measured = self._must(lambda: config.create_timing_cache(b""), "no timing cache")
            config.set_timing_cache(measured, False)
        return measured

    def _must(self, make: Callable[[], Made | None], otherwise: str) -> Made:
        """What TensorRT makes; where it is None, or its binding finds null, an error."""
        try:
            made = make()
        except TypeError:
            made = None
        if made is None:
            raise self._failed(f"it gives {otherwise}")
        return made

    def _failed(self, reason: str) -> EngineBuildError:
        said = [message for message in self._log.last_errors() if message not in reason]
        return EngineBuildError(self._path, self._library.title, "; ".join([reason, *said]))


def _strongly_typed(trt: Any) -> int:
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    return 0 if flag is None else 1 << int(flag)


def _parser_errors(parser: Any) -> list[str]:
    """A clause for each of the first few errors: the node, its operation, and what is wrong with it.

    Of several nodes with the same missing operation the first is named.
    """
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    missing = Counter(error.node_operator() for error in errors if _is_missing_operation(error))
    found = []
    for error in errors:
        operation = error.node_operator()
        if not _is_missing_operation(error):
            found.append(f"{_place(error)}: {_reason(error)}")
        elif n_nodes := missing.pop(operation, 0):
            others = f", nor are {n_nodes - 1} more of its kind" if n_nodes > 1 else ""
            found.append(f"{_place(error)}: this operation is not supported{others}")
    return found[:_SHOWN_ERRORS] or ["the parser gives no reason"]


def _place(error: Any) -> str:
    name, operation = error.node_name(), error.node_operator()
    node = f"'{name}'" if name else f"number {error.node()}"
    return f"node {node} ({operation})" if operation else "the file"


def _is_missing_operation(error: Any) -> bool:
    """TensorRT has a code for it, or finds no plugin of the operation's name."""
    is_unknown = "UNSUPPORTED_NODE" in str(error.code()) or "Plugin not found" in (error.desc() or "")
    return is_unknown and bool(error.node_operator())


def _reason(error: Any) -> str:
    """The parser's words in one line."""
    lines = [line for line in (error.desc() or "").splitlines() if _NO_DRIVER_NOISE not in line]
    return f"{' '.join(' '.join(lines).split())} [{str(error.code()).rpartition('.')[2]}]"
