"""SAM 3 as wkentaro's export v0.3.0 has it, for osam and labelme: masks come small, as probabilities."""

from __future__ import annotations

from engines.families._sam3_foreign.answers import probabilities
from engines.families._sam3_foreign.contract import Contract, Part, slots
from engines.families._sam3_foreign.prompts import one_box
from engines.families._sam3_foreign.segmenter import foreign_family
from engines.families._sam3_foreign.trio import BAKED_CUT, DECODER_INPUTS, LABELS, NOTES, RENAMED, TEXT, VISION

CONTRACT = Contract(
    name="sam3_osam",
    title="SAM 3 (files of osam and labelme)",
    reference="meta",
    parts={
        "vision": VISION,
        "text": TEXT,
        "decoder": Part(
            inputs=DECODER_INPUTS,
            outputs=[*slots("float", 2, "boxes"), *slots("float", 1, "scores"), *slots("float", 4, "masks")],
        ),
    },
    prompt=one_box,
    answer=probabilities,
    renamed=RENAMED,
    max_boxes=1,
    label_input=LABELS,
    score_floor=BAKED_CUT,
    notes=NOTES,
)
FAMILY = foreign_family(CONTRACT)
