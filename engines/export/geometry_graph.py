"""The geometry encoder, a part of the decoder graph: exemplar boxes → tokens that stand beside those of the phrase."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.export.layers import apply, attend, corners, layer_norm, mask_bias, sine_code, sine_frequencies
from engines.export.roi_align import roi_align


class GeometryGraph(nn.Module):
    """Boxes [P, N, 4] cxcywh and labels [P, N] → tokens [P, 1 + N, C] and which of them count, bool [P, 1 + N].

    The first is the CLS token; it always counts, as in the code that SAM 3 was trained with.
    """

    def __init__(self, encoder: Any, grid: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.grid = grid
        self.register_buffer("frequencies", sine_frequencies(encoder.hidden_size // 2), persistent=False)

    def forward(
        self, boxes: Tensor, labels: Tensor, features: Tensor, cells: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`features` [1, C, g, g], `cells` the same as [1, g², C], `positions` [1, g², C]."""
        valid = labels >= 0
        always = labels.new_ones((labels.shape[0], 1), dtype=torch.bool)
        counts = torch.cat((always, valid), dim=1)
        cls = self.encoder.cls_embed.weight[None].expand(boxes.shape[0], -1, -1)
        tokens = torch.cat((cls, self._box_tokens(boxes, labels, features).to(cls.dtype)), dim=1)
        tokens = layer_norm(self.encoder.prompt_layer_norm, apply(self.encoder.final_proj, tokens))
        for layer in self.encoder.layers:
            tokens = self._layer(layer, tokens, mask_bias(counts), cells, positions)
        return layer_norm(self.encoder.output_layer_norm, tokens), counts

    def _box_tokens(self, boxes: Tensor, labels: Tensor, features: Tensor) -> Tensor:
        """What is inside each box, where it is, and whether it is wanted: float32 [P, N, C]."""
        cx, cy, width, height = boxes.unbind(-1)
        place = (sine_code(cy, self.frequencies), sine_code(cx, self.frequencies), height[..., None], width[..., None])
        token = apply(self.encoder.boxes_direct_project, boxes).float() + self._content(boxes, features)
        token = token + apply(self.encoder.boxes_pos_enc_project, torch.cat(place, dim=-1)).float()
        return token + self.encoder.label_embed(labels.clamp(min=0)).float()

    def _content(self, boxes: Tensor, features: Tensor) -> Tensor:
        """The convolution of the whole box sample is one matrix product."""
        n_phrases, n_boxes = boxes.shape[:2]
        normed = layer_norm(self.encoder.vision_layer_norm, features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        inside = corners(boxes).clamp(0.0, 1.0) * self.grid
        sample = roi_align(normed.float(), inside.reshape(-1, 4), self.encoder.roi_size)
        kernel = self.encoder.boxes_pool_project
        pooled = functional.linear(sample.flatten(1), kernel.weight.float().flatten(1), kernel.bias.float())
        return pooled.reshape(n_phrases, n_boxes, kernel.weight.shape[0])

    def _layer(self, layer: Any, tokens: Tensor, bias: Tensor, cells: Tensor, positions: Tensor) -> Tensor:
        normed = layer_norm(layer.layer_norm1, tokens)
        tokens = tokens + attend(layer.self_attn, normed, normed, normed, bias)
        normed = layer_norm(layer.layer_norm2, tokens)
        tokens = tokens + attend(layer.cross_attn, normed, cells + positions, cells)
        result: Tensor = tokens + layer.mlp(layer_norm(layer.layer_norm3, tokens))
        return result
