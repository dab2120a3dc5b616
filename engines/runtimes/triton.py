"""Triton: graphs run on a server that has loaded the repository which `models export --triton` writes."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import GraphSpec
from engines.errors import GraphLoadError, RuntimeUnavailableError, ServerError
from engines.graph_hash import graph_sha256
from engines.protocols import Availability, Runtime
from engines.triton_names import SHA256_PARAMETER, name_of

_NAME = "triton"
_TITLE = "Triton server"
_LONGEST_RUN_S = 120.0


class TritonSession:
    """One graph on a server, asked over gRPC."""

    runtime = _NAME

    def __init__(self, client: Any, model: str, spec: GraphSpec, device: str) -> None:
        self.device = device
        self._client = client
        self._model = model
        self._spec = spec

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Every declared output by name; raises `ServerError` when the server does not answer or refuses."""
        from tritonclient import grpc
        from tritonclient.utils import InferenceServerException

        self._spec.check_inputs(feeds)
        wanted = [grpc.InferRequestedOutput(spec.name) for spec in self._spec.outputs]
        given = [_input(name, array) for name, array in feeds.items()]
        try:
            answer = self._client.infer(self._model, given, outputs=wanted, client_timeout=_LONGEST_RUN_S)
        except InferenceServerException as error:
            raise ServerError(self.device, error.message() or str(error)) from None
        return {spec.name: answer.as_numpy(spec.name) for spec in self._spec.outputs}


def _input(name: str, array: NDArray[Any]) -> Any:
    from tritonclient import grpc
    from tritonclient.utils import np_to_triton_dtype

    tensor = grpc.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    tensor.set_data_from_numpy(np.ascontiguousarray(array))
    return tensor


def _load_graph(path: Path, spec: GraphSpec, device: str) -> TritonSession:
    """Find the graph on the server at `device` (HOST:PORT). Raises `ServerError`, or `GraphLoadError` where the server
    has no model of exactly this content."""
    from tritonclient import grpc
    from tritonclient.utils import InferenceServerException

    sha256 = graph_sha256(path)
    model = name_of(spec.role, sha256)
    client = grpc.InferenceServerClient(device)
    try:
        ready = client.is_server_ready(client_timeout=_LONGEST_RUN_S) and client.is_model_ready(model)
        config = client.get_model_config(model).config if ready else None
    except InferenceServerException as error:
        raise ServerError(device, error.message() or str(error)) from None
    if config is None or config.parameters[SHA256_PARAMETER].string_value != sha256:
        reason = (
            f"the server at {device} has not loaded {model}; write it with 'models export --triton' and load it there"
        )
        raise GraphLoadError(path, _TITLE, reason)
    return TritonSession(client, model, spec, device)


def _availability() -> Availability:
    if importlib.util.find_spec("tritonclient") is None:
        return Availability(False, 'its client is not installed: pip install "phrasemask[triton]"')
    return Availability(True)


def _check_address(device: str) -> None:
    host, _, port = device.rpartition(":")
    if not (host and port.isdecimal()):
        reason = f"it takes the address of a server, such as --device 127.0.0.1:8001; got '{device}'"
        raise RuntimeUnavailableError(_TITLE, reason)


RUNTIME = Runtime(
    name=_NAME,
    title=_TITLE,
    availability=_availability,
    devices=lambda: ["HOST:PORT"],
    load_graph=_load_graph,
    check_device=_check_address,
)
