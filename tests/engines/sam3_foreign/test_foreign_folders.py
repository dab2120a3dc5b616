"""SAM 3 files of others are recognised by their tensors; what is missing or unknown in a folder is named."""

from __future__ import annotations

import re
import shutil

import numpy as np
import onnx
import pytest
from contract_models import CONTRACTS
from foreign_answers import META
from sam3_shapes import BUNDLE, picture

from annotator.models import MODELS_VARIABLE, list_models, model_loader
from engines.bundle import SHIPPED_MODELS, locate_bundle, read_bundle
from engines.errors import BundleFileMissingError, OnnxFileError, SeveralFilesError, UnknownGraphsError
from engines.families._sam3_foreign import folder as foreign_folder
from engines.loader import load_segmenter, open_bundle
from engines.types import Phrase


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
