"""SAM 3 files of others, made from the small model of shapes, and that model itself; each loaded once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from contract_models import CONTRACTS, write_contract, write_decoder_without_geometry_token
from sam3_shapes import BUNDLE, load_shapes, picture

from engines.bundle import read_bundle
from engines.families import sam3
from engines.loader import load_segmenter, open_bundle, runtimes


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, Path]:
    room = tmp_path_factory.mktemp("contracts")
    return {name: write_contract(name, room / name) for name in CONTRACTS}


@pytest.fixture(scope="session")
def segmenters(folders):
    return {name: load_segmenter(open_bundle(path), "onnxruntime", "cpu") for name, path in folders.items()}


@pytest.fixture(scope="session")
def own():
    return load_shapes(Counter())


@pytest.fixture(scope="session")
def own_without_geometry_token(tmp_path_factory):
    """Our bundle with a decoder that follows transformers."""
    path = tmp_path_factory.mktemp("decoder") / "decoder.onnx"
    write_decoder_without_geometry_token(path)
    bundle, load_graph = read_bundle(BUNDLE), runtimes()["onnxruntime"].load_graph

    def open_graph(role):
        spec = bundle.graphs[role]
        return load_graph(path if role == "decoder" else bundle.file(spec.file), spec, "cpu")

    return sam3.FAMILY.load(bundle, open_graph)


@pytest.fixture(scope="session")
def encoded():
    """Features by segmenter and picture, made once."""
    made = {}

    def encode(segmenter, file):
        key = (id(segmenter), file)
        if key not in made:
            made[key] = segmenter.encode_image(picture(file), file)
        return made[key]

    return encode
