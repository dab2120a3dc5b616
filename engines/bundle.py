"""A model bundle: a folder with a manifest, one graph per role, and the files the family needs beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.errors import (
    BundleDamagedError,
    BundleFileMissingError,
    BundleManifestError,
    BundleNotFoundError,
    BundleTooNewError,
    TensorMismatchError,
)

MANIFEST_NAME = "manifest.json"
MANIFEST_VERSION = 1
SHIPPED_MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a graph; a dimension that may vary is None."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    def accepts(self, array: NDArray[Any]) -> bool:
        """Whether an array has this dtype and a shape that fits."""
        fits = all(wanted is None or wanted == got for wanted, got in zip(self.shape, array.shape, strict=False))
        return str(array.dtype) == self.dtype and array.ndim == len(self.shape) and fits

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join('?' if size is None else str(size) for size in self.shape)}]"


@dataclass(frozen=True)
class GraphSpec:
    """One graph: its file inside the bundle and what goes in and comes out."""

    role: str
    file: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    inner_outputs: tuple[TensorSpec, ...] = ()
    """What a runtime that reaches tensors inside the graph gives in place of `outputs`: the same with less work."""

    def zeros(self) -> dict[str, NDArray[Any]]:
        """Inputs of the declared dtypes, all 0, with 1 for each size that may vary."""
        return {spec.name: np.zeros([size or 1 for size in spec.shape], dtype=spec.dtype) for spec in self.inputs}

    def check_inputs(self, feeds: Mapping[str, NDArray[Any]]) -> None:
        """Raise `TensorMismatchError` unless `feeds` holds each declared input, and nothing else, as declared."""
        wanted = {spec.name: spec for spec in self.inputs}
        for name in feeds.keys() - wanted.keys():
            raise TensorMismatchError(self.role, name, "given", f"one of: {', '.join(wanted)}")
        for name, spec in wanted.items():
            if name not in feeds:
                raise TensorMismatchError(self.role, name, "not given", str(spec))
            if not spec.accepts(feeds[name]):
                got = TensorSpec(name, str(feeds[name].dtype), feeds[name].shape)
                raise TensorMismatchError(self.role, name, str(got), str(spec))


@dataclass(frozen=True)
class ModelBundle:
    """A folder that holds one model. `bundle_id` is the sha256 of its manifest, which holds every file's sha256.

    Where ONNX files have no manifest, a family makes the bundle: `bundle_id` then is a sha256 of the files themselves,
    and `sha256_by_file` holds empty texts, since nothing says what the files should be.
    """

    folder: Path
    bundle_id: str
    name: str
    title: str
    family: str
    precision: str
    image_size: int
    licence: str
    graphs: Mapping[str, GraphSpec]
    sha256_by_file: Mapping[str, str]
    reference: str = ""
    """Whose behaviour the graphs follow where implementations differ, such as `meta`."""
    max_instances: int | None = None
    """How many instances the graphs answer for one phrase at most."""
    context_length: int | None = None
    """How many tokens of a phrase the graphs take, start and end included."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Versions of the packages that made the graphs."""
    checks: tuple[str, ...] = ()
    """Files with check pictures and the answers of the original model to them."""
    notes: tuple[str, ...] = ()
    """What these graphs cannot do or do otherwise: half sentences for a person."""

    def file(self, name: str) -> Path:
        """Path of a file that the manifest lists; raises `BundleFileMissingError` when it is not there."""
        path = self.folder / name
        if name not in self.sha256_by_file or not path.is_file():
            raise BundleFileMissingError(self.folder, name)
        return path

    def graph_id(self, role: str) -> str:
        """The same for graphs with the same files, in whatever bundle; where no sha256 are known, this bundle's own."""
        file = self.graphs[role].file
        known = [sha256 for name, sha256 in sorted(self.sha256_by_file.items()) if name in (file, f"{file}.data")]
        if not known or not all(known):
            return f"{self.bundle_id}/{role}"
        return hashlib.sha256("/".join(known).encode()).hexdigest()

    def verify(self) -> None:
        """Compare every file with the manifest; raises `BundleFileMissingError` or `BundleDamagedError`."""
        for name, wanted in self.sha256_by_file.items():
            path = self.file(name)
            if not wanted:
                continue
            with path.open("rb") as stream:
                got = hashlib.file_digest(stream, "sha256").hexdigest()
            if got != wanted:
                raise BundleDamagedError(path, got, wanted)


def read_bundle(folder: Path) -> ModelBundle:
    """The bundle in `folder`; the graphs themselves are not opened. Raises a `BundleError`."""
    path = folder / MANIFEST_NAME
    try:
        content = path.read_bytes()
    except OSError:
        raise BundleFileMissingError(folder, MANIFEST_NAME) from None
    try:
        manifest = json.loads(content)
        version = int(manifest["manifest_version"])
    except (ValueError, TypeError, KeyError) as error:
        raise BundleManifestError(path, _reason(error)) from None
    if version > MANIFEST_VERSION:
        raise BundleTooNewError(path, version, MANIFEST_VERSION)
    try:
        bundle = _parse(folder, hashlib.sha256(content).hexdigest(), manifest)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BundleManifestError(path, _reason(error)) from None
    for name in bundle.sha256_by_file:
        bundle.file(name)
    return bundle


def find_bundles(folders: list[Path]) -> dict[str, Path]:
    """Model folders by name: every sub-folder that holds a manifest or ONNX files; an earlier folder wins."""
    found: dict[str, Path] = {}
    for folder in folders:
        for file in sorted([*folder.glob(f"*/{MANIFEST_NAME}"), *folder.glob("*/*.onnx")]):
            found.setdefault(file.parent.name, file.parent)
    return found


def locate_bundle(name_or_folder: str, folders: list[Path]) -> Path:
    """The folder of a bundle given by name or by path; raises `BundleNotFoundError` naming what there is."""
    known = find_bundles(folders)
    if name_or_folder in known:
        return known[name_or_folder]
    if Path(name_or_folder).is_dir():
        return Path(name_or_folder)
    raise BundleNotFoundError(name_or_folder, known)


def _parse(folder: Path, bundle_id: str, manifest: Mapping[str, Any]) -> ModelBundle:
    files = {_inside(name): str(sha256) for name, sha256 in manifest["files"].items()}
    graphs = {role: _parse_graph(role, graph) for role, graph in manifest["graphs"].items()}
    for graph in graphs.values():
        if graph.file not in files:
            raise ValueError(f"graph '{graph.role}' names {graph.file}, which is not among its files")
    return ModelBundle(
        folder=folder,
        bundle_id=bundle_id,
        name=str(manifest["name"]),
        title=str(manifest["title"]),
        family=str(manifest["family"]),
        precision=str(manifest["precision"]),
        image_size=int(manifest["image_size"]),
        licence=str(manifest["licence"]),
        graphs=graphs,
        sha256_by_file=files,
        reference=str(manifest.get("reference", "")),
        max_instances=_number(manifest.get("max_instances")),
        context_length=_number(manifest.get("context_length")),
        tools={str(name): str(version) for name, version in manifest.get("tools", {}).items()},
        checks=tuple(_inside(name) for name in manifest.get("checks", [])),
    )


def _parse_graph(role: str, graph: Mapping[str, Any]) -> GraphSpec:
    return GraphSpec(
        role=role,
        file=_inside(graph["file"]),
        inputs=tuple(_parse_tensor(tensor) for tensor in graph["inputs"]),
        outputs=tuple(_parse_tensor(tensor) for tensor in graph["outputs"]),
    )


def _parse_tensor(tensor: Mapping[str, Any]) -> TensorSpec:
    shape = tuple(None if size is None else int(size) for size in tensor["shape"])
    return TensorSpec(str(tensor["name"]), str(tensor["dtype"]), shape)


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _inside(name: str) -> str:
    """A file name that stays inside the bundle folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
        raise ValueError(f"file name '{name}' leaves the model folder")
    return name


def _reason(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)
