"""A disk that fills while a bundle is written: one sentence, and nothing is left."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager

import pytest
from tiny_checkpoints import SIDE

from engines.export import graph_export
from engines.export.bundle_export import export_bundle
from engines.export.errors import ExportFailedError
from engines.export.graph_export import export_graph
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
def test_the_first_file_that_does_not_fit_ends_the_export(folder, tmp_path, n_bytes):
    with largest_file(n_bytes), pytest.raises(ExportFailedError, match=TOLD):
        export_bundle(folder, tmp_path / "out", image_size=SIDE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("external_above", [0, 1_000_000_000])
def test_weights_that_do_not_fit_end_it_in_whichever_file_they_are(
    text_module, text_spec, tmp_path, monkeypatch, external_above
):
    monkeypatch.setattr(graph_export, "EXTERNAL_ABOVE_BYTES", external_above)
    work = opened_with_a_part(tmp_path / "out")
    with largest_file(2_500_000), pytest.raises(ExportFailedError, match=TOLD):
        work.make("text", lambda room: export_graph(text_module, "text", text_spec, room / text_spec.file))
    assert list(tmp_path.iterdir()) == []


def test_weights_in_int8_that_do_not_fit_end_it_too(external_text, text_spec, tmp_path):
    work = opened_with_a_part(tmp_path / "out")
    with largest_file(1_000_000), pytest.raises(ExportFailedError, match=TOLD):
        work.make("text", lambda room: quantise(external_text, room / text_spec.file, external=True))
    assert list(tmp_path.iterdir()) == []


def opened_with_a_part(out):
    """What was finished before goes too."""
    work = WorkFolder(out, "a")
    work.open()
    work.make("vision", lambda room: (room / "vision.onnx").write_bytes(b"graph"))
    return work
