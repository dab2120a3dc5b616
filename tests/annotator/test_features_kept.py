"""A model in use with encoded pictures on the disk: encoded once, also after a restart, with the same masks."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_segmenter import FakeSegmenter

from annotator.feature_files import FeatureFiles
from annotator.predictor import Predictor
from engines.bundle import read_bundle
from engines.images import read_image
from engines.loader import load_segmenter
from engines.masks import Mask, iou_matrix
from engines.types import ImageFeatures, Phrase

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tests" / "assets" / "shapes_bundle"
PICTURES = sorted((ROOT / "tests" / "assets" / "shapes_pictures").glob("*.png"))
PHRASES = ("circle", "square", "triangle", "star", "ring")
RGB = np.zeros((48, 64, 3), np.uint8)


def predictor(folder: Path) -> Predictor:
    return Predictor(lambda: load_segmenter(read_bundle(BUNDLE), "onnxruntime", "cpu"), FeatureFiles(folder))


def never_read() -> np.ndarray:
    raise AssertionError("the picture was read again")


RESTARTED = """
import json, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from engines.types import Phrase
from test_features_kept import PHRASES, PICTURES, never_read, predictor
again = predictor(Path(sys.argv[1]))
answers = {f"{picture.name} {text}": [[one.mask.height, one.mask.width, one.mask.counts]
           for one in again.answer(picture.name, never_read, Phrase(text)).instances]
           for picture in PICTURES for text in PHRASES}
print(json.dumps({"answers": answers, "encode_ms": again.times.last("encode")}))
again.close()
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> tuple[Path, dict[str, list[Mask]]]:
    """A folder of features that a process has left, and the masks that it found."""
    folder = tmp_path_factory.mktemp("features")
    first = predictor(folder)
    found = {
        f"{picture.name} {text}": [
            one.mask
            for one in first.answer(picture.name, lambda path=picture: read_image(path).rgb, Phrase(text)).instances
        ]
        for picture in PICTURES
        for text in PHRASES
    }
    first.close()
    return folder, found


def test_another_process_encodes_nothing_again_and_finds_the_same_masks(fresh):
    folder, before = fresh
    command = [
        sys.executable,
        "-c",
        RESTARTED,
        str(folder),
        str(ROOT),
        str(Path(__file__).parent),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["encode_ms"] is None
    assert sum(len(masks) for masks in before.values()) >= len(PICTURES)
    for asked, masks in before.items():
        after = [Mask(height, width, counts) for height, width, counts in answer["answers"][asked]]
        assert len(after) == len(masks), asked
        if masks:
            assert iou_matrix(masks, after).diagonal().min() >= 0.99, asked


def test_images_encoded_together_are_kept_too(tmp_path):
    first, rgb = predictor(tmp_path), read_image(PICTURES[0]).rgb
    first.encode_together([first.prepare(rgb, "a")])
    first.close()
    second = predictor(tmp_path)
    assert second.encode("a", never_read).height == rgb.shape[0]
    assert second.encode_together([second.prepare(rgb, "a")])[0].width == rgb.shape[1]
    assert second.times.last("encode") is None
    second.close()


def test_models_with_the_same_vision_graph_share_features_and_others_do_not():
    bundle = read_bundle(BUNDLE)
    other_decoder = replace(
        bundle, bundle_id="other", sha256_by_file={**bundle.sha256_by_file, "decoder.onnx": "0" * 64}
    )
    other_vision = replace(bundle, bundle_id="other", sha256_by_file={**bundle.sha256_by_file, "vision.onnx": "0" * 64})
    own = bundle.graph_id("vision")
    assert load_segmenter(bundle, "onnxruntime", "cpu").info.features_id == own
    assert other_decoder.graph_id("vision") == own
    assert other_vision.graph_id("vision") != own


def test_a_model_whose_features_are_no_plain_tensors_keeps_nothing(tmp_path):
    plain = Predictor(FakeSegmenter, FeatureFiles(tmp_path / "features"))
    plain.encode("image", lambda: RGB)
    plain.close()
    assert not (tmp_path / "features").exists()


class SlowFiles(FeatureFiles):
    """A disk on which reading ends when it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reading, self.go_on = threading.Event(), threading.Event()

    def get(self, features_id: str, image_id: str, bundle_id: str) -> ImageFeatures | None:
        self.reading.set()
        assert self.go_on.wait(10)
        return ImageFeatures(bundle_id, image_id, 48, 64, {}, 0)


class Writable(FakeSegmenter):
    """A fake whose features say by which graph they were made."""

    def __init__(self, bundle_id: str) -> None:
        super().__init__()
        self.info = replace(self.info, bundle_id=bundle_id, features_id=f"graph of {bundle_id}")


def test_features_of_a_model_that_is_replaced_while_they_are_read_are_not_taken_for_the_new_ones(tmp_path):
    files = SlowFiles(tmp_path)
    model = Predictor(lambda: Writable("old"), files)
    reading = threading.Thread(target=lambda: model.encode("image", never_read))
    reading.start()
    assert files.reading.wait(10)
    model.use(lambda: Writable("new"))
    files.go_on.set()
    reading.join(10)
    assert model.encode("image", never_read).bundle_id == "new"
    model.close()


def test_features_from_the_disk_are_remembered_where_the_model_reads_them(tmp_path):
    class OnGpu(Writable):
        def on_device(self, image: ImageFeatures) -> ImageFeatures:
            self.calls.append("upload")
            return replace(image, device="cuda:0")

    first = Predictor(lambda: Writable("same"), FeatureFiles(tmp_path))
    first.encode("image", lambda: RGB)
    first.close()
    segmenter = OnGpu("same")
    second = Predictor(lambda: segmenter, FeatureFiles(tmp_path))
    for _ in range(2):
        assert second.encode("image", never_read).device == "cuda:0"
    assert segmenter.calls == ["upload"]
    second.close()
