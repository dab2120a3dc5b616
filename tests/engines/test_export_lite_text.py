"""SAM 3 LiteText: its text encoder exported, and its decoder, against transformers."""

from __future__ import annotations

import numpy as np
import pytest
from sam3_in_transformers import (
    furthest,
    phrase_ids,
    random_boxes,
    random_picture,
    text_answer,
    vision_answer,
    whole_answer,
)
from tiny_checkpoints import N_QUERIES, SIDE, WIDTH

from engines.export.checkpoint import find_checkpoint
from engines.export.graph_export import build_module, export_graph, graph_spec
from engines.loader import runtimes

CLOSE = 1e-4


@pytest.fixture(scope="module")
def text(lite_folder, tmp_path_factory):
    spec = graph_spec("text", SIDE, WIDTH, N_QUERIES)
    path = tmp_path_factory.mktemp("lite") / spec.file
    export_graph(build_module(find_checkpoint(lite_folder), "text", SIDE, N_QUERIES), "text", spec, path)
    return runtimes()["onnxruntime"].load_graph(path, spec, "cpu")


@pytest.mark.parametrize("n_phrases", [1, 2, 3, 4])
def test_phrases_are_encoded_as_in_transformers(lite_model, text, n_phrases):
    """Every token sees every other here, so the padding must be hidden: no phrase may depend on its length alone."""
    ids, counts = phrase_ids(n_phrases, seed=n_phrases)
    got = text.run({"input_ids": ids})["text_features"]
    assert furthest(got[counts], text_answer(lite_model, ids, counts)[counts]) < CLOSE


def test_the_other_parts_answer_as_in_transformers(lite_model, lite_folder):
    import torch

    checkpoint = find_checkpoint(lite_folder)
    picture, (ids, counts), (boxes, labels) = random_picture(1, SIDE), phrase_ids(2), random_boxes(2, 3)
    with torch.no_grad():
        features = build_module(checkpoint, "vision", SIDE, N_QUERIES)(torch.from_numpy(picture))
        phrases = text_answer(lite_model, ids, counts)
        given = (torch.from_numpy(values) for values in (phrases, counts, boxes, labels))
        got = build_module(checkpoint, "decoder", SIDE, N_QUERIES)(*features, *given)
    for level, wanted in zip(features, vision_answer(lite_model, picture), strict=True):
        assert furthest(level.numpy(), wanted) < CLOSE
    for values, wanted in zip(got, whole_answer(lite_model, picture, ids, counts, boxes, labels).values(), strict=True):
        assert furthest(values.numpy(), wanted) < CLOSE


def test_a_token_after_the_phrase_is_hidden_from_its_attention(lite_folder):
    """One layer of attention alone, without the convolutions that look at neighbours."""
    import torch

    from engines.export.text_graph import LiteTextGraph

    graph = build_module(find_checkpoint(lite_folder), "text", SIDE, N_QUERIES)
    assert isinstance(graph, LiteTextGraph)
    graph.encoder.layers = torch.nn.ModuleList(layer for layer in graph.encoder.layers if hasattr(layer, "self_attn"))
    ids, counts = phrase_ids(2)
    with torch.no_grad():
        first, second = (graph(torch.from_numpy(np.where(counts, ids, pad))).numpy() for pad in (0, 1234))
    assert furthest(first[counts], second[counts]) < CLOSE
