"""The check of a bundle: what passes, and what a bundle that answers otherwise fails by."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from bundle_copies import copy_bundle, rewrite_manifest, spoil, with_noise
from sam3_shapes import BUNDLE

from engines.bundle import read_bundle
from engines.check_files import BestInstances
from engines.check_report import CheckReport, compare_instances
from engines.compare import PAGE_FILE, REPORT_FILE, check_bundle, failed_check
from engines.errors import BundleDamagedError
from engines.export.precision import quantise

QUESTION = {"picture": "checks/picture_0.png", "phrase": "red circle", "boxes": []}


@pytest.fixture
def copy(tmp_path):
    return copy_bundle(BUNDLE, tmp_path / "copy")


def as_float32(source, target):
    """Its weights are packed as float16; quantisation takes them as they come out of the exporter."""
    model = onnx.load(str(source))
    packed = [node for node in model.graph.node if node.input[:1] == [f"{node.output[0]}_half"]]
    widened = {node.input[0]: node.output[0] for node in packed}
    for tensor in model.graph.initializer:
        if tensor.name in widened:
            values = onnx.numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, widened[tensor.name]))
    for node in packed:
        model.graph.node.remove(node)
    onnx.save(model, str(target))
    return target


def instances(scores, masks):
    boxes = np.zeros((len(scores), 4), np.float32)
    return BestInstances(np.array(scores), boxes, np.array(masks, dtype=bool))


def square(x, y, side=10):
    mask = np.zeros((48, 48), bool)
    mask[y : y + side, x : x + side] = True
    return mask


def test_a_bundle_passes_against_the_answers_of_its_original(copy):
    report = check_bundle(copy, device="cpu")
    assert report.passed
    assert report.mean_iou > 0.999
    assert max(one.relative for one in report.tensors) < 1e-3
    assert sum(case.n_expected for case in report.cases) >= 5
    assert failed_check(read_bundle(copy)) == ()


def test_its_vision_and_text_in_int8_pass_and_are_smaller(copy, tmp_path):
    for role in ("vision", "text"):
        path = copy / f"{role}.onnx"
        size = path.stat().st_size
        quantise(as_float32(path, tmp_path / "float32.onnx"), path, external=False)
        assert any(node.op_type == "MatMulInteger" for node in onnx.load(str(path)).graph.node)
        assert role == "text" or path.stat().st_size < 1.1 * size
    rewrite_manifest(copy, precision="int8")
    report = check_bundle(copy, device="cpu")
    assert report.failures == ()
    assert report.mean_iou >= 0.95
    assert 1e-3 < max(one.relative for one in report.tensors) < 0.1


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_bundle_with_spoiled_weights_fails_and_the_report_says_how(copy, precision):
    rewrite_manifest(copy, precision=precision)
    spoil(copy, "vision", with_noise)
    report = check_bundle(copy, device="cpu")
    assert not report.passed
    assert any("loses" in failure for failure in report.failures)
    assert failed_check(read_bundle(copy)) == report.failures
    assert "failed" in (copy / PAGE_FILE).read_text("utf-8").splitlines()[0]
    assert json.loads((copy / REPORT_FILE).read_text("utf-8"))["passed"] is False


def test_in_float32_a_tensor_that_is_off_fails_where_no_mask_shows_it(copy):
    spoil(copy, "text", lambda values: values * 1.002)
    report = check_bundle(copy, device="cpu")
    assert not any(case.n_lost for case in report.cases)
    assert any("text_features of the text graph" in failure for failure in report.failures)


def test_numbers_that_are_none_fail(copy):
    spoil(copy, "vision", lambda values: values * np.float16(np.nan))
    assert not check_bundle(copy, device="cpu").passed


def test_one_changed_byte_is_found_before_the_check(copy):
    content = bytearray((copy / "decoder.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (copy / "decoder.onnx").write_bytes(bytes(content))
    with pytest.raises(BundleDamagedError, match=r"decoder\.onnx is damaged"):
        check_bundle(copy, device="cpu")
    assert not (copy / REPORT_FILE).exists()


def test_a_check_of_another_state_of_the_bundle_says_nothing(copy):
    spoil(copy, "vision", lambda values: values * 0)
    assert failed_check(read_bundle(copy)) == ()
    assert not check_bundle(copy, device="cpu").passed
    rewrite_manifest(copy, title="another")
    assert failed_check(read_bundle(copy)) == ()


def report_of(*cases):
    return CheckReport("id", "name", "int8", "onnxruntime", "cpu", (), cases)


def test_an_instance_whose_mask_went_elsewhere_is_lost_and_the_other_gained():
    expected = instances([0.9, 0.8], [square(0, 0), square(30, 30)])
    found = instances([0.9, 0.8], [square(0, 0), square(30, 10)])
    case = compare_instances(QUESTION, expected, found)
    assert (case.n_expected, case.n_found, case.n_lost, case.n_gained, case.ious) == (2, 2, 1, 1, (1.0,))
    assert report_of(case).failures == ("'red circle' on checks/picture_0.png loses 1 of 2 instances",)


def test_an_instance_that_falls_below_a_score_of_one_half_is_lost():
    expected, found = instances([0.51], [square(0, 0)]), instances([0.49], [square(0, 0)])
    assert compare_instances(QUESTION, expected, found).n_lost == 1


def test_an_instance_below_one_half_in_the_original_may_come_and_go():
    expected = instances([0.9, 0.49], [square(0, 0), square(30, 30)])
    case = compare_instances(QUESTION, expected, instances([0.88, 0.02], [square(0, 0), square(30, 30)]))
    assert (case.n_lost, case.n_gained) == (0, 0)
    assert case.score_drift == pytest.approx(0.02)
    assert report_of(case).passed


def test_two_instances_are_not_both_found_in_one():
    expected = instances([0.9, 0.8], [square(0, 0), square(1, 0)])
    case = compare_instances(QUESTION, expected, instances([0.9], [square(0, 0)]))
    assert (case.n_lost, case.n_found) == (1, 1)


def test_masks_below_the_limit_fail_on_their_mean():
    """A square of 10 moved by 2 has an IoU of 80 / 120."""
    expected, found = instances([0.9], [square(0, 0)]), instances([0.9], [square(2, 0)])
    report = report_of(compare_instances(QUESTION, expected, found))
    assert report.mean_iou == pytest.approx(80 / 120)
    assert report.failures == ("masks agree with the original only to a mean IoU of 0.667 (0.95)",)


def test_without_an_instance_anywhere_the_best_masks_are_compared():
    expected, found = instances([0.1], [square(0, 0)]), instances([0.1], [square(2, 0)])
    assert report_of(compare_instances(QUESTION, expected, found)).mean_iou == pytest.approx(80 / 120)
