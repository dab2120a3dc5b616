"""The commands as a person or a script runs them: as a process, with its exit code and its two streams."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from page_on_screen import free_port
from projects import write_pictures
from pycocotools.coco import COCO

ROOT = Path(__file__).parents[2]


def start(*arguments: str | Path, **options) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "app.py"), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", **options
    )


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    process = start(*arguments)
    stdout, stderr = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def assert_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr
    assert done.stdout == ""


@pytest.fixture
def images(tmp_path):
    return write_pictures(tmp_path / "images", "a.png", "b.png", "sub/a.png")


def test_the_samples_are_labelled_and_exported_by_the_readme_s_example(tmp_path):
    project, out = tmp_path / "project", tmp_path / "out"
    phrases = ["--phrase", "person", "--phrase", "cat", "--phrase", "coffee cup=cup"]
    done = run("prelabel", ROOT / "samples", *phrases, "--project", project)
    assert done.returncode == 0, done.stderr
    assert "'coffee cup': matched as: cup" in done.stderr.splitlines()
    done = run("export", "--project", project, "--out", out, "--decision", "all")
    assert done.returncode == 0, done.stderr
    dataset = json.loads((out / "instances.json").read_text(encoding="utf-8"))
    assert [category["name"] for category in dataset["categories"]] == ["person", "cat", "cup"]
    coco = COCO(out / "instances.json")
    assert {coco.anns[key]["category_id"] for key in coco.anns} == {1, 2, 3}
    assert all(coco.annToMask(coco.anns[key]).sum() == coco.anns[key]["area"] for key in coco.anns)


def test_bad_files_are_named_and_the_exit_code_says_so(images, tmp_path):
    (images / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    done = run("prelabel", images, "--phrase", "cat", "--project", tmp_path / "project")
    assert done.returncode == 1
    assert "failed broken.jpg: " in done.stderr
    assert "4 images: 3 done" in done.stdout


def test_a_folder_of_bad_files_only_is_nothing_done(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "broken.jpg").write_bytes(b"")
    assert run("prelabel", tmp_path / "images", "--phrase", "cat", "--project", tmp_path / "project").returncode == 2


def test_prelabel_can_export_in_the_same_run(images, tmp_path):
    arguments = ["--phrase", "cat", "--project", tmp_path / "project", "--export", tmp_path / "out"]
    assert run("prelabel", images, *arguments).returncode == 0
    assert json.loads((tmp_path / "out" / "instances.json").read_text())["annotations"] == []


def test_status_counts_for_programs_and_for_people(images, tmp_path):
    run("prelabel", images, "--phrase", "coffee cup=cup", "--project", tmp_path / "project")
    status = json.loads(run("status", "--project", tmp_path / "project", "--json").stdout)
    assert status["images"] == {"total": 3, "untouched": 3, "suggested": 0, "done": 0, "failed": 0, "missing": 0}
    assert status["categories"] == {"cup": {"pending": 0, "accepted": 0, "rejected": 0}}
    assert status["phrases"] == {"coffee cup": "cup"}
    assert "images: 3 total" in run("status", "--project", tmp_path / "project").stdout


def test_a_checkpoint_that_is_none_gets_one_sentence(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    done = run("models", "export", "--checkpoint", tmp_path / "checkpoint", "--out", tmp_path / "bundle")
    assert_one_sentence(done, "checkpoint")
    assert not (tmp_path / "bundle").exists()


def test_a_model_without_check_files_cannot_be_checked():
    assert_one_sentence(run("models", "check", "starter"), "starter", "no answers of its original", "models compare")


def test_a_model_that_has_failed_its_check_is_used_only_by_force(images, tmp_path):
    bundle = shutil.copytree(ROOT / "tests" / "assets" / "shapes_bundle", tmp_path / "bundle")
    report = json.loads((bundle / "check_report.json").read_text())
    report["failures"] = ["'circle' on a picture loses 1 of 2 instances"]
    (bundle / "check_report.json").write_text(json.dumps(report))
    arguments = ["prelabel", images, "--phrase", "circle", "--project", tmp_path / "project", "--model", bundle]
    assert_one_sentence(run(*arguments), "failed its check", "loses 1 of 2", "--force")
    assert run(*arguments, "--force").returncode == 0


def test_models_lists_the_starter_and_the_runtimes():
    done = run("models")
    assert done.returncode == 0
    assert "starter: Starter" in done.stdout
    assert "family starter, precision fp32, licence Apache-2.0" in done.stdout
    assert "runtime onnxruntime (ONNX Runtime): runs on cpu" in done.stdout


@pytest.mark.parametrize(
    "command", ["serve", "prelabel", "export", "status", "models", "models export", "models check", "models compare"]
)
def test_every_command_explains_itself_with_an_example(command):
    done = run(*command.split(), "--help")
    assert done.returncode == 0
    assert f"Example: python app.py {command}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "{tmp}/none"], ["there is no folder", "none"]),
        (["prelabel", "{tmp}/none", "--phrase", "cat", "--project", "{tmp}/p"], ["there is no folder", "none"]),
        (["prelabel", "{images}", "--phrase", "  ", "--project", "{tmp}/p"], ["phrase", "empty"]),
        (["prelabel", "{images}", "--project", "{tmp}/p"], ["no phrase is given"]),
        (["prelabel", "{images}", "--phrases", "{tmp}/no.txt", "--project", "{tmp}/p"], ["no.txt cannot be read"]),
        (["prelabel", "{images}", "--phrase", "cat", "--project", "{tmp}/p", "--model", "sam9"], ["no model 'sam9'"]),
        (["prelabel", "{images}", "--phrase", "cat", "--project", "{tmp}/p", "--model", "{images}"], ["manifest.json"]),
        (["prelabel", "{images}", "--phrase", "a", "--project", "{tmp}/p", "--runtime", "x"], ["no runtime 'x'"]),
        (["prelabel", "{images}", "--phrase", "a", "--project", "{tmp}/p", "--device", "cuda:77"], ["'cuda:77'"]),
        (["export", "--project", "{tmp}/none", "--out", "{tmp}/out"], ["there is no project"]),
        (["status", "--project", "{tmp}/none"], ["there is no project"]),
        (["serve", "{images}", "--host", "0.0.0.0"], ["--auth"]),
        (["serve", "{images}", "--auth", "anna"], ["colon"]),
        (["serve", "{images}", "--host", "not.a.host", "--auth", "a:b", "--project", "{tmp}/p"], ["is no address"]),
        (["export", "--project", "", "--out", "{tmp}/out"], ["one argument is empty"]),
        (["serve", "{images}", "--project", "{images}/a.png/p"], ["a.png"]),
    ],
)
def test_wrong_usage_gets_one_sentence(arguments, words, images, tmp_path):
    filled = [argument.format(tmp=tmp_path, images=images) for argument in arguments]
    assert_one_sentence(run(*filled), *words)
    assert not (tmp_path / "out").exists()


def test_an_unknown_decision_names_the_choices(images, tmp_path):
    run("prelabel", images, "--phrase", "cat", "--project", tmp_path / "project")
    done = run("export", "--project", tmp_path / "project", "--out", tmp_path / "out", "--decision", "maybe")
    assert_one_sentence(done, "accepted, pending, all")


def test_a_port_in_use_is_said(images, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("serve", images, "--project", tmp_path / "project", "--port", port, "--no-browser")
    assert done.returncode == 2
    assert f"port {port} on 127.0.0.1 is in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_stops_quietly_on_ctrl_c(images, tmp_path):
    port = free_port()
    process = start("serve", images, "--project", tmp_path / "project", "--port", port, "--no-browser")
    said = iter(process.stderr.readline, "")  # before the address, it may say that a runtime cannot be used
    assert any(f"http://127.0.0.1:{port}" in line for line in said)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0


def test_a_project_of_a_later_version_is_left_untouched(images, tmp_path):
    run("prelabel", images, "--phrase", "cat", "--project", tmp_path / "project")
    file = tmp_path / "project" / "project.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = file.read_bytes()
    assert_one_sentence(run("status", "--project", tmp_path / "project"), "update Phrasemask")
    assert file.read_bytes() == before


@pytest.mark.parametrize("phrase", ["很长的猫", "x" * 5000, "the " * 1250 + "cat"])
def test_odd_phrases_are_answered_in_words(phrase, images, tmp_path):
    done = run("prelabel", images, "--phrase", phrase, "--project", tmp_path / "project")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def wait_for_runs(project: Path, n: int) -> None:
    """Until that many images are finished."""
    uri = f"file:{project / 'project.sqlite'}?mode=ro"
    for _ in range(600):
        time.sleep(0.1)
        try:
            with closing(sqlite3.connect(uri, uri=True)) as database:
                if database.execute("SELECT count(*) FROM finished_run").fetchone()[0] >= n:
                    return
        except sqlite3.OperationalError:
            pass  # not made yet
    raise AssertionError("no image was finished in a minute")


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    images = write_pictures(tmp_path / "images", *(f"{number:03}.png" for number in range(12)), size=(320, 240))
    project = tmp_path / "project"
    arguments = ["prelabel", images, "--phrase", "cat", "--project", project]
    for n_done in (1, 3):
        process = start(*arguments)
        wait_for_runs(project, n_done)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    done = run(*arguments, "--json")
    assert done.returncode == 0
    summary = json.loads(done.stdout)
    assert summary["done"] + summary["skipped"]["done_before"] == summary["images"] == 12
    assert summary["skipped"]["done_before"] >= 3
    with closing(sqlite3.connect(project / "project.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM finished_run").fetchone() == (12,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_ctrl_c_ends_a_run_after_the_images_in_work_with_a_word_on_how_to_go_on(tmp_path):
    images = write_pictures(tmp_path / "images", *(f"{number:03}.png" for number in range(60)), size=(320, 240))
    process = start("prelabel", images, "--phrase", "cat", "--project", tmp_path / "project", "--json")
    wait_for_runs(tmp_path / "project", 1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "press Ctrl+C again to stop at once" in stderr
    assert "of 60 images; run it again to go on" in stderr
    summary = json.loads(stdout)
    assert summary["stopped"] is True
    assert 1 <= summary["done"] < 20


def test_a_second_ctrl_c_ends_a_run_at_once(tmp_path):
    images = write_pictures(tmp_path / "images", *(f"{number:03}.png" for number in range(60)), size=(320, 240))
    process = start("prelabel", images, "--phrase", "cat", "--project", tmp_path / "project")
    wait_for_runs(tmp_path / "project", 1)
    process.send_signal(signal.SIGINT)
    assert any("press Ctrl+C again" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=5)
    assert process.returncode == 130


def test_files_that_fail_alike_end_a_run_with_its_summary(tmp_path):
    (tmp_path / "images").mkdir()
    for number in range(4):
        (tmp_path / "images" / f"{number}.jpg").write_bytes(b"")
    arguments = ["--phrase", "cat", "--project", tmp_path / "project", "--max-equal-errors", "3", "--json"]
    done = run("prelabel", tmp_path / "images", *arguments)
    assert done.returncode == 2
    assert len(json.loads(done.stdout)["failed"]) == 3
    assert "error: stopped: on 3 images in a row" in done.stderr


def test_status_tells_the_runs_apart(tmp_path):
    images = write_pictures(tmp_path / "images", "a.png")
    for threshold in ("0.5", "0.7"):
        arguments = ["--phrase", "cat", "--project", tmp_path / "project", "--score-threshold", threshold]
        assert run("prelabel", images, *arguments).returncode == 0
    runs = json.loads(run("status", "--project", tmp_path / "project", "--json").stdout)["runs"]
    assert [(one["model"], one["score_threshold"]) for one in runs] == [
        ("starter (fp32)", 0.5),
        ("starter (fp32)", 0.7),
    ]
    assert runs[0]["phrases"] == {"cat": {"images": 1, "suggestions": 0}}
    lines = run("status", "--project", tmp_path / "project").stdout.splitlines()
    assert sum(line.startswith("run of starter (fp32) at 0.") for line in lines) == 2


def test_names_of_any_language_are_printed(tmp_path):
    images = write_pictures(tmp_path / "images", "名前 & émoji 🐈.png")
    (images / "名前 壊れた.jpg").write_bytes(b"no")
    done = run("prelabel", images, "--phrase", "cat", "--project", tmp_path / "project")
    assert "failed 名前 壊れた.jpg" in done.stderr
