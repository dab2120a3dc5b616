"""Loads a bundle into a segmenter: the only module that knows both families and runtimes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

import engines.families
import engines.runtimes
from engines.bundle import MANIFEST_NAME, ModelBundle, read_bundle
from engines.check_report import CheckLimits, CheckReport
from engines.discovery import choose, discover
from engines.engine_check import ENGINE_LIMITS, check_trial
from engines.errors import (
    EngineFolderError,
    EngineUncheckedError,
    GraphLoadError,
    RuntimeUnavailableError,
    UnknownGraphsError,
)
from engines.graph_signature import read_signature
from engines.protocols import Family, Progress, Runtime, Segmenter, Session, Trial

AUTO = "auto"
_REFERENCE = "onnxruntime"
_log = logging.getLogger(__name__)


@cache
def families() -> dict[str, Family]:
    """Every model family by name."""
    return discover(engines.families, "FAMILY", Family)


@cache
def runtimes() -> dict[str, Runtime]:
    """Every runtime by name, usable here or not."""
    return discover(engines.runtimes, "RUNTIME", Runtime)


def choose_runtime(name: str = AUTO, device: str = AUTO) -> Runtime:
    """The runtime of that name, or for `auto` the best that can be used on the device; `RuntimeUnavailableError`."""
    if name == AUTO:
        return _usable_runtimes(device)[0]
    runtime = choose(runtimes(), "runtime", name)
    availability = runtime.availability()
    if not availability.usable:
        raise RuntimeUnavailableError(runtime.title, availability.reason)
    return runtime


def _usable_runtimes(device: str) -> list[Runtime]:
    """For `auto`, best first: those that find the device, or if none does, all that can be used."""
    known = _by_preference()
    able = [runtime for runtime in known if runtime.availability().usable]
    if not able:
        reasons = "; ".join(f"{runtime.title}: {runtime.availability().reason}" for runtime in known)
        raise RuntimeUnavailableError("no runtime", reasons)
    return [runtime for runtime in able if device in (AUTO, *runtime.devices())] or able


def _by_preference() -> list[Runtime]:
    """Those that `auto` takes, best first."""
    return sorted((one for one in runtimes().values() if one.preference), key=lambda one: -one.preference)


def _say_what_is_passed_over(chosen: Runtime) -> None:
    """A better runtime that somebody has installed, and that cannot be used, is worth a sentence."""
    for runtime in _by_preference():
        able = runtime.availability()
        if runtime.preference > chosen.preference and able.installed and not able.usable:
            _say_once(f"{runtime.title} is installed but cannot be used: {able.reason}; {chosen.title} runs the model")


@cache
def _say_once(sentence: str) -> None:
    _log.warning(sentence)


def check_device(runtime: Runtime, device: str) -> None:
    """Raise `RuntimeUnavailableError` for a device that the runtime does not find here; `auto` passes if it has any."""
    if runtime.check_device is not None:
        runtime.check_device(device)
        return
    devices = runtime.devices()
    if device not in (AUTO, *devices):
        reason = f"{runtime.title} finds only {', '.join(devices)}; choose one of these or '{AUTO}'"
        raise RuntimeUnavailableError(f"device '{device}'", reason)


def open_bundle(folder: Path) -> ModelBundle:
    """The bundle that the manifest in a folder describes, or where there is none, what a family knows the ONNX files
    to be. The graphs are not loaded. Raises a `BundleError`."""
    graphs = sorted(folder.glob("*.onnx"))
    if not graphs or (folder / MANIFEST_NAME).exists():
        return read_bundle(folder)
    signatures = {path.name: read_signature(path) for path in graphs}
    for family in families().values():
        bundle = family.recognise(folder, signatures) if family.recognise else None
        if bundle is not None:
            return bundle
    raise UnknownGraphsError(folder, signatures)


def load_segmenter(
    bundle: ModelBundle,
    runtime: str = AUTO,
    device: str = AUTO,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> Segmenter:
    """Check the bundle's files and open its graphs. Raises a `BundleError`, `RuntimeUnavailableError`, or what the
    runtime refuses; with `auto`, a runtime that refuses, or whose engines cannot be kept, gives way, with a warning, to
    the next best.

    `progress` is told how far a runtime is that must prepare the bundle first, for minutes, and can stop it. What a
    runtime has built is compared with ONNX Runtime before its first answer, and refused where it is wrong; `force`
    takes it as it is.
    """
    choose(families(), "model family", bundle.family)
    candidates = _usable_runtimes(device) if runtime == AUTO else [choose_runtime(runtime)]
    check_device(candidates[0], device)
    if runtime == AUTO:
        _say_what_is_passed_over(candidates[0])
    bundle.verify()
    for chosen, spare in zip(candidates, [*candidates[1:], None], strict=True):
        try:
            return load_by(bundle, chosen, device, progress, force=force)
        except (GraphLoadError, EngineFolderError) as error:
            if spare is None:
                raise
            _log.warning("%s; %s runs the model", error, spare.title)
    raise AssertionError("some runtime is always tried")


def load_by(
    bundle: ModelBundle,
    runtime: Runtime,
    device: str,
    progress: Progress | None = None,
    *,
    force: bool = False,
    wrap: Callable[[str, Session], Session] = lambda role, session: session,
) -> Segmenter:
    """As `load_segmenter`, by this runtime alone; `wrap` is given each role with its session, and answers another."""
    if runtime.prepare is not None and progress is not None:
        runtime.prepare(bundle, device, progress)
    is_forced = force and runtime.trial is not None
    open_graph = _trial(runtime, bundle, device).load_graph if is_forced else graph_opener(bundle, runtime, device)
    load = families()[bundle.family].load
    try:
        return load(bundle, lambda role: wrap(role, open_graph(role)))
    except EngineUncheckedError:
        check_engines(bundle, runtime, device, ENGINE_LIMITS, progress)
    return load(bundle, lambda role: wrap(role, open_graph(role)))


def check_engines(
    bundle: ModelBundle, runtime: Runtime, device: str, limits: CheckLimits, progress: Progress | None = None
) -> tuple[CheckReport, Path]:
    """Compare what a runtime has built of a bundle with float32 answers, and write the verdict down.

    Answers the report and where it can be read. Raises what building and running raise, and `EngineCancelledError`.
    """
    family = choose(families(), "model family", bundle.family)
    reference = graph_opener(bundle, choose_runtime(_REFERENCE), "cpu")
    return check_trial(bundle, family, _trial(runtime, bundle, device), reference, limits, progress or _keep_going)


def _trial(runtime: Runtime, bundle: ModelBundle, device: str) -> Trial:
    if runtime.trial is None:
        raise ValueError(f"{runtime.name} builds nothing that could be on trial")
    return runtime.trial(bundle, device)


def _keep_going(what: str, share: float) -> bool:
    return True


def graph_opener(bundle: ModelBundle, runtime: Runtime, device: str) -> Callable[[str], Session]:
    """A function that opens the graph of a role."""

    def open_graph(role: str) -> Session:
        graph = choose(bundle.graphs, "graph", role)
        return runtime.load_graph(bundle.file(graph.file), graph, device)

    return open_graph
