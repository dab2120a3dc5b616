"""Phrases, pictures and boxes as graphs take them that others have exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import GraphSpec, TensorSpec
from engines.families._sam3.picture import stretched_to
from engines.families._sam3.prompts import box_feeds
from engines.families._sam3.tokens import Tokens
from engines.families._sam3_foreign.contract import Feeds
from engines.families._sam3_foreign.folder import picture_size
from engines.types import BoxPrompt, ImageFeatures


def picture_feed(rgb: NDArray[np.uint8], spec: TensorSpec) -> NDArray[Any]:
    """The picture, stretched; bytes where the graph takes such, else from -1 to 1; without a batch for three axes."""
    pixels: NDArray[Any] = stretched_to(rgb, *picture_size(spec))
    if spec.dtype != "uint8":
        pixels = (pixels.astype(np.float32) / 127.5 - 1).astype(spec.dtype)
    return pixels if len(spec.shape) == 4 else pixels[0]


def phrase_tensors(tokens: Tokens, length: int) -> dict[str, NDArray[Any]]:
    """`tokens`, padded with 0, and `input_ids`, padded with the end token, with `attention_mask`, 1 where one stands.

    Padding is not the same: graphs that take `tokens` tell it by the 0, those that take `input_ids` by the mask.
    """
    return {
        "tokens": tokens.padded(length),
        "input_ids": tokens.padded(length, tokens.ids[-1]),
        "attention_mask": tokens.mask(length),
    }


def only_declared(tensors: Feeds, graph: GraphSpec) -> dict[str, NDArray[Any]]:
    """What the graph takes of these, in its dtypes: exporters leave out inputs that a graph does not use."""
    return {spec.name: np.asarray(tensors[spec.name], dtype=spec.dtype) for spec in graph.inputs}


def one_box(boxes: Sequence[BoxPrompt], image: ImageFeatures) -> dict[str, NDArray[Any]]:
    """The only place for a box: `box_coords` [1, 1, 4], `box_labels` [1, 1], and `box_masks`, True without a box."""
    feeds = box_feeds(boxes, image, 1)
    absent = feeds["labels"] < 0
    return {"box_coords": feeds["boxes"], "box_labels": np.where(absent, 1, feeds["labels"]), "box_masks": absent}
