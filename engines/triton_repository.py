"""Writes a bundle's graphs as a model repository that a Triton server loads as it is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from engines.bundle import GraphSpec, ModelBundle, TensorSpec
from engines.errors import RuntimeUnavailableError, TritonRepositoryError
from engines.graph_hash import graph_files, graph_sha256
from engines.tensorrt_engines.profiles import IMAGES, PHRASES
from engines.triton_names import SHA256_PARAMETER, name_of

CONFIG_FILE = "config.pbtxt"
VERSION = "1"
_WAIT_US = 2_000
"""How long a request may wait for others to be run together with it."""


def write_triton_repository(bundle: ModelBundle, out: Path) -> list[Path]:
    """A folder for each graph, with its files and `config.pbtxt`; answers the folders.

    Files are hard links where the disk allows it, else copies. A folder that is there already has the same content, for
    its name tells the content; it is left alone. Raises `BundleError`, `TritonRepositoryError`.
    """
    schema = _schema()
    bundle.verify()
    written = []
    for graph in bundle.graphs.values():
        path = bundle.file(graph.file)
        config = model_config(schema, graph, graph_sha256(path), bundle.licence)
        folder = out / config.name
        written.append(folder)
        if not (folder / CONFIG_FILE).is_file():
            _write_model(folder, path, config)
    return written


def model_config(schema: Any, graph: GraphSpec, sha256: str, licence: str) -> Any:
    """The `ModelConfig` message of one graph; `schema` is the module `model_config_pb2` of tritonclient."""
    most = _most_together(graph)
    config = schema.ModelConfig(name=name_of(graph.role, sha256), backend="onnxruntime", max_batch_size=most)
    config.default_model_filename = graph.file
    for tensors, specs in ((config.input, graph.inputs), (config.output, graph.outputs)):
        for spec in specs:
            entry = tensors.add(name=spec.name, data_type=_triton_dtype(schema, spec))
            entry.dims.extend(-1 if size is None else size for size in spec.shape[1 if most else 0 :])
    if most:
        config.dynamic_batching.max_queue_delay_microseconds = _WAIT_US
        config.dynamic_batching.preferred_batch_size.append(most)
    config.instance_group.add(kind=schema.ModelInstanceGroup.KIND_AUTO, count=1)
    config.parameters[SHA256_PARAMETER].string_value = sha256
    config.parameters["licence"].string_value = licence
    return config


def _most_together(graph: GraphSpec) -> int:
    """How many requests may go in one run; 0 where a tensor without that axis, as in the decoder, forbids it."""
    first_axes = [spec.shape[0] for spec in (*graph.inputs, *graph.outputs) if spec.shape]
    if any(size is not None for size in first_axes):
        return 0
    return (IMAGES if graph.role == "vision" else PHRASES).most


def _triton_dtype(schema: Any, spec: TensorSpec) -> int:
    from tritonclient.utils import np_to_triton_dtype

    return int(schema.DataType.Value(f"TYPE_{np_to_triton_dtype(np.dtype(spec.dtype))}"))


def _write_model(folder: Path, graph: Path, config: Any) -> None:
    """The configuration last: Triton and we take a folder without it for unfinished."""
    from google.protobuf import text_format

    draft = folder.with_name(f".{folder.name}.partial")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        (draft / VERSION).mkdir(parents=True)
        for file in graph_files(graph):
            _link_or_copy(file, draft / VERSION / file.name)
        (draft / CONFIG_FILE).write_text(text_format.MessageToString(config), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise TritonRepositoryError(folder.parent, error.strerror or str(error)) from None


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)


def _schema() -> Any:
    try:
        from tritonclient.grpc import model_config_pb2
    except ImportError:
        reason = 'its client is not installed: pip install "phrasemask[triton]"'
        raise RuntimeUnavailableError("Triton", reason) from None
    return model_config_pb2
