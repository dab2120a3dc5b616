"""Bundles: what is read, what is refused, and the sentence that goes with it."""

from __future__ import annotations

import json

import pytest
from tiny_models import write_doubling_bundle

from engines.bundle import find_bundles, locate_bundle, read_bundle
from engines.errors import (
    BundleDamagedError,
    BundleFileMissingError,
    BundleManifestError,
    BundleNotFoundError,
    BundleTooNewError,
)


def test_a_bundle_is_read_with_its_tensor_specs(tmp_path):
    write_doubling_bundle(tmp_path / "doubling")
    bundle = read_bundle(tmp_path / "doubling")
    bundle.verify()
    assert bundle.name == "doubling"
    assert bundle.graphs["doubler"].inputs[0].shape == (1, None)
    assert len(bundle.bundle_id) == 64


def test_another_graph_gives_another_bundle_id(tmp_path):
    write_doubling_bundle(tmp_path / "a")
    first = read_bundle(tmp_path / "a").bundle_id
    (tmp_path / "a" / "doubling.onnx").write_bytes(b"other")
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    manifest["files"]["doubling.onnx"] = "0" * 64
    (tmp_path / "a" / "manifest.json").write_text(json.dumps(manifest))
    assert read_bundle(tmp_path / "a").bundle_id != first


def test_a_missing_file_is_named(tmp_path):
    write_doubling_bundle(tmp_path)
    (tmp_path / "doubling.onnx").unlink()
    with pytest.raises(BundleFileMissingError, match=r"lacks its file doubling\.onnx"):
        read_bundle(tmp_path)


def test_a_folder_without_a_manifest_is_named(tmp_path):
    with pytest.raises(BundleFileMissingError, match=r"manifest\.json"):
        read_bundle(tmp_path)


def test_one_changed_byte_is_found(tmp_path):
    write_doubling_bundle(tmp_path)
    content = bytearray((tmp_path / "doubling.onnx").read_bytes())
    content[-1] ^= 1
    (tmp_path / "doubling.onnx").write_bytes(bytes(content))
    with pytest.raises(BundleDamagedError, match=r"doubling\.onnx is damaged"):
        read_bundle(tmp_path).verify()


def test_a_manifest_of_a_later_version_asks_for_an_update(tmp_path):
    write_doubling_bundle(tmp_path, manifest_version=99)
    with pytest.raises(BundleTooNewError, match="update Phrasemask"):
        read_bundle(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"files": {"../../etc/passwd": "0"}}, "leaves the model folder"),
        ({"files": {"/etc/passwd": "0"}}, "leaves the model folder"),
        ({"files": {}}, "not among its files"),
        ({"graphs": {"doubler": {"file": "doubling.onnx"}}}, "lacks 'inputs'"),
        ({"graphs": []}, "not a usable model manifest"),
        ({"image_size": "large"}, "not a usable model manifest"),
    ],
)
def test_a_broken_manifest_is_refused_in_one_sentence(tmp_path, change, words):
    write_doubling_bundle(tmp_path, **change)
    with pytest.raises(BundleManifestError, match=words) as caught:
        read_bundle(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"manifest_version": "x"}'])
def test_a_manifest_that_is_not_json_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(BundleManifestError):
        read_bundle(tmp_path)


def test_a_bundle_is_located_by_name_or_by_folder(tmp_path):
    write_doubling_bundle(tmp_path / "models" / "doubling")
    folder = tmp_path / "models" / "doubling"
    assert find_bundles([tmp_path / "models"]) == {"doubling": folder}
    assert locate_bundle("doubling", [tmp_path / "models"]) == folder
    assert locate_bundle(str(folder), []) == folder


def test_an_unknown_model_names_those_there_are(tmp_path):
    write_doubling_bundle(tmp_path / "doubling")
    with pytest.raises(BundleNotFoundError, match=r"no model .sam9.: give .* doubling"):
        locate_bundle("sam9", [tmp_path])
