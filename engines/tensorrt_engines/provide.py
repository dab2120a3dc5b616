"""The engine of a graph: the kept one, or a new one that is built once, however many processes ask for it."""

from __future__ import annotations

import logging
import platform
from collections.abc import Sequence
from pathlib import Path

from engines.bundle import GraphSpec, ModelBundle
from engines.cuda_driver import gpu_architecture
from engines.errors import (
    EngineCancelledError,
    EngineFailedCheckError,
    EngineFolderError,
    EngineUncheckedError,
    RuntimeUnavailableError,
)
from engines.protocols import Progress
from engines.tensorrt_engines.build import build_engine
from engines.tensorrt_engines.folder import Engine, EngineFolder
from engines.tensorrt_engines.key import BuildOptions, Recipe, bundle_folder, recipe_for
from engines.tensorrt_engines.library import PORTABLE, Library
from engines.tensorrt_engines.record import FAILED, PASSED, EngineRecord

_log = logging.getLogger(__name__)


def keep_going(what: str, share: float) -> bool:
    """The progress of nobody who looks."""
    return True


def provide_engine(
    library: Library, path: Path, spec: GraphSpec, architecture: str, progress: Progress = keep_going
) -> Engine:
    """The engine for a graph and a GPU, built now if none is kept; whether it answers rightly, its record says.

    Raises `EngineBuildError`, `EngineCancelledError`, `EngineFolderError`, `OnnxFileError`.
    """
    folder = EngineFolder(bundle_folder(path, spec))
    recipe = recipe_for(library, path, spec, architecture)
    engine = folder.load(spec.role, recipe)
    if engine is None:
        _log.warning("%s builds an engine of %s, once; this takes minutes for large graphs", library.title, path)
        _build_alone(library, folder, path, spec.role, recipe, progress)
        engine = folder.load(spec.role, recipe)
    if engine is None:
        raise EngineFolderError(folder.places, "an engine is not read as it was written")
    return engine


def compile_bundle(
    library: Library, bundle: ModelBundle, architecture: str, options: BuildOptions, progress: Progress = keep_going
) -> list[EngineRecord]:
    """An engine with exactly these options for each graph: the kept one, or a new one. Errors as `provide_engine`."""
    folder = EngineFolder(bundle.folder)
    found = []
    for spec in bundle.graphs.values():
        path = bundle.file(spec.file)
        recipe = recipe_for(library, path, spec, architecture, options)
        kept = folder.load(spec.role, recipe, exactly=True)
        say = _named(spec.role, progress)
        found.append(kept.record if kept else _build_alone(library, folder, path, spec.role, recipe, say))
    return found


def prepare_engines(library: Library, bundle: ModelBundle, architecture: str, progress: Progress) -> None:
    """Build what `provide_engine` would build, graph after graph, and tell how far it is. Errors as there."""
    folder = EngineFolder(bundle.folder)
    for spec in bundle.graphs.values():
        path = bundle.file(spec.file)
        recipe = recipe_for(library, path, spec, architecture)
        if folder.find(spec.role, recipe) is None:
            _build_alone(library, folder, path, spec.role, recipe, _named(spec.role, progress))


def clean_engines(
    library: Library, bundle: ModelBundle, current: Sequence[EngineRecord], progress: Progress = keep_going
) -> list[str]:
    """Delete the engines of this library that can do nothing for its version and the bundle's graphs, and damaged ones.

    Engines of the other library, and those for other GPUs or with other options, stay. Answers names of deleted files.
    """
    folder = EngineFolder(bundle.folder)
    wanted = {record.role: record.recipe for record in current}

    def is_current(record: EngineRecord) -> bool:
        if record.recipe.runtime != library.runtime:
            return True
        recipe = wanted.get(record.role)
        return recipe is not None and record.recipe.is_for_same_graph(recipe)

    with folder.alone(lambda: progress("waiting for another process that builds", 0.0)) as is_alone:
        return folder.clean(is_current) if is_alone else []


def target_architecture(library: Library, device: str, portable: bool = False, named: str = "") -> str:
    """What to build for: every GPU from Ampere on, a named architecture, or the GPU of a device (`auto`, `cuda:N`).

    Raises `RuntimeUnavailableError` where it cannot be built for, or nothing is named and there is no GPU.
    """
    able = library.can_build()
    if not able.usable:
        raise RuntimeUnavailableError(library.title, able.reason)
    here = gpu_architecture(device_index(device))
    known = library.architectures() or (here,)
    if portable:
        return PORTABLE
    if named:
        if named not in known:
            listed = ", ".join(filter(None, known)) or "no GPU, as there is none here"
            raise RuntimeUnavailableError(library.title, f"it builds for {listed}, not for '{named}'")
        return named
    if not here:
        reason = "there is no GPU here to build for; name one with --target-arch, or give --hardware-compatible"
        raise RuntimeUnavailableError(library.title, reason)
    return here


def can_run_here(architecture: str, device: str) -> bool:
    """Whether engines for this architecture can be tried on this machine's GPU."""
    here = gpu_architecture(device_index(device))
    return bool(here) and architecture in (here, PORTABLE)


def device_index(device: str) -> int:
    """Of `cuda:N`; `auto` is the first."""
    number = device.partition(":")[2]
    return int(number) if number.isdecimal() else 0


def refuse_unproven(library: Library, record: EngineRecord, architecture: str, folder: Path) -> None:
    """Let pass an engine of the bundle in `folder` that has passed its check on such a GPU.

    Raises `EngineFailedCheckError`, with the report's path, or `EngineUncheckedError`.
    """
    verdict = record.verdict_on(architecture)
    if verdict.state == FAILED:
        raise EngineFailedCheckError(record.path, library.title, str(folder / verdict.report))
    if verdict.state != PASSED:
        raise EngineUncheckedError(record.path, library.runtime)


def _build_alone(
    library: Library, folder: EngineFolder, path: Path, role: str, recipe: Recipe, progress: Progress
) -> EngineRecord:
    """Build and keep, unless another process has done so while this one waited."""
    with folder.alone(lambda: progress("waiting for another process that builds", 0.0)) as is_alone:
        if not is_alone:
            raise EngineCancelledError(path)
        found = folder.load(role, recipe, exactly=True)
        if found is not None:
            return found.record
        timings = f"{recipe.runtime}-{recipe.version}-{recipe.architecture}"
        built = build_engine(library, path, recipe, folder.timings(timings), progress)
        if built.timings:
            folder.keep_timings(timings, built.timings)
        tools = {library.runtime: recipe.version, "python": platform.python_version()}
        return folder.keep(role, recipe, built.content, built.build_s, built.n_layers, tools)


def _named(role: str, progress: Progress) -> Progress:
    return lambda what, share: progress(f"{role}: {what}", share)
