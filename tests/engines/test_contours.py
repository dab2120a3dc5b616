"""Polygons on pixel edges, rasterised again by pycocotools."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pycocotools import mask as coco_mask

from engines.contours import polygons
from engines.masks import Mask, iou_matrix

pixel_arrays = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=16))
coarse_arrays = st.builds(np.kron, pixel_arrays, st.just(np.ones((3, 2), dtype=bool)))

checkerboard = np.indices((9, 8)).sum(axis=0) % 2 == 0


def outlined(pixels: np.ndarray, tolerance_px: float = 0.0) -> list[list[float]]:
    return polygons(Mask.encode(pixels), tolerance_px)


def rasterised(outlines: list[list[float]], height: int, width: int) -> Mask:
    merged = coco_mask.merge(coco_mask.frPyObjects(outlines, height, width))
    return Mask(height, width, merged["counts"].decode())


def disc(radius: float, size: int = 200) -> np.ndarray:
    y, x = np.ogrid[:size, :size]
    return (x - size / 2) ** 2 + (y - size / 2) ** 2 < radius**2


def n_parts(pixels: np.ndarray) -> int:
    """Pieces that hang together by edges or corners, counted by flooding."""
    left = set(zip(*np.nonzero(pixels), strict=True))
    n = 0
    while left:
        n += 1
        front = [left.pop()]
        while front:
            y, x = front.pop()
            near = {(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)} & left
            left -= near
            front.extend(near)
    return n


@settings(deadline=None)
@given(st.one_of(pixel_arrays, coarse_arrays))
@example(checkerboard)
@example(~checkerboard)
@example(np.eye(7, dtype=bool))
@example(~np.eye(7, dtype=bool))
@example(np.ones((5, 4), dtype=bool))
@example(disc(80) & ~disc(40))
def test_polygons_rasterise_to_exactly_the_mask(pixels):
    outlines = outlined(pixels)
    assert len(outlines) == n_parts(pixels)
    assert all(len(outline) >= 6 and len(outline) % 2 == 0 for outline in outlines)
    if outlines:
        assert rasterised(outlines, *pixels.shape) == Mask.encode(pixels)


def test_an_empty_mask_has_no_polygon():
    assert outlined(np.zeros((4, 5), dtype=bool)) == []


def test_a_single_pixel_is_a_square_around_it():
    pixels = np.zeros((4, 5), dtype=bool)
    pixels[2, 3] = True
    assert outlined(pixels) == [[3, 2, 4, 2, 4, 3, 3, 3]]


def test_a_full_mask_is_the_border_of_the_image():
    assert outlined(np.ones((4, 5), dtype=bool)) == [[0, 0, 5, 0, 5, 4, 0, 4]]


def test_a_ring_is_one_polygon_with_a_bridge_to_its_hole():
    pixels = np.ones((3, 3), dtype=bool)
    pixels[1, 1] = False
    hole = [1, 0, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 0]
    assert outlined(pixels) == [[0, 0, *hole, 3, 0, 3, 3, 0, 3]]


def test_pixels_that_touch_at_a_corner_are_one_part():
    assert outlined(np.eye(2, dtype=bool)) == [[0, 0, 1, 0, 1, 1, 2, 1, 2, 2, 1, 2, 1, 1, 0, 1]]


def test_parts_come_from_top_to_bottom_and_a_part_in_a_hole_by_itself():
    outlines = outlined((disc(90) & ~disc(60)) | disc(20))
    tops = [min(outline[1::2]) for outline in outlines]
    assert len(outlines) == 2
    assert tops == sorted(tops)


def test_coordinates_are_plain_numbers():
    assert all(type(value) is int for outline in outlined(disc(50)) for value in outline)
    assert all(type(value) is int for outline in outlined(disc(50), 1.0) for value in outline)


@pytest.mark.parametrize("pixels", [disc(80), disc(80) & ~disc(40)], ids=["disc", "ring"])
def test_tolerance_leaves_out_corners_and_keeps_the_shape(pixels):
    exact, simple = outlined(pixels), outlined(pixels, tolerance_px=1.5)
    assert sum(map(len, simple)) < sum(map(len, exact)) / 5
    assert iou_matrix([rasterised(simple, *pixels.shape)], [Mask.encode(pixels)])[0, 0] > 0.97


@settings(deadline=None)
@given(pixel_arrays, st.floats(0.1, 20))
def test_no_part_is_lost_to_the_tolerance(pixels, tolerance_px):
    outlines = outlined(pixels, tolerance_px)
    assert len(outlines) == n_parts(pixels)
    assert all(len(outline) >= 6 for outline in outlines)
