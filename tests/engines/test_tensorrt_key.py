"""The key of an engine: it changes with all that the engine is made from, and with nothing else."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, fields, replace

import onnx
import pytest
from engine_recipes import ARCHITECTURE, recipe
from sam3_shapes import BUNDLE
from tiny_models import write_doubling_bundle

from engines.bundle import read_bundle
from engines.errors import OnnxFileError
from engines.tensorrt_engines.key import BuildOptions, Recipe, recipe_for
from engines.tensorrt_engines.library import PORTABLE, TENSORRT, TENSORRT_RTX, Library
from engines.tensorrt_engines.profiles import InputProfile

CHANGES = {
    "graph_sha256": "cd" * 32,
    "outputs": ("inner",),
    "runtime": "tensorrt",
    "version": "1.8.0.1",
    "architecture": "sm120",
    "precision": "fp32",
    "profiles": (InputProfile("boxes", (1, 1, 4), (1, 1, 4), (4, 21, 4)),),
    "options": BuildOptions(version_compatible=True),
}


class OfVersion(Library):
    def version(self) -> str:
        return "10.13.0.35"


INSTALLED = OfVersion(**{field.name: getattr(TENSORRT, field.name) for field in fields(TENSORRT)})


def doubler_recipe(folder, **changes):
    bundle = read_bundle(folder)
    spec = bundle.graphs["doubler"]
    return recipe_for(INSTALLED, bundle.file(spec.file), replace(spec, **changes), ARCHITECTURE)


@pytest.mark.parametrize("name", [field.name for field in fields(Recipe)])
def test_the_key_changes_with_each_ingredient(name):
    assert recipe(**{name: CHANGES[name]}).key != recipe().key


def test_each_option_changes_the_key():
    options = [BuildOptions(), BuildOptions(workspace_gb=2), BuildOptions(workspace_gb=3), BuildOptions(None, True)]
    assert len({recipe(options=one).key for one in options}) == len(options)


def test_the_key_is_the_same_for_equal_ingredients_and_after_reading_them_back():
    assert recipe().key == recipe().key
    assert Recipe.from_json(json.loads(json.dumps(asdict(recipe())))).key == recipe().key


def test_a_recipe_says_what_the_bundle_says(tmp_path):
    write_doubling_bundle(tmp_path, precision="fp16")
    made = doubler_recipe(tmp_path)
    assert (made.runtime, made.version, made.precision) == ("tensorrt", "10.13.0.35", "fp16")
    assert [profile.tensor for profile in made.profiles] == ["image"]


def test_a_copy_of_the_graph_elsewhere_has_the_same_key(tmp_path):
    write_doubling_bundle(tmp_path / "one")
    first = doubler_recipe(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    os.utime(tmp_path / "two" / "doubling.onnx", (1, 1))
    assert doubler_recipe(tmp_path / "two").key == first.key


def test_a_changed_byte_of_the_graph_changes_the_key(tmp_path):
    write_doubling_bundle(tmp_path)
    first = doubler_recipe(tmp_path)
    model = onnx.load(str(tmp_path / "doubling.onnx"))
    model.doc_string = "changed"
    onnx.save(model, str(tmp_path / "doubling.onnx"))
    assert doubler_recipe(tmp_path).key != first.key


def test_other_weights_beside_the_graph_change_the_key(tmp_path):
    spec = read_bundle(BUNDLE).graphs["text"]
    path = tmp_path / spec.file
    model = onnx.load(str(BUNDLE / spec.file))
    onnx.save_model(model, str(path), save_as_external_data=True, location="weights.data", size_threshold=1024)
    first = recipe_for(INSTALLED, path, spec, ARCHITECTURE)
    weights = bytearray((tmp_path / "weights.data").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "weights.data").write_bytes(weights)
    os.utime(tmp_path / "weights.data", (1, 1))
    assert recipe_for(INSTALLED, path, spec, ARCHITECTURE).graph_sha256 != first.graph_sha256
    (tmp_path / "weights.data").unlink()
    with pytest.raises(OnnxFileError, match=r"weights\.data"):
        recipe_for(INSTALLED, path, spec, ARCHITECTURE)


def test_inner_outputs_are_an_ingredient_and_declared_ones_are_not(tmp_path):
    write_doubling_bundle(tmp_path)
    assert doubler_recipe(tmp_path).outputs == ()
    assert doubler_recipe(tmp_path, inner_outputs=True).outputs == ("double",)


@pytest.mark.parametrize(
    ("built_for", "wanted", "serves"),
    [
        ("sm89", "sm89", True),
        ("sm89", "sm120", False),
        (PORTABLE, "sm80", True),
        (PORTABLE, "sm120", True),
        (PORTABLE, "sm75", False),
        (PORTABLE, PORTABLE, True),
        ("sm89", PORTABLE, False),
    ],
)
def test_an_engine_serves_the_gpus_that_it_was_built_for(built_for, wanted, serves):
    assert recipe(architecture=built_for).serves(recipe(architecture=wanted)) is serves


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"architecture", "options"}))
def test_an_engine_of_anything_else_does_not_serve(name):
    assert not recipe(**{name: CHANGES[name]}).serves(recipe())


def test_an_engine_built_with_other_options_serves():
    assert recipe(options=BuildOptions(4, True)).serves(recipe())


def test_the_two_libraries_share_no_engine():
    assert TENSORRT.runtime != TENSORRT_RTX.runtime
