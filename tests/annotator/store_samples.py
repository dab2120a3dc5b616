"""Small projects and annotations made by code, for the tests of the store."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotator.records import Decision, FoundImage, NewAnnotation
from annotator.store import ProjectStore
from engines.masks import Mask

BUNDLE = "a" * 64
OTHER_BUNDLE = "b" * 64


def found(*paths: str, size_bytes: int = 1000, mtime_ns: int = 1) -> list[FoundImage]:
    return [FoundImage(path, size_bytes, mtime_ns) for path in paths]


def square(side: int = 3) -> Mask:
    pixels = np.zeros((8, 10), dtype=bool)
    pixels[1 : 1 + side, 2 : 2 + side] = True
    return Mask.encode(pixels)


def suggestion(category_id: int = 1, phrase: str = "striped cat", score: float = 0.75, **fields: Any) -> NewAnnotation:
    values: dict[str, Any] = {"mask": square(), "xyxy": (2.0, 1.0, 5.0, 4.0), "bundle_id": BUNDLE}
    return NewAnnotation(category_id=category_id, phrase=phrase, score=score, **(values | fields))


def drawing(category_id: int = 1, **fields: Any) -> NewAnnotation:
    values: dict[str, Any] = {"decision": Decision.ACCEPTED, "mask": square(5), "xyxy": (2.0, 1.0, 7.0, 6.0)}
    values |= {"phrase": None, "bundle_id": None}
    return NewAnnotation(category_id=category_id, score=None, **(values | fields))


def suggest(
    store: ProjectStore, image_id: int, *scores: float, phrase: str = "striped cat", category_id: int = 1
) -> list[int]:
    new = [suggestion(category_id, phrase, score) for score in scores]
    return store.replace_suggestions(image_id, phrase, category_id, BUNDLE, 0.5, new)


def decisions_of(store: ProjectStore, image_id: int) -> dict[int, Decision]:
    return {each.annotation_id: each.decision for each in store.annotations(image_id)}
