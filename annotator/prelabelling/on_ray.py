"""Workers that are actors on a Ray cluster, or on a cluster of this machine alone that is started for the run."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from annotator.errors import CommandError, MissingRayError
from annotator.prelabelling.answering import Question
from annotator.prelabelling.crew import Crew
from annotator.prelabelling.image_places import ImagePlace
from annotator.prelabelling.job import Job
from annotator.prelabelling.worker import AT_ONCE, Reply, WorkerBody, WorkerSetup, cpu_share
from engines.protocols import Segmenter

LOCAL = "local"
_CPUS_EACH = 4
_REACH_S = 10


def ray_crew(address: str, device: str, load: Callable[[str], Callable[[], Segmenter]], images: ImagePlace) -> Crew:
    """An actor for each GPU of the cluster, or without GPUs for each 4 processor cores.

    `load` of a device loads an actor's model. Raises `MissingRayError`, and `CommandError` where no cluster answers.
    """
    connect(address)
    n_workers, resources = _shares(device)
    own_device = "cuda:0" if device.startswith("cuda") else device  # Ray shows each actor its own GPU alone

    def start(question: Question) -> Sequence[RayWorker]:
        setup = WorkerSetup(load(own_device), images, question)
        return [RayWorker(setup, resources) for _ in range(n_workers)]

    return Crew(start)


def connect(address: str) -> None:
    """Join the cluster at an address, or start one here; does nothing where one was joined before."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    ray = _ray()
    if ray.is_initialized():
        return
    try:
        _check_reachable(address)
        options: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
        ray.init(address, logging_level="WARNING", log_to_driver=False, **options)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CommandError(
            f"no Ray cluster can be used at '{address}' ({reason}); give the address that `ray start` told, or 'local'"
        ) from error


def _check_reachable(address: str) -> None:
    """Raise `OSError` soon where nothing listens: Ray itself would try for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_S).close()


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingRayError from None
    return ray


def _shares(device: str) -> tuple[int, dict[str, float]]:
    """How many actors the cluster holds, and what each takes of it."""
    nodes = [node["Resources"] for node in _ray().nodes() if node["Alive"]]
    n_gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if n_gpus and device != "cpu":
        return n_gpus, {"num_gpus": 1, "num_cpus": 1}
    if device.startswith("cuda"):
        raise CommandError(
            f"--device {device}: the Ray cluster has no GPU; take --device auto or add a machine with one"
        )
    cores = [int(node.get("CPU", 0)) for node in nodes]
    each = max(1, min([_CPUS_EACH, *(n for n in cores if n)]))
    return max(1, sum(n // each for n in cores)), {"num_cpus": each, "num_gpus": 0}


class RayWorker:
    """One actor. Ray starts it again when it dies, elsewhere if need be; `hello` waits for that."""

    def __init__(self, setup: WorkerSetup, resources: dict[str, float]) -> None:
        ray = _ray()
        threads = {} if resources["num_gpus"] else cpu_share(int(resources["num_cpus"]))
        options = {**resources, "max_restarts": -1, "max_concurrency": AT_ONCE, "runtime_env": {"env_vars": threads}}
        self._actor = ray.remote(WorkerBody).options(**options).remote(setup)

    def hello(self) -> Future[Reply]:
        """Load the model."""
        return self._future(self._actor.hello.options(max_task_retries=-1).remote())

    def answer(self, jobs: Sequence[Job]) -> Future[Reply]:
        """Answer a few images; not tried again by Ray, so that any other actor can do it."""
        return self._future(self._actor.answer.options(max_task_retries=0).remote(list(jobs)))

    @property
    def actor(self) -> Any:
        """Ray's handle."""
        return self._actor

    def close(self) -> None:
        """End the actor at once."""
        _ray().kill(self._actor)

    def _future(self, reference: Any) -> Future[Reply]:
        future: Future[Reply] = reference.future()
        return future
