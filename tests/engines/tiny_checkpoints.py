"""Small SAM 3 and SAM 3 LiteText checkpoints with random weights, as transformers writes them, and Meta's file."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from meta_names import as_meta
from sam3_shapes import BUNDLE

from engines.export.checkpoint import LITE_TEXT, SAM3, Checkpoint, find_checkpoint, model_classes

SIDE = 112
GRID = SIDE // 14
WIDTH = 32
N_QUERIES = 12
CONTEXT = 32
_DETR = {"hidden_size": WIDTH, "num_attention_heads": 4, "intermediate_size": 48, "dropout": 0.0}
_SETTINGS: dict[str, Any] = {
    "vision_config": {
        "model_type": "sam3_vision_model",
        "fpn_hidden_size": WIDTH,
        "backbone_feature_sizes": [[GRID * 4] * 2, [GRID * 2] * 2, [GRID] * 2],
        "backbone_config": {
            "model_type": "sam3_vit_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": SIDE,
            "window_size": 3,  # does not divide the grid of 8
            "global_attn_indexes": [1],
            "pretrain_image_size": 56,
        },
    },
    "geometry_encoder_config": {**_DETR, "num_layers": 1},
    "detr_encoder_config": {**_DETR, "num_layers": 2},
    "detr_decoder_config": {**_DETR, "num_queries": N_QUERIES},
    "mask_decoder_config": {"hidden_size": WIDTH, "num_attention_heads": 4},
}
_TEXT = {"hidden_size": 32, "intermediate_size": 64, "projection_dim": 16, "num_attention_heads": 2}
_TEXTS = {
    SAM3: {**_TEXT, "model_type": "clip_text_model", "num_hidden_layers": 2, "max_position_embeddings": CONTEXT},
    LITE_TEXT: {**_TEXT, "num_hidden_layers": 3, "max_position_embeddings": 77},
}


def random_model(kind: str = SAM3, n_decoder_layers: int = 2, seed: int = 0) -> Any:
    """A transformers model in which text, boxes and picture all matter, and some instances score above 0.5."""
    import torch

    configuration, model_class = model_classes(kind)
    settings = json.loads(json.dumps(_SETTINGS))
    settings["detr_decoder_config"]["num_layers"] = n_decoder_layers
    config = configuration(**settings, text_config=_TEXTS[kind])
    model = model_class(config).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for name, values in model.state_dict().items():
        if values.dtype.is_floating_point:
            _fill(name, values, generator)
    return model


def _fill(name: str, values: Any, generator: Any) -> None:
    """Activations stay near 1 from layer to layer."""
    mean, deviation = 0.0, 1.0
    if name.endswith("running_var"):
        mean, deviation = 1.0, 0.1
    elif name.endswith("presence_head.layer3.bias"):
        mean, deviation = 3.0, 0.1
    elif name.endswith(("bias", "running_mean")):
        deviation = 0.05
    elif values.dim() == 1:
        mean, deviation = 1.0, 0.1
    elif name.endswith("embed.weight") or "embeddings." in name:
        deviation = 0.5 if "projection" not in name else 1 / math.sqrt(values[0].numel())
    elif "reference_points" not in name:
        deviation = 1 / math.sqrt(values[0].numel())
    scale = 6.0 if name.endswith("query_proj.weight") else 1.0
    values.normal_(mean, deviation * scale, generator=generator)


def write_folder(model: Any, folder: Path) -> Path:
    """What a download from Hugging Face holds."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    model.save_pretrained(folder)
    shutil.copy(BUNDLE / "tokenizer.json", folder)
    return folder


def write_meta(model: Any, folder: Path) -> Path:
    """`sam3.pt` with the tokenizer beside it; `pixels.` stands for the tracker's weights, which are not ours."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    state = {**as_meta(model.state_dict()), "tracker.pixels.weight": torch.ones(2)}
    torch.save(state, folder / "sam3.pt")
    shutil.copy(BUNDLE / "tokenizer.json", folder)
    return folder / "sam3.pt"


def found_as_tiny(meta_file: Path, folder: Path) -> Checkpoint:
    """Meta's file has no configuration, so that of the folder stands in for the full size."""
    return replace(find_checkpoint(meta_file), settings=find_checkpoint(folder).settings)
