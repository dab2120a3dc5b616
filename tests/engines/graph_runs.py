"""Exported graphs, run as a family runs them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import ModelBundle
from engines.loader import runtimes
from engines.protocols import Session

Array = NDArray[Any]


def session(bundle: ModelBundle, role: str) -> Session:
    graph = bundle.graphs[role]
    return runtimes()["onnxruntime"].load_graph(bundle.file(graph.file), graph, "cpu")


class Graphs:
    """The three graphs of a bundle, asked in a row."""

    def __init__(self, bundle: ModelBundle) -> None:
        self._vision, self._text, self._decoder = (session(bundle, role) for role in ("vision", "text", "decoder"))

    def answer(self, picture: Array, ids: Array, counts: Array, boxes: Array, labels: Array) -> dict[str, Array]:
        phrases = self._text.run({"input_ids": ids})["text_features"]
        given = {"text_features": phrases, "text_mask": counts, "boxes": boxes, "labels": labels}
        return self._decoder.run({**self._vision.run({"image": picture}), **given})


def padding_box(n_phrases: int) -> tuple[Array, Array]:
    """What stands for no box: one with the label −10."""
    return np.zeros((n_phrases, 1, 4), np.float32), np.full((n_phrases, 1), -10, np.int32)
