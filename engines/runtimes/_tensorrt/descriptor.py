"""The descriptor of a TensorRT runtime: engines are taken from the bundle's folder or built, then sessions run them."""

from __future__ import annotations

from pathlib import Path

from engines.bundle import GraphSpec, ModelBundle
from engines.cuda_driver import n_cuda_devices
from engines.protocols import Progress, Runtime, Session
from engines.runtimes._tensorrt.session import open_session
from engines.runtimes._tensorrt.trial import EngineTrial
from engines.tensorrt_engines.key import bundle_folder
from engines.tensorrt_engines.library import Library
from engines.tensorrt_engines.provide import (
    device_index,
    prepare_engines,
    provide_engine,
    refuse_unproven,
    target_architecture,
)


def tensorrt_runtime(library: Library, preference: int) -> Runtime:
    """The runtime of one of the two libraries."""

    def load_graph(path: Path, spec: GraphSpec, device: str) -> Session:
        library.load_for_running()
        architecture = target_architecture(library, device)
        engine = provide_engine(library, path, spec, architecture)
        refuse_unproven(library, engine.record, architecture, bundle_folder(path, spec))
        return open_session(engine.content, spec, f"cuda:{device_index(device)}", library)

    def prepare(bundle: ModelBundle, device: str, progress: Progress) -> None:
        library.load_for_running()
        prepare_engines(library, bundle, target_architecture(library, device), progress)

    return Runtime(
        name=library.runtime,
        title=library.title,
        availability=library.can_run,
        devices=_devices,
        load_graph=load_graph,
        preference=preference,
        prepare=prepare,
        trial=lambda bundle, device: EngineTrial(library, bundle, device),
    )


def _devices() -> list[str]:
    return [f"cuda:{index}" for index in range(n_cuda_devices())]
