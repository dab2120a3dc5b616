"""What is written beside each engine: what it was made from, whether it is whole, and whether it answers rightly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engines.tensorrt_engines.key import Recipe

UNCHECKED, PASSED, FAILED = "unchecked", "passed", "failed"
_FORMAT = 1


@dataclass(frozen=True)
class Verdict:
    """What comparing an engine's answers with ONNX Runtime's has shown, on one GPU architecture."""

    state: str = UNCHECKED
    """`unchecked`, `passed` or `failed`."""
    report: str = ""
    """Path of the report; inside the bundle's folder, relative to it."""
    architecture: str = ""
    """Of the GPU that it ran on: the same engine can be right on one and wrong on another."""


@dataclass(frozen=True)
class EngineRecord:
    """One kept engine. `path` is the engine's file."""

    path: Path
    role: str
    recipe: Recipe
    sha256: str
    size_bytes: int
    built_at: datetime
    build_s: float
    n_layers: int
    tools: Mapping[str, str] = field(default_factory=dict)
    """Versions of what built it."""
    verdict: Verdict = Verdict()

    @property
    def key(self) -> str:
        """Of its recipe: sha256, in hexadecimal."""
        return self.recipe.key

    def verdict_on(self, architecture: str) -> Verdict:
        """The verdict if it was reached on a GPU of this architecture, else that it is unchecked."""
        return self.verdict if self.verdict.architecture == architecture else Verdict()

    def judged(self, verdict: Verdict) -> EngineRecord:
        """The same engine with another verdict."""
        return replace(self, verdict=verdict)

    def as_json(self) -> bytes:
        """For the file beside the engine."""
        fields = asdict(self) | {"path": self.path.name, "built_at": self.built_at.isoformat()}
        text = json.dumps({"format": _FORMAT, "key": self.key, **fields}, indent=2, ensure_ascii=False)
        return f"{text}\n".encode()


def read_record(path: Path) -> EngineRecord | None:
    """The record in a JSON file; None where it cannot be read, or its engine is absent or of another length."""
    try:
        stored = json.loads(path.read_bytes())
        record = _parse(path.parent, stored)
        whole = stored["format"] == _FORMAT and stored["key"] == record.key
        return record if whole and record.path.stat().st_size == record.size_bytes else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def now() -> datetime:
    """In UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def _parse(folder: Path, stored: Mapping[str, Any]) -> EngineRecord:
    name = str(stored["path"])
    if Path(name).name != name:
        raise ValueError("the engine lies in another folder than its record")
    return EngineRecord(
        path=folder / name,
        role=str(stored["role"]),
        recipe=Recipe.from_json(stored["recipe"]),
        sha256=str(stored["sha256"]),
        size_bytes=int(stored["size_bytes"]),
        built_at=datetime.fromisoformat(stored["built_at"]),
        build_s=float(stored["build_s"]),
        n_layers=int(stored["n_layers"]),
        tools={str(tool): str(version) for tool, version in stored["tools"].items()},
        verdict=Verdict(**stored["verdict"]),
    )
