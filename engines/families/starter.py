"""The starter family: 80 COCO categories by phrase, and a mask of anything for a drawn box. Runs on any CPU.

One detector finds boxes when the image is encoded; a phrase chooses among them, and only then are the outlines of those
chosen drawn by a salience network and sharpened. What has been drawn is kept with the image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engines.bundle import ModelBundle
from engines.families._starter.colours import has_colour
from engines.families._starter.detector import SCORE_FLOOR, detect
from engines.families._starter.outline import Outline, trace, trace_drawn
from engines.families._starter.picture import (
    OutlineMemo,
    detections_of,
    full_size_mask,
    to_tensors,
    whole_pixels,
    working_copy,
)
from engines.families._starter.salience import Salience
from engines.families._starter.separation import separated
from engines.families._starter.vocabulary import Vocabulary, Wanted
from engines.masks import Mask, suppress
from engines.protocols import Capabilities, Family, PreparedImage, SegmenterInfo, Session
from engines.types import BoxPrompt, ImageFeatures, Instance, Phrase, PhraseFeatures, SegmentOptions

_VOCABULARY_FILE = "vocabulary.json"
_SURE_SCORE = 0.5
_CAPABILITIES = Capabilities(open_vocabulary=False, box_to_mask=True, exemplar_boxes=False, score_floor=SCORE_FLOOR)


class StarterSegmenter:
    """Detector, salience network and vocabulary of the starter bundle."""

    def __init__(self, bundle: ModelBundle, open_graph: Callable[[str], Session]) -> None:
        self._detector = open_graph("detector")
        self._salience = Salience(open_graph("salience"), bundle.graphs["salience"])
        self._vocabulary = Vocabulary.read(bundle.file(_VOCABULARY_FILE))
        self.info = SegmenterInfo(
            name=bundle.name,
            bundle_id=bundle.bundle_id,
            family=bundle.family,
            precision=bundle.precision,
            runtime=self._detector.runtime,
            device=self._detector.device,
            capabilities=_CAPABILITIES,
        )

    @property
    def images_at_once(self) -> int:
        """One: the detector takes no more."""
        return 1

    def encode_image(self, rgb: NDArray[np.uint8], image_id: str) -> ImageFeatures:
        """Detections of an upright (H, W, 3) uint8 RGB image, and a working copy of it of at most three megapixels."""
        return self.encode_images([self.prepare_image(rgb, image_id)])[0]

    def prepare_image(self, rgb: NDArray[np.uint8], image_id: str) -> PreparedImage:
        """The working copy."""
        return PreparedImage(image_id, rgb.shape[0], rgb.shape[1], working_copy(rgb))

    def encode_images(self, images: Sequence[PreparedImage]) -> list[ImageFeatures]:
        """As `encode_image` for each image."""
        return [self._encoded(image) for image in images]

    def _encoded(self, image: PreparedImage) -> ImageFeatures:
        tensors, nbytes = to_tensors(image.pixels, detect(self._detector, image.pixels))
        return ImageFeatures(self.info.bundle_id, image.image_id, image.height, image.width, tensors, nbytes)

    def encode_phrase(self, phrase: Phrase) -> PhraseFeatures:
        """The categories that the phrase's head nouns stand for."""
        wanted, understanding = self._vocabulary.understand(phrase.text)
        return PhraseFeatures(self.info.bundle_id, phrase, understanding, {"wanted": wanted})

    def decode(
        self,
        image: ImageFeatures,
        phrase: PhraseFeatures,
        boxes: Sequence[BoxPrompt] = (),
        options: SegmentOptions = SegmentOptions(),
    ) -> list[Instance]:
        """Every instance of the phrase's categories at or above the threshold, best first; `boxes` have no effect."""
        detections = detections_of(image.tensors)
        instances: list[Instance] = []
        for row in range(len(detections)):
            score = float(detections.scores[row])
            if score < options.score_threshold or len(instances) >= options.max_instances:
                break
            wanted = [want for want in phrase.tensors["wanted"] if detections.categories[row] in want.categories]
            if not wanted:
                continue
            mask = self._mask(image, row)
            if mask is not None and any(self._has_colour(image, row, want) for want in wanted):
                instances.append(Instance(mask, mask.xyxy, score))
        kept = suppress([one.mask for one in instances], options.suppress_iou, options.suppress_containment)
        return [instances[index] for index in kept]

    def example_phrases(self, image: ImageFeatures) -> list[str]:
        """The categories that are surely on the image, surest first."""
        detections = detections_of(image.tensors)
        sure = detections.categories[detections.scores >= _SURE_SCORE]
        return [self._vocabulary.name_of(category) for category in dict.fromkeys(sure.tolist())]

    def mask_box(self, image: ImageFeatures, box: BoxPrompt) -> Instance:
        """The thing inside a drawn box, never outside it; where nothing stands out, the box's inscribed ellipse."""
        x1, y1, x2, y2 = box.clipped(image.height, image.width).xyxy
        height, width = image.tensors["rgb"].shape[:2]
        scale = np.array([width / image.width, height / image.height] * 2)
        xyxy = np.array([x1, y1, x2, y2])
        outline = trace_drawn(image.tensors["rgb"], xyxy * scale, self._salience)
        mask = full_size_mask(outline, image, whole_pixels(xyxy, image.height, image.width))
        return Instance(mask, mask.xyxy, 1.0)

    def _mask(self, image: ImageFeatures, row: int) -> Mask | None:
        memo: OutlineMemo = image.tensors["outlines"]
        return memo.mask(row, lambda: self._full_size(image, self._separated(image, row)))

    @staticmethod
    def _full_size(image: ImageFeatures, outline: Outline) -> Mask | None:
        return full_size_mask(outline, image) if outline.pixels.any() else None

    def _separated(self, image: ImageFeatures, row: int) -> Outline:
        return separated(row, detections_of(image.tensors), lambda other: self._outline(image, other))

    def _outline(self, image: ImageFeatures, row: int) -> Outline:
        memo: OutlineMemo = image.tensors["outlines"]
        return memo.outline(row, lambda: trace(image.tensors["rgb"], image.tensors["xyxy"][row], self._salience))

    def _has_colour(self, image: ImageFeatures, row: int, wanted: Wanted) -> bool:
        if wanted.colour is None:
            return True
        outline = self._separated(image, row)
        height, width = outline.pixels.shape
        crop = image.tensors["rgb"][outline.top : outline.top + height, outline.left : outline.left + width]
        return has_colour(crop[outline.pixels], wanted.colour)


FAMILY = Family(
    name="starter",
    title="Starter",
    summary="Finds 80 everyday things by phrase and masks whatever is in a box you draw; quick on any computer.",
    load=StarterSegmenter,
)
