"""Loads a bundle into a segmenter: the only module that knows both families and runtimes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import engines.families
import engines.runtimes
from engines.bundle import MANIFEST_NAME, ModelBundle, read_bundle
from engines.discovery import choose, discover
from engines.errors import RuntimeUnavailableError, UnknownGraphsError
from engines.graph_signature import read_signature
from engines.protocols import Family, Runtime, Segmenter, Session

AUTO = "auto"


@cache
def families() -> dict[str, Family]:
    """Every model family by name."""
    return discover(engines.families, "FAMILY", Family)


@cache
def runtimes() -> dict[str, Runtime]:
    """Every runtime by name, usable here or not."""
    return discover(engines.runtimes, "RUNTIME", Runtime)


def choose_runtime(name: str = AUTO) -> Runtime:
    """The runtime of that name, or for `auto` the first that is usable; raises `RuntimeUnavailableError`."""
    if name != AUTO:
        runtime = choose(runtimes(), "runtime", name)
        availability = runtime.availability()
        if not availability.usable:
            raise RuntimeUnavailableError(runtime.title, availability.reason)
        return runtime
    for runtime in runtimes().values():
        if runtime.availability().usable:
            return runtime
    reasons = "; ".join(f"{runtime.title}: {runtime.availability().reason}" for runtime in runtimes().values())
    raise RuntimeUnavailableError("no runtime", reasons)


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


def load_segmenter(bundle: ModelBundle, runtime: str = AUTO, device: str = AUTO) -> Segmenter:
    """Check the bundle's files and open its graphs. Raises a `BundleError` or `RuntimeUnavailableError`."""
    family = choose(families(), "model family", bundle.family)
    chosen = choose_runtime(runtime)
    check_device(chosen, device)
    bundle.verify()
    return family.load(bundle, _graph_opener(bundle, chosen, device))


def _graph_opener(bundle: ModelBundle, runtime: Runtime, device: str) -> Callable[[str], Session]:
    def open_graph(role: str) -> Session:
        graph = choose(bundle.graphs, "graph", role)
        return runtime.load_graph(bundle.file(graph.file), graph, device)

    return open_graph
