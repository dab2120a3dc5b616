"""Boxes, pictures and tokens as SAM 3 files of others take them."""

from __future__ import annotations

import shutil

import numpy as np
import onnx
import pytest
from contract_models import write_older_samexporter_vision
from foreign_answers import assert_same_answers, found_by
from sam3_shapes import BUNDLE, PICTURES, picture

from engines.bundle import SHIPPED_MODELS, TensorSpec
from engines.errors import BoxError, BoxesNotTakenError, NothingFoundError, PhraseError
from engines.families._sam3.tokens import PhraseTokenizer
from engines.families._sam3_foreign.prompts import phrase_tensors, picture_feed
from engines.loader import load_segmenter, open_bundle
from engines.types import BoxPrompt, Phrase


@pytest.mark.parametrize(
    ("name", "n_boxes", "takes"),
    [
        ("sam3_samexporter", 2, "takes 1 exemplar box at a time"),
        ("sam3_osam", 3, "takes 1 exemplar box at a time"),
        ("sam3_danilobukvic", 1, "takes phrases only"),
    ],
)
def test_more_boxes_than_there_are_places_for_are_refused(name, n_boxes, takes, segmenters, encoded):
    segmenter, box = segmenters[name], BoxPrompt((10, 10, 90, 90))
    with pytest.raises(BoxesNotTakenError, match=f"the model {name} {takes}; take the other boxes away"):
        segmenter.decode(
            encoded(segmenter, "shapes_01.png"), segmenter.encode_phrase(Phrase("circle")), [box] * n_boxes
        )


def test_a_kind_without_boxes_refuses_a_drawn_box(segmenters, encoded):
    segmenter = segmenters["sam3_danilobukvic"]
    with pytest.raises(BoxesNotTakenError, match="takes phrases only"):
        segmenter.mask_box(encoded(segmenter, "shapes_01.png"), BoxPrompt((10, 10, 90, 90)))


def test_several_boxes_of_both_signs_go_into_usls(segmenters, own, encoded):
    boxes = [*(tuple(thing["box"]) for thing in PICTURES["shapes_10.png"]["objects"][:3])]
    prompt = {"phrase": "visual", "boxes": boxes, "labels": [1, 1, 0]}
    mine = found_by(own, encoded, "shapes_10.png", prompt)
    assert_same_answers(found_by(segmenters["sam3_usls"], encoded, "shapes_10.png", prompt), mine)


def test_a_graph_without_labels_refuses_negative_boxes(folders, segmenters, tmp_path):
    shutil.copytree(folders["sam3_osam"], tmp_path / "unlabelled")
    path = tmp_path / "unlabelled" / "sam3_decoder.onnx"
    model = onnx.load(str(path), load_external_data=False)
    [labels] = [value for value in model.graph.input if value.name == "box_labels"]
    model.graph.input.remove(labels)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([[1]]), "box_labels"))
    path.write_bytes(model.SerializeToString())
    segmenter = load_segmenter(open_bundle(path.parent), "onnxruntime", "cpu")
    features, phrase = segmenter.encode_image(picture("shapes_01.png"), "1"), segmenter.encode_phrase(Phrase("circle"))
    box = (85.28, 346.03, 164.64, 423.91)
    assert segmenter.decode(features, phrase, [BoxPrompt(box)])
    with pytest.raises(BoxesNotTakenError, match="positive exemplar boxes only"):
        segmenter.decode(features, phrase, [BoxPrompt(box, positive=False)])


@pytest.mark.parametrize("name", ["sam3_samexporter", "sam3_osam", "sam3_usls"])
def test_a_drawn_box_gives_the_mask_that_our_own_bundle_gives(name, segmenters, own, encoded):
    for thing in PICTURES["shapes_10.png"]["objects"]:
        box = BoxPrompt(tuple(thing["box"]))
        mine = own.mask_box(encoded(own, "shapes_10.png"), box)
        if mine.score > 0.5:
            assert_same_answers([segmenters[name].mask_box(encoded(segmenters[name], "shapes_10.png"), box)], [mine])


@pytest.mark.parametrize("name", ["sam3_samexporter", "sam3_osam", "sam3_usls"])
def test_boxes_without_area_or_anything_in_them_are_refused(name, segmenters, encoded):
    segmenter = segmenters[name]
    with pytest.raises(BoxError):
        segmenter.mask_box(encoded(segmenter, "shapes_01.png"), BoxPrompt((5, 5, 5, 9)))
    flat = segmenter.encode_image(np.full((200, 300, 3), 128, np.uint8), "flat")
    with pytest.raises(NothingFoundError):
        segmenter.mask_box(flat, BoxPrompt((290, 190, 292, 192)))


def test_a_picture_that_is_normalised_before_and_has_no_batch_works(folders, segmenters, encoded, tmp_path):
    shutil.copytree(folders["sam3_samexporter"], tmp_path / "older")
    write_older_samexporter_vision(tmp_path / "older" / "sam3_image_encoder.onnx")
    older = load_segmenter(open_bundle(tmp_path / "older"), "onnxruntime", "cpu")
    prompt = PICTURES["shapes_01.png"]["prompts"][1]
    usual = found_by(segmenters["sam3_samexporter"], encoded, "shapes_01.png", prompt)
    assert_same_answers(found_by(older, encoded, "shapes_01.png", prompt), usual)


@pytest.mark.parametrize(
    ("dtype", "shape", "wanted"),
    [
        ("uint8", (3, 42, 28), (3, 42, 28)),
        ("float32", (None, 3, 504, 896), (1, 3, 504, 896)),
        ("float16", (1, 3, None, None), (1, 3, 1008, 1008)),
    ],
)
def test_size_layout_and_dtype_of_the_picture_are_those_that_the_graph_declares(dtype, shape, wanted):
    rgb = np.zeros((30, 50, 3), np.uint8)
    rgb[..., 0] = 255
    feed = picture_feed(rgb, TensorSpec("images", dtype, shape))
    assert (feed.shape, str(feed.dtype)) == (wanted, dtype)
    red, blue = feed.reshape(3, *wanted[-2:])[[0, 2]]
    assert (red.min(), blue.max()) == ((255, 0) if dtype == "uint8" else (1, -1))


def test_tokens_are_padded_with_zero_and_input_ids_with_the_end_token_and_a_mask():
    tokens = PhraseTokenizer(BUNDLE / "tokenizer.json", 32).tokens("red circle")
    made = phrase_tensors(tokens, 8)
    # 736 is "red</w>", 7117 "circle</w>" in CLIP's vocabulary.
    assert made["tokens"].tolist() == [[49406, 736, 7117, 49407, 0, 0, 0, 0]]
    assert made["input_ids"].tolist() == [[49406, 736, 7117, 49407, 49407, 49407, 49407, 49407]]
    assert made["attention_mask"].tolist() == [[True] * 4 + [False] * 4]


def test_the_tokenizer_that_ships_is_clips(segmenters):
    ours, theirs = (PhraseTokenizer(folder / "tokenizer.json", 32) for folder in (SHIPPED_MODELS / "clip_bpe", BUNDLE))
    for text in ("striped cat", "cat’s toy & ½ ﬁsh, 1234", "一只条纹猫", "красный круг 🐱", "a" * 500, "naïve café"):
        assert ours.tokens(text) == theirs.tokens(text)


def test_a_tokenizer_in_the_folder_is_taken_and_is_part_of_the_model(folders, tmp_path):
    shutil.copytree(folders["sam3_usls"], tmp_path / "own")
    without = open_bundle(tmp_path / "own").bundle_id
    shutil.copy(BUNDLE / "tokenizer.json", tmp_path / "own")
    bundle = open_bundle(tmp_path / "own")
    assert "tokenizer.json" in bundle.sha256_by_file
    assert bundle.bundle_id != without
    (tmp_path / "own" / "tokenizer.json").write_text("{}")
    with pytest.raises(Exception, match=r"tokenizers cannot load .*tokenizer\.json"):
        load_segmenter(bundle, "onnxruntime", "cpu")


def test_phrases_are_cut_and_refused_as_with_our_own_bundle(segmenters):
    for segmenter in segmenters.values():
        assert segmenter.encode_phrase(Phrase("red circle " * 40)).understanding.cut.startswith("red circle")
        assert (
            segmenter.encode_phrase(Phrase(" RED star")).tensors is segmenter.encode_phrase(Phrase("red star")).tensors
        )
        with pytest.raises(PhraseError):
            segmenter.encode_phrase(Phrase("..."))
