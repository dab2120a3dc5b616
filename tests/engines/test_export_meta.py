"""Meta's `sam3.pt` and the folder from Hugging Face: the same weights under other names are the same model."""

from __future__ import annotations

import pytest
from tiny_checkpoints import SIDE, found_as_tiny, write_meta

from engines.export.checkpoint import (
    PARTS,
    SAM3,
    empty_model,
    find_checkpoint,
    load_part,
    model_classes,
    native_image_size,
)
from engines.export.graph_export import feature_width, n_queries


@pytest.fixture(scope="module")
def meta_file(model, tmp_path_factory):
    return write_meta(model, tmp_path_factory.mktemp("meta"))


@pytest.mark.parametrize("role", PARTS)
def test_both_give_exactly_the_same_weights(model, folder, meta_file, role):
    import torch

    ours, theirs = (load_part(one, role, SIDE) for one in (find_checkpoint(folder), found_as_tiny(meta_file, folder)))
    held = {name: values for name, values in theirs.state_dict().items() if not values.is_meta}
    assert held.keys() == {name for name, values in ours.state_dict().items() if not values.is_meta}
    assert held
    for name, values in held.items():
        assert torch.equal(values, model.state_dict()[name]), name


def test_a_part_holds_no_weights_of_the_others(folder):
    loaded = load_part(find_checkpoint(folder), "text", SIDE).state_dict()
    assert {name.split(".")[0] for name, values in loaded.items() if not values.is_meta} == {
        "text_encoder",
        "text_projection",
    }


def test_weights_in_half_precision_are_widened(model, folder, tmp_path):
    import safetensors.torch
    import torch

    halves = {name: values.half() for name, values in model.state_dict().items() if values.is_floating_point()}
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    safetensors.torch.save_file(halves, tmp_path / "model.safetensors")
    loaded = load_part(find_checkpoint(tmp_path), "text", SIDE).state_dict()["text_projection.weight"]
    assert loaded.dtype == torch.float32
    assert torch.equal(loaded, halves["text_projection.weight"].float())


def test_the_weights_of_a_model_for_video_are_found_in_several_files(model, folder, tmp_path):
    """They lie beside those of its tracker, under the name of its detector."""
    import json

    import safetensors.torch
    import torch

    config = {"model_type": "sam3_video", "detector_config": json.loads((folder / "config.json").read_text())}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    named = [(f"detector_model.{name}", values.clone()) for name, values in model.state_dict().items()]
    halves = (named[::2], [*named[1::2], ("tracker_model.weight", torch.ones(2))])
    for index, half in enumerate(halves, start=1):
        safetensors.torch.save_file(dict(half), tmp_path / f"model-{index:05}-of-00002.safetensors")
    found = find_checkpoint(tmp_path)
    loaded = load_part(found, "decoder", SIDE).state_dict()
    assert len(found.weights) == 2
    for name in ("geometry_encoder.cls_embed.weight", "mask_decoder.instance_projection.weight"):
        assert torch.equal(loaded[name], model.state_dict()[name])


def test_without_a_configuration_the_model_is_sam_3_at_full_size(meta_file):
    found = find_checkpoint(meta_file)
    assert (found.kind, native_image_size(found), feature_width(found), n_queries(found)) == ("sam3", 1008, 256, 200)


@pytest.mark.parametrize("image_size", [1008, 560])
def test_the_model_at_full_size_is_the_same_for_any_picture_but_for_the_side_of_it(meta_file, image_size):
    wanted = model_classes(SAM3)[0]()
    wanted.vision_config.backbone_config.image_size = image_size
    wanted.vision_config.backbone_feature_sizes = [[image_size // 14 * scale] * 2 for scale in (4, 2, 1)]
    assert empty_model(find_checkpoint(meta_file), image_size).config.to_dict() == wanted.to_dict()
