"""COCO instance segmentation as programs write it, which is not always as the format has it.

Ids may be numbers or text, with gaps, from 0; `info`, `licenses`, `area` and boxes are not needed; masks are polygons,
compressed or uncompressed run lengths. What cannot be used is counted with its reason, and the rest is read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from annotator.importers.protocol import DatasetError, ImportedAnnotation, ImportedDataset, Importer, Refusals
from annotator.records import Decision
from engines.errors import MaskError
from engines.masks import Mask
from engines.types import folded_text, is_valid_text

_LISTS = ("images", "annotations", "categories")
_FEWEST_NUMBERS = 6
"""A polygon has three corners."""
_LONGEST_SIDE = 1 << 31
_FARTHEST = 10
"""Longer sides of the picture that a corner may lie outside: pycocotools crashes on coordinates without end."""
_LONGEST_OUTLINE = 20_000_000
"""Pixels: pycocotools keeps some 40 bytes for each."""
_DECISIONS = {one.value: one for one in Decision}

Row = Mapping[str, Any]


class _Annotation(dict[str, Any]):
    """A row whose lists of numbers have become arrays: Python's own lists take eight times the memory."""


@dataclass(frozen=True)
class CocoImage:
    """An image row with its annotation rows."""

    file_name: str
    size: tuple[int, int] | None
    _rows: Sequence[Row]
    _names: Mapping[str, str]
    _refusals: Refusals
    _notes: Refusals

    def annotations(self, height: int, width: int) -> list[ImportedAnnotation]:
        """See `ImportedImage`."""
        read = [self._annotation(row, height, width) for row in self._rows]
        return [one for one in read if one is not None]

    def _annotation(self, row: Row, height: int, width: int) -> ImportedAnnotation | None:
        example = f"annotation {row.get('id', '?')} of {self.file_name}"
        category = self._names.get(_key(row.get("category_id")))
        if category is None:
            self._refusals.add("its category is not among the file's, or has no name", example)
            return None
        try:
            mask = _mask(row.get("segmentation"), height, width)
        except (MaskError, ValueError) as error:
            self._refusals.add(str(error), example)
            return None
        if not mask.area:
            self._refusals.add("its mask has no pixels in the picture", example)
            return None
        if row.get("iscrowd") == 1:
            self._notes.add("marked as a crowd, imported like any other", example)
        return ImportedAnnotation(category, mask, _score(row), _phrase(row), _DECISIONS.get(str(row.get("decision"))))


def read(path: Path) -> ImportedDataset:
    """The dataset in a JSON file; raises `DatasetError` where it is not one."""
    content = _read_json(path)
    rows = {name: _list(path, content, name) for name in _LISTS}
    refusals, notes = Refusals(), Refusals()
    names = _category_names(rows["categories"], refusals)
    of_image: dict[str, list[Row]] = defaultdict(list)
    for row in rows["annotations"]:
        of_image[_key(row.get("image_id"))].append(row)
    images = []
    for key, image in _image_rows(rows["images"], refusals).items():
        found = of_image.pop(key, ())
        if image is not None:
            images.append(CocoImage(image["file_name"], _size(image), found, names, refusals, notes))
    for rows_left in of_image.values():
        for row in rows_left:
            refusals.add("it belongs to an image that the file does not list", f"annotation {row.get('id', '?')}")
    return ImportedDataset(tuple(dict.fromkeys(names.values())), images, refusals, notes)


def _read_json(path: Path) -> Row:
    try:
        with path.open(encoding="utf-8-sig") as file:
            content = json.load(file, object_hook=_smaller)
    except OSError as error:
        raise DatasetError(path, f"{error.strerror or error}; check its name and its permissions") from None
    except UnicodeDecodeError:
        raise DatasetError(path, "it is not text in UTF-8; export it again as JSON") from None
    except json.JSONDecodeError as error:
        reason = f"it is cut off or no JSON ({error.msg}, line {error.lineno}, column {error.colno}); export it again"
        raise DatasetError(path, reason) from None
    except ValueError as error:
        raise DatasetError(path, f"it holds a number that cannot be read ({error}); export it again") from None
    except RecursionError:
        raise DatasetError(path, "it is nested too deeply to be a COCO file") from None
    if not isinstance(content, dict):
        raise DatasetError(path, "it is a list, such as a model's results; give the file that lists the images too")
    return content


def _smaller(row: dict[str, Any]) -> dict[str, Any]:
    """An annotation with its polygons and run lengths as arrays; called by the reader as each object ends."""
    segmentation = row.get("segmentation")
    if "image_id" not in row or segmentation is None:
        return row
    if isinstance(segmentation, list):
        parts = segmentation if segmentation and isinstance(segmentation[0], list) else [segmentation]
        row["segmentation"] = [_array(part) for part in parts]
    elif isinstance(segmentation, dict) and isinstance(segmentation.get("counts"), list):
        segmentation["counts"] = _array(segmentation["counts"])
    return _Annotation(row)


def _array(numbers: Any) -> NDArray[Any] | None:
    """None where they are no numbers."""
    try:
        array = np.asarray(numbers)
    except ValueError:
        return None
    return array if array.ndim == 1 and array.dtype.kind in "iuf" else None


def _list(path: Path, content: Row, name: str) -> list[Row]:
    rows = content.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DatasetError(
            path, f"it has no list '{name}', so it is no COCO dataset; export it again as COCO instances"
        )
    return rows


def _image_rows(rows: Sequence[Row], refusals: Refusals) -> dict[str, Row | None]:
    """Row by id as text; None for an id whose annotations nobody could place."""
    by_id: dict[str, Row | None] = {}
    for row in rows:
        key, name = _key(row.get("id")), row.get("file_name")
        if not isinstance(name, str) or not name:
            refusals.add("the image has no file name", f"image {row.get('id', '?')}")
            by_id.setdefault(key, None)
        elif key not in by_id:
            by_id[key] = row
        elif (first := by_id[key]) is None or first["file_name"] != name:
            refusals.add("another image has the same id, so both are left out", name)
            by_id[key] = None
    return by_id


def _category_names(rows: Sequence[Row], refusals: Refusals) -> dict[str, str]:
    """Name by id as text; two ids may have the same name."""
    names: dict[str, str] = {}
    for row in rows:
        name = row.get("name")
        if isinstance(name, str) and folded_text(name) and is_valid_text(name):
            names[_key(row.get("id"))] = folded_text(name)
        else:
            refusals.add("the category has no name; its annotations are left out", f"category {row.get('id', '?')}")
    return names


def _key(number: Any) -> str:
    """Ids are compared as text: some programs write 7, others "7" or 7.0."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return str(number)


def _size(row: Row) -> tuple[int, int] | None:
    height, width = row.get("height"), row.get("width")
    if not isinstance(height, int | float) or not isinstance(width, int | float):
        return None
    return (round(height), round(width)) if 0 < height < _LONGEST_SIDE and 0 < width < _LONGEST_SIDE else None


def _mask(segmentation: Any, height: int, width: int) -> Mask:
    """Raises `MaskError` or ValueError with what is wrong."""
    if isinstance(segmentation, dict):
        mask = Mask.from_rle(segmentation)
        if (mask.height, mask.width) != (height, width):
            raise MaskError(f"its mask is {mask.width}×{mask.height} and the picture {width}×{height}")
        return mask
    if not isinstance(segmentation, list) or not any(part is None or part.size for part in segmentation):
        raise MaskError("it has no mask; a box alone is not imported")
    polygons = [_polygon(part, max(height, width)) for part in segmentation if part is None or part.size]
    rle = coco_mask.merge(coco_mask.frPyObjects(polygons, height, width))
    return Mask(height, width, rle["counts"].decode("ascii"))


def _polygon(part: NDArray[Any] | None, longer_side: int) -> list[float]:
    if part is None or part.size % 2 or not np.isfinite(part).all():
        raise MaskError("its polygon is no list of x and y in numbers")
    if part.size < _FEWEST_NUMBERS:
        raise MaskError("its polygon has fewer than three corners")
    corners = part.astype(float).reshape(-1, 2)
    if np.abs(corners).max() > (1 + _FARTHEST) * longer_side:
        raise MaskError("its polygon lies far outside the picture")
    if np.abs(np.diff(corners, axis=0)).max(axis=1).sum() > _LONGEST_OUTLINE:
        raise MaskError("its polygon's outline is longer than 20 million pixels")
    return corners.ravel().tolist()


def _score(row: Row) -> float | None:
    score = row.get("score")
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    return float(score) if is_number and 0 <= score <= 1 else None  # type: ignore[arg-type,operator]


def _phrase(row: Row) -> str | None:
    phrase = row.get("phrase")
    return folded_text(phrase) or None if isinstance(phrase, str) and is_valid_text(phrase) else None


IMPORTER = Importer(name="coco", title="COCO instance segmentation (JSON)", read=read)
