"""Measures what an edit of the phrase costs on an encoded image, and how much of it is not the model's own time.

    python benchmarks/sam3_edit.py BUNDLE [--edits 5] [--device cpu] [--blobs]

The picture has 12 megapixels. The first query encodes it and answers a phrase; each edit answers another phrase on the
same features. "Ours" is everything but `session.run`: tokens, boxes, scores, masks. Random weights answer masks of
noise, the worst there is for runs: `--blobs` puts blobs with ragged edges in their place.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from mask_encoding import COVERED_SHARES, SIDE, ragged_blobs  # noqa: E402

from engines.bundle import read_bundle  # noqa: E402
from engines.loader import choose_runtime, families  # noqa: E402
from engines.protocols import Segmenter, Session  # noqa: E402
from engines.types import ImageFeatures, Phrase, SegmentOptions  # noqa: E402

HEIGHT, WIDTH = 3000, 4000
N_INSTANCES = 30
WORDS = ("circle", "red square", "white star", "a striped cat", "ring", "blue triangle", "coffee cup", "the person")


class TimedSession:
    """A session that adds up the time of its runs."""

    def __init__(self, session: Session, blobs: NDArray[np.float32] | None) -> None:
        self._session, self._blobs = session, blobs
        self.runtime, self.device = session.runtime, session.device
        self.spent_s = 0.0

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        outputs = self._session.run(feeds)
        if self._blobs is not None and "mask_logits" in outputs:
            outputs["mask_logits"] = np.resize(self._blobs, (*outputs["mask_logits"].shape[:2], SIDE, SIDE))
        self.spent_s += time.perf_counter() - started
        return outputs


@dataclass(frozen=True)
class Measured:
    """Seconds in all, seconds of the model, and how many instances came out."""

    total_s: float
    model_s: float
    n_instances: int


def load(folder: Path, device: str, blobs: NDArray[np.float32] | None) -> tuple[Segmenter, list[TimedSession]]:
    bundle, runtime, sessions = read_bundle(folder), choose_runtime(), []

    def open_graph(role: str) -> TimedSession:
        graph = bundle.graphs[role]
        sessions.append(TimedSession(runtime.load_graph(bundle.file(graph.file), graph, device), blobs))
        return sessions[-1]

    return families()[bundle.family].load(bundle, open_graph), sessions


def measured(sessions: list[TimedSession], work: Any) -> tuple[Measured, Any]:
    before, started = sum(one.spent_s for one in sessions), time.perf_counter()
    features, instances = work()
    total_s = time.perf_counter() - started
    return Measured(total_s, sum(one.spent_s for one in sessions) - before, len(instances)), features


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--edits", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--blobs", action="store_true", help="masks of things in place of the model's")
    arguments = parser.parse_args()
    blobs = ragged_blobs(N_INSTANCES, COVERED_SHARES[0], np.random.default_rng(7)) if arguments.blobs else None
    segmenter, sessions = load(arguments.bundle, arguments.device, blobs)
    rgb = np.random.default_rng(0).integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    options = SegmentOptions(score_threshold=segmenter.info.capabilities.score_floor, max_instances=N_INSTANCES)

    def answer(features: ImageFeatures, text: str) -> tuple[ImageFeatures, Any]:
        return features, segmenter.decode(features, segmenter.encode_phrase(Phrase(text)), (), options)

    first, features = measured(sessions, lambda: answer(segmenter.encode_image(rgb, "picture"), "warm up"))
    texts = [WORDS[number % len(WORDS)] + f" {number}" for number in range(arguments.edits)]
    edits = [measured(sessions, lambda text=text: answer(features, text))[0] for text in texts]
    edit_s, model_s = (statistics.median(getattr(one, name) for one in edits) for name in ("total_s", "model_s"))
    ours_s = statistics.median(one.total_s - one.model_s for one in edits)
    print(f"{segmenter.info.name}, {segmenter.info.precision}, {segmenter.info.device}, {WIDTH}×{HEIGHT}")
    print(f"first query  {first.total_s:8.2f} s, the model {first.model_s:.2f} s, {first.n_instances} instances")
    print(f"edit         {edit_s:8.2f} s, the model {model_s:.2f} s, {edits[-1].n_instances} instances")
    print(f"an edit costs {edit_s / first.total_s:.1%} of the first query; ours is {ours_s * 1000:.1f} ms of it")


if __name__ == "__main__":
    main()
