"""Masks against pycocotools and against plain pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pycocotools import mask as coco_mask

from engines.errors import MaskError
from engines.masks import Mask, areas, areas_and_xywh, containment_matrix, iou_matrix, suppress, union
from engines.run_lengths import compress, expand, n_pixels_each, runs_of

pixel_arrays = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=24))


def square(top: int, left: int, side: int, height: int = 40, width: int = 60) -> Mask:
    pixels = np.zeros((height, width), dtype=bool)
    pixels[top : top + side, left : left + side] = True
    return Mask.encode(pixels)


def runs_by_walking(pixels: np.ndarray) -> list[int]:
    """COCO's definition, pixel by pixel: column-major runs, the first one background."""
    runs, current = [0], False
    for pixel in pixels.T.ravel().tolist():
        if pixel != current:
            runs.append(0)
            current = pixel
        runs[-1] += 1
    return runs


@settings(deadline=None)
@given(pixel_arrays)
def test_a_mask_decodes_to_the_pixels_it_was_made_of(pixels):
    mask = Mask.encode(pixels)
    assert np.array_equal(mask.decode(), pixels)
    assert coco_mask.area(mask.rle) == pixels.sum()
    assert mask.decode().dtype == np.bool_
    assert mask.area == pixels.sum()


@settings(deadline=None)
@given(pixel_arrays)
def test_runs_are_expanded_and_compressed_as_coco_defines_them(pixels):
    height, width = pixels.shape
    counts = Mask.encode(pixels).counts
    assert expand(counts).tolist() == runs_by_walking(pixels)
    assert runs_of(pixels).tolist() == runs_by_walking(pixels)
    assert compress(np.array(runs_by_walking(pixels)), height, width) == counts


@settings(deadline=None)
@given(st.lists(pixel_arrays, max_size=5))
def test_the_pixels_of_many_texts_are_counted_at_once(arrays_of_pixels):
    counts = [Mask.encode(pixels).counts for pixels in arrays_of_pixels]
    assert n_pixels_each(counts).tolist() == [pixels.size for pixels in arrays_of_pixels]


@settings(deadline=None)
@given(pixel_arrays)
def test_a_foreign_rle_is_the_same_mask_in_each_of_its_forms(pixels):
    mask, size = Mask.encode(pixels), list(pixels.shape)
    for counts in (mask.counts, mask.counts.encode(), runs_by_walking(pixels), tuple(runs_by_walking(pixels))):
        assert Mask.from_rle({"size": size, "counts": counts}) == mask


def test_empty_runs_in_the_middle_of_a_foreign_rle_are_joined():
    wanted = Mask.encode(np.array([[0, 0, 1, 1, 1, 0]]).T)
    assert Mask.from_rle({"size": [6, 1], "counts": [2, 1, 0, 2, 1, 0]}) == wanted


@pytest.mark.parametrize(
    ("rle", "words"),
    [
        ({"size": [2, 3], "counts": [3, 4]}, "add up to 7 pixels, but 3×2 has 6"),
        ({"size": [2, 3], "counts": [3, 2]}, "add up to 5 pixels"),
        ({"size": [2, 3], "counts": [10, -4]}, "add up to 6 pixels"),
        ({"size": [2, 3], "counts": [2**62, 2**62, 2**62, 2**62, 6]}, "add up to"),
        ({"size": [2, 3], "counts": [3.0, 3.0]}, "list of whole numbers"),
        ({"size": [2, 3], "counts": ["3", "3"]}, "list of whole numbers"),
        ({"size": [2, 3], "counts": [[3], [3, 1]]}, "list of whole numbers"),
        ({"size": [2, 3], "counts": []}, "list of whole numbers"),
        ({"size": [2, 3], "counts": None}, "list of whole numbers"),
        ({"size": [2, 3]}, "list of whole numbers"),
        ({"size": [2, 3], "counts": ""}, "compressed text"),
        ({"size": [2, 3], "counts": "é!"}, "compressed text"),
        ({"size": [2, 3], "counts": "P"}, "cut off"),
        ({"size": [2, 3], "counts": "PPPPPPPPPPPPPPP0"}, "cut off"),
        ({"size": [3, 2, 1], "counts": [6]}, "size is [3, 2, 1]"),
        ({"size": [0, 3], "counts": [0]}, "size is [0, 3]"),
        ({"size": [2.0, 3.0], "counts": [6]}, "size is [2.0, 3.0]"),
        ({"size": [100_000, 100_000], "counts": [10**10]}, "size is [100000, 100000]"),
        ({"size": "23", "counts": [6]}, "size is '23'"),
        ({"counts": [6]}, "size is None"),
    ],
)
def test_a_foreign_rle_that_is_wrong_is_refused_in_one_sentence(rle, words):
    with pytest.raises(MaskError) as caught:
        Mask.from_rle(rle)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_compressed_rle_of_another_image_is_refused():
    with pytest.raises(MaskError, match="add up to 2400 pixels, but 40×30 has 1200"):
        Mask.from_rle({"size": [30, 40], "counts": square(1, 1, 5).counts})


@settings(deadline=None)
@given(st.data())
def test_iou_and_containment_are_those_of_the_pixels(data):
    shape = data.draw(array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=10))
    a, b = (data.draw(st.lists(arrays(np.bool_, shape), min_size=1, max_size=3)) for _ in range(2))
    masks_a, masks_b = [Mask.encode(p) for p in a], [Mask.encode(p) for p in b]
    iou, contained = iou_matrix(masks_a, masks_b), containment_matrix(masks_a, masks_b)
    for i, p in enumerate(a):
        for j, q in enumerate(b):
            assert iou[i, j] == pytest.approx((p & q).sum() / max(1, (p | q).sum()))
            assert contained[i, j] == pytest.approx((p & q).sum() / max(1, p.sum()))


def test_matrices_of_no_masks_keep_their_shape():
    masks = [square(0, 0, 3)]
    assert iou_matrix([], masks).shape == (0, 1)
    assert containment_matrix(masks, []).shape == (1, 0)
    assert areas([]).tolist() == []
    assert areas_and_xywh([])[1].shape == (0, 4)


def test_masks_of_different_sizes_are_not_compared():
    with pytest.raises(MaskError, match="9×9 and 60×40"):
        iou_matrix([square(0, 0, 3)], [square(0, 0, 3, 9, 9)])


def test_measures_of_a_thousand_masks_equal_those_of_each():
    masks = [square(i % 30, i % 50, 1 + i % 9) for i in range(1000)]
    many_areas, many_xywh = areas_and_xywh(masks)
    assert areas(masks).tolist() == many_areas.tolist() == [mask.area for mask in masks]
    assert many_xywh.tolist() == [list(mask.xywh) for mask in masks]


def test_a_box_is_tight_and_exclusive_at_its_end():
    mask = square(2, 3, 5)
    assert mask.xywh == (3, 2, 5, 5)
    assert mask.xyxy.tolist() == [3, 2, 8, 7]
    assert mask.xyxy.dtype == np.float32


@settings(deadline=None)
@given(st.data())
def test_a_union_holds_every_pixel(data):
    shape = data.draw(array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=10))
    parts = data.draw(st.lists(arrays(np.bool_, shape), min_size=1, max_size=4))
    merged = union([Mask.encode(part) for part in parts])
    assert merged == Mask.encode(np.any(parts, axis=0))


def test_no_mask_cannot_be_merged():
    with pytest.raises(MaskError, match="choose at least one"):
        union([])


def test_a_repeated_mask_goes_and_the_better_one_stays():
    better, repeat, other = square(0, 0, 10), square(0, 1, 10), square(20, 20, 10)
    assert iou_matrix([better], [repeat])[0, 0] == pytest.approx(90 / 110)
    assert suppress([better, repeat, other], iou=0.8) == [0, 2]
    assert suppress([better, repeat, other], iou=0.9) == [0, 1, 2]


def test_a_mask_inside_a_better_one_goes_by_containment_alone():
    whole, part = square(0, 0, 20), square(5, 5, 4)
    assert suppress([whole, part], iou=0.5) == [0, 1]
    assert suppress([whole, part], containment=0.9) == [0]
    assert suppress([part, whole], containment=0.9) == [0, 1]


def test_containment_of_all_is_never_more_than_all():
    assert suppress([square(0, 0, 20), square(5, 5, 7)], containment=1.0) == [0, 1]


def test_a_dropped_mask_drops_no_other():
    first, second, third = square(0, 0, 10), square(0, 3, 10), square(0, 6, 10)
    limit = 0.4  # neighbours overlap by 70 of 130 pixels, first and third by 40 of 160
    assert suppress([first, second, third], iou=limit) == [0, 2]


def test_without_a_limit_every_mask_stays():
    assert suppress([square(0, 0, 5)] * 3) == [0, 1, 2]
    assert suppress([], iou=0.5) == []


def test_a_mask_with_the_size_of_another_image_is_not_decoded():
    with pytest.raises(MaskError, match="add up to 2400 pixels, but 40×30 has 1200"):
        Mask(30, 40, square(1, 1, 5).counts).decode()
