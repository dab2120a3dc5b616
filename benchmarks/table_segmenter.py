"""A segmenter that takes a fixed time and answers ready masks: what is left of an edit is the page's own cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from engines.masks import Mask
from engines.protocols import Capabilities, SegmenterInfo
from engines.types import (
    BoxPrompt,
    ImageFeatures,
    Instance,
    Phrase,
    PhraseFeatures,
    SegmentOptions,
    Understanding,
)


class TableSegmenter:
    """A phrase of n characters gets the n-th list of masks."""

    def __init__(self, answers: Sequence[Sequence[Mask]], model_s: float) -> None:
        capabilities = Capabilities(open_vocabulary=True, box_to_mask=False, exemplar_boxes=False)
        self.info = SegmenterInfo("table", "table", "table", "fp32", "onnxruntime", "cpu", capabilities)
        self._answers = answers
        self._model_s = model_s

    def encode_image(self, rgb: Any, image_id: str) -> ImageFeatures:
        return ImageFeatures("table", image_id, rgb.shape[0], rgb.shape[1], {}, 0)

    def encode_phrase(self, phrase: Phrase) -> PhraseFeatures:
        return PhraseFeatures("table", phrase, Understanding())

    def decode(
        self,
        image: ImageFeatures,
        phrase: PhraseFeatures,
        boxes: Sequence[BoxPrompt] = (),
        options: SegmentOptions = SegmentOptions(),
    ) -> list[Instance]:
        time.sleep(self._model_s)
        masks = self._answers[len(phrase.phrase.text) % len(self._answers)]
        return [Instance(mask, mask.xyxy, 1 - place / 100) for place, mask in enumerate(masks)]

    def example_phrases(self, image: ImageFeatures) -> list[str]:
        return []

    def mask_box(self, image: ImageFeatures, box: BoxPrompt) -> Instance:
        mask = self._answers[0][0]
        return Instance(mask, mask.xyxy, 1.0)
