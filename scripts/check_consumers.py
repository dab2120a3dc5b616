"""Loads an export with trainers' own code where it is installed here, and compares every mask with what was exported.

    python scripts/check_consumers.py

torchvision and ultralytics are too large for the tests and are not installed by this project: install what you want to
check (pip install torchvision, pip install ultralytics) and run this. detectron2 is checked by doing what its loader
does, which is pycocotools and a few rules. Prints a line for each; the exit code is 1 if any mask differs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402
from pycocotools import mask as coco_mask  # noqa: E402

from annotator.exporters.protocol import ExportOptions, ExportSource  # noqa: E402
from annotator.exporting import exporters  # noqa: E402
from annotator.records import Annotation, Category, Decision, ImageRecord  # noqa: E402
from engines.masks import Mask  # noqa: E402

HEIGHT, WIDTH = 120, 160
CATEGORIES = (Category(1, "disc"), Category(2, "ring"), Category(3, "pair"))
Masks = list[tuple[str, np.ndarray]]
"""Category name and (H, W) bool of each object of the one picture."""


def shapes() -> Masks:
    """A full shape, one with a hole, one of two parts."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    distance = np.hypot(rows - 60, columns - 50)
    return [
        ("disc", np.hypot(rows - 30, columns - 120) < 20),
        ("ring", (distance < 40) & (distance > 18)),
        ("pair", ((rows > 90) & (columns > 100) & (columns < 115)) | ((rows > 95) & (columns > 130))),
    ]


def write_dataset(folder: Path) -> None:
    """`images/a.png`, `instances.json`, `instances_polygon.json`."""
    (folder / "images").mkdir()
    Image.new("RGB", (WIDTH, HEIGHT), "grey").save(folder / "images" / "a.png")
    ids = {category.name: category.category_id for category in CATEGORIES}
    annotations = []
    for number, (name, pixels) in enumerate(shapes(), start=1):
        mask = Mask.encode(pixels)
        box = tuple(float(side) for side in mask.xyxy)
        annotations.append(Annotation(number, 1, ids[name], name, mask, box, 0.9, "model", Decision.ACCEPTED))
    record = ImageRecord(1, "a.png", 1, 1, "00", HEIGHT, WIDTH, None, False, True, 1, 0, 3, 0)
    source = ExportSource(CATEGORIES, [(record, annotations)], folder / "images", "consumers")
    exporters()["coco"].write(source, folder, ExportOptions(segmentation="both"))


def by_torchvision(folder: Path, file: str) -> Masks:
    """Its dataset class, wrapped as its detection references do."""
    from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2

    dataset = wrap_dataset_for_transforms_v2(CocoDetection(folder / "images", folder / file), ("masks", "labels"))
    _, target = dataset[0]
    names = {category.category_id: category.name for category in CATEGORIES}
    return [(names[int(n)], mask.numpy() != 0) for n, mask in zip(target["labels"], target["masks"], strict=True)]


def as_detectron2(folder: Path, file: str) -> Masks:
    """What its COCO loader and its bitmask form do: crowds are skipped, ids are unique, sizes must be the picture's."""
    content = json.loads((folder / file).read_text())
    assert len({row["id"] for row in content["annotations"]}) == len(content["annotations"])
    names = {row["id"]: row["name"] for row in content["categories"]}
    with Image.open(folder / "images" / content["images"][0]["file_name"]) as picture:
        assert picture.size == (content["images"][0]["width"], content["images"][0]["height"])
    found = []
    for row in content["annotations"]:
        assert row["iscrowd"] == 0 and row.get("ignore", 0) == 0
        segmentation = row["segmentation"]
        if isinstance(segmentation, list):
            assert all(len(part) % 2 == 0 and len(part) >= 6 for part in segmentation)
            segmentation = coco_mask.merge(coco_mask.frPyObjects(segmentation, HEIGHT, WIDTH))
        found.append((names[row["category_id"]], coco_mask.decode(segmentation) != 0))
    return found


def by_ultralytics(folder: Path, file: str) -> Masks:
    """Its converter to YOLO files, whose outlines are filled here; it fills holes by design."""
    from ultralytics.data.converter import convert_coco

    room = folder / "only"
    room.mkdir(exist_ok=True)
    (room / "instances_train.json").write_bytes((folder / file).read_bytes())
    out = folder / f"ultralytics_{file}"
    convert_coco(labels_dir=str(room), save_dir=str(out), use_segments=True, cls91to80=False)
    [label] = [path for path in out.rglob("*.txt") if path.name == "a.txt"]
    found = []
    for line in label.read_text().splitlines():
        number, *shares = line.split()
        corners = (np.array(shares, float).reshape(-1, 2) * [WIDTH, HEIGHT]).reshape(-1).tolist()
        pixels = coco_mask.decode(coco_mask.frPyObjects([corners], HEIGHT, WIDTH))[..., 0] != 0
        found.append((CATEGORIES[int(number)].name, pixels))
    return found


def least_iou(accepted: Masks, found: Masks) -> float:
    """Over the categories, each of which has one object here and may be accepted in several forms."""
    best = dict.fromkeys((category.name for category in CATEGORIES), 0.0)
    for name, mask in accepted:
        for category, other in found:
            if category == name:
                best[name] = max(best[name], (mask & other).sum() / (mask | other).sum())
    return min(best.values())


def also_without_holes(masks: Masks) -> Masks:
    """As they are, and as a reader has them that fills holes."""
    import cv2

    filled = list(masks)
    for name, mask in masks:
        outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        filled.append((name, cv2.drawContours(np.zeros(mask.shape, np.uint8), outlines, -1, 1, cv2.FILLED) != 0))
    return filled


READERS: dict[str, tuple[str, Callable[[Path, str], Masks], Callable[[Masks], Masks], float]] = {
    "torchvision": ("torchvision", by_torchvision, lambda masks: masks, 1.0),
    "detectron2 (its rules)": ("pycocotools", as_detectron2, lambda masks: masks, 1.0),
    "ultralytics": ("ultralytics", by_ultralytics, also_without_holes, 0.9),
}
"""Package, reader, which forms of a mask are accepted, and the least IoU with one of them."""


def main() -> int:
    """Answers the exit code."""
    n_failed = 0
    with tempfile.TemporaryDirectory() as room:
        write_dataset(Path(room))
        for name, (package, read, accepted, limit) in READERS.items():
            if find_spec(package) is None:
                print(f"{name}: not installed")
                continue
            for file in ("instances.json", "instances_polygon.json"):
                try:
                    iou = least_iou(accepted(shapes()), read(Path(room), file))
                except Exception as error:  # noqa: BLE001 - a reader that fails is what is looked for
                    print(f"{name}, {file}: FAILED, {type(error).__name__}: {error}")
                    n_failed += 1
                    continue
                n_failed += iou < limit
                print(f"{name}, {file}: least IoU {iou:.4f}{'' if iou >= limit else ' FAILED'}")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
