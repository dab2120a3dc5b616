"""Engines that answer wrongly are found before their first answer, and not used."""

from __future__ import annotations

import json
import logging
import shutil

import numpy as np
import pytest
from bundle_copies import copy_bundle
from sam3_shapes import BUNDLE, STEADY, picture
from wrong_engines import (
    constant,
    decoder_alone,
    install,
    pointing_elsewhere,
    with_a_hallucination,
    with_logits_halved,
    with_masks_moved,
    with_numbers_that_are_none,
    with_rows_swapped,
    with_scores_halved,
)

from engines.bundle import SHIPPED_MODELS, read_bundle
from engines.compare import REPORT_FILE, check_model
from engines.errors import EngineCancelledError, EngineFailedCheckError, EngineUncheckedError
from engines.loader import load_segmenter, open_bundle
from engines.tensorrt_engines.folder import EngineFolder
from engines.types import Phrase

WRONG = {
    "masks elsewhere": (decoder_alone(with_masks_moved), "loses"),
    "scores halved": (decoder_alone(with_scores_halved), "loses"),
    "logits halved": (decoder_alone(with_logits_halved), "of its length"),
    "no numbers": (decoder_alone(with_numbers_that_are_none), "no numbers"),
    "a hallucination": (decoder_alone(with_a_hallucination), "that are not there"),
    "constant vision": (constant("vision"), "of its length"),
    "constant text": (constant("text"), "of its length"),
    "constant decoder": (constant("decoder"), "loses"),
    "fused attention": (pointing_elsewhere, "of its length"),
}


@pytest.fixture
def engines(monkeypatch):
    return install(monkeypatch)


@pytest.fixture
def bundle(tmp_path):
    return read_bundle(copy_bundle(BUNDLE, tmp_path / "shapes"))


@pytest.fixture
def foreign(tmp_path):
    """A model that holds no answers to be checked by."""
    shutil.copytree(SHIPPED_MODELS / "starter", tmp_path / "starter")
    return open_bundle(tmp_path / "starter")


def verdicts(bundle):
    return {record.role: record.verdict.state for record in EngineFolder(bundle.folder).records()}


def answers(segmenter):
    """How many instances it finds of something that is there."""
    name, phrase = next((name, one["phrase"]) for name, one in STEADY if one["truth"] and not one["boxes"])
    features = segmenter.encode_image(picture(name), name)
    return len(segmenter.decode(features, segmenter.encode_phrase(Phrase(phrase))))


@pytest.mark.parametrize("spoil", [lambda role, outputs: outputs, decoder_alone(with_rows_swapped)])
def test_engines_that_are_right_pass_once_and_are_not_checked_again(bundle, engines, spoil):
    engines.spoil = spoil
    first = load_segmenter(bundle, "tensorrt")
    assert first.info.runtime == "tensorrt"
    assert verdicts(bundle) == dict.fromkeys(bundle.graphs, "passed")
    opened = engines.n_opened.copy()
    load_segmenter(bundle, "tensorrt")
    assert engines.n_opened - opened == dict.fromkeys(bundle.graphs, 1)
    assert engines.n_built == 3


@pytest.mark.parametrize(("spoil", "words"), WRONG.values(), ids=list(WRONG))
def test_engines_that_are_wrong_are_not_used(bundle, engines, spoil, words):
    engines.spoil = spoil
    with pytest.raises(EngineFailedCheckError) as caught:
        load_segmenter(bundle, "tensorrt")
    report = bundle.folder / "engines" / "check_report_tensorrt.md"
    assert str(report) in str(caught.value) and "--force" in str(caught.value)
    assert words in report.read_text("utf-8")
    assert verdicts(bundle) == dict.fromkeys(bundle.graphs, "failed")
    with pytest.raises(EngineFailedCheckError):
        load_segmenter(bundle, "tensorrt")


def test_the_report_tells_each_output_and_lies_beside_the_engines(bundle, engines):
    load_segmenter(bundle, "tensorrt")
    report = json.loads((bundle.folder / "engines" / "check_report_tensorrt.json").read_text("utf-8"))
    assert report["passed"] and report["runtime"] == "tensorrt"
    assert {one["graph"] for one in report["tensors"]} == {"vision", "text", "decoder"}
    assert min(one["cosine"] for one in report["tensors"]) > 0.999
    assert not (bundle.folder / REPORT_FILE).exists()


def test_auto_gives_way_to_onnx_runtime_with_one_sentence(bundle, engines, caplog):
    engines.spoil = decoder_alone(with_masks_moved)
    with caplog.at_level(logging.WARNING, "engines.loader"):
        segmenter = load_segmenter(bundle)
    assert segmenter.info.runtime == "onnxruntime"
    said = [record.message for record in caplog.records if record.name == "engines.loader"]
    [sentence] = [words for words in said if "failed its check" in words]
    assert sentence.endswith("ONNX Runtime runs the model")
    assert answers(segmenter) > 0


def test_force_takes_engines_that_have_failed_and_checks_none(bundle, engines):
    engines.spoil = decoder_alone(with_masks_moved)
    with pytest.raises(EngineFailedCheckError):
        load_segmenter(bundle, "tensorrt")
    forced = load_segmenter(bundle, "tensorrt", force=True)
    assert forced.info.runtime == "tensorrt" and answers(forced) > 0
    assert verdicts(bundle) == dict.fromkeys(bundle.graphs, "failed")


def test_an_unchecked_engine_is_loaded_by_nobody(bundle, engines):
    spec = bundle.graphs["text"]
    with pytest.raises(EngineUncheckedError, match="has not passed a check yet"):
        engines.runtime.load_graph(bundle.file(spec.file), spec, "auto")


def test_another_kind_of_gpu_is_another_check(bundle, engines):
    load_segmenter(bundle, "tensorrt")
    engines.architecture = "sm120"
    engines.spoil = decoder_alone(with_masks_moved)
    with pytest.raises(EngineFailedCheckError):
        load_segmenter(bundle, "tensorrt")


def test_a_check_on_demand_judges_anew_by_the_limits_given(bundle, engines):
    engines.spoil = decoder_alone(with_a_hallucination)
    report, page = check_model(bundle.folder, "tensorrt")
    assert not report.passed and page == bundle.folder / "engines" / "check_report_tensorrt.md"
    n_gained = sum(case.n_gained for case in report.cases)
    engines.spoil = lambda role, outputs: outputs
    assert check_model(bundle.folder, "tensorrt")[0].passed
    assert load_segmenter(bundle, "tensorrt").info.runtime == "tensorrt"
    assert n_gained > 0


def test_the_limits_of_masks_and_of_changed_instances_can_be_set(bundle, engines):
    engines.spoil = decoder_alone(lambda outputs: outputs | {"mask_logits": np.roll(outputs["mask_logits"], 1, -1)})
    strict, _ = check_model(bundle.folder, "tensorrt", least_iou=0.999)
    loose, _ = check_model(bundle.folder, "tensorrt", least_iou=0.5, most_changed=100)
    assert "mean IoU" in strict.failures[0] and not any("mean IoU" in one for one in loose.failures)


def test_a_check_that_is_stopped_judges_nothing(bundle, engines):
    def stop(what, share):
        return "checking the answers: decoder" not in what

    with pytest.raises(EngineCancelledError):
        load_segmenter(bundle, "tensorrt", progress=stop)
    assert verdicts(bundle) == dict.fromkeys(bundle.graphs, "unchecked")


def test_a_model_without_answers_is_asked_beside_onnx_runtime(foreign, engines):
    assert load_segmenter(foreign, "tensorrt").info.runtime == "tensorrt"
    page = (foreign.folder / "engines" / "check_report_tensorrt.md").read_text("utf-8")
    assert "compared with ONNX Runtime" in page and "passed" in page.splitlines()[0]
    assert set(verdicts(foreign).values()) == {"passed"}


def test_a_model_without_answers_whose_engines_are_wrong_is_refused(foreign, engines):
    engines.spoil = lambda role, outputs: {name: np.roll(values, 7, -1) * -1 for name, values in outputs.items()}
    with pytest.raises(EngineFailedCheckError):
        load_segmenter(foreign, "tensorrt")
