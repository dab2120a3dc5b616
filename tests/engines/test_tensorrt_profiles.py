"""The sizes that engines are built for, from the graphs of our bundles and of others' files."""

from __future__ import annotations

import pytest
from contract_models import write_contract
from sam3_shapes import BUNDLE

from engines.bundle import GraphSpec, TensorSpec, read_bundle
from engines.loader import open_bundle
from engines.tensorrt_engines.profiles import InputProfile, profiles_of


def ranges(spec: GraphSpec) -> dict[str, InputProfile]:
    return {profile.tensor: profile for profile in profiles_of(spec)}


def spec_of(role: str, name: str, shape: tuple[int | None, ...], dtype: str = "float32") -> GraphSpec:
    return GraphSpec(role, f"{role}.onnx", (TensorSpec(name, dtype, shape),), ())


def test_images_go_from_one_to_eight():
    [profile] = profiles_of(read_bundle(BUNDLE).graphs["vision"])
    assert profile == InputProfile("image", (1, 3, 168, 168), (1, 3, 168, 168), (8, 3, 168, 168))


def test_phrases_go_from_one_to_four_through_text_and_decoder():
    graphs = read_bundle(BUNDLE).graphs
    assert ranges(graphs["text"])["input_ids"] == InputProfile("input_ids", (1, 32), (1, 32), (4, 32))
    assert ranges(graphs["decoder"])["text_mask"].most == (4, 32)


def test_boxes_go_from_one_to_twenty_for_each_phrase():
    decoder = ranges(read_bundle(BUNDLE).graphs["decoder"])
    assert decoder["boxes"] == InputProfile("boxes", (1, 1, 4), (1, 1, 4), (4, 20, 4))
    assert decoder["labels"].most == (4, 20)


def test_inputs_that_cannot_vary_have_no_range():
    assert not any(name.startswith("features") for name in ranges(read_bundle(BUNDLE).graphs["decoder"]))


def test_a_free_size_of_pictures_is_what_the_model_was_trained_with():
    [profile] = profiles_of(spec_of("vision", "images", (None, 3, None, None)))
    assert (profile.least, profile.most) == ((1, 3, 1008, 1008), (8, 3, 1008, 1008))


def test_a_picture_without_a_batch_can_have_a_free_size():
    [profile] = profiles_of(spec_of("vision", "image", (3, None, None), "uint8"))
    assert profile.least == profile.most == (3, 1008, 1008)


def test_the_files_of_usls_vary_in_all_that_comes_together():
    decoder = spec_of("decoder", "fpn_feat_1", (None, 256, None, None))
    [features] = profiles_of(decoder)
    assert (features.least, features.most) == ((1, 256, 144, 144), (4, 256, 144, 144))
    [boxes] = profiles_of(spec_of("decoder", "input_boxes", (None, None, 4)))
    assert boxes.most == (4, 20, 4)
    [labels] = profiles_of(spec_of("decoder", "input_boxes_labels", (None, None), "int64"))
    assert labels.most == (4, 20)


def test_a_free_number_of_tokens_is_the_context():
    [profile] = profiles_of(spec_of("text", "input_ids", (None, None), "int64"))
    assert (profile.least, profile.most) == ((1, 32), (4, 32))
    [mask] = profiles_of(spec_of("decoder", "text_mask", (None, None), "bool"))
    assert (mask.least, mask.most) == ((1, 32), (4, 32))


def test_a_size_of_the_picture_that_is_an_input_has_a_range_of_values():
    [profile] = profiles_of(spec_of("decoder", "original_height", (), "int64"))
    assert (profile.least, profile.most) == ((1,), (8192,))


def test_a_graph_of_another_kind_may_vary_a_little():
    assert profiles_of(spec_of("doubler", "image", (1, None)))[0].most == (1, 20)


@pytest.mark.parametrize("name", ["sam3_samexporter", "sam3_osam", "sam3_usls", "sam3_danilobukvic"])
def test_every_free_axis_of_the_known_kinds_has_a_range(name, tmp_path):
    bundle = open_bundle(write_contract(name, tmp_path / name))
    for spec in bundle.graphs.values():
        free = {tensor.name for tensor in spec.inputs if None in tensor.shape}
        assert free <= ranges(spec).keys()
        assert all(
            0 < low <= usual <= high
            for profile in profiles_of(spec)
            for low, usual, high in zip(profile.least, profile.usual, profile.most, strict=True)
        )
