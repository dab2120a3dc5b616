"""Upsampled masks against the half-pixel formula in float64 and against OpenCV."""

from __future__ import annotations

import tracemalloc

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from engines.errors import MaskError
from engines.masks import Mask, iou_matrix
from engines.upsampling import encode_upsampled, encode_upsampled_all

logit_arrays = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12),
    elements=st.floats(-8, 8, width=32, allow_subnormal=False),
)
sides = st.integers(1, 40)


def upsampled(logits: np.ndarray, height: int, width: int) -> np.ndarray:
    """Bilinear with half-pixel centres, value by value as the formula says, in float64."""
    y, x = half_pixel(logits.shape[0], height), half_pixel(logits.shape[1], width)
    rows = lerp(logits.astype(np.float64), y)
    return lerp(rows.T, x).T


def half_pixel(n_source: int, n_target: int) -> np.ndarray:
    return np.clip((np.arange(n_target) + 0.5) * n_source / n_target - 0.5, 0, n_source - 1)


def lerp(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    before = np.floor(places).astype(int)
    after = np.minimum(before + 1, len(values) - 1)
    share = (places - before)[:, None]
    return values[before] * (1 - share) + values[after] * share


def blob(size: int = 288, centre: tuple[float, float] = (90, 150), radius: float = 40) -> np.ndarray:
    y, x = np.mgrid[:size, :size].astype(np.float32)
    wobble = 6 * np.sin(x / 7) * np.cos(y / 5)
    return (radius - np.hypot(y - centre[0], x - centre[1]) + wobble).astype(np.float32)


@settings(deadline=None)
@given(logit_arrays, sides, sides, st.sampled_from([0.0, -1.25, 2.5]))
def test_the_mask_is_where_the_formula_exceeds_the_threshold(logits, height, width, threshold):
    found = encode_upsampled(logits, height, width, threshold).decode()
    wanted = upsampled(logits, height, width)
    assert not np.any(found[wanted < threshold - 1e-5])
    assert np.all(found[wanted > threshold + 1e-5])


@settings(deadline=None)
@given(logit_arrays, sides, sides)
def test_the_rle_is_one_that_coco_would_write(logits, height, width):
    mask = encode_upsampled(logits, height, width)
    assert Mask.encode(mask.decode()) == mask


@pytest.mark.parametrize("size", [(3000, 4000), (853, 1280), (288, 288), (200, 100)])
@pytest.mark.parametrize("centre", [(90, 150), (0, 0), (287, 40)], ids=["inside", "corner", "border"])
def test_a_blob_is_the_mask_that_opencv_upsamples(size, centre):
    logits = blob(centre=centre)
    height, width = size
    wanted = Mask.encode(cv2.resize(logits, (width, height), interpolation=cv2.INTER_LINEAR) > 0)
    assert iou_matrix([encode_upsampled(logits, height, width)], [wanted])[0, 0] > 0.9999


def test_at_the_same_size_the_mask_is_that_of_the_logits():
    logits = blob(64, (20, 30), 10)
    assert encode_upsampled(logits, 64, 64) == Mask.encode(logits > 0)


def test_logits_on_the_threshold_are_background():
    assert encode_upsampled(np.zeros((4, 4), np.float32), 9, 9).area == 0
    assert encode_upsampled(np.array([[0, 1]], np.float32), 1, 2).decode().tolist() == [[False, True]]


def test_all_positive_logits_fill_the_image():
    assert encode_upsampled(np.ones((4, 4), np.float32), 7, 9) == Mask.encode(np.ones((7, 9)))


def test_half_precision_logits_give_the_mask_of_their_values():
    half = blob().astype(np.float16)
    assert encode_upsampled(half, 900, 1200) == encode_upsampled(half.astype(np.float32), 900, 1200)


def test_infinite_logits_and_no_numbers_do_no_harm():
    logits = np.full((4, 4), -np.inf, np.float32)
    logits[1:3, 1:3] = np.inf
    logits[0, 0] = np.nan
    mask = encode_upsampled(logits, 8, 8).decode()
    assert mask[2:6, 2:6].all()
    assert mask.sum() == 16


def test_several_instances_come_in_their_order():
    logits = np.stack([blob(radius=20), blob(radius=40), np.full((288, 288), -1, np.float32)])
    masks = encode_upsampled_all(logits, 600, 800)
    assert masks == [encode_upsampled(one, 600, 800) for one in logits]
    assert [mask.area > 0 for mask in masks] == [True, True, False]


@pytest.mark.parametrize("shape", [(4,), (1, 4, 4), (0, 4)])
def test_anything_but_a_plane_of_logits_is_refused(shape):
    with pytest.raises(MaskError, match="cannot become a mask of 9×8 pixels"):
        encode_upsampled(np.zeros(shape, np.float32), 8, 9)


def test_no_full_size_image_is_made():
    logits = blob()
    encode_upsampled(logits, 30, 40)
    tracemalloc.start()
    encode_upsampled(logits, 12_000, 16_000)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 40e6  # of 768 MB as float32
