"""Names a graph by its content: the ONNX file and the files of weights that it reads."""

from __future__ import annotations

import hashlib
from pathlib import Path

from engines.graph_signature import read_signature


def graph_files(path: Path) -> list[Path]:
    """The ONNX file and the files beside it that hold its weights; raises `OnnxFileError`."""
    return [path, *(path.parent / name for name in sorted(read_signature(path).bytes_by_data_file))]


def graph_sha256(path: Path) -> str:
    """Sha256 over the content of all files of a graph, whatever they are called. Raises `OnnxFileError`, OSError."""
    whole = hashlib.sha256()
    for file in graph_files(path):
        with file.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()
