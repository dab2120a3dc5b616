"""A Triton repository and a server, through the commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tritonclient.grpc", reason="the extra [triton] is not installed")
ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tests" / "assets" / "shapes_bundle"
PICTURES = ROOT / "tests" / "assets" / "shapes_pictures"
sys.path.append(str(ROOT / "tests" / "engines"))
from triton_server import serving  # noqa: E402


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "app.py"), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, encoding="utf-8")


def test_a_folder_is_pre_labelled_by_a_server_as_it_is_here(tmp_path):
    written = run("models", "export", "--model", BUNDLE, "--triton", tmp_path / "repository")
    assert written.returncode == 0, written.stderr
    assert [Path(line).parent for line in written.stdout.splitlines()] == [tmp_path / "repository"] * 3
    shared = ["prelabel", PICTURES, "--phrase", "circle", "--phrase", "red square", "--model", BUNDLE]
    with serving(tmp_path / "repository") as (address, servicer):
        there = run(*shared, "--project", tmp_path / "there", "--runtime", "triton", "--device", address)
        assert there.returncode == 0, there.stderr
        assert all(servicer.n_runs.values())
    here = run(*shared, "--project", tmp_path / "here", "--runtime", "onnxruntime")
    counts = [line for line in here.stdout.splitlines() if line.endswith(" new")]
    assert len(counts) == 2 and not all(line.endswith(": 0 new") for line in counts)
    assert counts == [line for line in there.stdout.splitlines() if line.endswith(" new")]


@pytest.mark.parametrize(
    "arguments",
    [[], ["--checkpoint", "x"], ["--model", BUNDLE], ["--model", BUNDLE, "--triton", "x", "--checkpoint", "y"]],
)
def test_what_is_to_be_exported_must_be_said(arguments):
    done = run("models", "export", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and "--model and --triton" in done.stderr
