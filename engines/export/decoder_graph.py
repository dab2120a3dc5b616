"""The decoder graph: the features of one image, and any number of phrases with boxes → the best instances of each."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.export.geometry_graph import GeometryGraph
from engines.export.layers import (
    apply,
    attend,
    corners,
    group_norm,
    layer_norm,
    mask_bias,
    position_table,
    sine_code,
    sine_frequencies,
)


class DecoderGraph(nn.Module):
    """The tensors are those of `docs/bundle.md`: P phrases with N boxes each, the best K instances of each answered.

    `dtype` is that of the features and of the weights; boxes, logits and what they are computed from stay float32.
    """

    def __init__(self, model: Any, grid: int, n_instances: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.grid = grid
        self.n_instances = n_instances
        self.dtype = dtype
        self.geometry = GeometryGraph(model.geometry_encoder, grid)
        self.encoder_layers = model.detr_encoder.layers
        self.decoder = model.detr_decoder
        self.scoring = model.dot_product_scoring
        self.masks = model.mask_decoder
        width = int(model.detr_decoder.hidden_size)
        self.register_buffer("positions", position_table(grid, width).to(dtype), persistent=False)
        self.register_buffer("frequencies", sine_frequencies(width // 2), persistent=False)
        self.register_buffer("cells", torch.arange(grid).float() / grid, persistent=False)

    def forward(
        self,
        features_0: Tensor,
        features_1: Tensor,
        features_2: Tensor,
        text_features: Tensor,
        text_mask: Tensor,
        boxes: Tensor,
        labels: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Answers logits [P, K], presence [P, 1], boxes_xyxy [P, K, 4], mask_logits [P, K, 4g, 4g]."""
        image = features_2.flatten(2).transpose(1, 2)
        geometry, counts = self.geometry(boxes, labels, features_2, image, self.positions)
        prompt = torch.cat((text_features.to(self.dtype), geometry), dim=1)
        valid = torch.cat((text_mask, counts), dim=1)
        memory = self._encode(image, prompt, mask_bias(valid))
        queries, reference, presence = self._decode(memory, prompt, mask_bias(valid))
        logits, rows = torch.topk(self._score(queries, prompt, valid), self.n_instances, dim=1)
        queries = torch.gather(queries, 1, rows[..., None].expand(-1, -1, queries.shape[-1]))
        found = torch.gather(corners(reference), 1, rows[..., None].expand(-1, -1, 4))
        pixels = self._pixels(memory, prompt, mask_bias(valid), (features_1, features_0))
        return logits, presence, found, self._masks(queries, pixels)

    def _encode(self, image: Tensor, prompt: Tensor, bias: Tensor) -> Tensor:
        """The image with the prompt mixed in, [P, g², C]; up to the first look at the prompt all phrases share it."""
        x = image
        for index, layer in enumerate(self.encoder_layers):
            normed = layer_norm(layer.layer_norm1, x)
            placed = normed + self.positions
            x = x + attend(layer.self_attn, placed, placed, normed)
            if index == 0:
                x = x.expand(prompt.shape[0], -1, -1)
            x = x + attend(layer.cross_attn, layer_norm(layer.layer_norm2, x), prompt, prompt, bias)
            x = x + layer.mlp(layer_norm(layer.layer_norm3, x))
        return x

    def _decode(self, memory: Tensor, prompt: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [P, Q, C], their boxes float32 [P, Q, 4] cxcywh, and presence logits float32 [P, 1]."""
        decoder, n_phrases = self.decoder, prompt.shape[0]
        reference = decoder.reference_points.weight.float()[None].expand(n_phrases, -1, -1).sigmoid()
        start = torch.cat((decoder.presence_token.weight, decoder.query_embed.weight), dim=0)
        x = start[None].expand(n_phrases, -1, -1)
        placed = memory + self.positions
        queries = x[:, 1:]
        for layer in decoder.layers:
            x = self._decoder_layer(layer, x, reference, prompt, bias, (placed, memory))
            queries = layer_norm(decoder.output_layer_norm, x[:, 1:])
            shift = apply(decoder.box_head, queries).float()
            reference = (shift + _inverse_sigmoid(reference)).sigmoid()
        presence = apply(decoder.presence_head, layer_norm(decoder.presence_layer_norm, x[:, :1])).float().squeeze(-1)
        limit = decoder.clamp_presence_logit_max_val
        return queries, reference, presence.clamp(-limit, limit)

    def _decoder_layer(
        self, layer: Any, x: Tensor, reference: Tensor, prompt: Tensor, bias: Tensor, image: tuple[Tensor, Tensor]
    ) -> Tensor:
        place = functional.pad(self._place(reference), (0, 0, 1, 0)).to(x.dtype)
        mixed = attend(layer.self_attn, x + place, x + place, x)
        x = layer_norm(layer.self_attn_layer_norm, x + mixed)
        mixed = attend(layer.text_cross_attn, x + place, prompt, prompt, bias)
        x = layer_norm(layer.text_cross_attn_layer_norm, x + mixed)
        mixed = attend(layer.vision_cross_attn, x + place, *image, self._nearness(reference))
        x = layer_norm(layer.vision_cross_attn_layer_norm, x + mixed)
        return layer_norm(layer.mlp_layer_norm, x + layer.mlp(x))

    def _place(self, reference: Tensor) -> Tensor:
        """The code of a query's box: [P, Q, C]."""
        cx, cy, width, height = reference.unbind(-1)
        code = torch.cat([sine_code(side, self.frequencies) for side in (cy, cx, width, height)], dim=-1)
        return apply(self.decoder.ref_point_head, code)

    def _nearness(self, reference: Tensor) -> Tensor:
        """How much a query looks at each cell, by the cell's distance to the sides of its box: [P, heads, 1 + Q, g²].

        The presence token, first, looks at all alike.
        """
        box = corners(reference)
        down = self._distances(box[..., 1::2], self.decoder.box_rpb_embed_y)
        across = self._distances(box[..., 0::2], self.decoder.box_rpb_embed_x)
        return functional.pad((down[..., :, None] + across[..., None, :]).flatten(3), (0, 0, 1, 0))

    def _distances(self, sides: Tensor, embed: nn.Module) -> Tensor:
        """Sides [P, Q, 2] along one axis → [P, heads, Q, g]."""
        distance = (self.cells[None, None, :, None] - sides[:, :, None, :]) * 8
        logarithm = torch.sign(distance) * torch.log2(distance.abs() + 1.0) / math.log2(8)
        return apply(embed, logarithm).float().permute(0, 3, 1, 2)

    def _score(self, queries: Tensor, prompt: Tensor, valid: Tensor) -> Tensor:
        """How well each query fits the prompt as a whole: float32 [P, Q]."""
        scoring = self.scoring
        words = layer_norm(scoring.text_mlp_out_norm, apply(scoring.text_mlp, prompt).float() + prompt.float())
        weight = valid.float()[..., None]
        meaning = (words * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1.0)
        wanted = apply(scoring.text_proj, meaning).float()[..., None]
        fit = torch.matmul(apply(scoring.query_proj, queries).float(), wanted).squeeze(-1) * scoring.scale
        return fit.clamp(-scoring.clamp_max_val, scoring.clamp_max_val)

    def _pixels(self, memory: Tensor, prompt: Tensor, bias: Tensor, finer: tuple[Tensor, Tensor]) -> Tensor:
        """The image in the space of masks: float32 [P, C, (4g)²]."""
        masks = self.masks
        normed = layer_norm(masks.prompt_cross_attn_norm, memory)
        x = memory + attend(masks.prompt_cross_attn, normed, prompt, prompt, bias)
        x = x.transpose(1, 2).reshape(x.shape[0], x.shape[2], self.grid, self.grid)
        pyramid = masks.pixel_decoder
        for features, convolution, norm in zip(finer, pyramid.conv_layers, pyramid.norms, strict=False):
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest") + features
            x = functional.relu(group_norm(norm, convolution(x)))
        projected: Tensor = masks.instance_projection(x)
        return projected.flatten(2).float()

    def _masks(self, queries: Tensor, pixels: Tensor) -> Tensor:
        """Float32 [P, K, 4g, 4g]."""
        side = 4 * self.grid
        embedded = apply(self.masks.mask_embedder, queries).float()
        return torch.matmul(embedded, pixels).reshape(queries.shape[0], self.n_instances, side, side)


def _inverse_sigmoid(share: Tensor) -> Tensor:
    inside = share.clamp(0.0, 1.0)
    return torch.log(inside.clamp(min=1e-3) / (1.0 - inside).clamp(min=1e-3))
