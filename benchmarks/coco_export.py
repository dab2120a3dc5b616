"""Export of 100,000 RLE annotations over 10,000 images: time against `json.dump` of the same content, and memory.

Run: python benchmarks/coco_export.py
Each part runs in a process of its own, by turns; growth is the peak of resident memory above what it was before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from annotator.exporters._coco_check import CocoCheck
from annotator.exporters.coco import EXPORTER
from annotator.exporters.protocol import ExportOptions, ExportSource
from annotator.records import Annotation, Category, Decision, ImageRecord
from engines.masks import Mask

N_IMAGES, N_PER_IMAGE, N_REPEATS = 10_000, 10, 3
HEIGHT, WIDTH = 480, 640
CATEGORIES = [Category(number, f"category {number}") for number in range(1, 81)]


def ragged_masks(n: int) -> list[Mask]:
    """Ellipses of 1 to 10 % of a 640×480 image with ragged edges; their RLE is as long as that of real outlines."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    masks = []
    for _ in range(n):
        angle = np.arctan2(y - HEIGHT / 2, x - WIDTH / 2)
        radius = rng.uniform(30, 100) * (1 + 0.1 * np.sin(angle * rng.integers(3, 15) + rng.uniform(0, 6)))
        masks.append(Mask.encode(np.hypot(y - HEIGHT / 2, x - WIDTH / 2) < radius))
    return masks


def images(masks: list[Mask]) -> Iterator[tuple[ImageRecord, list[Annotation]]]:
    """The content, made while it is asked for."""
    annotation_id = 0
    for image_id in range(1, N_IMAGES + 1):
        found = []
        for _ in range(N_PER_IMAGE):
            annotation_id += 1
            mask = masks[annotation_id % len(masks)]
            category_id = 1 + annotation_id % len(CATEGORIES)
            box = (0.0, 0.0, 1.0, 1.0)
            found.append(
                Annotation(annotation_id, image_id, category_id, "thing", mask, box, 0.87, "b", Decision.ACCEPTED)
            )
        path = f"folder {image_id % 100}/image {image_id}.jpg"
        yield ImageRecord(image_id, path, 1, 1, "00", HEIGHT, WIDTH, None, False, True, 1, 0, N_PER_IMAGE, 0), found


def export(masks: list[Mask], file: Path) -> None:
    """Our export, without its check."""
    source = ExportSource(CATEGORIES, images(masks), file.parent)
    EXPORTER.write(source, file.parent, ExportOptions(verify=False))


def check(file: Path) -> None:
    """The check alone; the pictures on the disk are another matter."""
    CocoCheck(file, file.name).run(N_IMAGES, N_IMAGES * N_PER_IMAGE)


def dump(content: Any, file: Path) -> None:
    """`json.dump` of content that is in memory already."""
    with file.open("w", encoding="utf-8") as stream:
        json.dump(content, stream)


def resident_bytes(field: str) -> int:
    """`VmRSS` or `VmHWM` (its peak) of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def measured(work: Callable[[], None]) -> dict[str, float]:
    """Seconds and growth of resident memory."""
    before, start = resident_bytes("VmRSS"), time.perf_counter()
    work()
    return {"s": time.perf_counter() - start, "growth_mb": (resident_bytes("VmHWM") - before) / 1e6}


def run_part(part: str, file: Path) -> dict[str, float]:
    """One measurement in this process."""
    if part == "export":
        masks = ragged_masks(200)
        return measured(lambda: export(masks, file))
    if part == "check":
        return measured(lambda: check(file))
    content = json.loads(file.read_bytes())
    return measured(lambda: dump(content, file.with_name("dumped.json")))


def in_a_process(part: str, file: Path) -> dict[str, float]:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--part", part, "--file", str(file)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def main() -> None:
    """Print medians, the ratio and the memory."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--part", choices=["export", "check", "dump"], help=argparse.SUPPRESS)
    arguments.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.part:
        print(json.dumps(run_part(chosen.part, chosen.file)))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "instances.json"
        rounds = [{part: in_a_process(part, file) for part in ("export", "dump", "check")} for _ in range(N_REPEATS)]
        megabytes = file.stat().st_size / 1e6
    seconds = {part: statistics.median(one[part]["s"] for one in rounds) for part in rounds[0]}
    growth = {part: max(one[part]["growth_mb"] for one in rounds) for part in rounds[0]}
    print(f"{N_IMAGES * N_PER_IMAGE} annotations, {N_IMAGES} images, {megabytes:.0f} MB, medians of {N_REPEATS}:")
    print(f"export    {seconds['export']:.2f} s, memory grows by {growth['export']:.0f} MB")
    print(f"json.dump {seconds['dump']:.2f} s, of content that is in memory already")
    print(f"ratio     {seconds['dump'] / seconds['export']:.2f} (json.dump / export)")
    print(f"check     {seconds['check']:.2f} s, memory grows by {growth['check']:.0f} MB")


if __name__ == "__main__":
    main()
