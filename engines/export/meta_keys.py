"""Names of the weights in Meta's `sam3.pt`, as transformers names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

DETECTOR_PREFIX = "detector."

# Beginning of the name there → here. The first that fits counts, and its rules for the rest of the name follow.
_BEGINNINGS = [
    ("backbone.vision_backbone.trunk.", "vision_encoder.backbone.", "trunk"),
    ("backbone.vision_backbone.convs.", "vision_encoder.neck.fpn_layers.", "neck"),
    ("backbone.language_backbone.encoder.transformer.resblocks.", "text_encoder.text_model.encoder.layers.", "text"),
    ("backbone.language_backbone.encoder.", "text_encoder.", "text_ends"),
    ("backbone.language_backbone.resizer.", "text_projection.", ""),
    ("geometry_encoder.", "geometry_encoder.", "geometry"),
    ("transformer.encoder.", "detr_encoder.", "encoder"),
    ("transformer.decoder.", "detr_decoder.", "decoder"),
    ("segmentation_head.", "mask_decoder.", "masks"),
    ("dot_prod_scoring.", "dot_product_scoring.", "scoring"),
]
_THREE_NORMS = [(rf"\.norm{n}\.", f".layer_norm{n}.") for n in (1, 2, 3)]
_LAYER = [
    (r"\.linear1\.", ".mlp.fc1."),
    (r"\.linear2\.", ".mlp.fc2."),
    (r"\.cross_attn_image\.", ".cross_attn."),
    (r"\.out_proj\.", ".o_proj."),
]
_STEPS = (r"\.layers\.(\d)\.(weight|bias)$", lambda found: f".layer{int(found[1]) + 1}.{found[2]}")
_RULES: dict[str, list[tuple[str, Any]]] = {
    "": [],
    "trunk": [
        (r"\.pos_embed$", ".embeddings.position_embeddings"),
        (r"\.patch_embed\.proj\.", ".embeddings.patch_embeddings.projection."),
        (r"\.ln_pre\.", ".layer_norm."),
        (r"\.blocks\.", ".layers."),
        (r"\.attn\.qkv\.", ".attention.qkv_proj."),
        (r"\.attn\.proj\.", ".attention.o_proj."),
        *_THREE_NORMS,
    ],
    "neck": [
        (r"\.dconv_2x2(_0)?\.", ".scale_layers.0."),
        (r"\.dconv_2x2_1\.", ".scale_layers.2."),
        (r"\.conv_1x1\.", ".proj1."),
        (r"\.conv_3x3\.", ".proj2."),
    ],
    "text": [
        (r"\.attn\.in_proj_", ".self_attn.in_proj_"),
        (r"\.attn\.out_proj\.", ".self_attn.out_proj."),
        (r"\.ln_(\d)\.", r".layer_norm\1."),
        (r"\.c_fc\.", ".fc1."),
        (r"\.c_proj\.", ".fc2."),
    ],
    "text_ends": [
        (r"\.positional_embedding$", ".text_model.embeddings.position_embedding.weight"),
        (r"\.token_embedding\.", ".text_model.embeddings.token_embedding."),
        (r"\.ln_final\.", ".text_model.final_layer_norm."),
        (r"\.text_projection$", ".text_projection.weight"),
    ],
    "geometry": [
        (r"\.encode\.", ".layers."),
        (r"\.img_pre_norm\.", ".vision_layer_norm."),
        (r"\.encode_norm\.", ".output_layer_norm."),
        (r"\.norm\.", ".prompt_layer_norm."),
        *_THREE_NORMS,
        *_LAYER,
    ],
    "encoder": [*_THREE_NORMS, *_LAYER],
    "decoder": [
        (r"\.cross_attn\.", ".vision_cross_attn."),
        (r"\.ca_text\.", ".text_cross_attn."),
        (r"\.norm1\.", ".vision_cross_attn_layer_norm."),
        (r"\.norm2\.", ".self_attn_layer_norm."),
        (r"\.norm3\.", ".mlp_layer_norm."),
        (r"\.catext_norm\.", ".text_cross_attn_layer_norm."),
        (r"\.bbox_embed\.", ".box_head."),
        (r"\.boxRPB_embed_", ".box_rpb_embed_"),
        (r"\.presence_token_head\.", ".presence_head."),
        (r"\.presence_token_out_norm\.", ".presence_layer_norm."),
        (r"^detr_decoder\.norm\.", "detr_decoder.output_layer_norm."),
        _STEPS,
        *_LAYER,
    ],
    "masks": [
        (r"\.mask_predictor\.mask_embed\.", ".mask_embedder."),
        (r"\.cross_attend_prompt\.", ".prompt_cross_attn."),
        (r"\.cross_attn_norm\.", ".prompt_cross_attn_norm."),
        (r"\.semantic_seg_head\.", ".semantic_projection."),
        (r"\.instance_seg_head\.", ".instance_projection."),
        (r"\.out_proj\.", ".o_proj."),
    ],
    "scoring": [
        (r"\.prompt_mlp\.out_norm\.", ".text_mlp_out_norm."),
        (r"\.prompt_mlp\.", ".text_mlp."),
        (r"\.prompt_proj\.", ".text_proj."),
        (r"\.hs_proj\.", ".query_proj."),
        _STEPS,
    ],
}
_JOINED = re.compile(r"\.(qkv_proj\.|in_proj_)(weight|bias)$")


def to_transformers(detector: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Weights under transformers' names; `detector` has Meta's names without `detector.`, and tensors as values.

    Query, key and value are one matrix there and three here; the learnt positions lose the row of a class token that
    SAM 3 has no use for; the text projection is turned. Names without a counterpart pass unchanged.
    """
    for key, tensor in detector.items():
        name = _renamed(key)
        joined = _JOINED.search(name)
        if joined:
            stem = name[: joined.start()]
            for letter, part in zip("qkv", tensor.chunk(3, 0), strict=True):
                yield f"{stem}.{letter}_proj.{joined[2]}", part
        elif name.endswith(".position_embeddings"):
            yield name, tensor[:, 1:]
        elif name == "text_encoder.text_projection.weight":
            yield name, tensor.T
        else:
            yield name, tensor


def _renamed(key: str) -> str:
    for there, here, rules in _BEGINNINGS:
        if key.startswith(there):
            name = here + key[len(there) :]
            for pattern, replacement in _RULES[rules]:
                name = re.sub(pattern, replacement, name)
            return name
    return key
