"""samexporter's masks: taken before its graph stretches them where that can be, else whole."""

from __future__ import annotations

import shutil

import numpy as np
import onnx
import pytest
from contract_models import write_samexporter_decoder
from foreign_answers import WITH_BOX, WITHOUT_BOXES, assert_same_answers, found_by
from sam3_shapes import PICTURES

from engines.loader import load_segmenter, open_bundle
from engines.types import SegmentOptions


def by_probability(graph):
    """As Meta's own code cuts masks."""
    graph.constant("a_half", np.array(0.5, dtype=np.float32))
    graph.then("Sigmoid", "full_logits", "full_shares")
    graph.then("Greater", "full_shares a_half", "masks")
    del graph.after[-3]


def with_another_node(graph):
    graph.after[-1].output[:] = ["cut"]
    graph.then("Identity", "cut", "masks")


def changes(which, **attributes):
    def change(graph):
        node = graph.after[which]
        kept = [one for one in node.attribute if one.name not in attributes]
        del node.attribute[:]
        node.attribute.extend([*kept, *(onnx.helper.make_attribute(*item) for item in attributes.items())])

    return change


def at_another_threshold(graph):
    graph.constant("other", np.array(1, dtype=np.float32))
    graph.after[-1].input[1] = "other"


def samexporter_with(change, folders, room):
    shutil.copytree(folders["sam3_samexporter"], room / "changed")
    write_samexporter_decoder(room / "changed" / "sam3_decoder.onnx", change)
    return open_bundle(room / "changed")


@pytest.mark.parametrize("change", [by_probability, changes(-2, coordinate_transformation_mode="pytorch_half_pixel")])
def test_masks_that_are_only_stretched_and_cut_in_the_graph_are_taken_before(change, folders, own, encoded, tmp_path):
    bundle = samexporter_with(change, folders, tmp_path)
    assert [spec.name for spec in bundle.graphs["decoder"].inner_outputs] == ["boxes", "scores", "logits_apart"]
    assert not any("mask threshold" in note for note in bundle.notes)
    segmenter = load_segmenter(bundle, "onnxruntime", "cpu")
    for file, prompt in WITH_BOX:
        assert_same_answers(found_by(segmenter, encoded, file, prompt), found_by(own, encoded, file, prompt))
    file, prompt = "shapes_03.png", PICTURES["shapes_03.png"]["prompts"][2]
    strict = SegmentOptions(mask_threshold=0.9)
    assert_same_answers(
        found_by(segmenter, encoded, file, prompt, strict), found_by(own, encoded, file, prompt, strict)
    )


@pytest.mark.parametrize(
    "change", [with_another_node, at_another_threshold, changes(-2, mode="nearest"), changes(-2, antialias=1)]
)
def test_masks_that_are_made_in_any_other_way_are_taken_whole(change, folders, tmp_path):
    bundle = samexporter_with(change, folders, tmp_path)
    assert bundle.graphs["decoder"].inner_outputs == ()
    assert "a mask threshold changes nothing" in bundle.notes[-1]


def test_masks_taken_whole_are_those_that_the_graph_gives(folders, segmenters, encoded, tmp_path):
    segmenter = load_segmenter(samexporter_with(with_another_node, folders, tmp_path), "onnxruntime", "cpu")
    for file, prompt in WITHOUT_BOXES + WITH_BOX:
        usual = found_by(segmenters["sam3_samexporter"], encoded, file, prompt)
        assert_same_answers(found_by(segmenter, encoded, file, prompt), usual)
