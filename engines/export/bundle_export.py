"""From a checkpoint to a bundle: three graphs, the tokenizer, and the original model's answers to check them by."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.bundle import MANIFEST_VERSION, GraphSpec, TensorSpec
from engines.compare import check_bundle
from engines.errors import GraphLoadError
from engines.export.calibration import calibration_feeds, quantise_with_scales
from engines.export.checkpoint import (
    CONTEXT_LENGTH,
    LITE_TEXT,
    PARTS,
    Checkpoint,
    check_image_size,
    find_checkpoint,
)
from engines.export.errors import CheckpointError, ExportSettingError
from engines.export.extra import require_all
from engines.export.graph_export import build_module, export_graph, feature_width, graph_spec, n_queries
from engines.export.precision import QUANTISED_ROLES, check_precision, pack_exact_halves, quantise
from engines.export.reference import write_reference
from engines.export.work_folder import WorkFolder
from engines.families._sam3.tokens import PhraseTokenizer

DEFAULT_IMAGE_SIZE = 1008
DEFAULT_MAX_INSTANCES = 100
_TOOLS = ("torch", "transformers", "onnx", "onnxscript", "onnxruntime-gpu", "onnxruntime")
_FORMAT = 3
"""Goes up when the same checkpoint gives other graphs, so that parts of an older export are not taken over."""


@dataclass(frozen=True)
class ExportSettings:
    """What a bundle is made with."""

    precision: str
    image_size: int
    max_instances: int
    licence: str = "SAM License"
    calibration: Path | None = None
    """Folder of pictures by which fixed scales are chosen."""

    def features_dtype(self) -> str:
        """Dtype of an encoded image between the graphs."""
        return "float16" if self.precision == "fp16" else "float32"


def export_bundle(
    checkpoint: Path,
    out: Path,
    precision: str = "fp32",
    image_size: int = DEFAULT_IMAGE_SIZE,
    max_instances: int = DEFAULT_MAX_INSTANCES,
    progress: Callable[[str], None] = lambda _: None,
    licence: str = "SAM License",
    calibration: Path | None = None,
) -> Path:
    """Write the bundle `out` and answer its path; `progress` gets one line at each step. `calibration` is a folder of
    pictures such as the model will see, for the precision int8-qdq; without it, drawn ones.

    The bundle takes its place when it is whole and checked, whatever the check says: its report is in it.
    Raises `CheckpointError`, `ExportSettingError`, `ExportToolMissingError`, or `ExportFailedError` with nothing left
    behind. An export that was killed goes on after its last finished part when it is started again.
    """
    check_precision(precision)
    check_image_size(image_size)
    found = find_checkpoint(checkpoint)
    if max_instances < 1:
        raise ExportSettingError("the number of instances", max_instances, f"1 to {n_queries(found)}")
    settings = ExportSettings(precision, image_size, min(max_instances, n_queries(found)), licence, calibration)
    require_all()
    work = WorkFolder(out, _fingerprint(found, settings))
    work.open()
    work.make("tokenizer", lambda room: _write_tokenizer(found, room))
    for role in PARTS:
        _make_graph(work, found, role, settings, progress)
    _make_reference(work, found, settings, progress)
    work.describe(_manifest(out.name, found, settings, work.files_of("checks")))
    progress("checks: comparing the graphs with PyTorch")
    report = work.finish(lambda folder: check_bundle(folder, device="cpu"))
    progress(f"checks: {'passed' if report.passed else 'FAILED: ' + '; '.join(report.failures)}")
    return out


def _make_graph(
    work: WorkFolder, found: Checkpoint, role: str, settings: ExportSettings, progress: Callable[[str], None]
) -> None:
    if work.has(role):
        progress(f"{role}: done before")
        return
    progress(f"{role}: exporting")
    work.make(role, lambda room: _write_graph(found, role, settings, room))


def _make_reference(
    work: WorkFolder, found: Checkpoint, settings: ExportSettings, progress: Callable[[str], None]
) -> None:
    size, n_instances = settings.image_size, settings.max_instances
    if not work.has("checks"):
        work.make("checks", lambda room: write_reference(found, size, n_instances, room, progress))


def _write_graph(found: Checkpoint, role: str, settings: ExportSettings, room: Path) -> None:
    half = settings.precision == "fp16"
    module = build_module(found, role, settings.image_size, settings.max_instances, half)
    spec = _spec(found, role, settings)
    if settings.precision.startswith("int8") and role in QUANTISED_ROLES:
        whole = room / "float32.onnx"
        export_graph(module, role, spec, whole)
        del module
        external = whole.with_name(f"{whole.name}.data")
        if settings.precision == "int8":
            quantise(whole, room / spec.file, external.exists())
        else:
            feeds = calibration_feeds(found, role, settings.image_size, settings.calibration)
            quantise_with_scales(whole, room / spec.file, external.exists(), feeds)
        for path in (whole, external):
            path.unlink(missing_ok=True)
    else:
        export_graph(module, role, spec, room / spec.file)
    if not half and not (room / f"{spec.file}.data").exists():
        pack_exact_halves(room / spec.file)


def _spec(found: Checkpoint, role: str, settings: ExportSettings) -> GraphSpec:
    return graph_spec(
        role, settings.image_size, feature_width(found), settings.max_instances, settings.features_dtype()
    )


def _write_tokenizer(found: Checkpoint, room: Path) -> None:
    """Without the white space of the original file, which is half of it."""
    written = room / "tokenizer.json"
    try:
        content = json.loads(found.tokenizer.read_bytes())
        written.write_text(json.dumps(content, separators=(",", ":"), ensure_ascii=False), "utf-8")
        PhraseTokenizer(written, CONTEXT_LENGTH)
    except (ValueError, GraphLoadError):
        raise CheckpointError(found.tokenizer, "it is not the tokenizer of SAM 3; download it again") from None


def _fingerprint(found: Checkpoint, settings: ExportSettings) -> str:
    parts = [_FORMAT, found.fingerprint(), repr(settings), _tool_versions()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _tool_versions() -> dict[str, str]:
    versions = {}
    for name in _TOOLS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _manifest(name: str, found: Checkpoint, settings: ExportSettings, checks: list[str]) -> dict[str, Any]:
    model = "SAM 3 LiteText" if found.kind == LITE_TEXT else "SAM 3"
    return {
        "manifest_version": MANIFEST_VERSION,
        "name": name,
        "title": f"{model} ({settings.precision}, {settings.image_size} px)",
        "family": "sam3",
        "reference": "meta",
        "precision": settings.precision,
        "image_size": settings.image_size,
        "max_instances": settings.max_instances,
        "context_length": CONTEXT_LENGTH,
        "licence": settings.licence,
        "tools": _tool_versions(),
        "checks": checks,
        "graphs": {role: _graph_entry(_spec(found, role, settings)) for role in PARTS},
    }


def _graph_entry(spec: GraphSpec) -> dict[str, Any]:
    sides = {"inputs": spec.inputs, "outputs": spec.outputs}
    return {"file": spec.file, **{side: [_tensor_entry(tensor) for tensor in specs] for side, specs in sides.items()}}


def _tensor_entry(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "dtype": spec.dtype, "shape": list(spec.shape)}
