"""Measures features on the disk at the size of SAM 3's: writing, reading back, and the formats that were considered.

    python benchmarks/feature_cache.py [DIR]

Encoding the picture takes 30 s and more on a CPU, some 50 to 400 ms on a GPU.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from annotator.feature_files import FeatureFiles  # noqa: E402
from engines.types import ImageFeatures  # noqa: E402

SHAPES = {"features_0": (1, 256, 288, 288), "features_1": (1, 256, 144, 144), "features_2": (1, 256, 72, 72)}
N_RUNS = 7


def features() -> ImageFeatures:
    generator = np.random.default_rng(0)
    tensors = {name: generator.standard_normal(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    return ImageFeatures("bundle", "image", 3000, 4000, tensors, sum(one.nbytes for one in tensors.values()))


def median_ms(work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(N_RUNS):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def formats(given: ImageFeatures) -> None:
    """Bytes and milliseconds of each form in memory, without the disk."""
    halves = {name: one.astype(np.float16) for name, one in given.tensors.items()}
    for name, arrays, save in (
        ("float32", given.tensors, np.savez),
        ("float16", halves, np.savez),
        ("float16, compressed", halves, np.savez_compressed),
    ):
        file = io.BytesIO()
        write_ms = median_ms(lambda save=save, arrays=arrays, file=file: (file.seek(0), save(file, **arrays)))

        def read(file: io.BytesIO = file) -> dict[str, Any]:
            file.seek(0)
            with np.load(file) as archive:
                return {name: archive[name].astype(np.float32) for name in archive.files}

        print(f"{name:20} {file.tell() / 1e6:6.1f} MB, write {write_ms:6.0f} ms, read {median_ms(read):6.0f} ms")


def main() -> None:
    given = features()
    formats(given)
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as room:
        files = FeatureFiles(Path(room))
        path = files._path("graph", "image")

        def write() -> None:
            path.unlink(missing_ok=True)
            files._write(path, "graph", given)

        write_ms = median_ms(write)
        read_ms = median_ms(lambda: files.get("graph", "image", "bundle"))
        size_mb = path.stat().st_size / 1e6
        files.close()
        print(f"{'as kept on the disk':20} {size_mb:6.1f} MB, write {write_ms:6.0f} ms, read {read_ms:6.0f} ms")


if __name__ == "__main__":
    main()
