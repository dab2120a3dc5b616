"""What is asked of TensorRT itself, which builds nothing here: a recording fake stands for it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from engine_recipes import recipe
from fake_tensorrt import FakeTensor, FakeTensorrt
from tiny_models import write_doubling_bundle

from engines.bundle import read_bundle
from engines.errors import EngineBuildError
from engines.tensorrt_engines import provide
from engines.tensorrt_engines.build import build_engine
from engines.tensorrt_engines.folder import EngineFolder
from engines.tensorrt_engines.key import BuildOptions
from engines.tensorrt_engines.library import PORTABLE, TENSORRT, Library
from engines.tensorrt_engines.profiles import InputProfile

BOXES = FakeTensor("boxes", (-1, -1, 4))


class WithFake(Library):
    """TensorRT with a fake for its module, as if there were a GPU."""

    def version(self) -> str:
        return "10.13.0"

    def load(self):
        return FAKES[-1]


FAKES: list[FakeTensorrt] = []
LIBRARY = WithFake(**{field.name: getattr(TENSORRT, field.name) for field in fields(TENSORRT)})


@pytest.fixture
def trt():
    FAKES.append(FakeTensorrt((BOXES,)))
    yield FAKES[-1]
    FAKES.clear()


def build(tmp_path, timings=b"", **changes):
    return build_engine(LIBRARY, tmp_path / "g.onnx", recipe(**changes), timings, provide.keep_going)


def test_networks_are_strongly_typed(trt, tmp_path):
    build(tmp_path)
    assert ("network", 1 << FakeTensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED) in trt.calls


def test_a_version_without_that_flag_needs_none(trt, tmp_path, monkeypatch):
    monkeypatch.setattr(FakeTensorrt, "NetworkDefinitionCreationFlag", type("None", (), {}))
    build(tmp_path)
    assert ("network", 0) in trt.calls


def test_each_varying_input_gets_its_range(trt, tmp_path):
    build(tmp_path)
    assert ("shape", "boxes", (1, 1, 4), (1, 1, 4), (4, 20, 4)) in trt.calls


def test_a_size_that_is_an_input_gets_a_range_of_values(trt, tmp_path):
    trt.network.get_input = lambda index: FakeTensor("original_height", (), is_shape_tensor=True)
    build(tmp_path, profiles=(InputProfile("original_height", (1,), (1024,), (8192,)),))
    assert ("value", "original_height", (1,), (1024,), (8192,)) in trt.calls


def test_a_number_that_says_no_size_gets_no_range(trt, tmp_path):
    trt.network.get_input = lambda index: FakeTensor("original_height", ())
    build(tmp_path, profiles=(InputProfile("original_height", (1,), (1024,), (8192,)),))
    assert not [call for call in trt.calls if call[0] in ("value", "shape")]


def test_options_become_flags_and_limits(trt, tmp_path):
    build(tmp_path, options=BuildOptions(workspace_gb=1.5, version_compatible=True), architecture=PORTABLE)
    assert ("limit", "workspace", 3 * 2**29) in trt.calls
    assert [call[1] for call in trt.calls if call[0] == "flag"] == ["VERSION_COMPATIBLE", "EXCLUDE_LEAN_RUNTIME"]
    assert trt.config.hardware_compatibility_level == "ampere plus"


def test_without_options_nothing_is_set(trt, tmp_path):
    build(tmp_path)
    assert not [call for call in trt.calls if call[0] in ("flag", "limit")]
    assert trt.config.hardware_compatibility_level is None


def test_what_was_measured_before_is_given_and_what_is_measured_is_kept(trt, tmp_path):
    trt.readable_timings.append(b"earlier")
    assert build(tmp_path, b"earlier").timings == b"earlier+measured"
    assert ("timings", b"earlier", False) in trt.calls


@pytest.mark.parametrize("kind", ["unreadable", "foreign"])
def test_measurements_of_another_version_or_gpu_are_begun_anew(trt, tmp_path, kind):
    if kind == "foreign":
        trt.readable_timings.append(b"earlier")
        trt.foreign_timings.append(b"earlier")
    assert build(tmp_path, b"earlier").timings == b"+measured"


def test_no_engine_is_an_error_with_the_librarys_last_words(trt, tmp_path):
    trt.plan, trt.says = None, "Error Code 10: could not find any implementation for node /vit/attention"
    with pytest.raises(EngineBuildError, match=r"it gave no engine; Error Code 10.* node /vit/attention"):
        build(tmp_path)


@pytest.mark.parametrize("lacking", ["create_network", "create_builder_config", "create_optimization_profile"])
def test_every_none_is_an_error(trt, tmp_path, monkeypatch, lacking):
    make_builder = trt.Builder

    def builder(log):
        made = make_builder(log)
        setattr(made, lacking, lambda *given: None)
        return made

    monkeypatch.setattr(trt, "Builder", builder)
    with pytest.raises(EngineBuildError, match="it gives no"):
        build(tmp_path)


def test_no_builder_at_all_is_an_error(trt, tmp_path, monkeypatch):
    def null(log):
        raise TypeError("pybind11::init(): factory function returned nullptr")

    monkeypatch.setattr(trt, "Builder", null)
    with pytest.raises(EngineBuildError, match="it gives no builder"):
        build(tmp_path)


def test_a_refused_range_is_an_error(trt, tmp_path):
    trt.profile_index = -1
    with pytest.raises(EngineBuildError, match="it refuses the range of sizes"):
        build(tmp_path)


def test_a_graph_asked_for_inner_tensors_is_parsed_from_memory_beside_its_weights(trt, tmp_path):
    write_doubling_bundle(tmp_path)
    path = tmp_path / "doubling.onnx"
    inner = replace(recipe(), outputs=("double",))
    build_engine(LIBRARY, path, inner, b"", provide.keep_going)
    [(_, n_bytes, given_path)] = [call for call in trt.calls if call[0] == "parse"]
    assert n_bytes > 50
    assert given_path == str(path)


def test_measurements_lie_beside_the_engines_for_the_next_build(trt, tmp_path):
    write_doubling_bundle(tmp_path)
    trt.network.get_input = lambda index: FakeTensor("image", (1, -1))
    bundle = read_bundle(tmp_path)
    spec = bundle.graphs["doubler"]
    provide.provide_engine(LIBRARY, bundle.file(spec.file), spec, "sm90")
    assert EngineFolder(tmp_path).timings("tensorrt-10.13.0-sm90") == b"+measured"
    trt.readable_timings.append(b"+measured")
    provide.provide_engine(LIBRARY, bundle.file(spec.file), spec, "sm89")
    provide.compile_bundle(LIBRARY, bundle, "sm90", BuildOptions(workspace_gb=1))
    assert [call[1] for call in trt.calls if call[0] == "timings"] == [b"", b"", b"+measured"]
