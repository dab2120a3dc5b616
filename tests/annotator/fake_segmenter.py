"""A segmenter that answers from a table and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

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

Rectangle = tuple[tuple[int, int, int, int], float]
"""xyxy in pixels, and a score."""

DEFAULT_ANSWERS: dict[str, list[Rectangle]] = {
    "cup": [((2, 2, 12, 12), 0.9), ((20, 2, 30, 12), 0.7), ((40, 2, 46, 8), 0.35)],
    "mug": [((2, 2, 12, 11), 0.8)],
    "cat": [((5, 20, 25, 30), 0.95)],
}


class FakeSegmenter:
    """Knows the phrases of its table; everything else is outside its vocabulary."""

    def __init__(self, answers: Mapping[str, Sequence[Rectangle]] = DEFAULT_ANSWERS, bundle_id: str = "fake") -> None:
        capabilities = Capabilities(open_vocabulary=False, box_to_mask=True, exemplar_boxes=False, score_floor=0.3)
        self.info = SegmenterInfo("fake", bundle_id, "fake", "fp32", "onnxruntime", "cpu", capabilities)
        self.answers = answers
        self.calls: list[str] = []
        self.on_decode: Callable[[], None] = lambda: None

    def encode_image(self, rgb, image_id):
        self.calls.append(f"encode {image_id[:8]}")
        height, width = rgb.shape[:2]
        return ImageFeatures(self.info.bundle_id, image_id, height, width, {}, rgb.nbytes)

    def encode_phrase(self, phrase: Phrase):
        self.calls.append(f"phrase {phrase.text}")
        known = phrase.text.casefold() in self.answers
        return PhraseFeatures(self.info.bundle_id, phrase, Understanding(outside=not known))

    def decode(self, image, phrase, boxes=(), options=SegmentOptions()):
        self.calls.append(f"decode {phrase.phrase.text}")
        self.on_decode()
        rectangles = self.answers.get(phrase.phrase.text.casefold(), ())
        return [
            rectangle_instance(xyxy, score, image.height, image.width)
            for xyxy, score in rectangles
            if score >= options.score_threshold
        ]

    def example_phrases(self, image):
        return list(self.answers)

    def mask_box(self, image: ImageFeatures, box: BoxPrompt):
        self.calls.append("box")
        x1, y1, x2, y2 = (round(value) for value in box.clipped(image.height, image.width).xyxy)
        return rectangle_instance((x1, y1, x2, y2), 1.0, image.height, image.width)

    def count(self, kind: str) -> int:
        return sum(call.startswith(kind) for call in self.calls)


def rectangle_instance(xyxy: tuple[int, int, int, int], score: float, height: int, width: int) -> Instance:
    x1, y1, x2, y2 = xyxy
    pixels = np.zeros((height, width), dtype=bool)
    pixels[y1:y2, x1:x2] = True
    return Instance(Mask.encode(pixels), np.array(xyxy, dtype=np.float32), score)
