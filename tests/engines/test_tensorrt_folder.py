"""Kept engines: whole or not there, found by what they were made from, shared between processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from engine_recipes import keep, recipe

from engines.errors import EngineFolderError
from engines.tensorrt_engines.folder import EngineFolder
from engines.tensorrt_engines.key import BuildOptions
from engines.tensorrt_engines.library import PORTABLE
from engines.tensorrt_engines.record import FAILED, PASSED, UNCHECKED, Verdict

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name, appauthor: tmp_path / "cache" / name)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bundle").mkdir()
    return EngineFolder(tmp_path / "bundle")


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_an_engine_lies_in_the_bundle_named_by_role_and_key(folder, tmp_path):
    record = keep(folder)
    assert record.path == tmp_path / "bundle" / "engines" / f"decoder-{recipe().key[:16]}.engine"
    assert names(record.path.parent) == [record.path.name, record.path.with_suffix(".json").name]
    assert folder.content(record) == b"plan"


def test_the_record_beside_an_engine_tells_everything_of_it(folder):
    record = keep(folder, b"12345")
    stored = json.loads(record.path.with_suffix(".json").read_text("utf-8"))
    assert stored["key"] == recipe().key
    assert stored["recipe"]["profiles"][0]["most"] == [4, 20, 4]
    assert (stored["size_bytes"], stored["build_s"], stored["n_layers"]) == (5, 1.5, 9)
    assert stored["tools"] == {"tensorrt-rtx": "1.7.1.116"}
    assert stored["verdict"] == {"state": UNCHECKED, "report": "", "architecture": ""}
    assert abs((datetime.now(UTC) - record.built_at).total_seconds()) < 60
    assert folder.records() == [record]


def test_a_role_cannot_lead_out_of_the_folder(folder, tmp_path):
    record = keep(folder, role="../../evil/x")
    assert record.path.parent == tmp_path / "bundle" / "engines"
    assert folder.find("../../evil/x", recipe()) == record


@pytest.mark.parametrize(
    "change", [{"graph_sha256": "cd" * 32}, {"version": "1.8"}, {"runtime": "tensorrt"}, {"architecture": "sm120"}]
)
def test_a_stale_or_foreign_engine_is_not_found(folder, change):
    keep(folder)
    assert folder.load("decoder", recipe(**change)) is None
    assert folder.load("text", recipe()) is None


def test_the_engine_of_exactly_the_recipe_goes_before_one_that_also_serves(folder):
    portable = keep(folder, b"portable", architecture=PORTABLE, options=BuildOptions(2))
    assert folder.find("decoder", recipe()) == portable
    assert folder.find("decoder", recipe(), exactly=True) is None
    exact = keep(folder, b"exact")
    assert folder.find("decoder", recipe()) == exact


@pytest.mark.parametrize("damage", [b"pla", b"", b"plaN", b"plan more"])
def test_a_damaged_engine_is_never_loaded(folder, damage, caplog):
    record = keep(folder)
    record.path.write_bytes(damage)
    assert folder.load("decoder", recipe()) is None
    keep(folder)
    assert folder.load("decoder", recipe()).content == b"plan"


@pytest.mark.parametrize(
    "record_text",
    ["", "{", "[]", "null", '{"format": 1}', "{}\n"],
)
def test_an_engine_without_a_readable_record_is_not_there(folder, record_text):
    record = keep(folder)
    record.path.with_suffix(".json").write_text(record_text, "utf-8")
    assert folder.records() == []


def test_a_record_changed_by_hand_does_not_count(folder):
    record = keep(folder)
    path = record.path.with_suffix(".json")
    path.write_text(path.read_text("utf-8").replace("sm89", "sm90"), "utf-8")
    assert folder.records() == []


def test_a_record_cannot_point_outside(folder, tmp_path):
    record = keep(folder)
    path = record.path.with_suffix(".json")
    (tmp_path / "bundle" / "other").write_bytes(b"plan")
    path.write_text(path.read_text("utf-8").replace(f'"{record.path.name}"', '"../other"'), "utf-8")
    assert folder.records() == []


def test_a_verdict_holds_for_the_architecture_it_was_reached_on(folder):
    record = folder.judge(keep(folder, architecture=PORTABLE), Verdict(PASSED, "engines/report.md", "sm90"))
    [read] = folder.records()
    assert read == record
    assert read.verdict_on("sm90").state == PASSED
    assert read.verdict_on("sm120").state == UNCHECKED
    folder.judge(read, Verdict(FAILED, "engines/report.md", "sm120"))
    assert folder.records()[0].verdict_on("sm120") == Verdict(FAILED, "engines/report.md", "sm120")


def test_a_new_engine_is_unchecked_again(folder):
    folder.judge(keep(folder), Verdict(FAILED, "report.md", "sm89"))
    assert keep(folder).verdict == Verdict()


def test_clean_leaves_what_is_current_and_what_is_not_ours(folder):
    old, current = keep(folder, graph_sha256="cd" * 32), keep(folder, b"new")
    place = current.path.parent
    (place / "notes.txt").write_text("mine")
    (place / f"decoder-{'0' * 16}.engine.new").write_bytes(b"left by a killed process")
    (place / f"text-{'1' * 16}.engine").write_bytes(b"without a record")
    kept = [current.path.name, current.path.with_suffix(".json").name]
    dropped = folder.clean(lambda record: record.key == recipe().key)
    assert names(place) == sorted([*kept, "notes.txt"])
    assert old.path.name not in names(place)
    assert f"decoder-{'0' * 16}.engine.new" in dropped


def test_clean_deletes_damaged_engines_and_says_so(folder):
    record = keep(folder)
    record.path.write_bytes(b"plaN")
    assert sorted(folder.clean(lambda _: True)) == sorted([record.path.name, record.path.with_suffix(".json").name])


def test_a_read_only_bundle_keeps_its_engines_in_the_cache(tmp_path, monkeypatch):
    (tmp_path / "bundle").mkdir()
    make_folder = Path.mkdir

    def refuse(path, *args, **kwargs):
        if path.is_relative_to(tmp_path / "bundle"):
            raise PermissionError(13, "Permission denied")
        make_folder(path, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", refuse)
    record = keep(EngineFolder(tmp_path / "bundle"))
    assert record.path.is_relative_to(tmp_path / "cache" / "phrasemask" / "engines")
    assert EngineFolder(tmp_path / "bundle").load("decoder", recipe()).content == b"plan"
    (tmp_path / "elsewhere").mkdir()
    make_folder(tmp_path / "elsewhere" / "bundle")
    assert EngineFolder(tmp_path / "elsewhere" / "bundle").records() == []


def test_engines_that_came_with_a_read_only_bundle_are_used(tmp_path, monkeypatch):
    folder = EngineFolder(tmp_path / "bundle")
    (tmp_path / "bundle").mkdir()
    keep(folder)
    monkeypatch.setattr(EngineFolder, "writable", lambda self: self.places[1])
    assert folder.load("decoder", recipe()).content == b"plan"


def test_where_nothing_can_be_written_it_is_said(tmp_path, monkeypatch):
    def refuse(path, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(EngineFolderError, match=r"engines cannot be kept in .*bundle.*: No space left on device"):
        keep(EngineFolder(tmp_path / "bundle"))


def test_a_disk_that_fills_up_while_writing_leaves_nothing_behind(folder, monkeypatch):
    def refuse(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(EngineFolderError, match="No space left on device"):
        keep(folder)
    assert names(folder.places[0]) == []


KEEPER = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/tests/engines"]
from engine_recipes import keep
from engines.tensorrt_engines.folder import EngineFolder
folder = EngineFolder(Path(sys.argv[2]))
print("ready", flush=True)
for number in range(10_000):
    keep(folder, bytes([number % 256]) * 3_000_000)
"""


def test_a_process_killed_while_writing_leaves_a_whole_engine_or_none(tmp_path):
    pytest.importorskip("onnx")
    (tmp_path / "bundle").mkdir()
    folder = EngineFolder(tmp_path / "bundle")
    for wait_s in (0.0, 0.004, 0.011, 0.02, 0.05):
        process = subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(ROOT), str(tmp_path / "bundle")], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        time.sleep(wait_s)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        engine = folder.load("decoder", recipe())
        assert engine is None or len(set(engine.content)) == 1
    keep(folder, b"new")
    folder.clean(lambda _: True)
    assert folder.load("decoder", recipe()).content == b"new"
    assert len(names(folder.places[0])) == 2


def test_one_waits_while_another_builds_and_can_give_up(folder):
    asked = []

    def give_up():
        asked.append(True)
        return len(asked) < 2

    with folder.alone(lambda: True) as first:
        assert first
        with folder.alone(give_up) as second:
            assert not second
    assert len(asked) == 2
    with folder.alone(lambda: False) as third:
        assert third


def test_threads_of_one_process_wait_for_each_other_too(folder):
    inside, most = [], []

    def work():
        with folder.alone(lambda: True):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def hold(bundle: Path, held) -> None:
    with EngineFolder(bundle).alone(lambda: True):
        held.set()
        time.sleep(60)


def test_a_killed_builder_does_not_block_the_others(folder, tmp_path):
    context = multiprocessing.get_context("fork")
    held = context.Event()
    process = context.Process(target=hold, args=(tmp_path / "bundle", held))
    process.start()
    assert held.wait(20)
    with folder.alone(lambda: False) as too_early:
        assert not too_early
    process.kill()
    process.join()
    process.close()
    with folder.alone(lambda: True) as free:
        assert free
