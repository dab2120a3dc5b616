"""The small SAM 3 of shapes, its pictures, and sessions that count their runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engines.bundle import read_bundle
from engines.families.sam3 import FAMILY, Sam3Segmenter
from engines.loader import runtimes
from engines.masks import Mask
from engines.protocols import Session
from engines.types import BoxPrompt

ASSETS = Path(__file__).parents[1] / "assets"
BUNDLE = ASSETS / "shapes_bundle"
PICTURES: dict[str, dict[str, Any]] = {
    picture["file"]: picture
    for picture in json.loads((ASSETS / "shapes_pictures" / "truth.json").read_text(encoding="utf-8"))["pictures"]
}
STEADY = [(file, prompt) for file, picture in PICTURES.items() for prompt in picture["prompts"] if prompt["steady"]]


class CountingSession:
    """A real graph that counts its runs."""

    def __init__(self, session: Session, role: str, runs: Counter[str]) -> None:
        self._session, self._role, self._runs = session, role, runs
        self.runtime, self.device = session.runtime, session.device

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        self._runs[self._role] += 1
        return self._session.run(feeds)


def load_shapes(runs: Counter[str]) -> Sam3Segmenter:
    """The segmenter on the CPU; `runs` counts by role."""
    bundle = read_bundle(BUNDLE)
    load_graph = runtimes()["onnxruntime"].load_graph

    def open_graph(role: str) -> Session:
        spec = bundle.graphs[role]
        return CountingSession(load_graph(bundle.file(spec.file), spec, "cpu"), role, runs)

    segmenter = FAMILY.load(bundle, open_graph)
    assert isinstance(segmenter, Sam3Segmenter)
    return segmenter


def picture(file: str) -> NDArray[np.uint8]:
    with Image.open(ASSETS / "shapes_pictures" / file) as image:
        return np.asarray(image.convert("RGB"))


def meant_by(file: str, prompt: Mapping[str, Any]) -> list[Mask]:
    """The true masks of the objects that a prompt means."""
    return [Mask.from_rle(PICTURES[file]["objects"][index]["mask"]) for index in prompt["truth"]]


def boxes_of(prompt: Mapping[str, Any]) -> list[BoxPrompt]:
    return [BoxPrompt(tuple(xyxy), label == 1) for xyxy, label in zip(prompt["boxes"], prompt["labels"], strict=True)]
