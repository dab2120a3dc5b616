"""The exported vision and text graphs against transformers' own modules."""

from __future__ import annotations

import numpy as np
import pytest
from graph_runs import session
from sam3_in_transformers import END, START, furthest, phrase_ids, random_picture, text_answer, vision_answer
from tiny_checkpoints import SIDE

CLOSE = 1e-4


@pytest.mark.parametrize("n_images", [1, 2, 3])
def test_pictures_are_encoded_as_in_transformers(model, bundle, n_images):
    pictures = random_picture(n_images, SIDE, seed=n_images)
    got = session(bundle, "vision").run({"image": pictures})
    for index, wanted in enumerate(vision_answer(model, pictures)):
        assert furthest(got[f"features_{index}"], wanted) < CLOSE


def test_the_smallest_and_the_largest_grey_level_are_encoded_as_in_transformers(model, bundle):
    pictures = np.stack([np.full((3, SIDE, SIDE), grey, np.uint8) for grey in (0, 255)])
    got = session(bundle, "vision").run({"image": pictures})
    for index, wanted in enumerate(vision_answer(model, pictures)):
        assert furthest(got[f"features_{index}"], wanted) < CLOSE


@pytest.mark.parametrize("n_phrases", [1, 2, 3, 4])
def test_phrases_are_encoded_as_in_transformers(model, bundle, n_phrases):
    ids, counts = phrase_ids(n_phrases, seed=n_phrases)
    got = session(bundle, "text").run({"input_ids": ids})["text_features"]
    assert furthest(got[counts], text_answer(model, ids, counts)[counts]) < CLOSE


def test_a_phrase_that_fills_the_context_is_encoded_as_in_transformers(model, bundle):
    ids = np.random.default_rng(0).integers(1, 49000, (1, 32)).astype(np.int32)
    ids[0, 0], ids[0, -1] = START, END
    got = session(bundle, "text").run({"input_ids": ids})["text_features"]
    assert furthest(got, text_answer(model, ids, np.ones((1, 32), bool))) < CLOSE


def test_what_pads_a_phrase_does_not_matter(bundle):
    ids, counts = phrase_ids(2)
    text = session(bundle, "text")
    first, second = (text.run({"input_ids": np.where(counts, ids, pad)})["text_features"] for pad in (0, END))
    assert np.array_equal(first[counts], second[counts])
