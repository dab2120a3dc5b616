"""Measures an import of 100,000 annotations on 10,000 pictures against pycocotools reading the same file.

    python benchmarks/coco_import.py [--images 10000] [--per-image 10]

The import reads, checks and stores every mask; pycocotools opens the file and turns each annotation into run lengths,
storing nothing. A second import finds everything there already.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402
from pycocotools.coco import COCO  # noqa: E402

from annotator.importing import ImportOptions, ImportRun, read_dataset  # noqa: E402
from annotator.models import DEFAULT_MODEL, model_loader  # noqa: E402
from annotator.predictor import Predictor  # noqa: E402
from annotator.workspace import Workspace  # noqa: E402
from engines.contours import polygons  # noqa: E402
from engines.masks import Mask  # noqa: E402

HEIGHT, WIDTH = 480, 640


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--per-image", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room)
        write_pictures(folder / "pictures", arguments.images)
        for kind in ("rle", "polygon"):
            file = folder / f"{kind}.json"
            write_dataset(file, arguments.images, arguments.per_image, kind)
            workspace = Workspace.open(
                folder / kind, Predictor(model_loader(DEFAULT_MODEL, "auto", "cpu")), folder / "pictures"
            )
            theirs = timed(lambda file=file: read_with_pycocotools(file))
            ours = timed(lambda file=file, workspace=workspace: bring_in(workspace, file))
            again = timed(lambda file=file, workspace=workspace: bring_in(workspace, file))
            workspace.close()
            n_annotations, size = arguments.images * arguments.per_image, file.stat().st_size / 2**20
            print(f"{kind:8} {size:4.0f} MiB, {n_annotations} annotations: import {ours:.1f} s, again {again:.1f} s,")
            print(f"         pycocotools alone {theirs:.1f} s: ratio {ours / theirs:.1f}")
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")


def write_pictures(folder: Path, n_images: int) -> None:
    folder.mkdir()
    content = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT)).save(content, "PNG")
    for number in range(n_images):
        (folder / f"{number:06}.png").write_bytes(content.getvalue() + number.to_bytes(4, "big"))


def write_dataset(file: Path, n_images: int, per_image: int, kind: str) -> None:
    generator = np.random.default_rng(0)
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    shapes = []
    for _ in range(100):
        y, x = generator.uniform(60, HEIGHT - 60), generator.uniform(60, WIDTH - 60)
        radius = 40 + 8 * np.sin(5 * np.arctan2(rows - y, columns - x))
        mask = Mask.encode((rows - y) ** 2 + (columns - x) ** 2 < radius**2)
        shapes.append(mask.rle if kind == "rle" else polygons(mask))
    numbers = range(n_images * per_image)
    content = {
        "images": [{"id": n, "file_name": f"{n:06}.png", "height": HEIGHT, "width": WIDTH} for n in range(n_images)],
        "categories": [{"id": 1, "name": "flower"}],
        "annotations": [
            {
                "id": n + 1,
                "image_id": n // per_image,
                "category_id": 1,
                "iscrowd": 0,
                "segmentation": shapes[n * 7 % len(shapes)],
            }
            for n in numbers
        ],
    }
    file.write_text(json.dumps(content))


def bring_in(workspace: Workspace, file: Path) -> None:
    run = ImportRun(workspace, read_dataset(file), file.name, ImportOptions())
    for _ in run.run():
        pass
    assert not run.summary.problems


def read_with_pycocotools(file: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(file))
    for row in coco.anns.values():
        coco.annToRLE(row)


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
