"""A TensorRT runtime without TensorRT: its engines are ONNX Runtime's sessions, which can be made to answer wrongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.loader import runtimes
from engines.protocols import Availability, Runtime
from engines.runtimes._tensorrt import descriptor, trial
from engines.tensorrt_engines import library, provide
from engines.tensorrt_engines.build import Built

ARCHITECTURE = "sm89"
Outputs = dict[str, NDArray[Any]]
Spoil = Callable[[str, Outputs], Outputs]


def rightly(role: str, outputs: Outputs) -> Outputs:
    return outputs


class EngineSession:
    """ONNX Runtime behind another name, with answers that are spoiled."""

    runtime, device = "tensorrt", "cuda:0"

    def __init__(self, session: Any, role: str, spoil: Spoil) -> None:
        self._session, self._role, self._spoil = session, role, spoil

    def run(self, feeds: Mapping[str, Any]) -> Outputs:
        return self._spoil(self._role, self._session.run(feeds))


class GpuLibrary(library.Library):
    """As if it were installed, on a machine with a GPU."""

    def version(self) -> str:
        return "11.4"

    def can_build(self) -> Availability:
        return Availability(True)

    def can_run(self) -> Availability:
        return Availability(True)

    def load_for_running(self) -> Any:
        return None


class FakeEngines:
    """What the runtime does, counted; `spoil` can be set at any time."""

    def __init__(self) -> None:
        self.spoil: Spoil = rightly
        self.n_built = 0
        self.n_opened: Counter[str] = Counter()
        self.architecture = ARCHITECTURE
        self.library = GpuLibrary(**{name: getattr(library.TENSORRT, name) for name in library.Library.__annotations__})
        self.runtime: Runtime = descriptor.tensorrt_runtime(self.library, preference=3)

    def build(self, _library: Any, path: Any, recipe: Any, timings: bytes, progress: Any) -> Built:
        self.n_built += 1
        assert progress("building", 0.5)
        return Built(memoryview(str(path).encode()), 0.1, 1, b"")

    def open(self, engine: bytes, spec: Any, device: str, _library: Any) -> EngineSession:
        from pathlib import Path

        self.n_opened[spec.role] += 1
        session = runtimes()["onnxruntime"].load_graph(Path(engine.decode()), spec, "cpu")
        return EngineSession(session, spec.role, self.spoil)


def install(monkeypatch: pytest.MonkeyPatch) -> FakeEngines:
    """As the runtime `tensorrt` of this process."""
    fake = FakeEngines()
    monkeypatch.setattr(provide, "build_engine", fake.build)
    monkeypatch.setattr(provide, "gpu_architecture", lambda index: fake.architecture)
    monkeypatch.setattr(descriptor, "open_session", fake.open)
    monkeypatch.setattr(trial, "open_session", fake.open)
    monkeypatch.setattr(descriptor, "n_cuda_devices", lambda: 1)
    monkeypatch.setitem(library.LIBRARIES, "tensorrt", fake.library)
    monkeypatch.setitem(runtimes(), "tensorrt", fake.runtime)
    return fake


def decoder_alone(change: Callable[[Outputs], Outputs]) -> Spoil:
    return lambda role, outputs: change(dict(outputs)) if role == "decoder" else outputs


def with_masks_moved(outputs: Outputs) -> Outputs:
    return outputs | {"mask_logits": np.roll(outputs["mask_logits"], 15, axis=-1)}


def with_scores_halved(outputs: Outputs) -> Outputs:
    """As far as logits can say it: `sigmoid(x) / 2`."""
    halved = 0.5 / (1 + np.exp(-outputs["logits"].astype(np.float64)))
    return outputs | {"logits": np.log(halved / (1 - halved)).astype(np.float32)}


def with_logits_halved(outputs: Outputs) -> Outputs:
    return outputs | {"logits": outputs["logits"] / 2}


def with_numbers_that_are_none(outputs: Outputs) -> Outputs:
    return outputs | {"mask_logits": np.full_like(outputs["mask_logits"], np.nan)}


def with_rows_swapped(outputs: Outputs) -> Outputs:
    swapped = {name: outputs[name][:, ::-1].copy() for name in ("logits", "boxes_xyxy", "mask_logits")}
    return outputs | swapped


def with_a_hallucination(outputs: Outputs) -> Outputs:
    logits, masks = outputs["logits"].copy(), outputs["mask_logits"].copy()
    logits[:, -1] = 9.0
    masks[:, -1] = -5.0
    masks[:, -1, :6, :6] = 5.0
    return outputs | {"logits": logits, "mask_logits": masks, "presence": np.full_like(outputs["presence"], 9.0)}


def constant(role_wanted: str) -> Spoil:
    def spoil(role: str, outputs: Outputs) -> Outputs:
        return {name: np.ones_like(values) for name, values in outputs.items()} if role == role_wanted else outputs

    return spoil


def pointing_elsewhere(role: str, outputs: Outputs) -> Outputs:
    """As fused attention in half precision did: of the right size, with a cosine near zero."""
    if role != "vision":
        return outputs
    rng = np.random.default_rng(0)
    return {name: (rng.normal(size=one.shape) * one.std()).astype(one.dtype) for name, one in outputs.items()}
