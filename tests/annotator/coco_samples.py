"""A small dataset with every kind of mask, its export, and the file read again; for the tests of the COCO export."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from pycocotools.coco import COCO

from annotator.exporters.coco import EXPORTER
from annotator.exporters.protocol import ExportOptions, ExportReport, ExportSource
from annotator.records import Annotation, Category, Decision, ImageRecord
from engines.masks import Mask

CATEGORIES = (Category(3, "cat"), Category(8, " tie "), Category(5, "Öl-Kännchen 茶", "thing"))
HEIGHT, WIDTH = 30, 40

ImageRow = tuple[ImageRecord, list[Annotation]]


def image(image_id: int, path: str, done: bool = True, height: int | None = HEIGHT, width: int | None = WIDTH):
    return ImageRecord(image_id, path, 1, 1, "00", height, width, None, False, done, 1, 0, 0, 0)


def annotation(annotation_id: int, image_id: int, pixels: np.ndarray | Mask, **changes: Any) -> Annotation:
    mask = pixels if isinstance(pixels, Mask) else Mask.encode(pixels)
    fields = {"category_id": 3, "phrase": "striped cat", "score": 0.75, "bundle_id": "b", **changes}
    fields.setdefault("decision", Decision.ACCEPTED)
    x1, y1, x2, y2 = mask.xyxy.tolist()
    return Annotation(annotation_id, image_id, mask=mask, xyxy=(x1, y1, x2, y2), **fields)


def rectangle(top: int = 5, left: int = 6, height: int = 10, width: int = 12) -> np.ndarray:
    pixels = np.zeros((HEIGHT, WIDTH), dtype=bool)
    pixels[top : top + height, left : left + width] = True
    return pixels


def ring() -> np.ndarray:
    return rectangle(2, 3, 20, 25) & ~rectangle(8, 9, 6, 5) & ~rectangle(16, 20, 3, 4)


def two_parts() -> np.ndarray:
    return rectangle(0, 0, 5, 5) | rectangle(25, 35, 5, 5)


def pixel() -> np.ndarray:
    return rectangle(29, 39, 1, 1)


def dataset() -> list[ImageRow]:
    return [
        (image(1, "a.jpg"), [annotation(1, 1, rectangle()), annotation(2, 1, ring(), category_id=8)]),
        (image(2, "sub/a.jpg"), [annotation(7, 2, two_parts(), score=None, phrase=None), annotation(8, 2, pixel())]),
        (image(4, "empty.png"), []),
        (image(5, "never looked at.png", done=False), []),
        (image(6, 'sub/ö 猫 \'n "q" 😀.v2.jpeg', done=False), [annotation(9, 6, ring(), category_id=5)]),
    ]


def export(
    out: Path, rows: Iterable[ImageRow] | None = None, folder: Path | None = None, **options: Any
) -> ExportReport:
    images = dataset() if rows is None else rows
    source = ExportSource(CATEGORIES, images, folder or out / "pictures", "cats at home")
    return EXPORTER.write(source, out, ExportOptions(**options))


def written(out: Path, name: str = "instances.json") -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in the file")

    content: dict[str, Any] = json.loads((out / name).read_text(encoding="utf-8"), parse_constant=refuse)
    return content


def opened(path: Path) -> COCO:
    coco = COCO(str(path))
    assert coco.anns
    return coco


def left_behind(out: Path) -> list[Path]:
    return [path for path in out.iterdir() if path.name.startswith(".")]


RING = Mask.encode(ring())
