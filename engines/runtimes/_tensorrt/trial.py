"""Engines on trial: loaded whatever is known of them, and judged by what a check of their answers has shown."""

from __future__ import annotations

from pathlib import Path

from engines.bundle import ModelBundle
from engines.discovery import choose
from engines.protocols import Session
from engines.runtimes._tensorrt.session import open_session
from engines.tensorrt_engines.folder import EngineFolder
from engines.tensorrt_engines.library import Library
from engines.tensorrt_engines.provide import device_index, provide_engine, target_architecture
from engines.tensorrt_engines.record import FAILED, PASSED, EngineRecord, Verdict


class EngineTrial:
    """The engines of one bundle on one GPU; those that were loaded are judged together."""

    def __init__(self, library: Library, bundle: ModelBundle, device: str) -> None:
        library.load_for_running()
        self._library, self._bundle = library, bundle
        self._architecture = target_architecture(library, device)
        self._device = f"cuda:{device_index(device)}"
        self._folder = EngineFolder(bundle.folder)
        self._loaded: list[EngineRecord] = []
        self.report_folder = self._folder.writable()

    def load_graph(self, role: str) -> Session:
        """Raises what `provide_engine` and `open_session` do."""
        spec = choose(self._bundle.graphs, "graph", role)
        engine = provide_engine(self._library, self._bundle.file(spec.file), spec, self._architecture)
        self._loaded.append(engine.record)
        return open_session(engine.content, spec, self._device, self._library)

    def judge(self, passed: bool, report: Path) -> None:
        """Give each engine that was loaded the verdict, for this kind of GPU."""
        inside = report.is_relative_to(self._bundle.folder)
        place = report.relative_to(self._bundle.folder) if inside else report
        verdict = Verdict(PASSED if passed else FAILED, place.as_posix(), self._architecture)
        for record in self._loaded:
            self._folder.judge(record, verdict)
