"""Loads a bundle into a segmenter: the only module that knows both families and runtimes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

import engines.families
import engines.runtimes
from engines.bundle import MANIFEST_NAME, ModelBundle, read_bundle
from engines.discovery import choose, discover
from engines.errors import GraphLoadError, RuntimeUnavailableError, UnknownGraphsError
from engines.graph_signature import read_signature
from engines.protocols import Family, Progress, Runtime, Segmenter, Session

AUTO = "auto"
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
    bundle: ModelBundle, runtime: str = AUTO, device: str = AUTO, progress: Progress | None = None
) -> Segmenter:
    """Check the bundle's files and open its graphs. Raises a `BundleError`, `RuntimeUnavailableError`, or what the
    runtime refuses; with `auto`, a runtime that refuses gives way, with a warning, to the next best.

    `progress` is told how far a runtime is that must prepare the bundle first, for minutes, and can stop it.
    """
    family = choose(families(), "model family", bundle.family)
    candidates = _usable_runtimes(device) if runtime == AUTO else [choose_runtime(runtime)]
    check_device(candidates[0], device)
    if runtime == AUTO:
        _say_what_is_passed_over(candidates[0])
    bundle.verify()
    for chosen, spare in zip(candidates, [*candidates[1:], None], strict=True):
        try:
            if chosen.prepare is not None and progress is not None:
                chosen.prepare(bundle, device, progress)
            return family.load(bundle, _graph_opener(bundle, chosen, device))
        except GraphLoadError as error:
            if spare is None:
                raise
            _log.warning("%s; %s runs the model", error, spare.title)
    raise AssertionError("some runtime is always tried")


def _graph_opener(bundle: ModelBundle, runtime: Runtime, device: str) -> Callable[[str], Session]:
    def open_graph(role: str) -> Session:
        graph = choose(bundle.graphs, "graph", role)
        return runtime.load_graph(bundle.file(graph.file), graph, device)

    return open_graph
