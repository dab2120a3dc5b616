"""Two models side by side: which instance is which, and what is left out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sam3_shapes import ASSETS, BUNDLE, load_shapes

from engines.bundle import read_bundle
from engines.check_report import matched_pairs
from engines.masks import Mask
from engines.protocols import Capabilities, SegmenterInfo
from engines.side_by_side import Answer, Question, answer_all, check_questions, compare_answers
from engines.types import Instance

A, B = (SegmenterInfo(name, name, "fake", "fp32", "none", "cpu", Capabilities(True, False, False)) for name in "AB")
PICTURE = ASSETS / "shapes_pictures" / "shapes_01.png"


def column(start, stop, score):
    """Columns of a mask of 1 × 10 pixels."""
    pixels = np.zeros((1, 10), dtype=bool)
    pixels[:, start:stop] = True
    mask = Mask.encode(pixels)
    return Instance(mask, mask.xyxy, score)


def compared(expected, found):
    question = Question(PICTURE, "one.png", "thing")
    return compare_answers(A, B, [(question, Answer(expected), Answer(found))])


def test_instances_are_matched_by_their_masks_and_the_rest_is_lost_or_gained():
    comparison = compared(
        [column(0, 4, 0.9), column(4, 8, 0.8), column(8, 10, 0.7)], [column(4, 7, 0.75), column(0, 4, 0.6)]
    )
    assert (comparison.n_expected, comparison.n_lost, comparison.n_gained) == (3, 1, 0)
    assert comparison.cases[0].ious == pytest.approx((1, 3 / 4))
    assert comparison.mean_iou == pytest.approx(7 / 8)
    assert comparison.score_drift == pytest.approx(0.3)


def test_masks_that_overlap_by_less_than_half_are_not_the_same_thing():
    comparison = compared([column(0, 4, 0.9)], [column(2, 6, 0.9)])
    assert (comparison.n_lost, comparison.n_gained, comparison.mean_iou) == (1, 1, None)


def test_nothing_on_both_sides_is_agreement():
    comparison = compared([], [])
    assert (comparison.n_expected, comparison.n_lost, comparison.n_gained) == (0, 0, 0)


def test_an_instance_is_matched_once():
    assert matched_pairs(np.array([[0.9, 0.6], [0.8, 0.0]])) == [(0, 0)]


def test_a_question_that_one_model_does_not_answer_is_left_out_with_its_reason():
    question = Question(PICTURE, "one.png", "thing")
    refused = Answer(problem="no place for boxes")
    comparison = compare_answers(A, B, [(question, Answer([column(0, 4, 0.9)]), refused)])
    assert comparison.cases == ()
    assert [(one.picture, one.reason, one.failed) for one in comparison.left_out] == [
        ("one.png", "no place for boxes", False)
    ]


def test_the_questions_of_a_bundle_are_those_of_its_check_with_boxes_in_pixels():
    questions = check_questions(read_bundle(BUNDLE))
    assert [question.phrase for question in questions[:4]] == ["red circle", "blue square", "black triangle", "visual"]
    [box] = questions[3].box_prompts(100, 200)
    # Its centre is at 0.24, 0.26 and its sides are 0.28 of the picture.
    assert box.xyxy == pytest.approx((20, 12, 76, 40), abs=1e-4)
    assert box.positive
    assert not questions[6].box_prompts(100, 100)[0].positive


def test_a_picture_is_encoded_once_and_a_broken_one_does_not_stop_the_rest(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    runs = Counter()
    questions = [
        Question(path, path.name, phrase) for path in (broken, PICTURE) for phrase in ("blue circle", "red star")
    ]
    answers = list(answer_all(load_shapes(runs), [*questions, Question(PICTURE, "again", "...")]))
    assert [answer.failed for answer in answers] == [True, True, False, False, True]
    assert [bool(answer.problem) for answer in answers] == [True, True, False, False, True]
    assert "broken.png" in answers[0].problem and "no word" in answers[-1].problem
    assert len(answers[2].instances) == 1
    assert runs["vision"] == 1
