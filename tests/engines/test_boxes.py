"""Boxes against pycocotools and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as coco_mask

from engines import boxes

XYXY = np.array([[10, 20, 30, 60]], dtype=np.float32)
XYWH = np.array([[10, 20, 20, 40]], dtype=np.float32)
CXCYWH = np.array([[20, 40, 20, 40]], dtype=np.float32)

xywh_arrays = arrays(
    np.float32, st.tuples(st.integers(1, 6), st.just(4)), elements=st.integers(1, 100).map(lambda value: value / 2)
)


def test_the_three_forms_turn_into_each_other():
    assert np.array_equal(boxes.cxcywh_to_xyxy(CXCYWH), XYXY)
    assert np.array_equal(boxes.xyxy_to_cxcywh(XYXY), CXCYWH)
    assert np.array_equal(boxes.xyxy_to_xywh(XYXY), XYWH)
    assert np.array_equal(boxes.xywh_to_xyxy(XYWH), XYXY)


@pytest.mark.parametrize(
    "convert", [boxes.cxcywh_to_xyxy, boxes.xyxy_to_cxcywh, boxes.xyxy_to_xywh, boxes.xywh_to_xyxy]
)
def test_conversions_answer_float32_for_lists_and_for_no_boxes(convert):
    assert convert([]).shape == (0, 4)
    assert convert([[1, 2, 3, 4]]).dtype == np.float32


def test_boxes_are_scaled_by_axis():
    assert boxes.scale(XYXY, 2, 0.5).tolist() == [[20, 10, 60, 30]]


def test_a_box_is_cut_to_the_image():
    outside = [[-5, -5, 50, 70], [100, 100, 120, 120]]
    assert boxes.clip(outside, height=60, width=40).tolist() == [[0, 0, 40, 60], [40, 60, 40, 60]]
    assert boxes.area(boxes.clip(outside, height=60, width=40)).tolist() == [2400, 0]


def test_a_box_turned_inside_out_has_no_area():
    assert boxes.area([[10, 10, 5, 5]]).tolist() == [0]


@settings(deadline=None)
@given(xywh_arrays, xywh_arrays)
def test_iou_and_containment_are_those_of_pycocotools(a, b):
    a_xyxy, b_xyxy = boxes.xywh_to_xyxy(a), boxes.xywh_to_xyxy(b)
    iou = coco_mask.iou(a.astype(np.float64), b.astype(np.float64), [0] * len(b))
    contained = coco_mask.iou(a.astype(np.float64), b.astype(np.float64), [1] * len(b))
    np.testing.assert_allclose(boxes.iou_matrix(a_xyxy, b_xyxy), iou, atol=1e-12)
    np.testing.assert_allclose(boxes.containment(a_xyxy, b_xyxy), contained, atol=1e-12)


def test_a_box_without_area_overlaps_nothing():
    empty = [[5, 5, 5, 9]]
    assert boxes.iou_matrix(empty, empty).tolist() == [[0]]
    assert boxes.containment(empty, [[0, 0, 9, 9]]).tolist() == [[0]]


def test_the_best_of_repeated_boxes_stays():
    xyxy = [[0, 0, 10, 10], [0, 1, 10, 11], [50, 50, 60, 60]]
    kept = boxes.suppress(xyxy, [0.5, 0.9, 0.7], iou=0.5)
    assert kept.tolist() == [1, 2]


def test_a_box_inside_a_better_one_goes_by_containment():
    xyxy = [[0, 0, 100, 100], [10, 10, 20, 20]]
    assert boxes.suppress(xyxy, [0.9, 0.8], iou=0.5).tolist() == [0, 1]
    assert boxes.suppress(xyxy, [0.9, 0.8], containment=0.9).tolist() == [0]
    assert boxes.suppress(xyxy, [0.8, 0.9], containment=0.9).tolist() == [1, 0]


def test_of_equal_scores_the_earlier_box_stays():
    assert boxes.suppress([[0, 0, 9, 9]] * 3, [0.5] * 3, iou=0.5).tolist() == [0]


def test_no_boxes_leave_none():
    assert boxes.suppress([], [], iou=0.5).tolist() == []
