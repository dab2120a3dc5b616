"""The model in use: what is computed once, and who goes first."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_segmenter import FakeSegmenter

from annotator.predictor import ModelLock, Predictor
from engines.errors import DeviceMemoryError, GraphLoadError
from engines.types import BoxPrompt, Phrase, SegmentOptions

RGB = np.zeros((48, 64, 3), np.uint8)


@pytest.fixture
def segmenter():
    return FakeSegmenter()


@pytest.fixture
def predictor(segmenter):
    return Predictor(lambda: segmenter)


def test_a_second_phrase_costs_no_second_encoding(predictor, segmenter):
    predictor.answer("image", lambda: RGB, Phrase("cup"))
    predictor.answer("image", lambda: RGB, Phrase("cat"))
    assert segmenter.count("encode") == 1
    assert segmenter.count("decode") == 2


def test_an_undone_edit_of_the_phrase_runs_nothing(predictor, segmenter):
    first = predictor.answer("image", lambda: RGB, Phrase("cup"))
    predictor.answer("image", lambda: RGB, Phrase("cat"))
    again = predictor.answer("image", lambda: RGB, Phrase("Cup"))
    assert segmenter.count("decode") == 2
    assert again.instances == first.instances


def test_phrases_asked_together_are_answered_as_one_by_one_and_only_once(segmenter, predictor):
    phrases = [Phrase("cup"), Phrase("cat"), Phrase("CUP"), Phrase("temple")]
    together = predictor.answer_many("image", lambda: RGB, phrases)
    assert segmenter.count("decode") == 3
    alone = Predictor(FakeSegmenter)
    for phrase, answer in zip(phrases, together, strict=True):
        expected = alone.answer("image", lambda: RGB, phrase)
        assert [(one.mask, one.score) for one in answer.instances] == [
            (one.mask, one.score) for one in expected.instances
        ]
        assert answer.understanding == expected.understanding
    predictor.answer_many("image", lambda: RGB, [Phrase("cat"), Phrase("mug")])
    assert segmenter.calls[-1] == "decode mug"
    assert segmenter.count("decode") == 4
    predictor.answer("image", lambda: RGB, Phrase("mug"))
    assert segmenter.count("decode") == 4


def test_answers_of_different_thresholds_are_kept_apart(predictor):
    assert len(predictor.answer_many("image", lambda: RGB, [Phrase("cup")], 0.8)[0].instances) == 1
    assert len(predictor.answer_many("image", lambda: RGB, [Phrase("cup")], 0.5)[0].instances) == 2


def test_pixels_are_read_only_when_the_image_must_be_encoded(predictor):
    reads = []
    for phrase in ("cup", "cat", "mug"):
        predictor.answer("image", lambda: reads.append(1) or RGB, Phrase(phrase))
    assert len(reads) == 1


def test_everything_down_to_the_floor_is_answered_unless_a_threshold_is_given(predictor):
    scores = [item.score for item in predictor.answer("image", lambda: RGB, Phrase("cup")).instances]
    assert scores == [0.9, 0.7, 0.35]
    strict = [item.score for item in predictor.answer("image", lambda: RGB, Phrase("cup"), 0.5).instances]
    assert strict == [0.9, 0.7]


def test_the_model_is_loaded_once_by_many_threads():
    loads = []

    def load():
        time.sleep(0.01)
        loads.append(1)
        return FakeSegmenter()

    predictor = Predictor(load)
    threads = [threading.Thread(target=lambda: predictor.info) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1


def test_timings_are_known_after_the_first_answer(predictor):
    assert predictor.times.last("encode") is None
    predictor.mask_box("image", lambda: RGB, BoxPrompt((1, 1, 9, 9)))
    assert predictor.times.last("encode") is not None
    assert predictor.times.last("edit") is not None


def test_a_person_goes_before_whatever_runs_ahead():
    lock = ModelLock()
    order = []
    holding = threading.Event()

    def work(name, ahead):
        with lock.hold(ahead=ahead):
            order.append(name)
            if name == "first":
                holding.set()
                time.sleep(0.1)

    threads = [threading.Thread(target=work, args=("first", True))]
    threads[0].start()
    holding.wait()
    for name, ahead in (("ahead 1", True), ("ahead 2", True), ("person", False)):
        threads.append(threading.Thread(target=work, args=(name, ahead)))
        threads[-1].start()
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert order[:2] == ["first", "person"]


def test_an_edit_does_not_wait_for_an_image_that_is_encoded_ahead(predictor, segmenter):
    predictor.encode("shown", lambda: RGB)
    encoding, release = threading.Event(), threading.Event()
    plain = segmenter.encode_image

    def slow(rgb, image_id):
        encoding.set()
        assert release.wait(10)
        return plain(rgb, image_id)

    segmenter.encode_image = slow
    ahead = threading.Thread(target=lambda: predictor.encode("next", lambda: RGB, ahead=True))
    ahead.start()
    assert encoding.wait(10)
    assert predictor.answer("shown", lambda: RGB, Phrase("cup")).instances
    release.set()
    ahead.join()


def test_the_lock_is_free_again_after_an_error():
    lock = ModelLock()
    with pytest.raises(RuntimeError), lock.hold():
        raise RuntimeError
    with lock.hold(ahead=True):
        pass


class SegmenterOnFullGpu(FakeSegmenter):
    """Runs out of memory while features of another image are kept on the GPU."""

    def __init__(self, n_failures: int) -> None:
        super().__init__()
        self.n_failures = n_failures

    def encode_image(self, rgb, image_id):
        return replace(super().encode_image(rgb, image_id), device="cuda:0")

    def decode(self, image, phrase, boxes=(), options=SegmentOptions()):
        if self.n_failures:
            self.n_failures -= 1
            raise DeviceMemoryError("cuda:0", "decoder")
        return super().decode(image, phrase, boxes, options)


def test_without_memory_on_the_gpu_kept_features_are_forgotten_and_the_answer_comes():
    segmenter = SegmenterOnFullGpu(1)
    predictor = Predictor(lambda: segmenter)
    predictor.encode("first", lambda: RGB)
    assert predictor.answer("second", lambda: RGB, Phrase("cup")).instances
    assert segmenter.count("encode") == 2
    predictor.encode("first", lambda: RGB)
    assert segmenter.count("encode") == 3


def test_without_memory_at_all_it_is_said_and_the_next_answer_comes():
    segmenter = SegmenterOnFullGpu(2)
    predictor = Predictor(lambda: segmenter)
    with pytest.raises(DeviceMemoryError, match="cuda:0 has no memory left to run decoder"):
        predictor.answer("image", lambda: RGB, Phrase("cup"))
    assert predictor.answer("image", lambda: RGB, Phrase("cup")).instances


def test_what_is_loaded_is_told_without_waiting(predictor, segmenter):
    assert predictor.loaded_info is None
    predictor.load()
    assert predictor.loaded_info is segmenter.info


def test_another_model_answers_after_it_is_loaded_and_not_where_loading_fails():
    first, second = FakeSegmenter(), FakeSegmenter({"cup": []})
    predictor = Predictor(lambda: first)
    assert predictor.answer("image", lambda: RGB, Phrase("cup")).instances

    def fails():
        raise GraphLoadError(Path("vision.onnx"), "ONNX Runtime", "no such file")

    with pytest.raises(GraphLoadError):
        predictor.use(fails)
    assert predictor.segmenter is first and predictor.n_changes == 0
    predictor.use(lambda: second)
    assert predictor.n_changes == 1
    assert not predictor.answer("image", lambda: RGB, Phrase("cup")).instances
