"""A small server that speaks Triton's protocol (KServe v2 over gRPC) and runs a model repository by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import onnxruntime
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc
from tritonclient.utils import np_to_triton_dtype, triton_to_np_dtype


class LoadedModel:
    """A folder of the repository, read as Triton reads it."""

    def __init__(self, folder: Path) -> None:
        self.config = text_format.Parse((folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
        assert self.config.name == folder.name
        self._session = onnxruntime.InferenceSession(str(folder / "1" / self.config.default_model_filename))

    def run(self, feeds: dict[str, np.ndarray], wanted: list[str]) -> list[np.ndarray]:
        self._check_shapes(self.config.input, feeds)
        outputs = self._session.run(wanted, feeds)
        self._check_shapes(self.config.output, dict(zip(wanted, outputs, strict=True)))
        return outputs

    def _check_shapes(self, declared: Any, arrays: dict[str, np.ndarray]) -> None:
        for tensor in declared:
            shape = list(arrays[tensor.name].shape)
            if self.config.max_batch_size:
                assert shape.pop(0) <= self.config.max_batch_size
            assert len(shape) == len(tensor.dims)
            assert all(size in (-1, got) for size, got in zip(tensor.dims, shape, strict=True)), (tensor, shape)
            dtype = model_config_pb2.DataType.Name(tensor.data_type).removeprefix("TYPE_")
            assert dtype == np_to_triton_dtype(arrays[tensor.name].dtype)


class TritonServicer(service_pb2_grpc.GRPCInferenceServiceServicer):
    """Answers what the client asks; anything else is UNIMPLEMENTED, as the stubs have it."""

    def __init__(self, repository: Path) -> None:
        self.models = {folder.name: LoadedModel(folder) for folder in sorted(repository.iterdir())}
        self.n_runs = dict.fromkeys(self.models, 0)
        self.refusal = ""

    def ServerReady(self, request, context):
        return service_pb2.ServerReadyResponse(ready=True)

    def ModelReady(self, request, context):
        return service_pb2.ModelReadyResponse(ready=request.name in self.models)

    def ModelConfig(self, request, context):
        return service_pb2.ModelConfigResponse(config=self.models[request.name].config)

    def ModelInfer(self, request, context):
        if self.refusal:
            context.abort(grpc.StatusCode.UNAVAILABLE, self.refusal)
        self.n_runs[request.model_name] += 1
        feeds = {
            tensor.name: np.frombuffer(raw, triton_to_np_dtype(tensor.datatype)).reshape(tensor.shape)
            for tensor, raw in zip(request.inputs, request.raw_input_contents, strict=True)
        }
        wanted = [tensor.name for tensor in request.outputs]
        answer = service_pb2.ModelInferResponse(model_name=request.model_name, model_version="1")
        for name, array in zip(wanted, self.models[request.model_name].run(feeds, wanted), strict=True):
            answer.outputs.add(name=name, datatype=np_to_triton_dtype(array.dtype), shape=array.shape)
            answer.raw_output_contents.append(np.ascontiguousarray(array).tobytes())
        return answer


@contextmanager
def serving(repository: Path) -> Iterator[tuple[str, TritonServicer]]:
    """The address of a server on this machine, and what answers there."""
    servicer = TritonServicer(repository)
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(2), options=unlimited)
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}", servicer
    finally:
        server.stop(None).wait()
