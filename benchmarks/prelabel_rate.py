"""Images per second of a pre-labelling run against the model's calls alone, and whether memory grows with the folder.

    python benchmarks/prelabel_rate.py [--images 20] [--rounds 5] [--memory-images 2000]

"Bare" is a loop of encoder and decoder over pictures that are read and shrunk already, nothing stored. The run reads
files, asks the same phrases, and stores in a project on disk. Both take turns on the same pictures with the same model;
each round gives a ratio, and the median is told. The memory is that of the process after image 100 and at the end.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from annotator.predictor import Predictor  # noqa: E402
from annotator.prelabel import Prelabeller  # noqa: E402
from annotator.prelabelling.options import PrelabelOptions  # noqa: E402
from annotator.workspace import Workspace  # noqa: E402
from engines.images import read_image  # noqa: E402
from engines.loader import load_segmenter, open_bundle  # noqa: E402
from engines.protocols import Segmenter, decode_many, encode_images, images_at_once, prepare_image  # noqa: E402
from engines.types import Phrase, SegmentOptions  # noqa: E402

CASES = {
    "starter": (ROOT / "engines/models/starter", ROOT / "samples", ("person", "cat", "cup", "car")),
    "shapes (SAM 3)": (
        ROOT / "tests/assets/shapes_bundle",
        ROOT / "tests/assets/shapes_pictures",
        ("red circle", "blue square", "triangle", "white star"),
    ),
}
THRESHOLD = 0.5


def write_pictures(sources: Path, folder: Path, n: int) -> None:
    """JPEG files of 640 × 480, no two alike: the sources, shifted around."""
    folder.mkdir()
    pictures = [
        np.asarray(Image.open(path).convert("RGB").resize((640, 480)))
        for path in sorted(sources.iterdir())
        if path.suffix in (".jpg", ".png")
    ]
    for number in range(n):
        shifted = np.roll(pictures[number % len(pictures)], 16 * (number // len(pictures)), axis=1)
        Image.fromarray(shifted).save(folder / f"{number:05}.jpg", quality=90)


def bare_seconds(segmenter: Segmenter, folder: Path, texts: tuple[str, ...]) -> float:
    prepared = [prepare_image(segmenter, read_image(path).rgb, path.name) for path in sorted(folder.iterdir())]
    phrases = [segmenter.encode_phrase(Phrase(text)) for text in texts]
    at_once, options = images_at_once(segmenter), SegmentOptions(score_threshold=THRESHOLD)
    started = time.perf_counter()
    for start in range(0, len(prepared), at_once):
        for features in encode_images(segmenter, prepared[start : start + at_once]):
            decode_many(segmenter, features, phrases, options)
    return time.perf_counter() - started


def run_seconds(segmenter: Segmenter, folder: Path, texts: tuple[str, ...], memory: dict[int, float]) -> float:
    """Seconds of the run; `memory` gets the resident MiB after each image whose number it holds."""
    with (
        tempfile.TemporaryDirectory() as project,
        closing(Workspace.open(Path(project), Predictor(lambda: segmenter), folder)) as workspace,
    ):
        kept = [workspace.keep_phrase(text, text) for text in texts]
        run = Prelabeller(workspace, kept, PrelabelOptions(score_threshold=THRESHOLD))
        for progress in run.run():
            if progress.n_looked_at in memory:
                memory[progress.n_looked_at] = resident_mib()
        assert run.summary.n_done == run.summary.n_images, run.summary.failures
        return run.summary.seconds


def resident_mib() -> float:
    n_pages = int(Path("/proc/self/statm").read_text().split()[1])
    return n_pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def compare(name: str, n_images: int, n_rounds: int, temporary: Path) -> None:
    bundle, sources, texts = CASES[name]
    segmenter = load_segmenter(open_bundle(bundle), device="cpu")
    folder = temporary / name
    write_pictures(sources, folder, n_images)
    bare, run = [], []
    for turn in range(n_rounds):
        for measure in (0, 1) if turn % 2 else (1, 0):  # a machine that slows down favours neither
            if measure:
                run.append(n_images / run_seconds(segmenter, folder, texts, {}))
            else:
                bare.append(n_images / bare_seconds(segmenter, folder, texts))
    ratio = statistics.median(mine / alone for mine, alone in zip(run, bare, strict=True))
    rates = f"{statistics.median(bare):.2f} | {statistics.median(run):.2f}"
    print(f"| {name} | {len(texts)} | {rates} | {ratio:.2f} |", flush=True)


def memory_over(n_images: int, temporary: Path) -> None:
    bundle, sources, texts = CASES["shapes (SAM 3)"]
    segmenter = load_segmenter(open_bundle(bundle), device="cpu")
    folder = temporary / "many"
    write_pictures(sources, folder, n_images)
    memory = dict.fromkeys((100, n_images // 2, n_images), 0.0)
    run_seconds(segmenter, folder, texts, memory)
    told = ", ".join(f"{mib:.0f} MiB after image {n}" for n, mib in memory.items())
    print(f"\nresident memory, shapes (SAM 3): {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5, help="0 leaves the comparison out")
    parser.add_argument("--memory-images", type=int, default=2000, help="0 leaves the memory out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        print("| model | phrases | bare, images/s | run, images/s | ratio |\n|---|---|---|---|---|")
        for name in CASES if arguments.rounds else ():
            compare(name, arguments.images, arguments.rounds, Path(temporary))
        if arguments.memory_images:
            memory_over(arguments.memory_images, Path(temporary))


if __name__ == "__main__":
    main()
