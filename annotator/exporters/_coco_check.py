"""Reads a COCO file back as its readers will, and compares every mask with what its row says.

Masks go through pycocotools a batch at a time, as run lengths: their area, box and total number of pixels say all that
the decoded pixels would, at any image size. A file that is not too large is also opened whole by pycocotools' own
`COCO` class; a larger one would need several times its size in memory, so there each row is parsed by itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import numpy as np
from pycocotools import mask as coco_mask

from annotator.exporters._coco_file import ANNOTATIONS_START, IMAGES_START
from annotator.exporters._coco_rows import Row
from annotator.exporters.protocol import ExportError
from engines.errors import ImageError
from engines.images import image_size
from engines.run_lengths import n_pixels_each

_OPENED_WHOLE_BYTES = 32 * 2**20
_BATCH = 250
"""pycocotools 2.0.11 with NumPy 2 cannot take the area of more than 255 masks at once."""


class CocoCheck:
    """The check of one file. `is_exact` is false for polygons that were simplified, whose pixels differ a little."""

    def __init__(self, path: Path, name: str, is_exact: bool = True) -> None:
        self._path = path
        self._name = name
        self._is_exact = is_exact

    def run(self, n_images: int, n_annotations: int) -> None:
        """Raises `ExportError` with the first fault found."""
        try:
            sizes = {row["id"]: (row["height"], row["width"]) for row in rows_of(self._path, IMAGES_START)}
            found = self._check_annotations(sizes)
            if (len(sizes), found) != (n_images, n_annotations):
                self._fail(f"{len(sizes)} images and {found} annotations instead of {n_images} and {n_annotations}")
            if self._path.stat().st_size <= _OPENED_WHOLE_BYTES:
                self._check_index(n_images, n_annotations)
        except (ValueError, KeyError, TypeError) as error:
            self._fail(f"it cannot be read back ({error})")

    def _check_annotations(self, sizes: dict[int, tuple[int, int]]) -> int:
        seen: set[int] = set()
        n_read = 0
        rows = rows_of(self._path, ANNOTATIONS_START)
        while batch := list(islice(rows, _BATCH)):
            for row in batch:
                self._check_row(row, sizes)
            self._check_masks(batch, [sizes[row["image_id"]] for row in batch])
            seen.update(row["id"] for row in batch)
            n_read += len(batch)
        if len(seen) != n_read:
            self._fail("two annotations have the same id")
        return n_read

    def _check_row(self, row: Row, sizes: dict[int, tuple[int, int]]) -> None:
        if row["image_id"] not in sizes:
            self._fail(f"annotation {row['id']} belongs to no image")
        if row["id"] < 1 or row["iscrowd"] != 0 or not math.isfinite(row.get("score", 0)):
            self._fail(f"annotation {row['id']} has a wrong id, crowd flag or score")

    def _check_masks(self, rows: Sequence[Row], sizes: Sequence[tuple[int, int]]) -> None:
        rles = [_as_rle(row["segmentation"], *size) for row, size in zip(rows, sizes, strict=True)]
        totals = n_pixels_each([str(rle["counts"], "ascii") for rle in rles])
        areas, boxes = coco_mask.area(rles), coco_mask.toBbox(rles)
        for row, rle, size, total, area, box in zip(rows, rles, sizes, totals, areas, boxes, strict=True):
            if tuple(rle["size"]) != size or total != size[0] * size[1]:
                self._fail(f"the mask of annotation {row['id']} is not as large as its image")
            is_as_said = area == row["area"] and np.array_equal(box, row["bbox"])
            if area < 1 or (self._is_exact and not is_as_said):
                self._fail(f"annotation {row['id']} says area {row['area']} and its mask has {area} pixels")

    def _check_index(self, n_images: int, n_annotations: int) -> None:
        coco = _read_with_pycocotools(self._path)
        n_indexed = sum(len(annotations) for annotations in coco.imgToAnns.values())
        if (len(coco.imgs), len(coco.anns), n_indexed) != (n_images, n_annotations, n_annotations):
            self._fail("pycocotools finds other images or annotations in it")

    def _fail(self, fault: str) -> NoReturn:
        raise ExportError(
            f"{self._name} failed its check: {fault}; nothing was replaced, export again and report it if it repeats"
        )


def rows_of(path: Path, start: bytes) -> Iterator[Row]:
    """The rows of the list that begins with the line `start`, one at a time."""
    opening = start.splitlines(keepends=True)[-1]
    with path.open("rb") as file:
        for line in file:
            if line == opening:
                break
        for line in file:
            if line.startswith(b"]"):
                return
            if line.strip():
                yield from json.loads(b"[" + line.strip().rstrip(b",") + b"]", parse_constant=_refuse_constant)


def picture_faults(path: Path, folder: Path) -> tuple[list[str], int]:
    """Images of the file whose pictures on the disk have another size or cannot be read; and how many are not there."""
    faults: list[str] = []
    n_missing = 0
    for row in rows_of(path, IMAGES_START):
        picture = folder / row["file_name"]
        if not picture.is_file():
            n_missing += 1
            continue
        try:
            height, width = image_size(picture)
        except ImageError as error:
            faults.append(f"{row['file_name']}: {error.reason}")
            continue
        if (height, width) != (row["height"], row["width"]):
            faults.append(
                f"{row['file_name']}: the picture is {width}×{height} now and was {row['width']}×{row['height']} when "
                "it was labelled; put the old picture back or label it again"
            )
    return faults, n_missing


def _as_rle(segmentation: Any, height: int, width: int) -> dict[str, Any]:
    if isinstance(segmentation, list):
        merged: dict[str, Any] = coco_mask.merge(coco_mask.frPyObjects(segmentation, height, width))
        return merged
    return {"size": segmentation["size"], "counts": segmentation["counts"].encode("ascii")}


def _read_with_pycocotools(path: Path) -> Any:
    """An indexed `pycocotools.coco.COCO`, without the lines that it prints and without touching `sys.stdout`."""
    from pycocotools.coco import COCO

    silent = {**COCO.createIndex.__globals__, "print": lambda *_: None}
    coco = COCO()
    coco.dataset = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    FunctionType(COCO.createIndex.__code__, silent)(coco)
    return coco


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")
