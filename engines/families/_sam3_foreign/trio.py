"""What the two contracts from Meta's own code share: the vision and language graphs, and one place for a box."""

from __future__ import annotations

from engines.families._sam3_foreign.contract import Part, Slot, slots

VISION = Part(
    inputs=[Slot("image", "picture", (3, 4))],
    outputs=[
        *slots("float", 4, "backbone_fpn_0 backbone_fpn_1 backbone_fpn_2"),
        *slots("float", 4, "vision_pos_enc_0 vision_pos_enc_1 vision_pos_enc_2", optional=True),
    ],
)
TEXT = Part(
    inputs=slots("int", 2, "tokens"),
    outputs=[
        *slots("bool", 2, "text_attention_mask"),
        *slots("float", 3, "text_memory"),
        *slots("float", 3, "text_embeds", optional=True),
    ],
)
DECODER_INPUTS = (
    *slots("float", 4, "backbone_fpn_0 backbone_fpn_1 backbone_fpn_2"),
    *slots("float", 4, "vision_pos_enc_0 vision_pos_enc_1 vision_pos_enc_2", optional=True),
    *slots("bool", 2, "language_mask"),
    *slots("float", 3, "language_features"),
    *slots("float", 3, "language_embeds", optional=True),
    *slots("float", 3, "box_coords"),
    *slots("int", 2, "box_labels", optional=True),
    *slots("bool", 2, "box_masks"),
)
RENAMED = {
    "language_mask": "text_attention_mask",
    "language_features": "text_memory",
    "language_embeds": "text_embeds",
}
LABELS = "box_labels"
BAKED_CUT = 0.5
NOTES = (
    "what scores below 0.5 is cut off inside the graph, so the score slider starts at 0.5",
    "one exemplar box at a time",
)
