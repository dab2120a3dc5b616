"""The rows of a COCO file as plain values, one function for each list of the format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from annotator.exporters.protocol import ExportError
from annotator.records import Annotation, Category, ImageRecord

Row = dict[str, Any]

LICENSES: list[Row] = [{"id": 1, "name": "Unknown", "url": ""}]
"""Some loaders fail without a licence, and every image row points to one."""


def info_row(description: str) -> Row:
    """What the file is."""
    today = datetime.now(UTC)
    return {
        "description": description,
        "version": "1.0",
        "year": today.year,
        "contributor": "",
        "url": "",
        "date_created": today.strftime("%Y/%m/%d"),
    }


def category_ids(categories: Sequence[Category], base: int) -> dict[int, int]:
    """The project's category id → the file's, counted from `base` without gaps, in the order of the project's ids."""
    return {category.category_id: base + place for place, category in enumerate(_ordered(categories))}


def category_rows(categories: Sequence[Category], base: int) -> list[Row]:
    """One row for each category. Raises `ExportError` for an empty name and for two equal ones."""
    rows: list[Row] = []
    for place, category in enumerate(_ordered(categories)):
        name = category.name.strip()
        if not name:
            raise ExportError("a category has no name; name it before exporting")
        if any(row["name"] == name for row in rows):
            raise ExportError(f"two categories are called '{name}'; rename one before exporting")
        rows.append({"id": base + place, "name": name, "supercategory": category.supercategory.strip() or "object"})
    return rows


def image_row(image: ImageRecord) -> Row:
    """The image of a record whose size is known."""
    return {
        "id": image.image_id,
        "file_name": image.path,
        "width": image.width,
        "height": image.height,
        "license": 1,
        "date_captured": "",
    }


def annotation_row(annotation: Annotation, category_id: int, segmentation: Any, area: int, xywh: list[float]) -> Row:
    """One mask. A score that is not a finite number is left out, and so is the score of what a person drew."""
    row: Row = {
        "id": annotation.annotation_id,
        "image_id": annotation.image_id,
        "category_id": category_id,
        "segmentation": segmentation,
        "area": area,
        "bbox": xywh,
        "iscrowd": 0,
        "decision": str(annotation.decision),
    }
    if annotation.phrase is not None:
        row["phrase"] = annotation.phrase
    if annotation.score is not None and math.isfinite(annotation.score):
        row["score"] = float(annotation.score)
    return row


def _ordered(categories: Sequence[Category]) -> list[Category]:
    return sorted(categories, key=lambda category: category.category_id)
