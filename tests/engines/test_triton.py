from __future__ import annotations

import hashlib
import json
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tritonclient.grpc", reason="the extra [triton] is not installed")
from google.protobuf import text_format
from triton_server import serving
from tritonclient.grpc import model_config_pb2

from engines.bundle import read_bundle
from engines.errors import GraphLoadError, RuntimeUnavailableError, ServerError, TritonRepositoryError
from engines.images import read_image
from engines.loader import load_segmenter
from engines.triton_repository import write_triton_repository
from engines.types import BoxPrompt, Phrase

ASSETS = Path(__file__).parents[1] / "assets"
BUNDLE = ASSETS / "shapes_bundle"
PICTURE = sorted((ASSETS / "shapes_pictures").glob("*.png"))[0]


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("triton") / "models"
    write_triton_repository(read_bundle(BUNDLE), out)
    return out


@pytest.fixture(scope="module")
def server(repository):
    with serving(repository) as address_and_servicer:
        yield address_and_servicer


def configs(repository: Path) -> dict[str, model_config_pb2.ModelConfig]:
    read = [
        text_format.Parse(path.read_text("utf-8"), model_config_pb2.ModelConfig())
        for path in repository.glob("*/config.pbtxt")
    ]
    return {config.name.partition("_")[0]: config for config in read}


def test_each_graph_becomes_a_model_named_by_its_content(repository):
    names = sorted(path.name for path in repository.iterdir())
    assert [name.partition("_")[0] for name in names] == ["decoder", "text", "vision"]
    for name in names:
        assert (repository / name / "1" / f"{name.partition('_')[0]}.onnx").is_file()
        assert (repository / name / "config.pbtxt").is_file()


def test_the_configuration_follows_triton_s_schema_and_the_manifest(repository):
    manifest = json.loads((BUNDLE / "manifest.json").read_text())
    for role, config in configs(repository).items():
        graph = manifest["graphs"][role]
        for tensors, side in ((config.input, "inputs"), (config.output, "outputs")):
            assert [one.name for one in tensors] == [one["name"] for one in graph[side]]
            for one, wanted in zip(tensors, graph[side], strict=True):
                shape = [-1 if size is None else size for size in wanted["shape"]]
                assert list(one.dims) == (shape[1:] if config.max_batch_size else shape)
        assert config.parameters["licence"].string_value == manifest["licence"]


def test_pictures_and_phrases_are_batched_and_the_decoder_is_not(repository):
    by_role = configs(repository)
    assert (by_role["vision"].max_batch_size, by_role["text"].max_batch_size) == (8, 4)
    assert by_role["vision"].HasField("dynamic_batching") and by_role["text"].HasField("dynamic_batching")
    assert list(by_role["vision"].dynamic_batching.preferred_batch_size) == [8]
    assert by_role["decoder"].max_batch_size == 0
    assert not by_role["decoder"].HasField("dynamic_batching")


def test_the_server_s_answers_are_those_of_onnx_runtime(server):
    address, servicer = server
    bundle = read_bundle(BUNDLE)
    here, there = load_segmenter(bundle, "onnxruntime", "cpu"), load_segmenter(bundle, "triton", address)
    assert (there.info.runtime, there.info.device) == ("triton", address)
    rgb = read_image(PICTURE).rgb
    before = dict(servicer.n_runs)
    answers = []
    for segmenter in (here, there):
        image = segmenter.encode_image(rgb, "picture")
        phrases = [segmenter.encode_phrase(Phrase(text)) for text in ("circle", "red square")]
        boxes = [BoxPrompt((10, 10, 60, 60)), BoxPrompt((80, 80, 120, 120), positive=False)]
        answers.append([*segmenter.decode_many(image, phrases), segmenter.decode(image, phrases[0], boxes)])
    ran = {name.partition("_")[0]: n - before[name] for name, n in servicer.n_runs.items()}
    assert ran == {"vision": 1, "text": 2, "decoder": 2}
    assert any(answers[0])
    for one, other in zip(*answers, strict=True):
        assert [item.mask for item in one] == [item.mask for item in other]
        np.testing.assert_allclose([item.score for item in one], [item.score for item in other], atol=1e-6)


def test_writing_again_changes_nothing_and_goes_on_where_it_was_stopped(repository, tmp_path):
    out = tmp_path / "models"
    bundle = read_bundle(BUNDLE)
    folders = write_triton_repository(bundle, out)
    shutil.rmtree(folders[1])
    (out / f".{folders[1].name}.partial" / "1").mkdir(parents=True)
    untouched = (folders[0] / "config.pbtxt").stat().st_mtime_ns
    assert write_triton_repository(bundle, out) == folders
    assert sorted(path.name for path in out.iterdir()) == sorted(folder.name for folder in folders)
    assert (folders[0] / "config.pbtxt").stat().st_mtime_ns == untouched


def test_two_bundles_stand_beside_each_other(repository, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(BUNDLE, other)
    assert [folder.name for folder in write_triton_repository(read_bundle(other), repository)] == [
        path.name for path in (repository / name for name in sorted_by_role(repository))
    ]


def sorted_by_role(repository: Path) -> list[str]:
    roles = list(read_bundle(BUNDLE).graphs)
    return sorted((path.name for path in repository.iterdir()), key=lambda name: roles.index(name.partition("_")[0]))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TritonRepositoryError, match="file cannot be made a Triton model repository"):
        write_triton_repository(read_bundle(BUNDLE), tmp_path / "file")


def test_a_server_that_is_not_there_is_named_with_its_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ServerError, match=address):
            load_segmenter(read_bundle(BUNDLE), "triton", address)


def test_a_server_with_other_graphs_is_not_asked(server, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(BUNDLE, other)
    graph = other / "text.onnx"
    graph.write_bytes(graph.read_bytes() + b"\x12\x01x")  # another producer name: the same graph with another content
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["files"]["text.onnx"] = hashlib.sha256(graph.read_bytes()).hexdigest()
    (other / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(GraphLoadError, match="has not loaded text_"):
        load_segmenter(read_bundle(other), "triton", server[0])


def test_a_server_that_stops_answering_gets_one_sentence(server):
    address, servicer = server
    segmenter = load_segmenter(read_bundle(BUNDLE), "triton", address)
    servicer.refusal = "out of memory"
    try:
        with pytest.raises(ServerError, match="out of memory"):
            segmenter.encode_phrase(Phrase("circle"))
    finally:
        servicer.refusal = ""
    assert segmenter.encode_phrase(Phrase("circle")).tensors


@pytest.mark.parametrize("device", ["auto", "cpu", "localhost", "localhost:", ":8001", "localhost:grpc"])
def test_the_address_of_the_server_must_be_given(device):
    with pytest.raises(RuntimeUnavailableError, match=r"--device 127\.0\.0\.1:8001"):
        load_segmenter(read_bundle(BUNDLE), "triton", device)
