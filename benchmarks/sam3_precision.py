"""Measures an int8 bundle against the fp32 one: each part, first query and edit, alternating so that noise hits both.

python benchmarks/sam3_precision.py FP32 INT8 [--runs 3]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from engines.bundle import ModelBundle, read_bundle  # noqa: E402
from engines.loader import runtimes  # noqa: E402
from engines.protocols import Session  # noqa: E402

ROLES = ("vision", "text", "decoder")
N_QUICK = 5
"""Runs of a part that takes little time, for one of the vision graph."""


def sessions_of(bundle: ModelBundle, role: str) -> Session:
    graph = bundle.graphs[role]
    return runtimes()["onnxruntime"].load_graph(bundle.file(graph.file), graph, "cpu")


def feeds_of(bundle: ModelBundle, role: str) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    feeds = bundle.graphs[role].zeros()
    for name, array in feeds.items():
        if name == "image":
            feeds[name] = generator.integers(0, 255, array.shape, dtype=np.uint8)
        elif array.dtype.kind == "f" and name != "boxes":
            feeds[name] = generator.standard_normal(array.shape).astype(array.dtype)
    if "text_mask" in feeds:
        feeds["text_mask"][:, :8] = True
        feeds["labels"][:] = -10
    return feeds


def taken_s(session: Session, feeds: dict[str, Any], n_runs: int) -> float:
    times = []
    for _ in range(n_runs):
        started = time.perf_counter()
        session.run(feeds)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", type=Path, nargs=2, metavar="BUNDLE")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    bundles = [read_bundle(folder) for folder in arguments.bundles]
    medians: dict[str, list[float]] = {}
    for role in ROLES:
        n_runs = 1 if role == "vision" else N_QUICK
        feeds = [feeds_of(bundle, role) for bundle in bundles]
        sessions = [sessions_of(bundle, role) for bundle in bundles]
        for session, feed in zip(sessions, feeds, strict=True):
            session.run(feed)
        turns = [
            [taken_s(session, feed, n_runs) for session, feed in zip(sessions, feeds, strict=True)]
            for _ in range(arguments.runs)
        ]
        medians[role] = [statistics.median(column) for column in zip(*turns, strict=True)]
        ratio = statistics.median(second / first for first, second in turns)
        named = ", ".join(
            f"{bundle.precision} {taken:.3f} s" for bundle, taken in zip(bundles, medians[role], strict=True)
        )
        print(f"{role:8} {named}: ratio {ratio:.2f}", flush=True)
        del sessions
    for place, bundle in enumerate(bundles):
        edit = medians["text"][place] + medians["decoder"][place]
        first = edit + medians["vision"][place]
        print(f"{bundle.precision}: first query {first:.2f} s, another phrase {edit:.2f} s = {edit / first:.1%}")


if __name__ == "__main__":
    main()
