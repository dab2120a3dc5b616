"""SAM 3 as in danilobukvic/sam3-text-onnx: phrases only, and no output for presence."""

from __future__ import annotations

from collections.abc import Sequence

from engines.families._sam3_foreign.answers import logits
from engines.families._sam3_foreign.contract import Contract, Feeds, Part, slots
from engines.families._sam3_foreign.segmenter import foreign_family
from engines.types import BoxPrompt, ImageFeatures

_STATES = slots("float", 4, "fpn_hidden_state_0 fpn_hidden_state_1 fpn_hidden_state_2")
_POSITIONS = slots("float", 4, "fpn_position_encoding_2", optional=True)
_PHRASE = slots("float", 3, "text_features")


def _prompt(boxes: Sequence[BoxPrompt], image: ImageFeatures) -> Feeds:
    """Nothing: boxes are refused before."""
    return {}


CONTRACT = Contract(
    name="sam3_danilobukvic",
    title="SAM 3 (files of danilobukvic, phrases only)",
    reference="transformers",
    parts={
        "vision": Part(slots("float", 4, "pixel_values"), [*_STATES, *_POSITIONS]),
        "text": Part([*slots("int", 2, "input_ids"), *slots("int", 2, "attention_mask", optional=True)], _PHRASE),
        "decoder": Part(
            inputs=[*_STATES, *_POSITIONS, *_PHRASE, *slots("int", 2, "attention_mask")],
            outputs=[
                *slots("float", 4, "pred_masks"),
                *slots("float", 3, "pred_boxes"),
                *slots("float", 2, "pred_logits"),
            ],
        ),
    },
    prompt=_prompt,
    answer=logits,
    max_boxes=0,
    notes=(
        "no output says whether the phrase is on the picture at all: scores cannot be compared with other models', "
        "and what is not there may score high",
        "phrases only, no boxes",
    ),
)
FAMILY = foreign_family(CONTRACT)
