"""SAM 3 as usls v2 has it: raw answers, presence apart, any number of positive and negative boxes."""

from __future__ import annotations

from collections.abc import Sequence

from engines.families._sam3.prompts import box_feeds
from engines.families._sam3_foreign.answers import logits
from engines.families._sam3_foreign.contract import Contract, Feeds, Part, slots
from engines.families._sam3_foreign.segmenter import foreign_family
from engines.types import BoxPrompt, ImageFeatures

_FEATURES = [
    *slots("float", 4, "fpn_feat_0 fpn_feat_1 fpn_feat_2"),
    *slots("float", 4, "fpn_pos_2", optional=True),
]
_PHRASE = [*slots("float", 3, "text_features"), *slots("bool", 2, "text_mask")]


def _prompt(boxes: Sequence[BoxPrompt], image: ImageFeatures) -> Feeds:
    feeds = box_feeds(boxes, image, 1)
    return {"input_boxes": feeds["boxes"], "input_boxes_labels": feeds["labels"]}


CONTRACT = Contract(
    name="sam3_usls",
    title="SAM 3 (files of usls v2)",
    reference="transformers",
    parts={
        "vision": Part(slots("float", 4, "images"), _FEATURES),
        "text": Part(slots("int", 2, "input_ids attention_mask"), _PHRASE),
        "decoder": Part(
            inputs=[*_FEATURES, *_PHRASE, *slots("float", 3, "input_boxes"), *slots("int", 2, "input_boxes_labels")],
            outputs=[
                *slots("float", 4, "pred_masks"),
                *slots("float", 3, "pred_boxes"),
                *slots("float", 2, "pred_logits presence_logits"),
            ],
        ),
    },
    prompt=_prompt,
    answer=logits,
    label_input="input_boxes_labels",
    notes=("with a phrase alone, scores differ a little from those that the model was trained to give",),
)
FAMILY = foreign_family(CONTRACT)
