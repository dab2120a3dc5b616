"""Small exported models, made once for all tests that need the `[export]` extra."""

from __future__ import annotations

import os

import pytest
from stopped_exports import export_with_stops
from tiny_checkpoints import N_QUERIES, SIDE, random_model, write_folder

from engines.bundle import read_bundle
from engines.errors import PhrasemaskError
from engines.export.bundle_export import export_bundle
from engines.export.checkpoint import LITE_TEXT
from engines.export.extra import require_all


@pytest.fixture(scope="session")
def export_extra():
    """Without the extra the test is skipped, or fails when PHRASEMASK_REQUIRE_EXPORT is 1."""
    try:
        require_all()
    except PhrasemaskError as error:
        refuse = pytest.fail if os.environ.get("PHRASEMASK_REQUIRE_EXPORT") == "1" else pytest.skip
        refuse(f"{error} (in a checkout: pip install -e '.[export]')")


@pytest.fixture(scope="session")
def model(export_extra):
    """Two layers in each part of the decoder."""
    return random_model()


@pytest.fixture(scope="session")
def shallow_model(export_extra):
    """One layer in each part of the decoder, so that it is exported quickly."""
    return random_model(n_detr_layers=1)


@pytest.fixture(scope="session")
def lite_model(export_extra):
    return random_model(LITE_TEXT)


@pytest.fixture(scope="session")
def folder(model, tmp_path_factory):
    return write_folder(model, tmp_path_factory.mktemp("sam3"))


@pytest.fixture(scope="session")
def shallow_folder(shallow_model, tmp_path_factory):
    return write_folder(shallow_model, tmp_path_factory.mktemp("shallow"))


@pytest.fixture(scope="session")
def lite_folder(lite_model, tmp_path_factory):
    return write_folder(lite_model, tmp_path_factory.mktemp("lite"))


@pytest.fixture(scope="session")
def stopped_export(folder, tmp_path_factory):
    """In float32 with all instances, stopped after each part and started again."""
    return export_with_stops(folder, tmp_path_factory.mktemp("bundles") / "fp32", SIDE, N_QUERIES)


@pytest.fixture(scope="session")
def bundle(stopped_export):
    """The float32 bundle of `model`."""
    return read_bundle(stopped_export.bundle)


@pytest.fixture(scope="session")
def fp16_bundle(shallow_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("bundles") / "fp16"
    return read_bundle(export_bundle(shallow_folder, out, "fp16", SIDE, N_QUERIES))


@pytest.fixture(scope="session")
def int8_bundle(shallow_folder, tmp_path_factory):
    """With the best 5 of 12 instances."""
    out = tmp_path_factory.mktemp("bundles") / "int8"
    return read_bundle(export_bundle(shallow_folder, out, "int8", SIDE, 5))
