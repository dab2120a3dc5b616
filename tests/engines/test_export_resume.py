"""An export that was stopped goes on after its last finished part."""

from __future__ import annotations

from stopped_exports import STOPS, stamps

from engines.compare import failed_check

FILES = {"vision.onnx", "text.onnx", "decoder.onnx"}


def test_each_part_is_made_once_however_often_the_export_is_stopped(stopped_export):
    final = stamps(stopped_export.bundle)
    assert final.keys() == FILES
    assert [set(made) for made in stopped_export.made] == [
        {"vision.onnx"},
        {"vision.onnx", "text.onnx"},
        FILES,
        FILES,
    ]
    for made in stopped_export.made:
        assert made.items() <= final.items()


def test_a_run_says_what_was_done_before(stopped_export):
    last = stopped_export.said[-1]
    assert last[:3] == [f"{role}: done before" for role in ("vision", "text", "decoder")]
    assert last[-1] == "checks: passed"
    assert len(stopped_export.said) == len(STOPS) + 1


def test_nothing_but_the_bundle_is_left(stopped_export):
    assert [path.name for path in stopped_export.bundle.parent.iterdir()] == ["fp32"]
    assert {path.name for path in stopped_export.bundle.iterdir()} == {
        *FILES,
        "manifest.json",
        "tokenizer.json",
        "checks",
        "check_report.json",
        "check_report.md",
    }


def test_the_finished_bundle_is_whole_and_has_passed_its_check(bundle):
    bundle.verify()
    assert not failed_check(bundle)
    assert bundle.reference == "meta"
    assert bundle.licence == "SAM License"
    assert {"torch", "transformers", "onnx"} <= bundle.tools.keys()
