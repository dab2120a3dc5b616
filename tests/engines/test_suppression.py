"""Suppression against the rule written out pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engines.errors import MaskError
from engines.masks import Mask, suppress
from engines.suppression import SuppressionLimits

few_masks = st.lists(arrays(np.bool_, (6, 7)), max_size=8)
limits = st.none() | st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.9, 1.0])


def kept_by_pixels(pixels: list[np.ndarray], iou: float | None, containment: float | None) -> list[int]:
    """The rule as it is told: walk from the best, drop what repeats one that stayed."""
    kept: list[int] = []
    for index, mask in enumerate(pixels):
        if not any(repeats(mask, pixels[better], iou, containment) for better in kept):
            kept.append(index)
    return kept


def repeats(mask: np.ndarray, better: np.ndarray, iou: float | None, containment: float | None) -> bool:
    shared, either = int((mask & better).sum()), int((mask | better).sum())
    alike = iou is not None and shared > iou * either
    return alike or (containment is not None and shared > containment * int(mask.sum()))


@settings(deadline=None)
@given(few_masks, limits, limits)
def test_what_stays_is_what_the_rule_says(pixels, iou, containment):
    kept = suppress([Mask.encode(mask) for mask in pixels], iou, containment)
    assert kept == kept_by_pixels(pixels, iou, containment)


def test_a_limit_of_one_switches_a_rule_off():
    assert not SuppressionLimits(iou=1.0, containment=1.0).active
    assert not SuppressionLimits().active
    assert SuppressionLimits(containment=0.9).active


def test_masks_of_different_images_are_not_compared():
    with pytest.raises(MaskError, match="different sizes"):
        suppress([Mask.encode(np.ones((4, 4))), Mask.encode(np.ones((4, 5)))], iou=0.5)
