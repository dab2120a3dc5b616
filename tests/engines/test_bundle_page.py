"""The page about bundles is true: its tables are those of the code, and its program finds what we find."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sam3_shapes import ASSETS, BUNDLE, load_shapes, picture

from engines.bundle import BundleManifestError, TensorSpec, read_bundle
from engines.check_files import CASES_FILE, DECODER_FILE, REFERENCE_FILE
from engines.export.checkpoint import CONTEXT_LENGTH, PATCH
from engines.export.graph_export import EXTERNAL_ABOVE_BYTES, OPSET, graph_spec
from engines.loader import runtimes
from engines.masks import Mask, iou_matrix
from engines.types import Phrase

PAGE = (Path(__file__).parents[2] / "docs" / "bundle.md").read_text(encoding="utf-8")
MANIFEST = json.loads((BUNDLE / "manifest.json").read_text(encoding="utf-8"))
FREE = {"B", "P", "N"}
FEATURES = {"features_0", "features_1", "features_2"}


def rows(heading):
    """Cells of the table rows in a section."""
    section = re.split(rf"^## {re.escape(heading)}$", PAGE, flags=re.M)[1].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def named(cell):
    return cell.strip("`")


def size(axis, sizes):
    if axis in FREE:
        return None
    factor, letter = re.fullmatch(r"(\d*)([A-Za-z]?)", axis).groups()
    return int(factor or 1) * sizes.get(letter, 1)


def tensors(role, side, image_size, width, n_instances, features="float32"):
    """The specs that the page's table tells for inputs or outputs of a graph."""
    sizes = {"S": image_size, "g": image_size // PATCH, "C": width, "T": CONTEXT_LENGTH, "K": n_instances}
    found = []
    for graph, where, name, dtype, axes, *_ in rows("Tensors"):
        if (graph, where) != (role, side):
            continue
        shape = tuple(size(axis, sizes) for axis in axes.strip("[]").split(", "))
        found.append(TensorSpec(named(name), features if named(name) in FEATURES else dtype, shape))
    return tuple(found)


@pytest.mark.parametrize("role", ["vision", "text", "decoder"])
@pytest.mark.parametrize("settings", [(1008, 256, 100), (504, 256, 200, "float16")])
def test_the_table_of_tensors_is_what_an_export_writes(role, settings):
    spec = graph_spec(role, *settings)
    assert (tensors(role, "in", *settings), tensors(role, "out", *settings)) == (spec.inputs, spec.outputs)


@pytest.mark.parametrize("role", ["vision", "text", "decoder"])
def test_the_table_of_tensors_is_what_a_bundle_declares(role):
    spec = read_bundle(BUNDLE).graphs[role]
    settings = (MANIFEST["image_size"], 64, MANIFEST["max_instances"])
    assert (tensors(role, "in", *settings), tensors(role, "out", *settings)) == (spec.inputs, spec.outputs)


def test_every_field_of_a_manifest_is_listed():
    assert [named(field) for field, *_ in rows("manifest.json")] == list(MANIFEST)


@pytest.mark.parametrize(("field", "needed"), [(named(field), needed) for field, needed, *_ in rows("manifest.json")])
def test_a_field_is_needed_exactly_if_the_page_says_so(field, needed, tmp_path):
    for name in MANIFEST["files"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    manifest = {name: value for name, value in MANIFEST.items() if name != field} | {"unknown": 1}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    if needed == "no":
        read_bundle(tmp_path)
    else:
        assert needed == "yes"
        with pytest.raises(BundleManifestError, match=f"it lacks '{field}'"):
            read_bundle(tmp_path)


def test_the_check_files_are_those_that_a_check_reads():
    listed = {named(name) for cell, *_ in rows("checks/") for name in re.findall(r"`[^`]+`", cell)}
    assert {CASES_FILE, REFERENCE_FILE, DECODER_FILE} <= listed <= set(MANIFEST["checks"])


def test_numbers_in_the_text_are_those_of_the_code():
    assert f"opset {OPSET}" in PAGE
    assert f"more than {EXTERNAL_ABOVE_BYTES // 1_000_000} MB" in PAGE
    assert f"S / {PATCH} " in PAGE and f"T = {CONTEXT_LENGTH}" in PAGE


def listed_operations(label):
    return set(re.search(rf"^- {label}: ([A-Za-z\s]+?)(?=\n- |\n\n)", PAGE, flags=re.M)[1].split())


def operations(path):
    import onnx

    return {node.op_type for node in onnx.load(str(path)).graph.node}


@pytest.mark.parametrize("role", ["vision", "text", "decoder"])
def test_graphs_hold_only_the_operations_that_are_listed(role):
    listed = listed_operations(role)
    assert operations(BUNDLE / f"{role}.onnx") <= listed
    assert not listed & listed_operations("not used")


@pytest.mark.parametrize("precision", ["", "fp16_"])
def test_graphs_exported_today_hold_only_the_operations_that_are_listed(precision, request):
    bundle = request.getfixturevalue(f"{precision}bundle")
    unlisted = {
        role: operations(bundle.file(graph.file)) - listed_operations(role) for role, graph in bundle.graphs.items()
    }
    assert not any(unlisted.values()), unlisted


@pytest.mark.parametrize(("file", "phrase"), [("shapes_01.png", "green triangle"), ("shapes_10.png", " Orange object")])
def test_the_program_on_the_page_finds_what_we_find(file, phrase, tmp_path):
    program = tmp_path / "run.py"
    program.write_text(re.search(r"```python\n(.*?)```", PAGE, flags=re.S)[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program, BUNDLE, ASSETS / "shapes_pictures" / file, phrase],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    segmenter = load_shapes(Counter())
    ours = segmenter.decode(segmenter.encode_image(picture(file), file), segmenter.encode_phrase(Phrase(phrase)))
    told = re.findall(r"^(mask_\d+\.png): score (\d\.\d+), (\d+) pixels$", done.stdout, flags=re.M)
    assert len(told) == len(ours) > 1
    for (name, score, _), instance in zip(told, ours, strict=True):
        assert float(score) == pytest.approx(instance.score, abs=1e-3)
        mask = Mask.encode(np.asarray(Image.open(tmp_path / name)))
        assert iou_matrix([mask], [instance.mask])[0, 0] > 0.995


def test_a_phrase_without_boxes_may_be_padded_with_any_box():
    bundle = read_bundle(BUNDLE)
    decoder = runtimes()["onnxruntime"].load_graph(BUNDLE / "decoder.onnx", bundle.graphs["decoder"], "cpu")
    with np.load(BUNDLE / DECODER_FILE) as archive:
        given = {name.removeprefix("in/"): archive[name] for name in archive.files if name.startswith("in/")}
    dtypes = {spec.name: spec.dtype for spec in bundle.graphs["decoder"].inputs}
    feeds = {name: values.astype(dtypes[name]) for name, values in given.items()}
    usual = decoder.run(feeds)
    n_phrases = len(feeds["labels"])
    padded = decoder.run(
        feeds
        | {
            "boxes": np.concatenate([feeds["boxes"], np.full((n_phrases, 2, 4), 0.4, np.float32)], axis=1),
            "labels": np.concatenate([feeds["labels"], np.full((n_phrases, 2), -10, np.int32)], axis=1),
        }
    )
    for name, values in usual.items():
        np.testing.assert_allclose(padded[name], values, atol=2e-3)


def test_any_padding_of_the_tokens_gives_the_same_answer():
    bundle = read_bundle(BUNDLE)
    text = runtimes()["onnxruntime"].load_graph(BUNDLE / "text.onnx", bundle.graphs["text"], "cpu")
    zeros = np.array([[49406, 736, 7117, 49407, *[0] * 28]], dtype=np.int32)
    ends = np.where(zeros == 0, 49407, zeros)
    answers = [text.run({"input_ids": ids})["text_features"][:, :4] for ids in (zeros, ends)]
    np.testing.assert_allclose(*answers, atol=1e-5)
