"""A recording fake of the module `tensorrt`, for what TensorRT does only where there is a GPU to measure on."""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace
from typing import Any


class FakeTensor:
    def __init__(self, name: str, shape: tuple[int, ...], is_shape_tensor: bool = False) -> None:
        self.name, self.shape, self.is_shape_tensor = name, shape, is_shape_tensor


class FakeCache:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def serialize(self) -> bytes:
        return self.content + b"+measured"


class FakeConfig:
    def __init__(self, trt: FakeTensorrt) -> None:
        self._trt = trt
        self.hardware_compatibility_level = None
        self.progress_monitor: Any = None

    def set_flag(self, flag: Any) -> None:
        self._trt.calls.append(("flag", flag.name))

    def set_memory_pool_limit(self, pool: Any, n_bytes: int) -> None:
        self._trt.calls.append(("limit", pool, n_bytes))

    def add_optimization_profile(self, profile: Any) -> int:
        return self._trt.profile_index

    def create_timing_cache(self, content: bytes) -> FakeCache | None:
        return FakeCache(content) if content in self._trt.readable_timings else None

    def set_timing_cache(self, cache: FakeCache, ignore_mismatch: bool) -> bool:
        self._trt.calls.append(("timings", cache.content, ignore_mismatch))
        return cache.content not in self._trt.foreign_timings


class FakeTensorrt:
    """Its attributes are the module's; `calls` is what was asked of it, `says` what it logs, `plan` what it builds."""

    class ILogger:
        Severity = IntEnum("Severity", {"INTERNAL_ERROR": 0, "ERROR": 1, "WARNING": 2})

    class IProgressMonitor:
        pass

    NetworkDefinitionCreationFlag = IntEnum("NetworkDefinitionCreationFlag", {"EXPLICIT_BATCH": 0, "STRONGLY_TYPED": 1})
    BuilderFlag = IntEnum("BuilderFlag", {"VERSION_COMPATIBLE": 1, "EXCLUDE_LEAN_RUNTIME": 2})
    MemoryPoolType = SimpleNamespace(WORKSPACE="workspace")
    HardwareCompatibilityLevel = SimpleNamespace(AMPERE_PLUS="ampere plus")

    def __init__(self, inputs: tuple[FakeTensor, ...] = ()) -> None:
        self.inputs = inputs
        self.calls: list[tuple[Any, ...]] = []
        self.plan: bytes | None = b"plan"
        self.says = ""
        self.profile_index = 0
        self.readable_timings = [b""]
        self.foreign_timings: list[bytes] = []
        self.network: Any = SimpleNamespace(num_inputs=len(inputs), get_input=inputs.__getitem__, num_layers=3)

    def init_libnvinfer_plugins(self, log: Any, namespace: str) -> bool:
        return True

    def Builder(self, log: Any) -> Any:
        self._log = log
        profile = SimpleNamespace(
            set_shape=lambda *given: self.calls.append(("shape", *given)),
            set_shape_input=lambda *given: self.calls.append(("value", *given)),
        )
        self.config = FakeConfig(self)
        return SimpleNamespace(
            create_network=self._create_network,
            create_builder_config=lambda: self.config,
            create_optimization_profile=lambda: profile,
            build_serialized_network=self._build,
        )

    def OnnxParser(self, network: Any, log: Any) -> Any:
        return SimpleNamespace(parse_from_file=lambda path: True, parse=self._parse)

    def _create_network(self, flags: int) -> Any:
        self.calls.append(("network", flags))
        return self.network

    def _parse(self, content: bytes, path: str) -> bool:
        self.calls.append(("parse", len(content), path))
        return True

    def _build(self, network: Any, config: FakeConfig) -> bytes | None:
        for severity, message in ((2, "a warning"), (1, self.says)):
            if message:
                self._log.log(severity, message)
        config.progress_monitor.phase_start("Building", None, 1)
        config.progress_monitor.phase_finish("Building")
        return self.plan
