"""What transformers answers to the same questions as the graphs, as NumPy arrays."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
START, END, NO_BOX = 49406, 49407, -10


@contextmanager
def _roi_align_by_its_definition(model: Any) -> Iterator[None]:
    """transformers takes one function of torchvision, which often does not load beside a CPU build of torch."""
    module = sys.modules[type(model).__module__]
    before = getattr(module, "torchvision", None)
    module.torchvision = SimpleNamespace(ops=SimpleNamespace(roi_align=_roi_align))
    try:
        yield
    finally:
        module.torchvision = before


def _roi_align(features: Any, boxes: Sequence[Any], size: int) -> Any:
    """torchvision's with `aligned=False` and `sampling_ratio=-1`, one sample after another."""
    import torch

    parts = [
        _box_parts(features[index].numpy(), box, size) for index, each in enumerate(boxes) for box in each.tolist()
    ]
    return torch.from_numpy(np.stack(parts))


def _box_parts(features: Array, xyxy: Sequence[float], size: int) -> Array:
    x0, y0, x1, y1 = xyxy
    width, height = max(x1 - x0, 1.0) / size, max(y1 - y0, 1.0) / size
    n_across, n_down = math.ceil(width), math.ceil(height)
    parts = np.zeros((features.shape[0], size, size), np.float32)
    for row in range(size):
        ys = [y0 + height * (row + (step + 0.5) / n_down) for step in range(n_down)]
        for column in range(size):
            xs = [x0 + width * (column + (step + 0.5) / n_across) for step in range(n_across)]
            parts[:, row, column] = np.mean([_bilinear(features, y, x) for y in ys for x in xs], axis=0)
    return parts


def _bilinear(features: Array, y: float, x: float) -> Array:
    height, width = features.shape[-2:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(features.shape[0])
    (top, bottom, down), (left, right, across) = _between(y, height), _between(x, width)
    upper = features[:, top, left] * (1 - across) + features[:, top, right] * across
    lower = features[:, bottom, left] * (1 - across) + features[:, bottom, right] * across
    return upper * (1 - down) + lower * down


def _between(place: float, n_cells: int) -> tuple[int, int, float]:
    """The cells before and after a place, and how far it is from the first."""
    first = min(int(max(place, 0.0)), n_cells - 1)
    last = min(first + 1, n_cells - 1)
    return first, last, (max(place, 0.0) - first) if last > first else 0.0


def phrase_ids(n_phrases: int, seed: int = 0) -> tuple[Array, Array]:
    """Token ids int32 [P, 32] and which of them count: phrases of 1 to 12 words, padded with 0."""
    random = np.random.default_rng(seed)
    ids, counts = np.zeros((n_phrases, 32), np.int32), np.zeros((n_phrases, 32), bool)
    for row in range(n_phrases):
        words = random.integers(1, 49000, random.integers(1, 13))
        ids[row, : len(words) + 2] = [START, *words, END]
        counts[row, : len(words) + 2] = True
    return ids, counts


def random_picture(n_images: int, side: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (n_images, 3, side, side), dtype=np.uint8)


def random_boxes(n_phrases: int, n_boxes: int, seed: int = 0) -> tuple[Array, Array]:
    """Boxes inside the picture as cxcywh float32 [P, N, 4], and labels int32 [P, N]: positive, negative, none.

    Places without a box come last: transformers takes no others.
    """
    random = np.random.default_rng(seed)
    corners = np.sort(random.uniform(0, 1, (n_phrases, n_boxes, 2, 2)), axis=2)
    boxes = np.concatenate((corners.mean(axis=2), corners[:, :, 1] - corners[:, :, 0]), axis=-1)
    labels = random.choice([1, 0], (n_phrases, n_boxes))
    n_held = random.integers(0, n_boxes, n_phrases, endpoint=True)
    labels[np.arange(n_boxes) >= n_held[:, None]] = NO_BOX
    return boxes.astype(np.float32), labels.astype(np.int32)


def vision_answer(model: Any, pictures: Array) -> tuple[Array, ...]:
    """Of uint8 pictures, normalised as SAM 3's processor does: features at three scales."""
    return tuple(level.numpy() for level in _vision(model, pictures).fpn_hidden_states[:3])


def text_answer(model: Any, ids: Array, counts: Array) -> Array:
    import torch

    with torch.no_grad():
        found = model.get_text_features(
            input_ids=torch.from_numpy(ids).long(), attention_mask=torch.from_numpy(counts).long(), return_dict=True
        )
    return found.pooler_output.numpy()


def whole_answer(
    model: Any, picture: Array, ids: Array, counts: Array, boxes: Array | None = None, labels: Array | None = None
) -> dict[str, Array]:
    """All that the decoder answers, best logit first, for one picture [1, 3, S, S] and P phrases."""
    import torch

    vision = _vision(model, np.repeat(picture, len(ids), axis=0))
    with torch.no_grad(), _roi_align_by_its_definition(model):
        found = model(
            vision_embeds=vision,
            input_ids=torch.from_numpy(ids).long(),
            attention_mask=torch.from_numpy(counts).long(),
            input_boxes=None if boxes is None else torch.from_numpy(boxes),
            input_boxes_labels=None if labels is None else torch.from_numpy(labels).long(),
        )
    order = found.pred_logits.argsort(dim=1, descending=True)
    rows = torch.arange(len(ids))[:, None]
    return {
        "logits": found.pred_logits[rows, order].numpy(),
        "presence": found.presence_logits.numpy(),
        "boxes_xyxy": found.pred_boxes[rows, order].numpy(),
        "mask_logits": found.pred_masks[rows, order].numpy(),
    }


def _vision(model: Any, pictures: Array) -> Any:
    import torch

    with torch.no_grad():
        return model.get_vision_features((torch.from_numpy(pictures).float() / 255 - 0.5) / 0.5)


def furthest(got: Array, wanted: Array) -> float:
    """Largest difference, relative to the largest value."""
    assert got.shape == wanted.shape
    return float(np.abs(got.astype(np.float64) - wanted).max() / np.abs(wanted).max())
