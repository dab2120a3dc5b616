"""The decoder's answer to one phrase, read as instances: one mask at a time, never all of them at full size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.boxes import iou_matrix, scale
from engines.masks import Mask, suppress
from engines.types import BoxPrompt, ImageFeatures, Instance, SegmentOptions
from engines.upsampling import encode_upsampled

SCORE_FLOOR = 0.1
"""Most queries of a phrase score near 0, and each costs an outline. On the pictures of shapes, of 25 queries 1.5 reach
0.5, 1.8 reach 0.1 and 10 reach 0.001: at a tenth, what a person may want to look at is there for the slider."""
_FILLS_THE_BOX = 0.3


@dataclass(frozen=True)
class Answer:
    """K queries of one phrase: scores float64 [K], boxes float32 [K, 4] as shares of the image, logits [K, h, w].

    Logits may lie on a device: only those of instances that are answered are brought from there.
    """

    scores: NDArray[np.float64]
    boxes_xyxy: NDArray[np.float32]
    mask_logits: Any

    @classmethod
    def of(cls, outputs: Mapping[str, Any], row: int) -> Answer:
        """The answer to the phrase of that row; a score is the query's own probability times that of presence."""
        logits, presence, boxes = (np.asarray(outputs[name][row]) for name in ("logits", "presence", "boxes_xyxy"))
        return cls(sigmoid(logits) * sigmoid(presence), boxes, outputs["mask_logits"][row])

    def instances(self, image: ImageFeatures, options: SegmentOptions) -> list[Instance]:
        """Instances at or above the threshold, best first; those whose mask is empty are none."""
        found: list[Instance] = []
        for row in self._rows_above(options.score_threshold):
            if len(found) == options.max_instances:
                break
            mask = self._mask(row, image, options.mask_threshold)
            if mask.area:
                found.append(Instance(mask, mask.xyxy, float(self.scores[row])))
        kept = suppress([one.mask for one in found], options.suppress_iou, options.suppress_containment)
        return [found[index] for index in kept]

    def thing_in(self, box: BoxPrompt, image: ImageFeatures) -> Instance | None:
        """The query whose box has the largest IoU with a box inside the image; None where no query has any mask.

        With an IoU below 0.3 the query shows something larger or beside: only its part inside the box counts.
        """
        for row, iou in self._by_overlap(box, image):
            mask = self._mask(row, image, SegmentOptions().mask_threshold)
            thing = mask if iou >= _FILLS_THE_BOX else _inside(mask, box)
            if thing.area:
                return Instance(thing, thing.xyxy, float(self.scores[row]))
        return None

    def _rows_above(self, threshold: float) -> list[int]:
        order = np.argsort(-self.scores, kind="stable")
        return [int(row) for row in order if self.scores[row] >= max(threshold, SCORE_FLOOR)]

    def _by_overlap(self, box: BoxPrompt, image: ImageFeatures) -> Iterator[tuple[int, float]]:
        rows = self._rows_above(SCORE_FLOOR)
        iou = iou_matrix(scale(self.boxes_xyxy[rows], image.width, image.height), [box.xyxy])[:, 0]
        for index in np.argsort(-iou, kind="stable"):
            yield rows[index], float(iou[index])

    def _mask(self, row: int, image: ImageFeatures, threshold: float) -> Mask:
        return encode_upsampled(np.asarray(self.mask_logits[row]), image.height, image.width, _logit(threshold))


def _inside(mask: Mask, box: BoxPrompt) -> Mask:
    """The part of a mask on the pixels that a box inside the image touches."""
    x1, y1, x2, y2 = box.xyxy
    window = slice(math.floor(y1), math.ceil(y2)), slice(math.floor(x1), math.ceil(x2))
    pixels = np.zeros((mask.height, mask.width), dtype=bool)
    pixels[window] = mask.decode()[window]
    return Mask.encode(pixels)


def sigmoid(logits: NDArray[Any]) -> NDArray[np.float64]:
    """By tanh, which no logit overflows."""
    values: NDArray[np.float64] = 0.5 + 0.5 * np.tanh(logits.astype(np.float64) / 2)
    return values


def _logit(probability: float) -> float:
    if probability <= 0:
        return -math.inf
    return math.inf if probability >= 1 else math.log(probability / (1 - probability))
