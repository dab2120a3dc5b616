"""The SAM 3 family: every instance of any noun phrase, of what exemplar boxes show, or of both together.

Three graphs: vision encodes a picture once, text a phrase, and the decoder answers any number of phrases and boxes on
them. Formulas and clean-up are those of the model's authors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import ModelBundle
from engines.errors import NothingFoundError
from engines.families._sam3.answer import SCORE_FLOOR, Answer
from engines.families._sam3.contract import (
    FEATURES,
    TOKENIZER_FILE,
    check_contract,
    context_length,
    image_side,
    takes_several_images,
)
from engines.families._sam3.picture import stretched
from engines.families._sam3.prompts import box_feeds
from engines.families._sam3.tokens import PhraseTokenizer, Tokens
from engines.protocols import Capabilities, Family, KeepsOnDevice, PreparedImage, SegmenterInfo, Session, run_kept
from engines.types import (
    HOST,
    BoxPrompt,
    ImageFeatures,
    Instance,
    Phrase,
    PhraseFeatures,
    SegmentOptions,
    Understanding,
)

_BOXES_ALONE = "visual"
"""What stood for the phrase in training when only boxes said what to look for."""
_KEPT_PHRASES = 512
_IMAGES_PER_RUN = 4
_PHRASES_PER_RUN = 4
"""At full size each phrase makes 33 MB of mask logits, and several times that inside the decoder."""

_CAPABILITIES = Capabilities(
    open_vocabulary=True,
    box_to_mask=True,
    exemplar_boxes=True,
    score_floor=SCORE_FLOOR,
    exemplar_phrase=_BOXES_ALONE,
)


class Sam3Segmenter:
    """The three graphs and the tokenizer of a SAM 3 bundle."""

    def __init__(self, bundle: ModelBundle, open_graph: Callable[[str], Session]) -> None:
        check_contract(bundle)
        self._side = image_side(bundle)
        context = context_length(bundle)
        self._tokenizer = PhraseTokenizer(bundle.file(TOKENIZER_FILE), context)
        self._vision = open_graph("vision")
        self._takes_several = takes_several_images(bundle)
        self._encode_tokens = _text_encoder(open_graph("text"), context)
        self._decoder = open_graph("decoder")
        self.info = SegmenterInfo(
            name=bundle.name,
            bundle_id=bundle.bundle_id,
            family=bundle.family,
            precision=bundle.precision,
            runtime=self._vision.runtime,
            device=self._vision.device,
            capabilities=_CAPABILITIES,
            features_id=bundle.graph_id("vision"),
        )

    @property
    def images_at_once(self) -> int:
        """A few on a GPU, where the graph takes several; one on a CPU, which has enough to do with it."""
        return _IMAGES_PER_RUN if self._takes_several and self._vision.device != "cpu" else 1

    def encode_image(self, rgb: NDArray[np.uint8], image_id: str) -> ImageFeatures:
        """Features of an upright (H, W, 3) uint8 RGB image of any size, at three scales."""
        return self.encode_images([self.prepare_image(rgb, image_id)])[0]

    def prepare_image(self, rgb: NDArray[np.uint8], image_id: str) -> PreparedImage:
        """The picture stretched to what the vision graph takes."""
        return PreparedImage(image_id, rgb.shape[0], rgb.shape[1], stretched(rgb, self._side))

    def encode_images(self, images: Sequence[PreparedImage]) -> list[ImageFeatures]:
        """Features of each image; in one run of the graph where it takes several."""
        if len(images) > 1 and not self._takes_several:
            return [self.encode_images([image])[0] for image in images]
        outputs = run_kept(self._vision, {"image": np.concatenate([image.pixels for image in images])})
        return [self._features(image, outputs, row) for row, image in enumerate(images)]

    def _features(self, image: PreparedImage, outputs: Mapping[str, Any], row: int) -> ImageFeatures:
        """Of one row of the outputs, which stay on the vision graph's device where it keeps them there."""
        tensors = {name: _kept_row(outputs[name], row) for name in FEATURES}
        nbytes = sum(tensor.nbytes for tensor in tensors.values())
        device = getattr(tensors[FEATURES[0]], "device", HOST)
        return ImageFeatures(self.info.bundle_id, image.image_id, image.height, image.width, tensors, nbytes, device)

    def on_device(self, image: ImageFeatures) -> ImageFeatures:
        """Features from the host on the decoder's device, if it keeps tensors there."""
        if image.device != HOST or not isinstance(self._decoder, KeepsOnDevice):
            return image
        tensors = {name: self._decoder.upload(image.tensors[name]) for name in FEATURES}
        return replace(image, tensors=tensors, device=self._decoder.device)

    def n_tokens(self, phrase: Phrase) -> tuple[int, int]:
        """Tokens of the whole phrase, and how many the model takes, both without start and end token."""
        return self._tokenizer.count(phrase.text)

    def encode_phrase(self, phrase: Phrase) -> PhraseFeatures:
        """Features of a phrase, kept for the next time; raises `PhraseError` for one of punctuation alone."""
        tokens = self._tokenizer.tokens(phrase.text)
        return PhraseFeatures(
            self.info.bundle_id, phrase, Understanding(cut=tokens.cut), self._encode_tokens(tokens.ids)
        )

    def decode(
        self,
        image: ImageFeatures,
        phrase: PhraseFeatures,
        boxes: Sequence[BoxPrompt] = (),
        options: SegmentOptions = SegmentOptions(),
    ) -> list[Instance]:
        """Every instance at or above the score threshold, best first.

        Positive boxes show more of what to look for, negative ones what to leave out; boxes alone go with the phrase
        `capabilities.exemplar_phrase`. Raises `BoxError` for a box without area in the image.
        """
        return self._answers(image, [phrase], boxes)[0].instances(image, options)

    def decode_many(
        self, image: ImageFeatures, phrases: Sequence[PhraseFeatures], options: SegmentOptions = SegmentOptions()
    ) -> list[list[Instance]]:
        """What `decode` finds for each phrase, a few phrases in one run of the decoder."""
        found: list[list[Instance]] = []
        for start in range(0, len(phrases), _PHRASES_PER_RUN):
            answers = self._answers(image, phrases[start : start + _PHRASES_PER_RUN])
            found += [answer.instances(image, options) for answer in answers]
        return found

    def example_phrases(self, image: ImageFeatures) -> list[str]:
        """None: the model answers phrases, it does not propose any."""
        return []

    def mask_box(self, image: ImageFeatures, box: BoxPrompt) -> Instance:
        """The thing inside a drawn box, from what the model finds with the box as its exemplar.

        That is everything alike on the picture; the answer is the one whose box fits the drawn one best, cut to the
        drawn box if it fits badly. Raises `NothingFoundError` where there is none, `BoxError` for a box without area.
        """
        inside = box.clipped(image.height, image.width)
        exemplar = BoxPrompt(inside.xyxy, positive=True)
        answer = self._answers(image, [self.encode_phrase(Phrase(_BOXES_ALONE))], [exemplar])[0]
        thing = answer.thing_in(inside, image)
        if thing is None:
            raise NothingFoundError(box.xyxy)
        return thing

    def _answers(
        self, image: ImageFeatures, phrases: Sequence[PhraseFeatures], boxes: Sequence[BoxPrompt] = ()
    ) -> list[Answer]:
        """One run of the decoder: each phrase with the same boxes."""
        feeds: dict[str, Any] = {name: image.tensors[name] for name in FEATURES}
        for name in ("text_features", "text_mask"):
            feeds[name] = np.concatenate([phrase.tensors[name] for phrase in phrases])
        outputs = run_kept(self._decoder, {**feeds, **box_feeds(boxes, image, len(phrases))})
        return [Answer.of(outputs, row) for row in range(len(phrases))]


def _kept_row(tensor: Any, row: int) -> Any:
    """One image's part, in memory of its own where there are several, so that it can outlive the others."""
    if tensor.shape[0] == 1:
        return tensor
    return tensor[row : row + 1].copy() if isinstance(tensor, np.ndarray) else tensor.kept_row(row)


def _text_encoder(session: Session, context: int) -> Callable[[tuple[int, ...]], Mapping[str, NDArray[Any]]]:
    """Token ids → `text_features` [1, context, C] and `text_mask` [1, context], the last few hundred remembered."""

    @lru_cache(maxsize=_KEPT_PHRASES)
    def encode(ids: tuple[int, ...]) -> Mapping[str, NDArray[Any]]:
        tokens = Tokens(ids, cut="")
        features = session.run({"input_ids": tokens.padded(context)})["text_features"]
        return {"text_features": features, "text_mask": tokens.mask(context)}

    return encode


FAMILY = Family(
    name="sam3",
    title="SAM 3",
    summary="Finds every instance of any noun phrase, and of what boxes show; at home on a GPU, patient on a CPU.",
    load=Sam3Segmenter,
)
