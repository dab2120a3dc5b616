"""What an export refuses before it needs any package of the extra: one sentence, and nothing written."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from sam3_shapes import BUNDLE

from engines.errors import PhrasemaskError
from engines.export.bundle_export import export_bundle
from engines.export.errors import CheckpointError, ExportSettingError, ExportToolMissingError


@pytest.fixture
def checkpoint(tmp_path):
    """A folder that looks like one; its weights are never read here."""
    folder = tmp_path / "sam3"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "sam3"}))
    (folder / "model.safetensors").write_bytes(b"weights")
    shutil.copy(BUNDLE / "tokenizer.json", folder)
    return folder


def refusal(kind, checkpoint, out, **settings):
    """The sentence; the folder around `out` must be what it was."""
    before = sorted(out.parent.rglob("*"))
    with pytest.raises(kind) as caught:
        export_bundle(checkpoint, out, **settings)
    assert isinstance(caught.value, PhrasemaskError)
    assert sorted(out.parent.rglob("*")) == before
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("content", ["[]", '"sam3"', "null", "3", '{"detector_config": [1]}'])
def test_a_configuration_that_is_no_object_is_refused(checkpoint, tmp_path, content):
    (checkpoint / "config.json").write_text(content)
    sentence = refusal(CheckpointError, checkpoint, tmp_path / "out")
    assert "config.json cannot be exported: it does not describe a model" in sentence


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"version https://git-lfs.github.com/spec/v1"])
def test_a_configuration_that_is_no_json_is_refused(checkpoint, tmp_path, content):
    (checkpoint / "config.json").write_bytes(content)
    assert "config.json cannot be exported: it is not JSON" in refusal(CheckpointError, checkpoint, tmp_path / "out")


def test_a_configuration_that_cannot_be_read_is_refused(checkpoint, tmp_path):
    (checkpoint / "config.json").unlink()
    (checkpoint / "config.json").mkdir()
    assert "cannot be read" in refusal(CheckpointError, checkpoint, tmp_path / "out")


@pytest.mark.parametrize("kind", ["clip", "sam2", None, 7])
def test_a_checkpoint_of_another_model_is_refused_by_its_kind(checkpoint, tmp_path, kind):
    (checkpoint / "config.json").write_text(json.dumps({"model_type": kind}))
    assert f"a model of the kind '{kind}', not SAM 3" in refusal(CheckpointError, checkpoint, tmp_path / "out")


@pytest.mark.parametrize("section", [[], "many", {"num_queries": "many"}, {"num_queries": None}])
def test_a_configuration_without_the_number_of_instances_is_refused(checkpoint, tmp_path, section):
    (checkpoint / "config.json").write_text(json.dumps({"model_type": "sam3", "detr_decoder_config": section}))
    assert "no number for num_queries" in refusal(CheckpointError, checkpoint, tmp_path / "out")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_that_is_not_there_is_named(checkpoint, tmp_path, name):
    (checkpoint / name).unlink()
    assert name in refusal(CheckpointError, checkpoint, tmp_path / "out")


def test_a_path_where_nothing_is_is_named(tmp_path):
    assert "nowhere cannot be exported: it does not exist" in refusal(
        CheckpointError, tmp_path / "nowhere", tmp_path / "out"
    )


@pytest.mark.parametrize("content", [b"", b"weights", b"\x80\x02}q\x00."])
def test_a_file_that_torch_did_not_write_is_refused(checkpoint, tmp_path, content):
    """The last one is an old pickle, which is never read."""
    path = checkpoint / "sam3.pt"
    path.write_bytes(content)
    assert "sam3.pt cannot be exported: it is not a PyTorch file" in refusal(CheckpointError, path, tmp_path / "out")


@pytest.mark.parametrize("size", [-14, 0, 14, 100, 1000, 1009])
def test_an_image_size_that_is_no_multiple_of_the_patch_is_refused(checkpoint, tmp_path, size):
    sentence = refusal(ExportSettingError, checkpoint, tmp_path / "out", image_size=size)
    assert sentence == f"the image size is {size}, wanted a multiple of 14 from 56 on, like 1008"


def test_a_precision_that_there_is_none_of_is_refused(checkpoint, tmp_path):
    sentence = refusal(ExportSettingError, checkpoint, tmp_path / "out", precision="fp8")
    assert sentence == "the precision is fp8, wanted one of fp32, fp16, int8, int8-qdq"


def test_no_instance_at_all_is_refused(checkpoint, tmp_path):
    sentence = refusal(ExportSettingError, checkpoint, tmp_path / "out", max_instances=0)
    assert sentence == "the number of instances is 0, wanted 1 to 200"


@pytest.mark.parametrize("package", ["torch", "transformers", "safetensors", "onnx", "onnxscript"])
def test_a_package_of_the_extra_that_is_missing_is_named(checkpoint, tmp_path, monkeypatch, package):
    for name in ("torch", "transformers", "safetensors", "onnx", "onnxscript"):
        monkeypatch.setitem(sys.modules, name, None if name == package else json)
    sentence = refusal(ExportToolMissingError, checkpoint, tmp_path / "out")
    assert (
        sentence == f'exporting a model needs the package {package}; install it with pip install "phrasemask[export]"'
    )
