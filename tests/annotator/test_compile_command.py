"""`models compile` and what `models` says of engines, on a GPU that is not here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from engine_recipes import keep, rtx
from sam3_shapes import BUNDLE
from tiny_models import write_doubling_bundle
from typer.testing import CliRunner

from annotator.cli import app
from annotator.compiling import age
from annotator.terminal import STOPPED
from engines.errors import RuntimeUnavailableError
from engines.tensorrt_engines.folder import EngineFolder
from engines.tensorrt_engines.record import FAILED, Verdict

ROOT = Path(__file__).parents[2]


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A folder of models with one in it."""
    write_doubling_bundle(tmp_path / "twice")
    monkeypatch.setenv("PHRASEMASK_MODELS", str(tmp_path))
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(app, ["models", *arguments])


def test_engines_are_listed_below_their_model(models):
    folder = EngineFolder(models / "twice")
    record = folder.judge(keep(folder, b"x" * 2_500_000), Verdict(FAILED, "engines/report.md", "sm89"))
    listed = run().output
    wanted = (
        f"engine decoder: tensorrt-rtx 1.7.1.116 for sm89, key {record.key[:12]}, 2.5 MB, less than a minute old, "
        "failed, see engines/report.md"
    )
    assert wanted in listed


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "less than a minute"), (60, "1 minute"), (7_300, "2 hours"), (86_400, "1 day"), (8_640_000, "100 days")],
)
def test_an_age_is_told_in_its_largest_unit(seconds, words):
    assert age(datetime.now(UTC) - timedelta(seconds=seconds)) == words


def test_compile_builds_once_and_lists_what_is_there(models):
    rtx()
    first = run("compile", "twice", "--runtime", "tensorrt-rtx", "--target-arch", "sm89")
    assert first.exit_code == 0
    path = re.search(r"(\S+\.engine)$", first.output.strip())[1]
    written = Path(path).stat().st_mtime_ns
    assert "engine doubler: tensorrt-rtx" in first.output
    assert run("compile", "twice", "--runtime", "tensorrt-rtx", "--target-arch", "sm89").exit_code == 0
    assert Path(path).stat().st_mtime_ns == written


def test_clean_deletes_old_engines_and_names_them(models):
    rtx()
    keep(EngineFolder(models / "twice"), graph_sha256="cd" * 32)
    done = run("compile", "twice", "--runtime", "tensorrt-rtx", "--hardware-compatible", "--clean")
    assert done.exit_code == 0
    assert done.output.count("deleted decoder-") == 2
    assert [record.role for record in EngineFolder(models / "twice").records()] == ["doubler"]


def test_without_a_gpu_and_a_target_it_is_said_what_to_give(models, monkeypatch):
    rtx()
    monkeypatch.setattr("engines.tensorrt_engines.provide.gpu_architecture", lambda index: "")
    done = run("compile", "twice", "--runtime", "tensorrt-rtx")
    assert isinstance(done.exception, RuntimeUnavailableError)
    assert "--target-arch, or give --hardware-compatible" in str(done.exception)


def test_ctrl_c_stops_a_build_and_keeps_nothing_of_it(tmp_path):
    rtx()
    for file in BUNDLE.iterdir():
        (tmp_path / file.name).symlink_to(file)
    arguments = ["models", "compile", str(tmp_path), "--runtime", "tensorrt-rtx", "--target-arch", "sm89"]
    process = subprocess.Popen(
        [sys.executable, ROOT / "app.py", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folder = EngineFolder(tmp_path)
    deadline = time.monotonic() + 60
    while not any(record.role == "text" for record in folder.records()) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)
    assert process.returncode == STOPPED, said
    assert "decoder.onnx was stopped" in said[1]
    assert {record.role for record in folder.records()} == {"vision", "text"}
