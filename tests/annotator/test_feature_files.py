"""Encoded pictures on the disk: read back as they were, bounded, and never wrong, whatever happens to the files."""

from __future__ import annotations

import errno
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from annotator import feature_files
from annotator.feature_files import FeatureFiles
from engines.types import ImageFeatures

ROOT = Path(__file__).parents[2]


def features(image_id: str = "image", seed: int = 0, size: int = 1000) -> ImageFeatures:
    generator = np.random.default_rng(seed)
    tensors = {
        "fine": generator.standard_normal((1, size)).astype(np.float32),
        "half": generator.standard_normal((1, 10)).astype(np.float16),
        "whole": generator.integers(0, 9, (2, 3)),
        "large": np.array([1.0, 1e6], np.float32),
        "small": np.array([3e-8, 2e-8], np.float32),
        "endless": np.array([np.inf, np.nan, 1.0], np.float32),
        "none": np.zeros((0, 4), np.float32),
        "lone": np.array(True),
    }
    return ImageFeatures("bundle", image_id, 480, 640, tensors, sum(one.nbytes for one in tensors.values()))


def kept(folder: Path, *items: ImageFeatures, limit_bytes: int = 10**9) -> None:
    files = FeatureFiles(folder, limit_bytes)
    for item in items:
        files.put("graph", item)
        while not files._jobs.empty():
            time.sleep(0.001)
    files.close()


def read(folder: Path, image_id: str = "image", graph: str = "graph") -> ImageFeatures | None:
    files = FeatureFiles(folder)
    found = files.get(graph, image_id, "other bundle")
    files.close()
    return found


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def make_old(path: Path, age_s: float) -> None:
    os.utime(path, (time.time() - age_s, time.time() - age_s))


def refuse(*_args: object, **_options: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_features_come_back_in_half_precision_with_the_dtypes_they_had(tmp_path):
    before = features()
    kept(tmp_path, before)
    after = read(tmp_path)
    assert (after.bundle_id, after.image_id, after.height, after.width) == ("other bundle", "image", 480, 640)
    assert {name: (one.dtype, one.shape) for name, one in after.tensors.items()} == {
        name: (one.dtype, one.shape) for name, one in before.tensors.items()
    }
    np.testing.assert_array_equal(after.tensors["fine"], before.tensors["fine"].astype(np.float16))
    for exact in before.tensors.keys() - {"fine"}:
        np.testing.assert_array_equal(after.tensors[exact], before.tensors[exact])
    assert after.nbytes == before.nbytes


def test_half_precision_takes_half_the_room(tmp_path):
    kept(tmp_path, features(size=100_000))
    (path,) = files_in(tmp_path)
    assert path.stat().st_size < 202_000


def test_features_of_another_graph_or_picture_are_not_found(tmp_path):
    kept(tmp_path, features())
    assert read(tmp_path, graph="another") is None
    assert read(tmp_path, "another") is None


class OnADevice:
    """A tensor that lies elsewhere and can be brought to the host."""

    nbytes = 8

    def __array__(self, dtype=None, copy=None):
        return np.array([1.5, 2.5], np.float32)


def test_a_tensor_on_a_device_is_brought_to_the_disk(tmp_path):
    kept(tmp_path, ImageFeatures("bundle", "image", 2, 3, {"there": OnADevice()}, 8, "cuda:0"))
    found = read(tmp_path)
    np.testing.assert_array_equal(found.tensors["there"], [1.5, 2.5])
    assert found.device == "cpu"


def test_a_file_with_any_bit_flipped_is_removed_and_counts_as_absent(tmp_path):
    small = ImageFeatures("bundle", "image", 2, 3, {"a": np.ones((1, 12, 7), np.float32)}, 336)
    kept(tmp_path, small)
    (path,) = files_in(tmp_path)
    content = path.read_bytes()
    files = FeatureFiles(tmp_path)
    for position in range(len(content)):
        altered = bytearray(content)
        altered[position] ^= 1 << position % 8
        path.write_bytes(altered)
        assert files.get("graph", "image", "bundle") is None, position
        assert not path.exists()
    files.close()


def test_a_file_that_is_cut_off_anywhere_counts_as_absent(tmp_path):
    kept(tmp_path, features(size=20))
    (path,) = files_in(tmp_path)
    content = path.read_bytes()
    files = FeatureFiles(tmp_path)
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        assert files.get("graph", "image", "bundle") is None, length
    path.write_bytes(content + b"\0")
    assert files.get("graph", "image", "bundle") is None
    files.close()


@pytest.mark.parametrize("content", ["text", "archive", "another picture's"])
def test_a_file_of_something_else_counts_as_absent(tmp_path, content):
    kept(tmp_path, features())
    (path,) = files_in(tmp_path)
    if content == "text":
        path.write_text("something else " * 100)
    elif content == "archive":
        with path.open("wb") as file:
            np.savez(file, description=np.zeros(3), allow_pickle=False)
    else:
        kept(tmp_path, features("another"))
        (other,) = (one for one in files_in(tmp_path) if one != path)
        other.replace(path)
    assert read(tmp_path) is None
    assert not path.exists()


def test_what_was_used_least_recently_goes_first(tmp_path):
    kept(tmp_path, *(features(name, size=100_000) for name in "abc"))
    one = files_in(tmp_path)[0].stat().st_size
    for path in files_in(tmp_path):
        make_old(path, 1000)
    for age, name in ((30, "c"), (20, "b"), (10, "a")):
        read(tmp_path, name)
        (used,) = (path for path in files_in(tmp_path) if path.stat().st_mtime > time.time() - 5)
        make_old(used, age)
    kept(tmp_path, features("d", size=100_000), limit_bytes=int(3.5 * one))
    assert [name for name in "abcd" if read(tmp_path, name)] == ["a", "b", "d"]
    kept(tmp_path, limit_bytes=int(1.5 * one))
    assert len(files_in(tmp_path)) == 1


def test_several_writers_keep_the_limit_together(tmp_path):
    kept(tmp_path, features("first", size=100_000))
    one = files_in(tmp_path)[0].stat().st_size
    writers = [FeatureFiles(tmp_path, 4 * one) for _ in range(3)]
    for number in range(5):
        for index, writer in enumerate(writers):
            writer._write("graph", features(f"{index} {number}", size=100_000))
            assert sum(path.stat().st_size for path in files_in(tmp_path)) <= 4 * one
    for writer in writers:
        writer.close()
    assert len(files_in(tmp_path)) == 4


def test_what_somebody_else_put_into_the_folder_stays(tmp_path):
    own = [
        tmp_path / "ab" / "thesis.features",
        tmp_path / "ab" / ".x.part",
        tmp_path / "photos" / f"{'0' * 40}.features",
    ]
    for path in own:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10_000)
        make_old(path, 10**6)
    kept(tmp_path, features(), limit_bytes=9_000)
    assert all(path.exists() for path in own)


def test_features_are_read_from_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    kept(tmp_path, features())
    monkeypatch.setattr(os, "utime", refuse)
    assert read(tmp_path) is not None


def test_a_file_that_may_not_be_read_counts_as_absent_and_stays(tmp_path, monkeypatch):
    kept(tmp_path, features())
    monkeypatch.setattr(feature_files, "read_features", refuse)
    assert read(tmp_path) is None
    assert len(files_in(tmp_path)) == 1


def test_a_folder_that_cannot_be_made_is_said_once_and_work_goes_on(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        kept(tmp_path / "file", features("a"), features("b"))
    assert len(caplog.messages) == 1
    assert "encoded pictures are not kept in" in caplog.messages[0]


def test_a_disk_that_fills_while_writing_is_said_once_and_leaves_nothing_behind(tmp_path, monkeypatch, caplog):
    def fill(file, _pieces):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(feature_files, "write_pieces", fill)
    kept(tmp_path, features("a"), features("b"))
    assert files_in(tmp_path) == []
    assert len(caplog.messages) == 1
    assert "No space left on device" in caplog.text


def test_the_last_room_on_the_disk_is_left_to_the_person(tmp_path, monkeypatch, caplog):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 10**12 - 10**8, 10**8))
    kept(tmp_path, features())
    assert files_in(tmp_path) == []
    assert "the disk has less than 1 GB left" in caplog.text


def test_a_limit_below_one_picture_is_said_and_keeps_nothing(tmp_path, caplog):
    kept(tmp_path, features(), limit_bytes=100)
    assert files_in(tmp_path) == []
    assert "the limit is less than" in caplog.text


class Broken:
    nbytes = 8

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("the device is lost")


def test_a_device_that_fails_ends_the_writing_and_not_the_work(tmp_path, caplog):
    files = FeatureFiles(tmp_path)
    for _ in range(5):
        files.put("graph", ImageFeatures("bundle", "image", 2, 3, {"there": Broken()}, 8))
    closing = threading.Thread(target=files.close)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    assert len(caplog.messages) == 1 and "the device is lost" in caplog.text


def test_parts_of_a_killed_process_are_removed_when_they_are_old(tmp_path):
    kept(tmp_path, features())
    folder = files_in(tmp_path)[0].parent
    old, new = (folder / f".{digit * 16}.features.part" for digit in "01")
    for part in (old, new):
        part.write_bytes(b"cut off")
    make_old(old, 7200)
    kept(tmp_path)
    assert not old.exists() and new.exists()


def test_a_slow_disk_holds_nobody_up(tmp_path, monkeypatch):
    files = FeatureFiles(tmp_path)
    monkeypatch.setattr(files, "_write", lambda *_: time.sleep(0.2))
    started = time.monotonic()
    for number in range(50):
        files.put("graph", features(str(number), size=10))
    assert time.monotonic() - started < 0.2
    files.close()


WRITER = """
import sys, time
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from test_feature_files import features
from annotator.feature_files import FeatureFiles
files = FeatureFiles(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(10_000):
    files.put("graph", features(str(number), number, 200_000))
    while files._jobs.full():
        time.sleep(0.001)
"""


def test_a_killed_writer_leaves_only_whole_files(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path), str(ROOT), str(Path(__file__).parent)]
    for _ in range(20):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(random.uniform(0.0, 0.15))
            process.send_signal(signal.SIGKILL)
    whole = list(tmp_path.rglob("*.features"))
    files = FeatureFiles(tmp_path)
    n_right = 0
    for number in range(1000):
        found = files.get("graph", str(number), "bundle")
        if found is not None:
            expected = features(str(number), number, 200_000).tensors["fine"].astype(np.float16)
            np.testing.assert_array_equal(found.tensors["fine"], expected)
            n_right += 1
    files.close()
    assert n_right == len(whole) > 0
