"""The exported decoder, after the other two graphs, against the whole model in transformers."""

from __future__ import annotations

import numpy as np
import pytest
from graph_runs import Graphs, padding_box, session
from sam3_in_transformers import (
    furthest,
    phrase_ids,
    random_boxes,
    random_picture,
    text_answer,
    vision_answer,
    whole_answer,
)
from tiny_checkpoints import SIDE

CLOSE = 1e-4
PICTURE = random_picture(1, SIDE)


@pytest.fixture(scope="module")
def graphs(bundle):
    return Graphs(bundle)


def assert_same(got, wanted):
    assert got.keys() == wanted.keys()
    for name, values in wanted.items():
        assert furthest(got[name], values) < CLOSE, name


@pytest.mark.parametrize("n_boxes", [1, 2, 3, 4])
@pytest.mark.parametrize("n_phrases", [1, 2, 3, 4])
def test_phrases_with_boxes_are_answered_as_in_transformers(model, graphs, n_phrases, n_boxes):
    """Positive and negative boxes, and places for boxes that hold none, in one call."""
    prompts = (*phrase_ids(n_phrases, n_boxes), *random_boxes(n_phrases, n_boxes, seed=n_phrases))
    assert_same(graphs.answer(PICTURE, *prompts), whole_answer(model, PICTURE, *prompts))


@pytest.mark.parametrize("label", [1, 0])
def test_a_box_at_the_edge_or_over_all_of_the_picture_is_answered_as_in_transformers(model, graphs, label):
    boxes = np.array([[[0.5, 0.5, 1, 1], [0.05, 0.5, 0.1, 1], [0.9, 0.95, 0.2, 0.1]]], np.float32)
    prompts = (*phrase_ids(1), boxes, np.full((1, 3), label, np.int32))
    assert_same(graphs.answer(PICTURE, *prompts), whole_answer(model, PICTURE, *prompts))


@pytest.mark.parametrize("n_phrases", [1, 2, 3, 4])
def test_without_a_box_the_token_of_the_geometry_stays_in_as_in_training(model, graphs, n_phrases):
    """transformers leaves it in too when all its boxes are padding, which makes it equal to the authors' code."""
    prompts = (*phrase_ids(n_phrases), *padding_box(n_phrases))
    assert_same(graphs.answer(PICTURE, *prompts), whole_answer(model, PICTURE, *prompts))


def test_the_token_of_the_geometry_makes_a_difference(model, graphs):
    phrases = phrase_ids(1)
    got, without = graphs.answer(PICTURE, *phrases, *padding_box(1)), whole_answer(model, PICTURE, *phrases)
    assert furthest(got["logits"], without["logits"]) > 0.01


def test_no_place_for_a_box_is_the_same_as_a_place_that_holds_none(graphs):
    phrases = phrase_ids(3)
    none = np.zeros((3, 0, 4), np.float32), np.zeros((3, 0), np.int32)
    assert_same(graphs.answer(PICTURE, *phrases, *none), graphs.answer(PICTURE, *phrases, *padding_box(3)))


def test_a_phrase_is_answered_alike_alone_and_among_others(graphs):
    ids, counts = phrase_ids(4)
    boxes, labels = random_boxes(4, 2)
    together = graphs.answer(PICTURE, ids, counts, boxes, labels)
    alone = graphs.answer(PICTURE, ids[2:3], counts[2:3], boxes[2:3], labels[2:3])
    assert_same({name: values[2:3] for name, values in together.items()}, alone)


def test_the_best_logit_comes_first(graphs):
    logits = graphs.answer(PICTURE, *phrase_ids(4), *random_boxes(4, 2))["logits"]
    assert (np.diff(logits, axis=1) <= 0).all()


def test_a_graph_of_fewer_instances_answers_the_best_of_them(model, int8_bundle):
    """The decoder of an int8 bundle is in float32: given exact features it answers the first 5 of 12."""
    ids, counts = phrase_ids(3)
    boxes, labels = random_boxes(3, 2)
    features = {f"features_{n}": values for n, values in enumerate(vision_answer(model, PICTURE))}
    phrases = text_answer(model, ids, counts)
    given = {"text_features": phrases, "text_mask": counts, "boxes": boxes, "labels": labels}
    got = session(int8_bundle, "decoder").run({**features, **given})
    wanted = whole_answer(model, PICTURE, ids, counts, boxes, labels)
    assert got["logits"].shape == (3, 5)
    assert_same(got, {name: values[:, :5] for name, values in wanted.items()})
