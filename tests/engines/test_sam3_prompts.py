"""What goes into the graphs: the stretched picture, and exemplar boxes."""

from __future__ import annotations

import numpy as np
import pytest

from engines.errors import BoxError
from engines.families._sam3.picture import stretched
from engines.families._sam3.prompts import box_feeds
from engines.types import BoxPrompt, ImageFeatures

IMAGE = ImageFeatures("bundle", "image", 100, 200, {}, 0)

# torch's interpolate(mode="bilinear", antialias=True) of the picture below to 4 × 4, first and last channel
STRETCHED_BY_TORCH = {
    0: [
        [111.72, 120.41, 122.18, 132.35],
        [110.21, 147.76, 128.47, 119.68],
        [117.65, 124.96, 135.16, 130.84],
        [107.63, 152.31, 118.98, 123.84],
    ],
    2: [
        [109.81, 119.80, 132.79, 113.82],
        [140.93, 121.41, 136.12, 147.60],
        [118.57, 134.65, 122.74, 109.88],
        [141.18, 108.80, 119.35, 124.69],
    ],
}


def antialiased(line: np.ndarray, size: int) -> np.ndarray:
    """A line resized by the definition: a triangle as wide as two steps of the coarser grid, on pixel centres."""
    step = len(line) / size
    half = max(step, 1.0)
    centres = (np.arange(size) + 0.5) * step
    weights = np.clip(1 - np.abs((np.arange(len(line)) + 0.5)[None] - centres[:, None]) / half, 0, None)
    return (weights / weights.sum(axis=1, keepdims=True)) @ line


def test_the_picture_is_stretched_as_torch_does_it():
    picture = (np.arange(7 * 10 * 3).reshape(7, 10, 3) * 37 % 256).astype(np.uint8)
    got = stretched(picture, 4)
    assert (got.dtype, got.shape) == (np.uint8, (1, 3, 4, 4))
    assert got.flags.c_contiguous
    for channel, expected in STRETCHED_BY_TORCH.items():
        np.testing.assert_allclose(got[0, channel], expected, atol=1.01)


@pytest.mark.parametrize("size", [(1, 1), (3, 400), (60, 6000), (1200, 1600), (56, 56)])
def test_the_picture_is_within_two_grey_levels_of_the_definition(size):
    picture = np.random.default_rng(7).integers(0, 256, (*size, 3), dtype=np.uint8)
    columns = np.apply_along_axis(antialiased, 1, picture.astype(np.float64), 56)
    expected = np.apply_along_axis(antialiased, 0, columns, 56)
    difference = np.abs(stretched(picture, 56)[0].transpose(1, 2, 0) - expected)
    assert difference.max() <= 2


def test_boxes_go_in_as_shares_of_the_image_with_their_signs():
    feeds = box_feeds([BoxPrompt((20, 10, 60, 90)), BoxPrompt((150, -50, 900, 50), positive=False)], IMAGE, 3)
    assert (feeds["boxes"].dtype, feeds["labels"].dtype) == (np.float32, np.int32)
    assert (feeds["boxes"].shape, feeds["labels"].shape) == ((3, 2, 4), (3, 2))
    np.testing.assert_allclose(feeds["boxes"][1], [[0.2, 0.5, 0.2, 0.8], [0.875, 0.25, 0.25, 0.5]], rtol=1e-6)
    assert feeds["labels"].tolist() == [[1, 0]] * 3


def test_no_box_is_one_that_is_labelled_as_none():
    feeds = box_feeds([], IMAGE, 2)
    assert feeds["boxes"].tolist() == [[[0.0] * 4]] * 2
    assert feeds["labels"].tolist() == [[-10]] * 2


def test_a_box_outside_is_refused():
    with pytest.raises(BoxError):
        box_feeds([BoxPrompt((0, 0, 50, 50)), BoxPrompt((200, 0, 260, 50))], IMAGE, 1)
