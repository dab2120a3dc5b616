"""SAM 3 as samexporter makes it, for AnyLabeling and X-AnyLabeling.

The graph gives masks whole, at the size of the picture: for 12 megapixels, some 60 MB each on the way. Where its last
nodes only stretch small logits and cut them, it is asked for those, and the same masks follow in a fraction of the
time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.families._sam3_foreign.answers import masks_or_logits
from engines.families._sam3_foreign.contract import Contract, Feeds, Part, slots
from engines.families._sam3_foreign.mask_tail import small_logits
from engines.families._sam3_foreign.prompts import one_box
from engines.families._sam3_foreign.segmenter import foreign_family
from engines.families._sam3_foreign.trio import BAKED_CUT, DECODER_INPUTS, LABELS, NOTES, RENAMED, TEXT, VISION
from engines.types import BoxPrompt, ImageFeatures


def _prompt(boxes: Sequence[BoxPrompt], image: ImageFeatures) -> Feeds:
    size = {"original_height": np.asarray(image.height), "original_width": np.asarray(image.width)}
    return {**one_box(boxes, image), **size}


CONTRACT = Contract(
    name="sam3_samexporter",
    title="SAM 3 (files of samexporter)",
    reference="meta",
    parts={
        "vision": VISION,
        "text": TEXT,
        "decoder": Part(
            inputs=[*slots("int", 0, "original_height original_width"), *DECODER_INPUTS],
            outputs=[*slots("float", 2, "boxes"), *slots("float", 1, "scores"), *slots("bool", 4, "masks")],
        ),
    },
    prompt=_prompt,
    answer=masks_or_logits,
    renamed=RENAMED,
    max_boxes=1,
    label_input=LABELS,
    score_floor=BAKED_CUT,
    notes=NOTES,
    small_masks=small_logits,
    note_on_whole_masks="masks are cut inside the graph, so a mask threshold changes nothing",
)
FAMILY = foreign_family(CONTRACT)
