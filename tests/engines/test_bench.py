"""Stage by stage: what is measured adds up, and tensors on a device are timed on their way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engines.bench import bench, table
from engines.bundle import read_bundle
from engines.stage_times import DOWNLOAD, UPLOAD, Percentiles, StageTimes, timed_session

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tests" / "assets" / "shapes_bundle"
PICTURES = sorted((ROOT / "tests" / "assets" / "shapes_pictures").glob("*.png"))


def test_percentiles_are_numpy_s():
    found = Percentiles.of(list(range(1, 101)))
    assert (found.p50_ms, found.p95_ms, found.p99_ms, found.n) == (50.5, 95.05, 99.01, 100)


def test_what_runs_twice_in_a_turn_is_added_up():
    times = StageTimes()
    times.add("text", 2.0)
    times.add("text", 3.0)
    times.add("decoder", 1.0)
    assert times.turn_ms == 6.0
    assert times.end_turn() == {"text": 5.0, "decoder": 1.0}
    assert times.end_turn() == {}
    assert times.entries == {"text": [5.0], "decoder": [1.0]}


class Far:
    shape, dtype, ndim, nbytes, device = (1, 3), np.dtype(np.float32), 2, 12, "cuda:0"

    def __init__(self, array):
        self.array = array

    def __getitem__(self, row):
        return Far(self.array[row])

    def kept_row(self, row):
        return Far(self.array[row : row + 1])

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)


class FarSession:
    runtime, device = "tensorrt", "cuda:0"

    def run(self, feeds):
        raise AssertionError("outputs would leave the device")

    def run_kept(self, feeds):
        assert isinstance(feeds["image"], Far)
        return {"double": Far(feeds["image"].array * 2)}

    def upload(self, array):
        return Far(array)


def test_the_way_to_a_device_and_back_is_timed_apart():
    times = StageTimes()
    session = timed_session(FarSession(), "vision", times)
    feed = np.ones((1, 3), np.float32)
    kept = session.run_kept({"image": feed})["double"]
    assert set(times.end_turn()) == {UPLOAD, "vision"}
    again = session.run_kept({"image": kept})["double"]
    np.testing.assert_array_equal(np.asarray(again[0]), feed[0] * 4)
    np.testing.assert_array_equal(np.asarray(again.kept_row(0)), feed * 4)
    assert set(times.end_turn()) == {UPLOAD, "vision", DOWNLOAD}
    np.testing.assert_array_equal(session.run({"image": feed})["double"], feed * 2)


def test_the_stages_of_sam_3_are_told_apart_and_add_up():
    report = bench(read_bundle(BUNDLE), PICTURES[:2], ["circle", "square"], 4, (1, 2), "onnxruntime", "cpu")
    assert set(report.stages) == {"read", "resize", "vision", "text", "decoder", "masks"}
    assert (report.first_query.n, report.edit.n) == (2, 8)
    assert report.stages["vision"].n == 2 and report.stages["decoder"].n == 10
    assert report.edit.p50_ms < report.first_query.p50_ms
    assert set(report.images_per_s) == {1, 2} and min(report.images_per_s.values()) > 0
    lines = table(report)
    assert [line.split()[0] for line in lines[3:11]] == [
        *("read", "resize", "vision", "text", "decoder", "masks", "first", "edit"),
    ]


def run(*arguments):
    command = [sys.executable, str(ROOT / "app.py"), "models", "bench", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, encoding="utf-8")


def test_the_command_prints_json(tmp_path):
    done = run(BUNDLE, "--images", PICTURES[0].parent, "--phrase", "circle", "--edits", 2, "--pictures", 1, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["n_pictures"] == 1 and report["stages"]["decoder"]["p50_ms"] > 0


@pytest.mark.parametrize("folder", ["none", "empty"])
def test_without_pictures_there_is_one_sentence(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    done = run(BUNDLE, "--images", tmp_path / folder)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and folder in done.stderr
