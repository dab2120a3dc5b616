"""A disk that fills while a bundle is written: one sentence, and nothing is left."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager

import pytest
from tiny_checkpoints import N_QUERIES, SIDE, WIDTH

from engines.export import graph_export
from engines.export.bundle_export import export_bundle
from engines.export.checkpoint import find_checkpoint
from engines.export.errors import ExportFailedError
from engines.export.graph_export import build_module, export_graph, graph_spec
from engines.export.precision import quantise
from engines.export.work_folder import WorkFolder

resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")
TOLD = rf"the model could not be written to .*out: {os.strerror(errno.EFBIG)}; nothing was left there"


@contextmanager
def largest_file(n_bytes):
    """As if the disk were full there: writing more fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("n_bytes", [10, 100_000])
def test_the_first_file_that_does_not_fit_ends_the_export(shallow_folder, tmp_path, n_bytes):
    with largest_file(n_bytes), pytest.raises(ExportFailedError, match=TOLD):
        export_bundle(shallow_folder, tmp_path / "out", image_size=SIDE)
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_was_finished_before_goes_too(shallow_folder, tmp_path):
    """Vision and tokenizer fit, the table of words does not."""
    said = []
    with largest_file(2_500_000), pytest.raises(ExportFailedError, match=TOLD):
        export_bundle(shallow_folder, tmp_path / "out", image_size=SIDE, progress=said.append)
    assert said[-1] == "text: exporting"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def text_module(shallow_folder, monkeypatch):
    """With weights in a file of their own, as at full size."""
    monkeypatch.setattr(graph_export, "EXTERNAL_ABOVE_BYTES", 0)
    return build_module(find_checkpoint(shallow_folder), "text", SIDE, N_QUERIES)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_weights_in_a_file_of_their_own_that_do_not_fit_end_it_too(text_module, tmp_path, precision):
    spec = graph_spec("text", SIDE, WIDTH, N_QUERIES)

    def write(room):
        with largest_file(2_500_000 if precision == "fp32" else resource.RLIM_INFINITY):
            export_graph(text_module, "text", spec, room / "float32.onnx")
        with largest_file(2_500_000):
            quantise(room / "float32.onnx", room / spec.file, external=True)

    work = WorkFolder(tmp_path / "out", "a")
    work.open()
    with pytest.raises(ExportFailedError, match=TOLD):
        work.make("text", write)
    assert list(tmp_path.iterdir()) == []
