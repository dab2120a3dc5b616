"""An engine is built once, kept, and taken the next time, also by other processes and after a failed check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from engine_recipes import ARCHITECTURE, rtx
from tiny_models import write_doubling_bundle

from engines.bundle import read_bundle
from engines.errors import EngineCancelledError, EngineFailedCheckError, EngineUncheckedError
from engines.runtimes._tensorrt import descriptor
from engines.tensorrt_engines import library as gate
from engines.tensorrt_engines import provide
from engines.tensorrt_engines.folder import EngineFolder
from engines.tensorrt_engines.key import BuildOptions
from engines.tensorrt_engines.library import PORTABLE, TENSORRT_RTX, Library
from engines.tensorrt_engines.record import FAILED, PASSED, Verdict

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def trt():
    return rtx()


@pytest.fixture
def bundle(tmp_path):
    write_doubling_bundle(tmp_path)
    return read_bundle(tmp_path)


@pytest.fixture
def builds(monkeypatch):
    """Counts the builds, which are real."""
    counted = []
    build = provide.build_engine

    def count(library, path, recipe, timings, progress):
        counted.append(recipe)
        return build(library, path, recipe, timings, progress)

    monkeypatch.setattr(provide, "build_engine", count)
    return counted


def engine(bundle, architecture=ARCHITECTURE, progress=provide.keep_going):
    spec = bundle.graphs["doubler"]
    return provide.provide_engine(TENSORRT_RTX, bundle.file(spec.file), spec, architecture, progress)


def test_an_engine_is_built_once_and_kept(bundle, builds, caplog):
    first, second = engine(bundle), engine(bundle)
    assert len(builds) == 1
    assert first.content == second.content
    assert first.record.path.parent == bundle.folder / "engines"
    assert caplog.text.count("builds an engine of") == 1


def test_another_gpu_gets_its_own_engine_and_a_portable_one_serves_all(bundle, builds):
    engine(bundle, "sm89"), engine(bundle, "sm120")
    assert [recipe.architecture for recipe in builds] == ["sm89", "sm120"]
    provide.compile_bundle(TENSORRT_RTX, bundle, PORTABLE, BuildOptions())
    engine(bundle, "sm86")
    assert len(builds) == 3


def test_a_damaged_engine_is_built_again(bundle, builds, caplog):
    first = engine(bundle)
    first.record.path.write_bytes(first.content[:-1] + b"!")
    assert engine(bundle).content == engine(bundle).content
    assert len(builds) == 2
    assert "is damaged and is built again" in caplog.text


def test_a_changed_graph_gets_a_new_engine(bundle, builds):
    import onnx

    engine(bundle)
    path = bundle.folder / "doubling.onnx"
    model = onnx.load(str(path))
    model.doc_string = "changed"
    onnx.save(model, str(path))
    engine(bundle)
    assert len({recipe.graph_sha256 for recipe in builds}) == 2


def judged(bundle, state: str, architecture: str):
    """An engine for every GPU whose check on one kind of them gave that."""
    [record] = provide.compile_bundle(TENSORRT_RTX, bundle, PORTABLE, BuildOptions())
    EngineFolder(bundle.folder).judge(record, Verdict(state, "engines/report.md", architecture))
    return engine(bundle, ARCHITECTURE).record


def test_an_engine_that_has_failed_its_check_is_refused_with_the_report(bundle):
    record = judged(bundle, FAILED, ARCHITECTURE)
    with pytest.raises(EngineFailedCheckError, match=r"has failed its check, see .*engines/report\.md"):
        provide.refuse_unproven(TENSORRT_RTX, record, ARCHITECTURE, bundle.folder)


def test_an_engine_that_has_passed_its_check_is_let_through(bundle):
    provide.refuse_unproven(TENSORRT_RTX, judged(bundle, PASSED, ARCHITECTURE), ARCHITECTURE, bundle.folder)


@pytest.mark.parametrize("state", [PASSED, FAILED])
def test_a_check_on_another_kind_of_gpu_does_not_count(bundle, state):
    record = judged(bundle, state, "sm120")
    with pytest.raises(EngineUncheckedError, match="has not passed a check yet"):
        provide.refuse_unproven(TENSORRT_RTX, record, ARCHITECTURE, bundle.folder)


def test_compile_builds_exactly_what_was_asked_for(bundle, builds):
    provide.compile_bundle(TENSORRT_RTX, bundle, ARCHITECTURE, BuildOptions())
    [record] = provide.compile_bundle(TENSORRT_RTX, bundle, ARCHITECTURE, BuildOptions(workspace_gb=1))
    assert [recipe.options.workspace_gb for recipe in builds] == [None, 1]
    assert record.recipe.options.workspace_gb == 1


def test_what_was_stopped_is_not_kept(bundle):
    with pytest.raises(EngineCancelledError):
        engine(bundle, progress=lambda what, share: False)
    assert EngineFolder(bundle.folder).records() == []


def test_waiting_for_another_builder_can_be_stopped(bundle):
    told = []

    def stop(what, share):
        told.append(what)
        return False

    with EngineFolder(bundle.folder).alone(lambda: True), pytest.raises(EngineCancelledError):
        engine(bundle, progress=stop)
    assert told == ["waiting for another process that builds"]


def test_clean_keeps_engines_for_other_gpus_and_drops_those_of_old_graphs(bundle):
    old = engine(bundle).record
    manifest = write_doubling_bundle(bundle.folder, precision="fp16")
    assert manifest["precision"] == "fp16"
    changed = read_bundle(bundle.folder)
    elsewhere = engine(changed, "sm120").record
    current = provide.compile_bundle(TENSORRT_RTX, changed, ARCHITECTURE, BuildOptions())
    dropped = provide.clean_engines(TENSORRT_RTX, changed, current)
    assert old.path.name in dropped
    assert {record.key for record in EngineFolder(bundle.folder).records()} == {elsewhere.key, current[0].key}


BUILDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from engines.bundle import read_bundle
from engines.tensorrt_engines import provide
from engines.tensorrt_engines.library import TENSORRT_RTX
build = provide.build_engine
def say(*given):
    print("built", flush=True)
    return build(*given)
provide.build_engine = say
bundle = read_bundle(Path(sys.argv[2]))
spec = bundle.graphs["doubler"]
print("ready", flush=True)
sys.stdin.readline()
engine = provide.provide_engine(TENSORRT_RTX, bundle.file(spec.file), spec, "sm89")
print(engine.record.sha256)
"""


def test_processes_that_need_the_same_engine_build_it_once(bundle):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", BUILDER, str(ROOT), str(bundle.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(3)
    ]
    assert [process.stdout.readline() for process in started] == ["ready\n"] * 3
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0].split() for process in started]
    assert sum(answer.count("built") for answer in answers) == 1
    assert len({answer[-1] for answer in answers}) == 1


class OnAGpu(Library):
    """As if there were a GPU: nothing runs on it here."""

    def load_for_running(self):
        return None


def test_the_runtime_hands_the_engine_to_a_session(bundle, monkeypatch):
    monkeypatch.setattr(provide, "gpu_architecture", lambda index: ARCHITECTURE)
    opened = []
    monkeypatch.setattr(descriptor, "open_session", lambda *given: opened.append(given) or SimpleNamespace())
    library = OnAGpu(**{name: getattr(TENSORRT_RTX, name) for name in TENSORRT_RTX.__dataclass_fields__})
    runtime = descriptor.tensorrt_runtime(library, preference=2)
    told: list[str] = []
    runtime.prepare(bundle, "auto", lambda what, share: told.append(what) is None)
    assert all(what.startswith("doubler: ") for what in told)
    spec = bundle.graphs["doubler"]
    EngineFolder(bundle.folder).judge(engine(bundle).record, Verdict(PASSED, "", ARCHITECTURE))
    runtime.load_graph(bundle.file(spec.file), spec, "auto")
    [(content, given_spec, device, given_library)] = opened
    assert content == engine(bundle).content
    assert (given_spec, device, given_library) == (spec, "cuda:0", library)


def test_its_devices_are_those_of_the_driver(monkeypatch):
    monkeypatch.setattr(descriptor, "n_cuda_devices", lambda: 2)
    assert descriptor.tensorrt_runtime(TENSORRT_RTX, 2).devices() == ["cuda:0", "cuda:1"]
    assert gate.TENSORRT_RTX.runtime == "tensorrt-rtx"
