"""SAM 3 with features that stay on a device: they are never brought back, and of the masks only those that count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engines.bundle import read_bundle
from engines.families.sam3 import FAMILY
from engines.images import read_image
from engines.loader import load_segmenter, runtimes
from engines.protocols import PreparedImage
from engines.types import BoxPrompt, Phrase

ASSETS = Path(__file__).parents[1] / "assets"
PICTURE = ASSETS / "shapes_pictures" / "shapes_10.png"


class FarTensor:
    """An array that counts what is fetched of it."""

    device = "cuda:0"

    def __init__(self, array, fetched, name):
        self._array, self._fetched, self._name = array, fetched, name
        self.shape, self.dtype, self.ndim, self.nbytes = array.shape, array.dtype, array.ndim, array.nbytes

    def __getitem__(self, row):
        assert isinstance(row, (int, np.integer))
        return FarTensor(self._array[row], self._fetched, self._name)

    def kept_row(self, row):
        return FarTensor(self._array[row : row + 1].copy(), self._fetched, self._name)

    def __array__(self, dtype=None, copy=None):
        self._fetched.append((self._name, self.nbytes))
        return np.array(self._array, dtype=dtype)


class FarSession:
    """ONNX Runtime, with outputs that stay away."""

    runtime, device = "tensorrt", "cuda:0"

    def __init__(self, session, fetched):
        self._session, self._fetched = session, fetched

    def run(self, feeds):
        return self._session.run({name: getattr(feed, "_array", feed) for name, feed in feeds.items()})

    def upload(self, array):
        return FarTensor(array, self._fetched, "uploaded")

    def run_kept(self, feeds):
        return {name: FarTensor(array, self._fetched, name) for name, array in self.run(feeds).items()}


@pytest.fixture
def fetched():
    return []


@pytest.fixture
def segmenter(fetched):
    bundle = read_bundle(ASSETS / "shapes_bundle")

    def open_graph(role):
        graph = bundle.graphs[role]
        return FarSession(runtimes()["onnxruntime"].load_graph(bundle.file(graph.file), graph, "cpu"), fetched)

    return FAMILY.load(bundle, open_graph)


@pytest.fixture(scope="module")
def here():
    return load_segmenter(read_bundle(ASSETS / "shapes_bundle"), "onnxruntime", "cpu")


def test_an_edit_fetches_scores_and_the_masks_that_are_answered(segmenter, here, fetched):
    rgb = read_image(PICTURE).rgb
    image = segmenter.encode_image(rgb, "picture")
    assert image.device == "cuda:0"
    assert image.nbytes == here.encode_image(rgb, "picture").nbytes
    found = segmenter.decode(image, segmenter.encode_phrase(Phrase("circle")))
    wanted = here.decode(here.encode_image(rgb, "picture"), here.encode_phrase(Phrase("circle")))
    assert [one.mask for one in found] == [one.mask for one in wanted]
    names = [name for name, _ in fetched]
    assert len(found) == 3
    assert names.count("mask_logits") == 3
    assert set(names) == {"logits", "presence", "boxes_xyxy", "mask_logits"}
    assert sum(nbytes for name, nbytes in fetched if name == "mask_logits") == 3 * 48 * 48 * 4


def test_features_from_the_host_are_brought_to_the_device_once(segmenter, here):
    rgb = read_image(PICTURE).rgb
    near = here.encode_image(rgb, "picture")
    far = segmenter.on_device(near)
    assert far.device == "cuda:0" and far.nbytes == near.nbytes
    assert all(isinstance(tensor, FarTensor) for tensor in far.tensors.values())
    assert segmenter.on_device(far) is far
    assert here.on_device(near) is near
    answers = [
        one.decode(image, one.encode_phrase(Phrase("circle"))) for one, image in ((segmenter, far), (here, near))
    ]
    assert [item.mask for item in answers[0]] == [item.mask for item in answers[1]]


def test_a_drawn_box_and_several_phrases_work_there_too(segmenter, here):
    rgb = read_image(PICTURE).rgb
    box = BoxPrompt((605, 253, 765, 410))
    far, near = segmenter.encode_image(rgb, "picture"), here.encode_image(rgb, "picture")
    assert segmenter.mask_box(far, box).mask == here.mask_box(near, box).mask
    answers = [
        one.decode_many(image, [one.encode_phrase(Phrase(text)) for text in ("circle", "triangle")])
        for one, image in ((segmenter, far), (here, near))
    ]
    assert [[item.mask for item in found] for found in answers[0]] == [
        [item.mask for item in found] for found in answers[1]
    ]


def test_images_encoded_together_keep_their_own_part_there(segmenter, fetched):
    rgb = read_image(PICTURE).rgb
    prepared = [
        segmenter.prepare_image(part, str(n)) for n, part in enumerate((rgb, np.ascontiguousarray(rgb[:, ::-1])))
    ]
    assert all(isinstance(one, PreparedImage) for one in prepared)
    together = segmenter.encode_images(prepared)
    assert fetched == []
    for image, one in zip(together, prepared, strict=True):
        alone = segmenter.encode_images([one])[0]
        for name, tensor in image.tensors.items():
            assert tensor.shape[0] == 1
            np.testing.assert_allclose(np.asarray(tensor), np.asarray(alone.tensors[name]), atol=1e-4)
