"""How a run asks the model: images in batches, phrases together, and fewer at once where memory does not suffice."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from fake_segmenter import FakeSegmenter
from projects import open_workspace, write_pictures

from annotator.predictor import Predictor
from annotator.prelabel import Prelabeller
from annotator.prelabelling.asking import Portions
from annotator.prelabelling.options import PrelabelOptions
from annotator.workspace import Workspace
from engines.errors import DeviceMemoryError
from engines.loader import load_segmenter, open_bundle
from engines.protocols import PreparedImage
from engines.types import SegmentOptions

ASSETS = Path(__file__).parents[1] / "assets"


class TogetherSegmenter(FakeSegmenter):
    """Takes images and phrases in batches, as far as its memory goes."""

    images_at_once = 4

    def __init__(self, most_images=4, most_phrases=4, device="cuda:0"):
        super().__init__()
        self.info = type(self.info)(**{**vars(self.info), "device": device})
        self.most_images, self.most_phrases = most_images, most_phrases
        self.batches: list[int] = []
        self.n_phrases: list[int] = []
        self.bad_images: set[str] = set()

    def prepare_image(self, rgb, image_id):
        return PreparedImage(image_id, *rgb.shape[:2], np.ascontiguousarray(rgb[::4, ::4]))

    def encode_images(self, images):
        self.batches.append(len(images))
        if len(images) > self.most_images:
            raise DeviceMemoryError("cuda:0", "vision.onnx")
        if self.bad_images & {image.image_id for image in images}:
            raise RuntimeError("not a number")
        return [self._encoded(image) for image in images]

    def _encoded(self, image):
        return FakeSegmenter.encode_image(self, np.zeros((image.height, image.width, 3), np.uint8), image.image_id)

    def decode_many(self, image, phrases, options=SegmentOptions()):
        self.n_phrases.append(len(phrases))
        if len(phrases) > self.most_phrases:
            raise DeviceMemoryError("cuda:0", "decoder.onnx")
        return [self.decode(image, phrase, (), options) for phrase in phrases]


def prelabel(tmp_path, segmenter, phrases=("cup", "cat"), n=10, **options):
    write_pictures(tmp_path / "images", *(f"{number}.png" for number in range(n)))
    with closing(open_workspace(tmp_path, segmenter)) as workspace:
        kept = [workspace.keep_phrase(text, text) for text in phrases]
        worker = Prelabeller(workspace, kept, PrelabelOptions(**options))
        list(worker.run())
        return worker.summary, stored(workspace)


def stored(workspace):
    return {
        image.path: [(item.phrase, item.mask, item.score) for item in workspace.store.annotations(image.image_id)]
        for image in workspace.store.images()
    }


def test_images_go_through_the_encoder_together_and_phrases_through_the_decoder(tmp_path):
    segmenter = TogetherSegmenter()
    summary, _ = prelabel(tmp_path, segmenter)
    assert segmenter.batches == [4, 4, 2]
    assert segmenter.n_phrases == [2] * 10
    assert (summary.n_done, summary.notes) == (10, [])


def test_together_gives_what_one_by_one_gives(tmp_path):
    _, together = prelabel(tmp_path / "together", TogetherSegmenter())
    _, alone = prelabel(tmp_path / "alone", FakeSegmenter())
    assert together == alone


def test_where_memory_does_not_suffice_the_batch_is_halved_and_that_is_said(tmp_path):
    segmenter = TogetherSegmenter(most_images=1, most_phrases=2)
    summary, _ = prelabel(tmp_path, segmenter, ("cup", "cat", "mug"), max_equal_errors=1)
    assert segmenter.batches == [4, 2, *[1] * 10]
    assert segmenter.n_phrases == [3, *[1] * 30]
    assert summary.n_done == 10
    assert [note.partition(" (")[0] for note in summary.notes] == [
        "4 images at once are too many",
        "2 images at once are too many",
        "3 phrases at once are too many",
    ]
    assert summary.notes[-1].endswith("going on with 1")


def test_an_image_that_is_too_much_alone_fails_as_one(tmp_path):
    summary, _ = prelabel(tmp_path, TogetherSegmenter(most_images=0), n=3)
    assert len(summary.failures) == 3
    assert all("cuda:0 has no memory left" in reason for reason in summary.failures.values())


def test_one_bad_image_of_a_batch_fails_alone(tmp_path):
    segmenter = TogetherSegmenter()
    write_pictures(tmp_path / "images", *(f"{number}.png" for number in range(10)))
    with closing(open_workspace(tmp_path, segmenter)) as workspace:
        segmenter.bad_images = {workspace.open_image(workspace.store.image_at("5.png").image_id).sha256}
    summary, _ = prelabel(tmp_path, segmenter)
    assert summary.failures == {"5.png": "the model failed on it: RuntimeError: not a number"}
    assert summary.n_done == 9


def test_a_portion_keeps_to_the_order_of_what_was_asked():
    portions = Portions(4, "things", lambda _: None)
    assert portions.run(range(10), lambda part: [-one for one in part]) == [-one for one in range(10)]


@pytest.mark.skipif(not (ASSETS / "shapes_bundle").is_dir(), reason="needs the small model of shapes")
def test_a_run_of_sam_3_stores_what_is_found_for_each_phrase_alone(tmp_path):
    model = load_segmenter(open_bundle(ASSETS / "shapes_bundle"), device="cpu")
    texts = ["red circle", "blue square", "circle", "square", "triangle"]
    workspace = Workspace.open(tmp_path / "project", Predictor(lambda: model), ASSETS / "shapes_pictures")
    with closing(workspace):
        kept = [workspace.keep_phrase(text, text) for text in texts]
        worker = Prelabeller(workspace, kept, PrelabelOptions())
        list(worker.run())
        assert worker.summary.n_done == 5
        together = stored(workspace)
        assert sum(map(len, together.values())) == sum(worker.summary.n_suggestions.values()) > 5
        for image in workspace.store.images():
            for text in texts:
                alone = workspace.try_phrase(image.image_id, text, 0.5).instances
                found = [(mask, score) for phrase, mask, score in together[image.path] if phrase == text]
                assert [score for _, score in found] == pytest.approx([one.score for one in alone], abs=1e-4)
