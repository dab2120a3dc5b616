"""Checking and comparing models through the commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tests" / "assets" / "shapes_bundle"
PICTURES = ROOT / "tests" / "assets" / "shapes_pictures"
sys.path.append(str(ROOT / "tests" / "engines"))
from contract_models import write_contract  # noqa: E402


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "app.py"), "models", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, encoding="utf-8")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Files of others that take phrases only, and follow transformers."""
    return write_contract("sam3_danilobukvic", tmp_path_factory.mktemp("foreign") / "theirs")


def test_a_model_without_answers_of_its_original_says_what_to_do_instead(foreign):
    for model in ("starter", foreign):
        done = run("check", model)
        assert (done.returncode, done.stdout) == (2, "")
        [sentence] = done.stderr.splitlines()
        assert "holds no answers of its original" in sentence and "models compare OTHER" in sentence


def test_a_model_is_compared_with_files_of_others_on_its_own_check_pictures(foreign):
    done = run("compare", BUNDLE, foreign)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A is shapes_bundle: fp32, run by onnxruntime on cpu\nB is theirs: ")
    assert "    note: phrases only, no boxes\n" in done.stdout
    assert "checks/picture_0.png, 'red circle': A finds 2, B 2 (0 lost, 0 gained); score drift 0." in done.stdout
    assert "\ntogether: of 6 instances of A, B finds 6, and " in done.stdout
    refused = [line for line in done.stderr.splitlines() if line.startswith("left out: ")]
    assert len(refused) == 3 and all("takes phrases only" in line for line in refused)


def test_other_pictures_and_phrases_can_be_asked_and_a_broken_picture_is_named(tmp_path):
    shutil.copy(PICTURES / "shapes_01.png", tmp_path)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    asked = ["--images", tmp_path, "--phrase", "blue  circle", "--phrase", "cross", "--json"]
    done = run("compare", BUNDLE, BUNDLE, *asked)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert [(case["picture"], case["phrase"]) for case in told["cases"]] == [
        ("shapes_01.png", "blue circle"),
        ("shapes_01.png", "cross"),
    ]
    assert told["n_expected"] >= 1
    assert (told["n_lost"], told["n_gained"], told["mean_iou"], told["score_drift"]) == (0, 0, 1, 0)
    assert told["measure"]["bundle_id"] == told["other"]["bundle_id"]
    assert [(one["picture"], one["failed"]) for one in told["left_out"]] == [("broken.png", True)] * 2
    assert done.stderr.count("broken.png") >= 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--images", PICTURES], "--phrase person"),
        (["--images", ROOT / "docs" / "decisions", "--phrase", "cat"], "there are no pictures in"),
        (["--images", PICTURES / "none", "--phrase", "cat"], "there is no folder"),
        (["--phrase", " "], "the phrase is empty"),
        (["--phrase", "..."], "nothing could be compared"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments, sentence):
    done = run("compare", BUNDLE, BUNDLE, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr.splitlines()[-1]
