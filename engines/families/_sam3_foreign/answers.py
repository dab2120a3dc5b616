"""The answers of decoders that others have exported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.boxes import scale
from engines.families._sam3.answer import Answer, sigmoid
from engines.families._sam3_foreign.contract import Feeds
from engines.masks import Mask
from engines.run_lengths import compress, runs_of
from engines.types import ImageFeatures

_SUREST = 1e-7
"""Float32 has no probabilities between 1 and 6e-8 less than 1: beyond, the logit is lost."""


class WholeMasksAnswer(Answer):
    """One whose masks are cut already: bool [K, H, W] at the size of the picture, whatever the threshold."""

    def _mask(self, row: int, image: ImageFeatures, threshold: float) -> Mask:
        return Mask(image.height, image.width, compress(runs_of(self.mask_logits[row]), image.height, image.width))


def masks_or_logits(outputs: Feeds, image: ImageFeatures) -> Answer:
    """`boxes` [N, 4] as corners in pixels, `scores` [N], and `masks` bool [N, 1, H, W] or else their small logits."""
    shares = scale(outputs["boxes"].astype(np.float32), 1 / image.width, 1 / image.height)
    kind = WholeMasksAnswer if "masks" in outputs else Answer
    [masks] = [tensor for name, tensor in outputs.items() if name not in ("boxes", "scores")]
    return kind(outputs["scores"].astype(np.float64), shares, masks[:, 0])


def probabilities(outputs: Feeds, image: ImageFeatures) -> Answer:
    """`boxes` [N, 4] as corners in shares of the picture, `scores` [N], `masks` [N, 1, h, w] as probabilities."""
    boxes = outputs["boxes"].astype(np.float32)
    return Answer(outputs["scores"].astype(np.float64), boxes, _logits(outputs["masks"][:, 0]))


def logits(outputs: Feeds, image: ImageFeatures) -> Answer:
    """`pred_logits` [1, Q], `pred_boxes` [1, Q, 4] as corners in shares, `pred_masks` [1, Q, h, w] as logits.

    A score is the query's own probability, times that of presence if `presence_logits` [1, 1] is among them.
    """
    scores = sigmoid(outputs["pred_logits"][0]).reshape(-1)
    if "presence_logits" in outputs:
        scores = scores * sigmoid(outputs["presence_logits"]).reshape(-1)[0]
    return Answer(scores, outputs["pred_boxes"][0].astype(np.float32), outputs["pred_masks"][0])


def _logits(probabilities: NDArray[Any]) -> NDArray[np.float32]:
    """Masks are cut where the interpolated logits cross the threshold, as with the original; so back to logits."""
    inside = np.clip(probabilities.astype(np.float64), _SUREST, 1 - _SUREST)
    return (np.log(inside) - np.log1p(-inside)).astype(np.float32)
