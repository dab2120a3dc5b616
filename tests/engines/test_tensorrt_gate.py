"""What can be used is found out from files and the driver alone; nothing of TensorRT is imported without one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engines import loader
from engines.bundle import SHIPPED_MODELS, read_bundle
from engines.cuda_driver import gpu_architecture, n_cuda_devices
from engines.errors import (
    EngineBuildError,
    EngineFolderError,
    GraphLoadError,
    RuntimeUnavailableError,
    UnknownKindError,
)
from engines.protocols import Availability
from engines.tensorrt_engines import library as gate
from engines.tensorrt_engines.library import PORTABLE, TENSORRT, TENSORRT_RTX, Library
from engines.tensorrt_engines.provide import target_architecture

ROOT = Path(__file__).parents[2]


class Installed(Library):
    """As if its package were there, of a version; importing it fails the test."""

    def version(self) -> str:
        return "1.2.3"

    def _import(self):
        raise AssertionError(f"{self.module} is imported")


class OfFakeModule(Installed):
    """With a module that knows two architectures."""

    def _import(self):
        return SimpleNamespace(ComputeCapability=SimpleNamespace(__members__={"NONE": 0, "SM89": 89, "SM120": 120}))


def installed(library: Library, kind: type[Library] = Installed) -> Library:
    return kind(**{field.name: getattr(library, field.name) for field in fields(library)})


@pytest.fixture
def driver(monkeypatch):
    """Set how many GPUs the driver finds, and their architecture."""

    def found(n_devices: int, architecture: str = "sm89") -> None:
        monkeypatch.setattr(gate, "n_cuda_devices", lambda: n_devices)
        monkeypatch.setattr("engines.runtimes._tensorrt.descriptor.n_cuda_devices", lambda: n_devices)
        for place in (gate, sys.modules["engines.tensorrt_engines.provide"]):
            monkeypatch.setattr(place, "gpu_architecture", lambda index: architecture if index < n_devices else "")

    return found


@pytest.mark.parametrize("library", [TENSORRT, TENSORRT_RTX], ids=lambda library: library.runtime)
def test_a_library_that_is_not_installed_says_how_to_get_it(library, driver):
    driver(1)
    absent = replace(library, distributions=("no-such-package",))
    wanted = Availability(False, f'it is not installed: pip install "phrasemask[{library.runtime}]"', installed=False)
    assert absent.can_build() == absent.can_run() == wanted


@pytest.mark.parametrize("library", [TENSORRT, TENSORRT_RTX], ids=lambda library: library.runtime)
def test_without_a_driver_nothing_runs_and_nothing_is_imported(library, driver):
    driver(0)
    able = installed(library).can_run()
    assert able == Availability(False, "there is no NVIDIA driver or no GPU here")
    with pytest.raises(RuntimeUnavailableError, match="no NVIDIA driver"):
        installed(library).load_for_running()


def test_without_a_driver_one_of_the_two_builds(driver):
    driver(0)
    assert installed(TENSORRT_RTX).can_build().usable
    assert not installed(TENSORRT).can_build().usable
    with pytest.raises(RuntimeUnavailableError, match="no NVIDIA driver"):
        installed(TENSORRT).load()


def test_with_a_gpu_that_it_serves_a_library_can_be_used(driver, monkeypatch):
    monkeypatch.setattr(gate, "_is_importable", lambda module: True)
    driver(1)
    assert installed(TENSORRT).can_run().usable
    assert installed(TENSORRT_RTX, OfFakeModule).can_run().usable


def test_a_gpu_that_a_library_does_not_serve_is_named(driver, monkeypatch):
    monkeypatch.setattr(gate, "_is_importable", lambda module: True)
    driver(1, "sm90")
    assert installed(TENSORRT_RTX, OfFakeModule).can_run().reason == "it serves GPUs of sm89, sm120, not sm90"


def test_without_cuda_python_it_says_so(driver, monkeypatch):
    monkeypatch.setattr(gate, "_is_importable", lambda module: False)
    driver(1)
    assert installed(TENSORRT).can_run().reason == "the package cuda-python is not installed: pip install cuda-python"


def test_a_package_that_does_not_load_is_a_reason_not_a_crash(driver):
    driver(1)
    broken = replace(TENSORRT, module="no_such_module", distributions=("numpy",))
    with pytest.raises(RuntimeUnavailableError, match="TensorRT cannot be used here: its package does not load"):
        broken.load()


@pytest.mark.parametrize(
    ("given", "architecture"),
    [({}, "sm89"), ({"portable": True}, PORTABLE), ({"named": "sm120"}, "sm120"), ({"device": "cuda:0"}, "sm89")],
)
def test_engines_are_built_for_the_gpu_that_is_here_or_what_is_asked_for(driver, given, architecture):
    driver(1)
    library = installed(TENSORRT_RTX, OfFakeModule)
    assert target_architecture(library, given.pop("device", "auto"), **given) == architecture


@pytest.mark.parametrize(
    ("library", "n_devices", "given", "words"),
    [
        (installed(TENSORRT_RTX, OfFakeModule), 0, {}, "no GPU here to build for; name one with --target-arch"),
        (installed(TENSORRT_RTX, OfFakeModule), 0, {"named": "sm90"}, "builds for sm89, sm120, not for 'sm90'"),
        (installed(TENSORRT), 1, {"named": "sm120"}, "builds for sm89, not for 'sm120'"),
        (installed(TENSORRT), 1, {"device": "cuda:3"}, "no GPU here to build for"),
        (installed(TENSORRT), 0, {"portable": True}, "no NVIDIA driver"),
    ],
)
def test_what_cannot_be_built_for_is_refused(driver, library, n_devices, given, words):
    driver(n_devices)
    with pytest.raises(RuntimeUnavailableError, match=words):
        target_architecture(library, given.pop("device", "auto"), **given)


def test_the_driver_tells_the_architecture_of_each_gpu_there_is():
    for index in range(n_cuda_devices()):
        assert gpu_architecture(index).startswith("sm")
    assert gpu_architecture(n_cuda_devices()) == ""


@pytest.mark.skipif(n_cuda_devices() > 0, reason="with a driver, TensorRT may be imported")
@pytest.mark.parametrize("arguments", [["models"], ["models", "--help"], ["--help"]])
def test_the_commands_import_nothing_of_tensorrt_without_a_driver(arguments):
    code = (
        "import sys\n"
        "from annotator.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    pass\n"
        "print([name for name in sys.modules if name.partition('.')[0].startswith(('tensorrt', 'cuda'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def three_runtimes(monkeypatch):
    """Set what each is able to, and what it raises; `fast` is the best, then `middle`, then `slow`."""
    able = {name: Availability(True) for name in ("fast", "middle", "slow")}
    refuse: dict[str, Exception] = {}

    def load_graph(name):
        def load(path, spec, device):
            if name in refuse:
                raise refuse[name]
            return loader.discover(loader.engines.runtimes, "RUNTIME", loader.Runtime)["onnxruntime"].load_graph(
                path, spec, "cpu"
            )

        return load

    known = {
        name: loader.Runtime(
            name=name,
            title=name.title(),
            availability=lambda name=name: able[name],
            devices=lambda name=name: ["cpu"] if name == "slow" else ["cuda:0"],
            load_graph=load_graph(name),
            preference=preference,
        )
        for name, preference in (("slow", 1), ("fast", 3), ("middle", 2))
    }
    monkeypatch.setattr(loader, "runtimes", lambda: known)
    loader._say_once.cache_clear()
    return SimpleNamespace(able=able, refuse=refuse, known=known)


STARTER = SHIPPED_MODELS / "starter"
ODD = EngineBuildError(Path("m.onnx"), "TensorRT", "node 'n' (Odd): this operation is not supported")
NO_ROOM = EngineFolderError([Path("engines")], "No space left on device")


def test_auto_takes_the_best_that_can_be_used(three_runtimes):
    assert loader.choose_runtime().name == "fast"
    three_runtimes.able["fast"] = Availability(False, "no driver")
    assert loader.choose_runtime().name == "middle"


def test_auto_takes_one_that_has_the_device(three_runtimes):
    assert loader.choose_runtime(device="cpu").name == "slow"


def test_auto_never_takes_a_runtime_without_a_preference(three_runtimes, monkeypatch):
    monkeypatch.setitem(three_runtimes.known, "slow", replace(three_runtimes.known["slow"], preference=0))
    for name in ("fast", "middle"):
        three_runtimes.able[name] = Availability(False, "no driver")
    with pytest.raises(RuntimeUnavailableError, match="Fast: no driver; Middle: no driver"):
        loader.choose_runtime()


def test_a_better_runtime_that_is_installed_and_cannot_be_used_is_said_once(three_runtimes, caplog):
    three_runtimes.able["fast"] = Availability(False, "no driver")
    three_runtimes.able["middle"] = Availability(False, "not installed", installed=False)
    for _ in range(2):
        loader.load_segmenter(read_bundle(STARTER))
    assert [record.message for record in caplog.records] == [
        "Fast is installed but cannot be used: no driver; Slow runs the model"
    ]


def test_a_runtime_that_was_asked_for_is_not_remarked_on(three_runtimes, caplog):
    three_runtimes.able["fast"] = Availability(False, "no driver")
    loader.load_segmenter(read_bundle(STARTER), runtime="slow")
    assert not caplog.records


def test_auto_falls_back_with_a_warning_where_a_graph_is_refused_or_its_engine_cannot_be_kept(three_runtimes, caplog):
    three_runtimes.refuse |= {"fast": ODD, "middle": NO_ROOM}
    loader.load_segmenter(read_bundle(STARTER))
    first, second = (record.message for record in caplog.records)
    assert "node 'n' (Odd): this operation is not supported" in first
    assert first.endswith("Middle runs the model")
    assert "engines cannot be kept in engines: No space left on device" in second
    assert second.endswith("Slow runs the model")


def test_a_runtime_that_was_asked_for_does_not_fall_back(three_runtimes):
    three_runtimes.refuse["fast"] = ODD
    with pytest.raises(GraphLoadError, match=r"Odd"):
        loader.load_segmenter(read_bundle(STARTER), runtime="fast")


def test_a_runtime_is_prepared_where_somebody_listens(three_runtimes, monkeypatch):
    prepared = []

    def prepare(bundle, device, progress):
        prepared.append((bundle.name, device, progress("building", 0.5)))

    monkeypatch.setitem(three_runtimes.known, "fast", replace(three_runtimes.known["fast"], prepare=prepare))
    loader.load_segmenter(read_bundle(STARTER))
    assert not prepared
    loader.load_segmenter(read_bundle(STARTER), progress=lambda what, share: True)
    assert prepared == [("starter", "auto", True)]


def test_a_runtime_without_engines_cannot_compile():
    from typer.testing import CliRunner

    from annotator.cli import app

    done = CliRunner().invoke(app, ["models", "compile", "starter", "--runtime", "onnxruntime"])
    assert isinstance(done.exception, UnknownKindError)
    assert "choose one of: tensorrt, tensorrt-rtx" in str(done.exception)
