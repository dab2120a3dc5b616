"""The decoder's answer, read: scores, thresholds, masks, repeats, and the thing in a drawn box."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from engines.families._sam3.answer import SCORE_FLOOR, Answer
from engines.types import BoxPrompt, ImageFeatures, SegmentOptions

IMAGE = ImageFeatures("bundle", "image", 80, 160, {}, 0)


def block(rows: slice, columns: slice, logit: float = 8.0) -> np.ndarray:
    """Mask logits [8, 16], -8 around a block: one logit is 10 × 10 pixels of the image."""
    logits = np.full((8, 16), -8.0, dtype=np.float32)
    logits[rows, columns] = logit
    return logits


def answer(scores: list[float], masks: list[np.ndarray], boxes: list[list[float]] | None = None) -> Answer:
    shares = np.array(boxes or [[0, 0, 1, 1]] * len(scores), dtype=np.float32)
    return Answer(np.array(scores), shares, np.stack(masks))


LEFT, RIGHT = block(slice(2, 6), slice(1, 5)), block(slice(2, 6), slice(10, 14))
EMPTY = block(slice(0, 0), slice(0, 0))


def test_the_score_is_the_probability_of_the_query_times_that_of_presence():
    logits = np.array([[9.0, 9.0], [2.0, -1.5]], dtype=np.float32)
    outputs = {
        "logits": logits,
        "presence": np.array([[9.0], [0.7]], dtype=np.float32),
        "boxes_xyxy": np.zeros((2, 2, 4), dtype=np.float32),
        "mask_logits": np.zeros((2, 2, 8, 16), dtype=np.float32),
    }
    presence = 1 / (1 + np.exp(-0.7))
    expected = [presence / (1 + np.exp(-2.0)), presence / (1 + np.exp(1.5))]
    np.testing.assert_allclose(Answer.of(outputs, 1).scores, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_logits_of_any_size_give_scores_from_0_to_1(dtype):
    outputs = {
        "logits": np.array([[60000.0, -60000.0, np.inf, -np.inf]], dtype=dtype),
        "presence": np.array([[60000.0]], dtype=dtype),
        "boxes_xyxy": np.zeros((1, 4, 4)),
        "mask_logits": np.zeros((1, 4, 8, 16)),
    }
    assert Answer.of(outputs, 0).scores.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_scores_that_are_no_numbers_are_nothing():
    assert answer([float("nan")], [LEFT]).instances(IMAGE, SegmentOptions(score_threshold=0)) == []


def test_instances_come_best_first_at_or_above_the_threshold():
    found = answer([0.5, 0.9, 0.49], [LEFT, RIGHT, LEFT]).instances(IMAGE, SegmentOptions(score_threshold=0.5))
    assert [instance.score for instance in found] == [0.9, 0.5]


def test_nothing_below_the_floor_is_answered():
    found = answer([SCORE_FLOOR, 0.0999], [LEFT, RIGHT]).instances(IMAGE, SegmentOptions(score_threshold=0.0))
    assert [instance.score for instance in found] == [SCORE_FLOOR]


def test_box_and_size_are_those_of_the_full_mask():
    [instance] = answer([0.9], [LEFT], [[0.4, 0.4, 0.9, 0.9]]).instances(IMAGE, SegmentOptions())
    assert (instance.mask.height, instance.mask.width) == (80, 160)
    np.testing.assert_array_equal(instance.xyxy, instance.mask.xyxy)
    np.testing.assert_allclose(instance.xyxy, [10, 20, 50, 60], atol=1)


def test_an_empty_mask_is_no_instance_and_takes_no_place():
    found = answer([0.9, 0.8, 0.7], [EMPTY, LEFT, RIGHT]).instances(IMAGE, SegmentOptions(max_instances=2))
    assert [instance.score for instance in found] == [0.8, 0.7]


def test_no_more_than_the_wanted_number_is_answered():
    found = answer([0.7, 0.9, 0.8], [LEFT, RIGHT, LEFT]).instances(IMAGE, SegmentOptions(max_instances=2))
    assert [instance.score for instance in found] == [0.9, 0.8]
    assert answer([0.9], [LEFT]).instances(IMAGE, SegmentOptions(max_instances=0)) == []


def test_the_mask_threshold_is_a_probability():
    """A block of logit 1 has the probability 0.73."""
    faint = block(slice(2, 6), slice(1, 5), logit=1.0)
    for threshold, is_found in ((0.5, True), (0.72, True), (0.74, False), (1.0, False)):
        found = answer([0.9], [faint]).instances(IMAGE, SegmentOptions(mask_threshold=threshold))
        assert bool(found) == is_found, threshold
    [all_of_it] = answer([0.9], [faint]).instances(IMAGE, SegmentOptions(mask_threshold=0.0))
    assert all_of_it.mask.area == 80 * 160


def test_logits_are_resized_before_the_cut():
    """Between logits of 9 and -1 the cut is at nine tenths of the way, not halfway as of probabilities."""
    logits = np.array([[9.0, -1.0]], dtype=np.float32)
    wide = ImageFeatures("bundle", "image", 1, 200, {}, 0)
    [instance] = answer([0.9], [logits]).instances(wide, SegmentOptions())
    assert instance.mask.area == pytest.approx(50 + 90, abs=1)


def test_repeats_go_only_when_asked():
    larger = block(slice(2, 6), slice(1, 6))
    both = answer([0.9, 0.8, 0.7], [larger, LEFT, RIGHT])
    assert len(both.instances(IMAGE, SegmentOptions())) == 3
    by_iou = both.instances(IMAGE, SegmentOptions(suppress_iou=0.7))
    by_containment = both.instances(IMAGE, SegmentOptions(suppress_containment=0.9))
    assert [one.score for one in by_iou] == [one.score for one in by_containment] == [0.9, 0.7]


def test_a_hundred_masks_of_a_large_picture_never_stand_in_memory_at_full_size():
    rows, columns = np.mgrid[:288, :288]
    disc = (40 - np.hypot(rows - 144, columns - 144)).astype(np.float32)
    many = Answer(np.linspace(0.99, 0.5, 100), np.zeros((100, 4), np.float32), np.broadcast_to(disc, (100, 288, 288)))
    large = ImageFeatures("bundle", "image", 3000, 4000, {}, 0)
    tracemalloc.start()
    found = many.instances(large, SegmentOptions())
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == 100
    assert peak_bytes < 3000 * 4000 / 4


def test_the_thing_in_a_box_is_the_one_whose_box_fits_best():
    both = answer([0.9, 0.3], [LEFT, RIGHT], [[0.06, 0.25, 0.31, 0.75], [0.62, 0.25, 0.87, 0.75]])
    thing = both.thing_in(BoxPrompt((100, 20, 140, 60)), IMAGE)
    assert thing is not None
    assert thing.score == 0.3
    assert thing.xyxy[0] > 90


def test_a_box_that_fits_better_goes_before_a_better_score():
    larger = block(slice(2, 6), slice(1, 9))
    both = answer([0.9, 0.3], [larger, LEFT], [[0.06, 0.25, 0.56, 0.75], [0.06, 0.25, 0.31, 0.75]])
    thing = both.thing_in(BoxPrompt((10, 20, 50, 60)), IMAGE)
    assert thing is not None
    assert thing.score == 0.3


def test_a_thing_that_fits_well_is_not_cut_at_the_box():
    one = answer([0.9], [LEFT], [[0.0625, 0.25, 0.3125, 0.75]])
    thing = one.thing_in(BoxPrompt((15, 25, 45, 55)), IMAGE)
    assert thing is not None
    np.testing.assert_allclose(thing.xyxy, [10, 20, 50, 60], atol=1)


def test_of_a_thing_that_fits_badly_the_part_inside_the_box_is_taken():
    one = answer([0.9], [block(slice(0, 8), slice(0, 16))], [[0, 0, 1, 1]])
    thing = one.thing_in(BoxPrompt((10.5, 20, 50, 59.5)), IMAGE)
    assert thing is not None
    np.testing.assert_array_equal(thing.xyxy, [10, 20, 50, 60])
    np.testing.assert_array_equal(thing.mask.xyxy, thing.xyxy)


def test_a_thing_beside_the_box_gives_way_to_the_next():
    beside = answer([0.9, 0.8], [EMPTY, LEFT], [[0.06, 0.25, 0.31, 0.75], [0.0, 0.0, 0.1, 0.1]])
    thing = beside.thing_in(BoxPrompt((10, 20, 50, 60)), IMAGE)
    assert thing is not None
    assert thing.score == 0.8


def test_a_box_in_which_nothing_stands_has_no_thing():
    box = BoxPrompt((100, 20, 140, 60))
    assert answer([0.9], [LEFT], [[0.06, 0.25, 0.31, 0.75]]).thing_in(box, IMAGE) is None
    assert answer([0.01], [RIGHT], [[0.62, 0.25, 0.87, 0.75]]).thing_in(box, IMAGE) is None
