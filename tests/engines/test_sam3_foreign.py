"""SAM 3 files of others: recognised by their tensors, and the same masks as from our own bundle of the same weights."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from contract_models import (
    CONTRACTS,
    write_contract,
    write_decoder_without_geometry_token,
    write_older_samexporter_vision,
    write_samexporter_decoder,
)
from sam3_shapes import BUNDLE, PICTURES, STEADY, boxes_of, load_shapes, meant_by, picture

from annotator.models import MODELS_VARIABLE, list_models, model_loader
from engines.bundle import SHIPPED_MODELS, TensorSpec, locate_bundle, read_bundle
from engines.errors import (
    BoxError,
    BoxesNotTakenError,
    BundleFileMissingError,
    NothingFoundError,
    OnnxFileError,
    PhraseError,
    SeveralFilesError,
    UnknownGraphsError,
)
from engines.families import sam3
from engines.families._sam3.tokens import PhraseTokenizer
from engines.families._sam3_foreign import folder as foreign_folder
from engines.families._sam3_foreign.prompts import phrase_tensors, picture_feed
from engines.loader import load_segmenter, open_bundle, runtimes
from engines.masks import iou_matrix
from engines.types import BoxPrompt, Phrase, SegmentOptions

META = ("sam3_samexporter", "sam3_osam")
TRANSFORMERS = ("sam3_usls", "sam3_danilobukvic")
SOME = ("shapes_01.png", "shapes_03.png", "shapes_10.png")
EVERYTHING = SegmentOptions(score_threshold=0.0)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    room = tmp_path_factory.mktemp("contracts")
    return {name: write_contract(name, room / name) for name in CONTRACTS}


@pytest.fixture(scope="module")
def segmenters(folders):
    return {name: load_segmenter(open_bundle(path), "onnxruntime", "cpu") for name, path in folders.items()}


@pytest.fixture(scope="module")
def own():
    return load_shapes(Counter())


@pytest.fixture(scope="module")
def own_without_geometry_token(tmp_path_factory):
    """Our bundle with a decoder that follows transformers."""
    path = tmp_path_factory.mktemp("decoder") / "decoder.onnx"
    write_decoder_without_geometry_token(path)
    bundle, load_graph = read_bundle(BUNDLE), runtimes()["onnxruntime"].load_graph

    def open_graph(role):
        spec = bundle.graphs[role]
        return load_graph(path if role == "decoder" else bundle.file(spec.file), spec, "cpu")

    return sam3.FAMILY.load(bundle, open_graph)


@pytest.fixture(scope="module")
def encoded():
    """Features by segmenter and picture, made once."""
    made = {}

    def encode(segmenter, file):
        key = (id(segmenter), file)
        if key not in made:
            made[key] = segmenter.encode_image(picture(file), file)
        return made[key]

    return encode


def found_by(segmenter, encoded, file, prompt, options=SegmentOptions()):
    phrase = segmenter.encode_phrase(Phrase(prompt["phrase"]))
    return segmenter.decode(encoded(segmenter, file), phrase, boxes_of(prompt), options)


def assert_same_answers(got, wanted, score_tolerance=1e-3):
    assert len(got) == len(wanted)
    np.testing.assert_allclose([a.score for a in got], [b.score for b in wanted], atol=score_tolerance)
    for one, other in zip(got, wanted, strict=True):
        assert iou_matrix([one.mask], [other.mask])[0, 0] >= 0.99
        np.testing.assert_allclose(one.xyxy, other.xyxy, atol=2)


def prompts_of(*kinds):
    return [(file, prompt) for file in SOME for prompt in PICTURES[file]["prompts"] if prompt["kind"] in kinds]


WITHOUT_BOXES = prompts_of("colour+shape", "shape", "colour", "absent")
WITH_BOX = prompts_of("exemplar", "negative", "text+positive")


@pytest.mark.parametrize("name", META)
def test_graphs_of_metas_kind_answer_like_our_own_bundle(name, segmenters, own, encoded):
    for file, prompt in WITHOUT_BOXES + WITH_BOX:
        assert_same_answers(found_by(segmenters[name], encoded, file, prompt), found_by(own, encoded, file, prompt))


def test_with_boxes_usls_answers_like_our_own_bundle(segmenters, own, encoded):
    for file, prompt in WITH_BOX:
        mine = found_by(own, encoded, file, prompt, EVERYTHING)
        assert_same_answers(found_by(segmenters["sam3_usls"], encoded, file, prompt, EVERYTHING), mine)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_without_boxes_graphs_of_transformers_kind_answer_like_our_graphs_without_the_geometry_token(
    name, segmenters, own_without_geometry_token, encoded
):
    for file, prompt in WITHOUT_BOXES:
        if prompt["kind"] == "absent":
            continue
        got = found_by(segmenters[name], encoded, file, prompt)
        assert_same_answers(got, found_by(own_without_geometry_token, encoded, file, prompt), 0.01)


def test_without_boxes_usls_gives_the_scores_of_transformers(segmenters, encoded):
    for file, prompt in WITHOUT_BOXES:
        scores = [instance.score for instance in found_by(segmenters["sam3_usls"], encoded, file, prompt)]
        np.testing.assert_allclose(scores, prompt["scores"], atol=0.01)


def test_without_boxes_danilobukvics_scores_lack_only_presence(segmenters, encoded):
    for file, prompt in WITHOUT_BOXES:
        found = found_by(segmenters["sam3_danilobukvic"], encoded, file, prompt)
        if prompt["scores"]:
            scores = [instance.score * prompt["presence"] for instance in found]
            np.testing.assert_allclose(scores, prompt["scores"], atol=0.01)


@pytest.mark.parametrize("name", CONTRACTS)
def test_what_pytorch_answers_surely_is_answered_right(name, segmenters, encoded):
    for file, prompt in STEADY:
        if file not in SOME or not prompt["truth"] or (prompt["boxes"] and name == "sam3_danilobukvic"):
            continue
        found = [instance.mask for instance in found_by(segmenters[name], encoded, file, prompt)]
        overlap = iou_matrix(found, meant_by(file, prompt))
        assert len(found) == len(prompt["truth"])
        assert overlap.max(axis=0).min() >= 0.7


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_folder_is_recognised_by_its_tensors_whatever_its_files_are_called(name, folders, segmenters, tmp_path):
    bundle = open_bundle(folders[name])
    assert (bundle.family, bundle.name, bundle.image_size, bundle.context_length) == (name, name, 168, 32)
    renamed = tmp_path / "other names"
    shutil.copytree(folders[name], renamed)
    for letter, path in zip("zyx", sorted(renamed.glob("*.onnx")), strict=True):
        path.rename(renamed / f"{letter}.onnx")
    other = open_bundle(renamed)
    assert other.family == name
    assert {role: graph.inputs for role, graph in other.graphs.items()} == {
        role: graph.inputs for role, graph in bundle.graphs.items()
    }
    segmenter = load_segmenter(other, "onnxruntime", "cpu")
    features = segmenter.encode_image(picture("shapes_01.png"), "1")
    assert len(segmenter.decode(features, segmenter.encode_phrase(Phrase("blue circle")))) == 1


def test_two_kinds_with_the_same_file_names_are_told_apart(folders):
    names = [sorted(path.name for path in folders[name].glob("*.onnx")) for name in META]
    assert names[0] == names[1]
    assert [open_bundle(folders[name]).family for name in META] == list(META)


def test_the_same_files_are_the_same_model_anywhere_and_other_weights_another(folders, tmp_path):
    ids = {name: open_bundle(path).bundle_id for name, path in folders.items()}
    assert len(set(ids.values())) == len(ids)
    copy = tmp_path / "copy"
    shutil.copytree(folders["sam3_osam"], copy)
    assert open_bundle(copy).bundle_id == ids["sam3_osam"]
    weights = copy / "sam3_decoder.onnx.data"
    content = bytearray(weights.read_bytes())
    content[1000] ^= 1
    weights.write_bytes(content)
    assert open_bundle(copy).bundle_id != ids["sam3_osam"]


def test_large_files_are_told_apart_by_blocks_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_folder, "_READ_WHOLE_BELOW", 2**20)
    path = tmp_path / "weights"
    content = np.random.default_rng(0).integers(0, 256, 5_000_000, dtype=np.uint8)
    path.write_bytes(content.tobytes())
    usual = foreign_folder.fingerprint([path])
    for place in (0, -1):
        changed = content.copy()
        changed[place] ^= 1
        path.write_bytes(changed.tobytes())
        assert foreign_folder.fingerprint([path]) != usual
    path.write_bytes(np.random.default_rng(1).integers(0, 256, 5_000_000, dtype=np.uint8).tobytes())
    assert foreign_folder.fingerprint([path]) != usual


@pytest.mark.parametrize("name", META)
def test_a_missing_file_of_weights_is_named_before_anything_is_loaded(name, folders, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folders[name], copy)
    (copy / "sam3_language_encoder.onnx.data").unlink()
    with pytest.raises(BundleFileMissingError, match=r"lacks its file sam3_language_encoder\.onnx\.data; copy"):
        open_bundle(copy)


def test_a_file_of_weights_that_is_cut_off_is_named(folders, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folders["sam3_osam"], copy)
    weights = copy / "sam3_image_encoder.onnx.data"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(OnnxFileError, match=r"sam3_image_encoder\.onnx\.data is no ONNX file or is cut off"):
        open_bundle(copy)


def test_unknown_graphs_are_listed_with_their_tensors(folders, tmp_path):
    shutil.copy(BUNDLE / "text.onnx", tmp_path)
    shutil.copy(folders["sam3_usls"] / "vision-encoder.onnx", tmp_path)
    with pytest.raises(UnknownGraphsError) as caught:
        open_bundle(tmp_path)
    sentence = str(caught.value)
    assert "text.onnx: input_ids int32[?, 32] → text_features float32[?, 32, 64]" in sentence
    assert "images float32[?, 3, 168, 168] → fpn_feat_0 float32[1, 64, 48, 48], " in sentence
    assert "\n" not in sentence


def test_a_graph_that_wants_more_than_its_kind_has_is_unknown(folders, tmp_path):
    shutil.copytree(folders["sam3_usls"], tmp_path / "more")
    path = tmp_path / "more" / "text-encoder.onnx"
    model = onnx.load(str(path))
    model.graph.input.append(onnx.helper.make_tensor_value_info("position_ids", onnx.TensorProto.INT64, [1, 32]))
    onnx.save_model(model, str(path))
    with pytest.raises(UnknownGraphsError, match="position_ids int64"):
        open_bundle(tmp_path / "more")


def test_several_files_for_one_graph_are_named(folders, tmp_path):
    shutil.copytree(folders["sam3_usls"], tmp_path / "two")
    shutil.copy(tmp_path / "two" / "text-encoder.onnx", tmp_path / "two" / "text-encoder-fp16.onnx")
    files = re.escape("(text-encoder-fp16.onnx, text-encoder.onnx)")
    with pytest.raises(SeveralFilesError, match=f"several files for the text graph {files}; leave one"):
        open_bundle(tmp_path / "two")


def test_other_graphs_in_the_folder_do_not_disturb(folders, tmp_path):
    shutil.copytree(folders["sam3_usls"], tmp_path / "more")
    shutil.copy(SHIPPED_MODELS / "starter" / "u2netp.onnx", tmp_path / "more" / "tracker.onnx")
    assert open_bundle(tmp_path / "more").bundle_id == open_bundle(folders["sam3_usls"]).bundle_id


def test_what_a_kind_cannot_do_is_said(segmenters):
    capabilities = {name: segmenter.info.capabilities for name, segmenter in segmenters.items()}
    floors = {name: one.score_floor for name, one in capabilities.items()}
    assert floors == {"sam3_samexporter": 0.5, "sam3_osam": 0.5, "sam3_usls": 0.1, "sam3_danilobukvic": 0.1}
    assert [name for name, one in capabilities.items() if not one.exemplar_boxes] == ["sam3_danilobukvic"]
    assert [name for name, one in capabilities.items() if not one.box_to_mask] == ["sam3_danilobukvic"]
    notes = {name: " ".join(segmenter.info.notes) for name, segmenter in segmenters.items()}
    for name in META:
        assert "below 0.5 is cut off inside the graph" in notes[name]
        assert "one exemplar box at a time" in notes[name]
    assert "scores cannot be compared" in notes["sam3_danilobukvic"]
    assert "no boxes" in notes["sam3_danilobukvic"]


@pytest.mark.parametrize("name", META)
def test_nothing_below_the_cut_inside_the_graph_is_answered(name, segmenters, own, encoded):
    n_lost = 0
    for file, prompt in WITHOUT_BOXES:
        mine = found_by(own, encoded, file, prompt, EVERYTHING)
        got = found_by(segmenters[name], encoded, file, prompt, EVERYTHING)
        assert len(got) == sum(instance.score > 0.5 for instance in mine)
        n_lost += len(mine) - len(got)
    assert n_lost > 0


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_phrase_that_finds_nothing_is_answered_with_nothing(name, segmenters, encoded):
    prompt = {"phrase": "sky", "boxes": [], "labels": []}
    assert found_by(segmenters[name], encoded, "shapes_01.png", prompt) == []


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


def test_phrases_are_cut_and_refused_as_with_our_own_bundle(segmenters):
    for segmenter in segmenters.values():
        assert segmenter.encode_phrase(Phrase("red circle " * 40)).understanding.cut.startswith("red circle")
        assert (
            segmenter.encode_phrase(Phrase(" RED star")).tensors is segmenter.encode_phrase(Phrase("red star")).tensors
        )
        with pytest.raises(PhraseError):
            segmenter.encode_phrase(Phrase("..."))


def test_a_kept_picture_holds_only_what_the_decoder_takes(segmenters, encoded):
    names = {name: set(encoded(segmenter, "shapes_01.png").tensors) for name, segmenter in segmenters.items()}
    assert names["sam3_osam"] == {"backbone_fpn_0", "backbone_fpn_1", "backbone_fpn_2", "vision_pos_enc_2"}
    assert "fpn_hidden_state_3" not in names["sam3_danilobukvic"]


def test_such_folders_are_listed_and_loaded_by_name_and_by_path(folders, tmp_path, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path))
    shutil.copytree(folders["sam3_danilobukvic"], tmp_path / "mine")
    shutil.copytree(folders["sam3_osam"], tmp_path / "torn")
    (tmp_path / "torn" / "sam3_decoder.onnx.data").unlink()
    rows = {row.name: row for row in list_models()}
    assert (rows["mine"].family, rows["mine"].problem) == ("sam3_danilobukvic", "")
    assert rows["mine"].notes[-1] == "phrases only, no boxes"
    assert "lacks its file sam3_decoder.onnx.data" in rows["torn"].problem
    assert "clip_bpe" not in rows
    for name in ("mine", str(tmp_path / "mine")):
        assert model_loader(name, "onnxruntime", "cpu")().info.family == "sam3_danilobukvic"


def test_a_folder_without_graphs_or_manifest_lacks_a_manifest(tmp_path):
    with pytest.raises(BundleFileMissingError, match=r"lacks its file manifest\.json"):
        open_bundle(locate_bundle(str(tmp_path), []))


def test_a_folder_with_a_manifest_is_what_the_manifest_says():
    assert open_bundle(BUNDLE) == read_bundle(BUNDLE)
