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
from engines.protocols import Progress, Segmenter, SegmenterInfo
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


def model_loader(
    name_or_folder: str, runtime: str, device: str, *, force: bool = False, progress: Progress | None = None
) -> Callable[[], Segmenter]:
    """A function that loads the model. What is plainly wrong raises now: a `BundleError`, a runtime, a device.

    A model that has failed its check is refused with `FailedCheckError`, unless `force`. `progress` is told how far a
    runtime is that must prepare the model first, for minutes.
    """
    bundle = open_bundle(locate_bundle(name_or_folder, model_folders()))
    failures = () if force else failed_check(bundle)
    if failures:
        raise FailedCheckError(bundle.folder, failures)
    choose(families(), "model family", bundle.family)
    check_device(choose_runtime(runtime, device), device)
    return lambda: load_segmenter(bundle, runtime, device, progress, force=force)


def load_model(name_or_folder: str, runtime: str, device: str, *, force: bool = False) -> Segmenter:
    """What `model_loader` loads, in one step that can be sent to another process."""
    return model_loader(name_or_folder, runtime, device, force=force)()


def _model_row(name: str, folder: Path) -> ModelRow:
    try:
        bundle = open_bundle(folder)
    except BundleError as error:
        return ModelRow(name, name, "?", "?", "?", "", str(folder), str(error))
    return ModelRow(
        name,
        bundle.title,
        bundle.family,
        bundle.precision,
        bundle.licence,
        bundle.bundle_id,
        str(folder),
        _problem(bundle),
        bundle.notes,
        tuple(map(engine_row, EngineFolder(folder).records())),
        _summary(bundle.name, bundle.family, bundle.precision),
    )


def loaded_row(info: SegmenterInfo) -> ModelRow:
    """What is shown of a loaded model that is not among the installed ones, so that its folder is not known."""
    summary = _summary(info.name, info.family, info.precision)
    notes = info.notes
    return ModelRow(info.name, info.name, info.family, info.precision, "", info.bundle_id, "", "", notes, (), summary)


def _problem(bundle: ModelBundle) -> str:
    if bundle.family not in families():
        return f"there is no model family '{bundle.family}' in this version"
    failures = failed_check(bundle)
    return str(FailedCheckError(bundle.folder, failures)) if failures else ""


def _summary(name: str, family_name: str, precision: str) -> str:
    """What the family is good for, and where there is a choice, the precision: the starter comes in one."""
    family = families().get(family_name)
    parts = (family.summary if family else "", "" if name == DEFAULT_MODEL else _PRECISIONS.get(precision, ""))
    return " ".join(part for part in parts if part)


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
