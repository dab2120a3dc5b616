"""A segmenter on the three graphs of a contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import SHIPPED_MODELS, ModelBundle
from engines.errors import BoxesNotTakenError, NothingFoundError
from engines.families._sam3.answer import Answer
from engines.families._sam3.tokens import PhraseTokenizer, Tokens
from engines.families._sam3_foreign.contract import Contract
from engines.families._sam3_foreign.folder import TOKENIZER_FILE, context_length, recognise
from engines.families._sam3_foreign.prompts import only_declared, phrase_tensors, picture_feed
from engines.protocols import Capabilities, Family, SegmenterInfo, Session
from engines.types import (
    BoxPrompt,
    ImageFeatures,
    Instance,
    Phrase,
    PhraseFeatures,
    SegmentOptions,
    Understanding,
)

_BOXES_ALONE = "visual"
_KEPT_PHRASES = 512
_CLIP_TOKENIZER = SHIPPED_MODELS / "clip_bpe" / TOKENIZER_FILE


class ForeignSam3Segmenter:
    """The three graphs, with the folder's tokenizer or, where it has none, CLIP's."""

    def __init__(self, contract: Contract, bundle: ModelBundle, open_graph: Callable[[str], Session]) -> None:
        self._contract = contract
        self._graphs = bundle.graphs
        self._context = context_length(bundle.graphs["text"].inputs[0])
        own = TOKENIZER_FILE in bundle.sha256_by_file
        tokenizer = bundle.file(TOKENIZER_FILE) if own else _CLIP_TOKENIZER
        self._tokenizer = PhraseTokenizer(tokenizer, self._context)
        self._vision, self._text, self._decoder = (open_graph(role) for role in ("vision", "text", "decoder"))
        self._encode_tokens = lru_cache(maxsize=_KEPT_PHRASES)(self._run_text)
        self.info = SegmenterInfo(
            name=bundle.name,
            bundle_id=bundle.bundle_id,
            family=bundle.family,
            precision=bundle.precision,
            runtime=self._vision.runtime,
            device=self._vision.device,
            capabilities=_capabilities(contract),
            notes=bundle.notes,
            features_id=bundle.graph_id("vision"),
        )

    def encode_image(self, rgb: NDArray[np.uint8], image_id: str) -> ImageFeatures:
        """Features of an upright (H, W, 3) uint8 RGB image of any size: of the graph's outputs, what is used later."""
        spec = self._graphs["vision"].inputs[0]
        outputs = self._vision.run({spec.name: picture_feed(rgb, spec)})
        used = {self._contract.source(one.name) for one in self._graphs["decoder"].inputs}
        tensors = {name: tensor for name, tensor in outputs.items() if name in used}
        nbytes = sum(tensor.nbytes for tensor in tensors.values())
        return ImageFeatures(self.info.bundle_id, image_id, rgb.shape[0], rgb.shape[1], tensors, nbytes)

    def n_tokens(self, phrase: Phrase) -> tuple[int, int]:
        """Tokens of the whole phrase, and how many the model takes, both without start and end token."""
        return self._tokenizer.count(phrase.text)

    def encode_phrase(self, phrase: Phrase) -> PhraseFeatures:
        """Features of a phrase, kept for the next time; raises `PhraseError` for one of punctuation alone."""
        tokens = self._tokenizer.tokens(phrase.text)
        understanding = Understanding(cut=tokens.cut)
        return PhraseFeatures(self.info.bundle_id, phrase, understanding, self._encode_tokens(tokens.ids))

    def decode(
        self,
        image: ImageFeatures,
        phrase: PhraseFeatures,
        boxes: Sequence[BoxPrompt] = (),
        options: SegmentOptions = SegmentOptions(),
    ) -> list[Instance]:
        """Every instance at or above the score threshold, best first.

        Raises `BoxesNotTakenError` for more boxes than the graphs take, `BoxError` for one without area in the image.
        """
        return self._answer(image, phrase, boxes).instances(image, options)

    def example_phrases(self, image: ImageFeatures) -> list[str]:
        """None: the model answers phrases, it does not propose any."""
        return []

    def mask_box(self, image: ImageFeatures, box: BoxPrompt) -> Instance:
        """The thing inside a drawn box: of what is found with the box as exemplar, what fits it best.

        Raises `NothingFoundError`, `BoxError` for a box without area, `BoxesNotTakenError` where no box is taken.
        """
        inside = box.clipped(image.height, image.width)
        exemplar = BoxPrompt(inside.xyxy, positive=True)
        answer = self._answer(image, self.encode_phrase(Phrase(_BOXES_ALONE)), [exemplar])
        thing = answer.thing_in(inside, image)
        if thing is None:
            raise NothingFoundError(box.xyxy)
        return thing

    def _answer(self, image: ImageFeatures, phrase: PhraseFeatures, boxes: Sequence[BoxPrompt]) -> Answer:
        self._check_boxes(boxes)
        given = {**image.tensors, **phrase.tensors, **self._contract.prompt(boxes, image)}
        graph = self._graphs["decoder"]
        named = {spec.name: given[self._contract.source(spec.name)] for spec in graph.inputs}
        return self._contract.answer(self._decoder.run(only_declared(named, graph)), image)

    def _check_boxes(self, boxes: Sequence[BoxPrompt]) -> None:
        limit, label = self._contract.max_boxes, self._contract.label_input
        if limit is not None and len(boxes) > limit:
            raise BoxesNotTakenError(self.info.name, f"{limit} exemplar box at a time" if limit else "phrases only")
        labelled = label in {spec.name for spec in self._graphs["decoder"].inputs}
        if not labelled and not all(box.positive for box in boxes):
            raise BoxesNotTakenError(self.info.name, "positive exemplar boxes only")

    def _run_text(self, ids: tuple[int, ...]) -> Mapping[str, NDArray[Any]]:
        """What the text graph gives, and what went in: some decoders want the mask again."""
        tokens = phrase_tensors(Tokens(ids, cut=""), self._context)
        return {**tokens, **self._text.run(only_declared(tokens, self._graphs["text"]))}


def foreign_family(contract: Contract) -> Family:
    """The descriptor by which folders of a contract are recognised and loaded."""
    return Family(
        name=contract.name,
        title=contract.title,
        summary="SAM 3 as another program exported it: any noun phrase; what it cannot do is said below.",
        load=partial(ForeignSam3Segmenter, contract),
        recognise=partial(recognise, contract),
    )


def _capabilities(contract: Contract) -> Capabilities:
    takes_boxes = contract.max_boxes != 0
    return Capabilities(
        open_vocabulary=True,
        box_to_mask=takes_boxes,
        exemplar_boxes=takes_boxes,
        score_floor=contract.score_floor,
        exemplar_phrase=_BOXES_ALONE if takes_boxes else "",
    )
