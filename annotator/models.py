"""Which models and runtimes are installed, what they are, and why one cannot be used."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from annotator.errors import FailedCheckError
from engines.bundle import SHIPPED_MODELS, ModelBundle, find_bundles, locate_bundle
from engines.compare import failed_check
from engines.discovery import choose
from engines.errors import BundleError
from engines.loader import check_device, choose_runtime, families, load_segmenter, open_bundle, runtimes
from engines.protocols import Segmenter
from engines.tensorrt_engines.folder import EngineFolder
from engines.tensorrt_engines.record import EngineRecord

DEFAULT_MODEL = "starter"
_PRECISIONS = {
    "fp32": "fp32: full precision, the largest files.",
    "fp16": "fp16: half the size, made for GPUs.",
    "int8-qdq": "int8 with fixed scales, made for TensorRT: the smallest files, masks nearly the same.",
    "int8": "int8: small files and about twice as fast on a CPU; masks nearly the same.",
}
MODELS_VARIABLE = "PHRASEMASK_MODELS"
"""Environment variable that names another folder of models."""


@dataclass(frozen=True)
class EngineRow:
    """One kept engine of a model."""

    role: str
    runtime: str
    version: str
    architecture: str
    key: str
    size_bytes: int
    built_at: str
    """ISO 8601, in UTC."""
    verdict: str
    """`unchecked`, `passed` or `failed`."""
    report: str
    path: str


@dataclass(frozen=True)
class ModelRow:
    """One installed model; `problem` says why it cannot be used, and is empty when it can."""

    name: str
    title: str
    family: str
    precision: str
    licence: str
    bundle_id: str
    folder: str
    problem: str = ""
    notes: tuple[str, ...] = ()
    """What the model cannot do or does otherwise than its kind."""
    engines: tuple[EngineRow, ...] = ()
    summary: str = ""
    """What such a model is good for, and what its precision means, for a person who chooses one."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class RuntimeRow:
    """One runtime, its devices here, and why it cannot be used."""

    name: str
    title: str
    usable: bool
    reason: str
    devices: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def model_folders() -> list[Path]:
    """Folders in which models are looked for by name: those that ship, then the person's own."""
    import platformdirs

    own = os.environ.get(MODELS_VARIABLE) or platformdirs.user_data_path("phrasemask", appauthor=False) / "models"
    return [SHIPPED_MODELS, Path(own)]


def list_models() -> list[ModelRow]:
    """Every installed model, also one that cannot be used."""
    return [_model_row(name, folder) for name, folder in find_bundles(model_folders()).items()]


def list_runtimes() -> list[RuntimeRow]:
    """Every runtime that this version knows."""
    rows = []
    for runtime in runtimes().values():
        availability = runtime.availability()
        devices = tuple(runtime.devices()) if availability.usable else ()
        rows.append(RuntimeRow(runtime.name, runtime.title, availability.usable, availability.reason, devices))
    return rows


def model_loader(name_or_folder: str, runtime: str, device: str, *, force: bool = False) -> Callable[[], Segmenter]:
    """A function that loads the model. What is plainly wrong raises now: a `BundleError`, a runtime, a device.

    A model that has failed its check is refused with `FailedCheckError`, unless `force`.
    """
    bundle = open_bundle(locate_bundle(name_or_folder, model_folders()))
    failures = () if force else failed_check(bundle)
    if failures:
        raise FailedCheckError(bundle.folder, failures)
    choose(families(), "model family", bundle.family)
    check_device(choose_runtime(runtime, device), device)
    return lambda: load_segmenter(bundle, runtime, device)


def load_model(name_or_folder: str, runtime: str, device: str, *, force: bool = False) -> Segmenter:
    """What `model_loader` loads, in one step that can be sent to another process."""
    return model_loader(name_or_folder, runtime, device, force=force)()


def _model_row(name: str, folder: Path) -> ModelRow:
    try:
        bundle = open_bundle(folder)
    except BundleError as error:
        return ModelRow(name, name, "?", "?", "?", "", str(folder), str(error))
    problem = "" if bundle.family in families() else f"there is no model family '{bundle.family}' in this version"
    return ModelRow(
        name,
        bundle.title,
        bundle.family,
        bundle.precision,
        bundle.licence,
        bundle.bundle_id,
        str(folder),
        problem,
        bundle.notes,
        tuple(map(engine_row, EngineFolder(folder).records())),
        _summary(bundle),
    )


def _summary(bundle: ModelBundle) -> str:
    family = families().get(bundle.family)
    return " ".join(part for part in (family.summary if family else "", _precision(bundle)) if part)


def _precision(bundle: ModelBundle) -> str:
    """Where there is a choice: the starter comes in one precision."""
    return "" if bundle.name == DEFAULT_MODEL else _PRECISIONS.get(bundle.precision, "")


def engine_row(record: EngineRecord) -> EngineRow:
    """What is shown of a kept engine."""
    return EngineRow(
        record.role,
        record.recipe.runtime,
        record.recipe.version,
        record.recipe.architecture,
        record.key,
        record.size_bytes,
        record.built_at.isoformat(),
        record.verdict.state,
        record.verdict.report,
        str(record.path),
    )
