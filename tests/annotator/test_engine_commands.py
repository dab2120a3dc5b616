"""`models check` and `models compile` say whether engines answer rightly; TensorRT and the GPU are stand-ins."""

from __future__ import annotations

import pytest
from bundle_copies import copy_bundle
from sam3_shapes import BUNDLE
from typer.testing import CliRunner
from wrong_engines import decoder_alone, install, with_masks_moved

from annotator.cli import app
from annotator.terminal import DONE, SOME_FAILED
from engines.tensorrt_engines.folder import EngineFolder


@pytest.fixture
def engines(monkeypatch):
    return install(monkeypatch)


@pytest.fixture
def bundle(tmp_path):
    return copy_bundle(BUNDLE, tmp_path / "shapes")


def run(command: str, bundle, *options: str):
    return CliRunner().invoke(app, ["models", command, str(bundle), "--runtime", "tensorrt", *options])


def states(bundle):
    return {record.verdict.state for record in EngineFolder(bundle).records()}


def test_compile_checks_what_it_has_built_for_the_gpu_that_is_here(bundle, engines):
    done = run("compile", bundle)
    assert done.exit_code == DONE, done.output
    assert "by tensorrt: passed, mean IoU 1.0000" in done.stdout
    assert states(bundle) == {"passed"}


def test_compile_says_that_engines_for_another_gpu_are_not_checked(bundle, engines):
    done = run("compile", bundle, "--hardware-compatible")
    assert done.exit_code == DONE and states(bundle) == {"passed"}
    engines.architecture = ""
    done = run("compile", bundle, "--hardware-compatible")
    assert "not checked yet" in done.stderr


def test_engines_that_are_wrong_end_the_command_with_their_report(bundle, engines):
    engines.spoil = decoder_alone(with_masks_moved)
    done = run("compile", bundle)
    assert done.exit_code == SOME_FAILED
    assert "FAILED" in done.stdout and done.stdout.strip().endswith("check_report_tensorrt.md")
    assert states(bundle) == {"failed"}


def test_check_judges_anew_by_the_limits_given(bundle, engines):
    engines.spoil = decoder_alone(with_masks_moved)
    assert run("check", bundle).exit_code == SOME_FAILED
    engines.spoil = lambda role, outputs: outputs
    assert run("check", bundle, "--least-iou", "0.999").exit_code == DONE
    assert states(bundle) == {"passed"}
