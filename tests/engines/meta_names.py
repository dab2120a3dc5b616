"""The names that Meta's `sam3.pt` gives to its weights, from those that transformers gives to the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_VISION = "backbone.vision_backbone"
_TEXT = "backbone.language_backbone"
_ENDS = {
    "vision_encoder.backbone.embeddings.position_embeddings": f"{_VISION}.trunk.pos_embed",
    "vision_encoder.backbone.embeddings.patch_embeddings.projection": f"{_VISION}.trunk.patch_embed.proj",
    "vision_encoder.backbone.layer_norm": f"{_VISION}.trunk.ln_pre",
    "text_encoder.text_model.embeddings.token_embedding": f"{_TEXT}.encoder.token_embedding",
    "text_encoder.text_model.embeddings.position_embedding.weight": f"{_TEXT}.encoder.positional_embedding",
    "text_encoder.text_model.final_layer_norm": f"{_TEXT}.encoder.ln_final",
    "text_encoder.text_projection.weight": f"{_TEXT}.encoder.text_projection",
    "text_projection": f"{_TEXT}.resizer",
    "geometry_encoder.vision_layer_norm": "geometry_encoder.img_pre_norm",
    "geometry_encoder.prompt_layer_norm": "geometry_encoder.norm",
    "geometry_encoder.output_layer_norm": "geometry_encoder.encode_norm",
    "detr_decoder.output_layer_norm": "transformer.decoder.norm",
    "detr_decoder.presence_layer_norm": "transformer.decoder.presence_token_out_norm",
    "mask_decoder.prompt_cross_attn_norm": "segmentation_head.cross_attn_norm",
    "mask_decoder.semantic_projection": "segmentation_head.semantic_seg_head",
    "mask_decoder.instance_projection": "segmentation_head.instance_seg_head",
    "dot_product_scoring.text_mlp_out_norm": "dot_prod_scoring.prompt_mlp.out_norm",
    "dot_product_scoring.text_proj": "dot_prod_scoring.prompt_proj",
    "dot_product_scoring.query_proj": "dot_prod_scoring.hs_proj",
}
_BEGINNINGS = {
    "vision_encoder.backbone.layers": f"{_VISION}.trunk.blocks",
    "vision_encoder.neck.fpn_layers": f"{_VISION}.convs",
    "text_encoder.text_model.encoder.layers": f"{_TEXT}.encoder.transformer.resblocks",
    "geometry_encoder.layers": "geometry_encoder.encode",
    "detr_encoder": "transformer.encoder",
    "detr_decoder.box_head": "transformer.decoder.bbox_embed",
    "detr_decoder.presence_head": "transformer.decoder.presence_token_head",
    "detr_decoder.box_rpb_embed_x": "transformer.decoder.boxRPB_embed_x",
    "detr_decoder.box_rpb_embed_y": "transformer.decoder.boxRPB_embed_y",
    "detr_decoder": "transformer.decoder",
    "mask_decoder.mask_embedder": "segmentation_head.mask_predictor.mask_embed",
    "mask_decoder.prompt_cross_attn": "segmentation_head.cross_attend_prompt",
    "mask_decoder": "segmentation_head",
    "dot_product_scoring.text_mlp": "dot_prod_scoring.prompt_mlp",
}
_INSIDE_OF_LAYERS: dict[str, list[tuple[str, str]]] = {
    "vision_encoder.backbone": [
        ("attention.o_proj", "attn.proj"),
        ("layer_norm1", "norm1"),
        ("layer_norm2", "norm2"),
    ],
    "vision_encoder.neck": [
        ("0.scale_layers.0", "0.dconv_2x2_0"),
        ("0.scale_layers.2", "0.dconv_2x2_1"),
        ("scale_layers.0", "dconv_2x2"),
        ("proj1", "conv_1x1"),
        ("proj2", "conv_3x3"),
    ],
    "text_encoder": [
        ("self_attn.out_proj", "attn.out_proj"),
        ("layer_norm", "ln_"),
        ("mlp.fc1", "mlp.c_fc"),
        ("mlp.fc2", "mlp.c_proj"),
    ],
    "detr_decoder": [
        ("vision_cross_attn_layer_norm", "norm1"),
        ("text_cross_attn_layer_norm", "catext_norm"),
        ("self_attn_layer_norm", "norm2"),
        ("mlp_layer_norm", "norm3"),
        ("vision_cross_attn", "cross_attn"),
        ("text_cross_attn", "ca_text"),
    ],
    "detr_encoder": [("cross_attn", "cross_attn_image"), ("layer_norm", "norm")],
    "geometry_encoder": [("cross_attn", "cross_attn_image"), ("layer_norm", "norm")],
}
_EVERYWHERE = [("o_proj", "out_proj"), ("mlp.fc1", "linear1"), ("mlp.fc2", "linear2")]
_THREE = re.compile(r"^(.*\.)([qkv])_proj\.(weight|bias)$")


def as_meta(state: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of a transformers model as the file of Meta holds them: joined, turned, with their names there."""
    found: dict[str, Any] = {}
    for name, tensor in state.items():
        one_of_three = _THREE.match(name)
        if one_of_three is None:
            found[f"detector.{meta_name(name)}"] = _as_there(name, tensor)
        elif one_of_three[2] == "q":
            found[f"detector.{meta_name(_joined(*one_of_three.group(1, 3)))}"] = _joined_tensor(state, one_of_three)
    return found


def _as_there(name: str, tensor: Any) -> Any:
    import torch

    if name.endswith(".position_embeddings"):  # with a row for a class token, of which nothing may be used
        return torch.cat((torch.full_like(tensor[:, :1], 7.0), tensor), dim=1)
    return tensor.T.contiguous() if name == "text_encoder.text_projection.weight" else tensor


def _joined_tensor(state: Mapping[str, Any], found: re.Match[str]) -> Any:
    import torch

    return torch.cat([state[f"{found[1]}{letter}_proj.{found[3]}"] for letter in "qkv"])


def _joined(attention: str, kind: str) -> str:
    """Query, key and value are one weight there; `attention` ends in a dot."""
    if attention.startswith("vision_encoder"):
        return f"{attention.removesuffix('attention.')}attn.qkv.{kind}"
    if attention.startswith("text_encoder"):
        return f"{attention.removesuffix('self_attn.')}attn.in_proj_{kind}"
    return f"{attention}in_proj_{kind}"


def meta_name(name: str) -> str:
    for here, there in _ENDS.items():
        if name == here or name.startswith(f"{here}."):
            return there + name[len(here) :]
    renamed = name
    for part, rules in _INSIDE_OF_LAYERS.items():
        if name.startswith(part):
            for here, there in rules:
                if here in renamed:
                    renamed = renamed.replace(here, there)
                    break
    if not name.startswith(("vision_encoder", "text_encoder")):
        for here, there in _EVERYWHERE:
            renamed = renamed.replace(here, there)
        renamed = re.sub(r"\.layer(\d)\.", lambda found: f".layers.{int(found[1]) - 1}.", renamed)
    for here, there in _BEGINNINGS.items():
        if renamed.startswith(f"{here}."):
            return there + renamed[len(here) :]
    return renamed
