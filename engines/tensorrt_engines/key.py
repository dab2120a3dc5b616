"""All that an engine is made from, and the key that says so. Building takes its settings from here and nowhere else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from engines.bundle import MANIFEST_NAME, GraphSpec
from engines.errors import OnnxFileError
from engines.graph_hash import graph_files, graph_sha256
from engines.graph_signature import read_signature
from engines.tensorrt_engines.library import PORTABLE, Library
from engines.tensorrt_engines.profiles import InputProfile, profiles_of

_FIRST_PORTABLE = 80


@dataclass(frozen=True)
class BuildOptions:
    """What a person can choose. Engines built with other options answer the same graph, only in other ways."""

    workspace_gb: float | None = None
    """Limit of the memory that a layer may use while it runs, in GiB; None for what the GPU has."""
    version_compatible: bool = False
    """Later versions of the library's generation load it too."""


@dataclass(frozen=True)
class Recipe:
    """What goes into an engine; two engines of one recipe are exchangeable."""

    graph_sha256: str
    outputs: tuple[str, ...]
    """Tensors inside the graph that the engine gives in place of the graph's outputs; empty for its own."""
    runtime: str
    version: str
    architecture: str
    """`sm89` and the like, or `PORTABLE`."""
    precision: str
    """As the bundle says; without a manifest, the dtype of most weights. It is the graph that decides it: networks are
    strongly typed."""
    profiles: tuple[InputProfile, ...]
    options: BuildOptions = field(default_factory=BuildOptions)

    @cached_property
    def key(self) -> str:
        """Sha256 over all of it, in hexadecimal."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def serves(self, wanted: Recipe) -> bool:
        """Whether an engine of this recipe can do what one of the other can, on the same GPU."""
        return self.is_for_same_graph(wanted) and covers(self.architecture, wanted.architecture)

    def is_for_same_graph(self, other: Recipe) -> bool:
        """Whether both differ in nothing but the GPU and the options."""
        alike = ("graph_sha256", "outputs", "runtime", "version", "precision", "profiles")
        return all(getattr(self, name) == getattr(other, name) for name in alike)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Recipe:
        """What `dataclasses.asdict` made of one; raises `KeyError`, `TypeError` or `ValueError` for anything else."""
        profiles = [
            InputProfile(one["tensor"], *(tuple(map(int, one[side])) for side in ("least", "usual", "most")))
            for one in stored["profiles"]
        ]
        outputs, options = tuple(map(str, stored["outputs"])), BuildOptions(**stored["options"])
        return cls(**{**stored, "outputs": outputs, "profiles": tuple(profiles), "options": options})


def recipe_for(
    library: Library, path: Path, spec: GraphSpec, architecture: str, options: BuildOptions = BuildOptions()
) -> Recipe:
    """The recipe of a graph's engine here. Raises `OnnxFileError` for a file that is none."""
    return Recipe(
        graph_sha256=_graph_sha256(path),
        outputs=tuple(output.name for output in spec.outputs) if spec.inner_outputs else (),
        runtime=library.runtime,
        version=library.version(),
        architecture=architecture,
        precision=_precision(path, spec),
        profiles=profiles_of(spec),
        options=options,
    )


def bundle_folder(path: Path, spec: GraphSpec) -> Path:
    """Where the bundle lies that has this graph file."""
    return path.parents[len(PurePosixPath(spec.file).parts) - 1]


def _precision(path: Path, spec: GraphSpec) -> str:
    try:
        return str(json.loads((bundle_folder(path, spec) / MANIFEST_NAME).read_bytes())["precision"])
    except (OSError, ValueError, TypeError, KeyError):
        weights = read_signature(path).weights_by_dtype
        return max(weights, key=lambda dtype: weights[dtype], default="float32")


def covers(architecture: str, wanted: str) -> bool:
    """Whether an engine built for the one runs on the other."""
    if architecture == wanted:
        return True
    number = wanted.removeprefix("sm")
    return architecture == PORTABLE and number.isdecimal() and int(number) >= _FIRST_PORTABLE


def _graph_sha256(path: Path) -> str:
    """As `graph_hash.graph_sha256`, once for files that keep their sizes and times."""
    files = graph_files(path)
    for file in files:
        if not file.is_file():
            raise OnnxFileError(file)
    return _remembered(path, tuple((file.stat().st_size, file.stat().st_mtime_ns) for file in files))


@lru_cache(maxsize=16)
def _remembered(path: Path, _state: tuple[tuple[int, int], ...]) -> str:
    return graph_sha256(path)
