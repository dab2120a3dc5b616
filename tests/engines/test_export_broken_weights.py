"""Checkpoints whose weights are broken, of something else, or more than weights."""

from __future__ import annotations

import json
import shutil

import pytest
from tiny_checkpoints import SIDE, found_as_tiny, write_meta

from engines.export.bundle_export import export_bundle
from engines.export.checkpoint import find_checkpoint, load_part
from engines.export.errors import CheckpointError


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "sam3")


def refusal(checkpoint, tmp_path):
    """The sentence; nothing may be left where the bundle would be."""
    before = sorted(tmp_path.iterdir())
    with pytest.raises(CheckpointError) as caught:
        export_bundle(checkpoint, tmp_path / "out", image_size=SIDE)
    assert sorted(tmp_path.iterdir()) == before
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(checkpoint) in sentence
    return sentence


@pytest.mark.parametrize("kept", [0, 4, 1000, 0.5, -1])
def test_a_file_of_weights_that_is_cut_off_is_refused(copy, tmp_path, kept):
    path = copy / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    assert "model.safetensors cannot be exported: the file is cut off or damaged" in refusal(copy, tmp_path)


def test_weights_of_another_model_are_refused_by_what_is_missing(copy, tmp_path):
    import safetensors.torch
    import torch

    safetensors.torch.save_file({"layer.weight": torch.ones(3)}, copy / "model.safetensors")
    assert "it lacks" in (sentence := refusal(copy, tmp_path))
    assert "weights of SAM 3, such as vision_encoder." in sentence


def test_weights_of_another_shape_are_refused_by_name(copy, tmp_path):
    config = json.loads((copy / "config.json").read_text())
    config["vision_config"]["backbone_config"]["intermediate_size"] = 48
    (copy / "config.json").write_text(json.dumps(config))
    sentence = refusal(copy, tmp_path)
    assert "its weight vision_encoder.backbone.layers.0.mlp.fc1" in sentence
    assert "wanted [48" in sentence


@pytest.mark.parametrize(
    "change",
    [
        {"vision_config": [1]},
        {"text_config": "clip"},
        {"vision_config": {"backbone_config": {"hidden_size": "wide"}}},
        {"vision_config": {"backbone_config": {"num_attention_heads": 0}}},
    ],
)
def test_a_configuration_that_makes_no_model_is_refused(copy, tmp_path, change):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, **change}))
    assert "its configuration is not that of SAM 3" in refusal(copy, tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"model": {"type": "BPE", "vocab": {}, "merges": []}}'])
def test_a_tokenizer_of_something_else_is_refused(copy, tmp_path, content):
    (copy / "tokenizer.json").write_text(content)
    assert "tokenizer.json cannot be exported: it is not the tokenizer of SAM 3" in refusal(copy, tmp_path)


@pytest.fixture
def file(folder, tmp_path):
    """Where Meta's file would be, beside its tokenizer."""
    (tmp_path / "meta").mkdir()
    shutil.copy(folder / "tokenizer.json", tmp_path / "meta")
    return tmp_path / "meta" / "sam3.pt"


@pytest.fixture(scope="module")
def whole_file(model, tmp_path_factory):
    return write_meta(model, tmp_path_factory.mktemp("meta"))


class Intruder:
    """Unpickled, it would run code."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (open, (str(self.trace), "w"))


def test_code_in_a_file_of_weights_is_refused_and_does_not_run(file, tmp_path):
    import torch

    trace = tmp_path / "trace"
    torch.save({"model": {"detector.weight": torch.ones(2)}, "extra": Intruder(trace)}, file)
    assert "it holds more than weights and could run code" in refusal(file, tmp_path)
    assert not trace.exists()


def test_a_file_from_meta_that_is_cut_off_is_refused(whole_file, file, tmp_path):
    content = whole_file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert "it is not a PyTorch file of today's format; download sam3.pt again" in refusal(file, tmp_path)


def test_an_archive_of_something_else_is_refused(file, tmp_path):
    import zipfile

    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "not weights")
    assert "the file is cut off or damaged" in refusal(file, tmp_path)


@pytest.mark.parametrize("content", [{}, [1], {"model": 3}, {"model": {"layer": 1}}, {1: 2}, {"detector.step": 3}])
def test_a_file_without_weights_of_the_detector_is_refused(file, tmp_path, content):
    import torch

    torch.save(content, file)
    assert "it holds no weights of SAM 3's detector" in refusal(file, tmp_path)


def test_a_file_from_meta_that_lacks_a_weight_is_refused(whole_file, file, folder):
    import torch

    state = torch.load(whole_file, weights_only=True)
    del state["detector.transformer.decoder.query_embed.weight"]
    torch.save(state, file)
    found = found_as_tiny(file, folder)
    with pytest.raises(CheckpointError, match=r"lacks 1 weights of SAM 3, such as detr_decoder\.query_embed\.weight"):
        load_part(found, "decoder", SIDE)


def test_a_small_model_in_the_place_of_the_full_one_is_refused(whole_file):
    with pytest.raises(CheckpointError, match=r"sam3\.pt cannot be exported: its weight vision_encoder.* wanted "):
        load_part(find_checkpoint(whole_file), "vision", 1008)
