"""fp16 and int8 bundles: what they hold, that they pass their check, and that our family answers with them."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from bundle_copies import copy_bundle, spoil, with_noise
from graph_runs import padding_box, session
from sam3_in_transformers import END, START, furthest, phrase_ids, random_picture, text_answer, whole_answer
from tiny_checkpoints import CONTEXT, SIDE

from engines.check_files import BestInstances
from engines.compare import REPORT_FILE, check_bundle, failed_check
from engines.export.precision import quantise
from engines.families._sam3.tokens import PhraseTokenizer
from engines.loader import load_segmenter, runtimes
from engines.types import Phrase, SegmentOptions

ROLES = ("vision", "text", "decoder")


@pytest.fixture(params=["fp16", "int8"])
def smaller(request):
    """A bundle in one of the precisions that are not exact."""
    return request.getfixturevalue(f"{request.param}_bundle")


def weights(bundle, role):
    model = onnx.load(str(bundle.file(bundle.graphs[role].file)))
    return [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer]


def test_a_smaller_bundle_passes_its_check(smaller):
    report = json.loads((smaller.folder / REPORT_FILE).read_text("utf-8"))
    assert report["bundle_id"] == smaller.bundle_id
    assert report["precision"] == smaller.precision
    assert report["passed"]
    assert report["mean_iou"] >= 0.95
    assert not failed_check(smaller)


def test_the_check_had_instances_to_lose(smaller):
    report = json.loads((smaller.folder / REPORT_FILE).read_text("utf-8"))
    assert sum(case["n_expected"] for case in report["cases"]) >= 5


@pytest.mark.parametrize("role", ["vision", "decoder"])
def test_a_smaller_bundle_whose_weights_were_spoiled_fails_its_check(smaller, tmp_path, role):
    copy = copy_bundle(smaller.folder, tmp_path / "copy")
    spoil(copy, role, with_noise)
    assert not check_bundle(copy, device="cpu").passed


def test_the_family_answers_with_it_as_the_original_does(model, smaller):
    """At the model's own picture size, so that nothing is resized before."""
    picture = random_picture(1, SIDE, seed=3)
    tokens = PhraseTokenizer(smaller.file("tokenizer.json"), CONTEXT).tokens("red circle")
    wanted = BestInstances.of(
        whole_answer(model, picture, tokens.padded(CONTEXT), tokens.mask(CONTEXT), *padding_box(1))
    )
    segmenter = load_segmenter(smaller, device="cpu")
    image = segmenter.encode_image(np.ascontiguousarray(picture[0].transpose(1, 2, 0)), "random")
    found = segmenter.decode(image, segmenter.encode_phrase(Phrase("red circle")), (), SegmentOptions(0.1))
    n_best = smaller.max_instances
    assert 0 < len(found) <= n_best
    n_compared = min(len(found), len(wanted.scores))
    assert [one.score for one in found[:n_compared]] == pytest.approx(wanted.scores[:n_compared], abs=0.05)


@pytest.mark.parametrize(("role", "least"), [("vision", 0.8), ("text", 0.8), ("decoder", 0.4)])
def test_fp16_holds_its_large_weights_in_half(fp16_bundle, role, least):
    """In the decoder the sampling of boxes stays float32, which is half of it in so small a model."""
    large = [values for values in weights(fp16_bundle, role) if values.dtype.kind == "f" and values.size >= 1024]
    halves = [values for values in large if values.dtype == np.float16]
    assert sum(values.size for values in halves) > least * sum(values.size for values in large)


def test_fp16_hands_features_over_in_half_and_answers_in_float32(fp16_bundle):
    picture = random_picture(1, SIDE)
    assert {str(values.dtype) for values in session(fp16_bundle, "vision").run({"image": picture}).values()} == {
        "float16"
    }
    answers = fp16_bundle.graphs["decoder"].outputs
    assert {spec.dtype for spec in answers} == {"float32"}


def test_int8_holds_the_matrices_of_vision_and_text_in_int8_and_leaves_the_decoder_whole(int8_bundle):
    operations = {}
    for role in ROLES:
        model = onnx.load(str(int8_bundle.file(int8_bundle.graphs[role].file)))
        operations[role] = {node.op_type for node in model.graph.node}
    assert "MatMulInteger" in operations["vision"] & operations["text"]
    assert "MatMulInteger" not in operations["decoder"]
    assert any(values.dtype == np.int8 for values in weights(int8_bundle, "vision"))
    assert not {np.dtype("i1"), np.dtype("f2")} & {values.dtype for values in weights(int8_bundle, "decoder")}


def test_int8_has_a_scale_for_each_output_channel(int8_bundle):
    model = onnx.load(str(int8_bundle.file("vision.onnx")))
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    matrices = [name for name, matrix in values.items() if matrix.dtype == np.int8 and matrix.ndim == 2]
    assert matrices
    for name in matrices:
        scale = values[name.replace("_quantized", "_scale")]
        assert scale.shape == values[name].shape[1:]


def test_int8_with_fixed_scales_has_its_matrices_between_them_and_answers_nearly_alike(qdq_bundle):
    for role in ROLES:
        model = onnx.load(str(qdq_bundle.file(qdq_bundle.graphs[role].file)))
        operations = {node.op_type for node in model.graph.node}
        assert ({"QuantizeLinear", "DequantizeLinear"} <= operations) == (role != "decoder")
        assert not {"MatMulInteger", "DynamicQuantizeLinear"} & operations
        zero_points = [tensor for tensor in model.graph.initializer if tensor.name.endswith("zero_point")]
        assert all(not onnx.numpy_helper.to_array(tensor).any() for tensor in zero_points)
    assert any(values.dtype == np.int8 for values in weights(qdq_bundle, "vision"))
    report = json.loads((qdq_bundle.folder / REPORT_FILE).read_text("utf-8"))
    assert report["precision"] == "int8-qdq"
    assert report["mean_iou"] >= 0.9


@pytest.mark.parametrize(("precision", "limit"), [("fp32", 1e-4), ("int8", 0.1)])
def test_weights_in_a_file_of_their_own_give_the_same_answers(
    model, external_text, text_spec, tmp_path, precision, limit
):
    path = external_text
    if precision == "int8":
        path = tmp_path / text_spec.file
        quantise(external_text, path, external=True)
    assert sorted(file.name for file in path.parent.iterdir()) == ["text.onnx", "text.onnx.data"]
    assert path.stat().st_size < 300_000
    ids, counts = phrase_ids(2)
    got = runtimes()["onnxruntime"].load_graph(path, text_spec, "cpu").run({"input_ids": ids})["text_features"]
    assert furthest(got[counts], text_answer(model, ids, counts)[counts]) < limit


def test_the_bundle_speaks_of_its_tokens_as_the_original_does(smaller):
    tokens = PhraseTokenizer(smaller.file("tokenizer.json"), CONTEXT).tokens("cat")
    assert (tokens.ids[0], tokens.ids[-1]) == (START, END)
