"""Encoded pictures on the disk: read back as they were, bounded, and never wrong, whatever happens to the files."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from annotator.feature_files import FeatureFiles
from annotator.predictor import Predictor
from engines.bundle import read_bundle
from engines.images import read_image
from engines.loader import load_segmenter
from engines.masks import iou_matrix
from engines.types import ImageFeatures, Phrase

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tests" / "assets" / "shapes_bundle"
PICTURES = sorted((ROOT / "tests" / "assets" / "shapes_pictures").glob("*.png"))


def features(image_id: str = "image", seed: int = 0, size: int = 1000) -> ImageFeatures:
    generator = np.random.default_rng(seed)
    tensors = {
        "fine": generator.standard_normal((1, size)).astype(np.float32),
        "half": generator.standard_normal((1, 10)).astype(np.float16),
        "whole": generator.integers(0, 9, (2, 3)),
        "large": np.array([1.0, 1e6], np.float32),
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


def test_features_come_back_in_half_precision_with_the_dtypes_they_had(tmp_path):
    before = features()
    kept(tmp_path, before)
    after = read(tmp_path)
    assert (after.bundle_id, after.image_id, after.height, after.width) == ("other bundle", "image", 480, 640)
    assert {name: one.dtype for name, one in after.tensors.items()} == {
        name: one.dtype for name, one in before.tensors.items()
    }
    np.testing.assert_array_equal(after.tensors["fine"], before.tensors["fine"].astype(np.float16))
    for exact in ("half", "whole", "large"):
        np.testing.assert_array_equal(after.tensors[exact], before.tensors[exact])
    assert after.nbytes == before.nbytes


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
    kept(tmp_path, ImageFeatures("bundle", "image", 2, 3, {"there": OnADevice()}, 8))
    np.testing.assert_array_equal(read(tmp_path).tensors["there"], [1.5, 2.5])


@pytest.mark.parametrize("damage", ["cut off", "altered", "empty", "foreign", "renamed"])
def test_a_damaged_file_is_removed_and_counts_as_absent(tmp_path, damage):
    kept(tmp_path, features())
    (path,) = files_in(tmp_path)
    content = path.read_bytes()
    if damage == "cut off":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "altered":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "foreign":
        path.write_bytes(b"something else")
    else:
        kept(tmp_path, features("another"))
        (other,) = (one for one in files_in(tmp_path) if one != path)
        other.replace(path)
    assert read(tmp_path) is None
    assert not path.exists()


def test_a_file_that_holds_an_object_is_not_unpickled(tmp_path):
    kept(tmp_path, features())
    (path,) = files_in(tmp_path)

    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    with path.open("wb") as file:
        np.savez(file, description=np.array([Trap()], dtype=object))
    assert read(tmp_path) is None
    assert not (tmp_path / "sprung").exists()


def test_what_was_used_least_recently_goes_first(tmp_path):
    size = 100_000
    kept(tmp_path, features("a", size=size))
    one = sum(path.stat().st_size for path in files_in(tmp_path))
    kept(tmp_path, features("b", size=size), features("c", size=size))
    for age, image_id in enumerate(("c", "b", "a")):
        FeatureFiles(tmp_path).get("graph", image_id, "bundle")
        for path in files_in(tmp_path):
            if path.stat().st_mtime > time.time() - 5:
                os.utime(path, (time.time() - 100 + age, time.time() - 100 + age))
    kept(tmp_path, features("d", size=size), limit_bytes=int(3.5 * one))
    assert [image_id for image_id in "abcd" if read(tmp_path, image_id)] == ["a", "b", "d"]
    kept(tmp_path, limit_bytes=int(1.5 * one))
    assert len(files_in(tmp_path)) == 1


def test_a_folder_that_cannot_be_written_is_said_once_and_work_goes_on(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        kept(tmp_path / "file", features("a"), features("b"))
    assert len(caplog.messages) == 1
    assert "features are not kept in" in caplog.messages[0]


def test_a_full_disk_leaves_no_part_behind(tmp_path, monkeypatch, caplog):
    def refuse(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", refuse)
    kept(tmp_path, features())
    assert files_in(tmp_path) == []
    assert "No space left on device" in caplog.text


def test_parts_of_a_killed_process_are_removed_when_they_are_old(tmp_path):
    kept(tmp_path, features())
    folder = files_in(tmp_path)[0].parent
    old, new = folder / ".0123.part", folder / ".4567.part"
    for part in (old, new):
        part.write_bytes(b"cut off")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    read(tmp_path)
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
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from test_feature_files import features
from annotator.feature_files import FeatureFiles
files = FeatureFiles(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(10_000):
    files._write(files._path("graph", str(number)), "graph", features(str(number), number, 200_000))
"""


def test_a_killed_writer_leaves_only_whole_files(tmp_path):
    paths = [str(ROOT), str(Path(__file__).parent)]
    for attempt in range(20):
        folder = tmp_path / str(attempt % 2)
        command = [sys.executable, "-c", WRITER, str(folder), *paths]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(random.uniform(0.0, 0.1))
            process.send_signal(signal.SIGKILL)
        for path in folder.rglob("*.features"):
            with np.load(path) as archive:
                assert len(archive["tensor/fine"][0]) == 200_000
    files = FeatureFiles(tmp_path / "0")
    found = [number for number in range(2000) if (tmp_path / "0").exists() and files.get("graph", str(number), "b")]
    for number in found:
        expected = features(str(number), number, 200_000).tensors["fine"].astype(np.float16)
        np.testing.assert_array_equal(files.get("graph", str(number), "b").tensors["fine"], expected)
    files.close()
    assert found


def predictor(folder: Path) -> Predictor:
    return Predictor(lambda: load_segmenter(read_bundle(BUNDLE), "onnxruntime", "cpu"), FeatureFiles(folder))


def test_a_picture_is_encoded_once_also_after_a_restart_and_its_masks_are_the_same(tmp_path):
    first, rgb = predictor(tmp_path), read_image(PICTURES[0]).rgb
    fresh = first.answer("picture", lambda: rgb, Phrase("circle"))
    assert first.times.last("encode") is not None
    first.close()

    def not_read() -> np.ndarray:
        raise AssertionError("the picture was read again")

    second = predictor(tmp_path)
    again = second.answer("picture", not_read, Phrase("circle"))
    assert second.times.last("encode") is None
    second.close()
    assert fresh.instances and len(fresh.instances) == len(again.instances)
    ious = iou_matrix([one.mask for one in fresh.instances], [one.mask for one in again.instances]).diagonal()
    assert ious.min() >= 0.99


def test_images_encoded_together_are_kept_too(tmp_path):
    first, rgb = predictor(tmp_path), read_image(PICTURES[0]).rgb
    first.encode_together([first.prepare(rgb, "a")])
    first.close()
    second = predictor(tmp_path)
    assert second.encode("a", lambda: rgb).height == rgb.shape[0]
    assert second.times.last("encode") is None
    second.close()


def test_models_with_the_same_vision_graph_share_features_and_others_do_not(tmp_path):
    bundle = read_bundle(BUNDLE)
    assert bundle.graph_id("vision") == read_bundle(BUNDLE).graph_id("vision")
    assert bundle.graph_id("vision") != bundle.graph_id("text")
    assert load_segmenter(bundle, "onnxruntime", "cpu").info.features_id == bundle.graph_id("vision")
