"""Small exported models, made once for all tests that need the `[export]` extra."""

from __future__ import annotations

import os

import pytest
from stopped_exports import export_with_stops
from tiny_checkpoints import N_QUERIES, SIDE, WIDTH, random_model, write_folder

from engines.bundle import read_bundle
from engines.errors import PhrasemaskError
from engines.export import graph_export
from engines.export.bundle_export import export_bundle
from engines.export.checkpoint import LITE_TEXT, find_checkpoint
from engines.export.extra import require_all
from engines.export.graph_export import build_module, export_graph, graph_spec


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
    """One layer in the decoder of queries, as that takes long to export; no score of the checks is near 0.5."""
    return random_model(n_decoder_layers=1, seed=10)


@pytest.fixture(scope="session")
def lite_model(export_extra):
    """Two layers in each part."""
    return random_model(LITE_TEXT)


@pytest.fixture(scope="session")
def folder(model, tmp_path_factory):
    return write_folder(model, tmp_path_factory.mktemp("sam3"))


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
def fp16_bundle(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("bundles") / "fp16"
    return read_bundle(export_bundle(folder, out, "fp16", SIDE, N_QUERIES))


@pytest.fixture(scope="session")
def int8_bundle(folder, tmp_path_factory):
    """With the best 5 of 12 instances."""
    out = tmp_path_factory.mktemp("bundles") / "int8"
    return read_bundle(export_bundle(folder, out, "int8", SIDE, 5))


@pytest.fixture(scope="session")
def qdq_bundle(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("bundles") / "qdq"
    return read_bundle(export_bundle(folder, out, "int8-qdq", SIDE, N_QUERIES))


@pytest.fixture(scope="session")
def text_spec():
    return graph_spec("text", SIDE, WIDTH, N_QUERIES)


@pytest.fixture(scope="session")
def text_module(folder):
    """The text graph in torch."""
    return build_module(find_checkpoint(folder), "text", SIDE, N_QUERIES)


@pytest.fixture(scope="session")
def external_text(text_module, text_spec, tmp_path_factory):
    """The text graph with its weights in a file of their own, as at full size, where one file cannot hold them."""
    path = tmp_path_factory.mktemp("external") / text_spec.file
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_export, "EXTERNAL_ABOVE_BYTES", 0)
        export_graph(text_module, "text", text_spec, path)
    return path
