"""Layers that the three graphs share, written with operations that every runtime has.

Weights stay in the modules that the checkpoint was loaded into; only the arithmetic stands here. In a half-precision
graph the steps that lose the most there (normalisation, softmax, attention times values) are computed in float32.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

MASKED = -1e4
"""Added to the attention of what must not be seen; finite in float16, and softmax makes it exactly 0."""
MOST_SCORES = 3_500_000
"""Of one head at a time: with the sixteen of vision, a few hundred megabytes for a picture of any size."""


def apply(module: nn.Module, x: Tensor) -> Tensor:
    """`module(x)` in the dtype of the module's weights."""
    result: Tensor = module(x.to(next(module.parameters()).dtype))
    return result


def layer_norm(layer: nn.LayerNorm, x: Tensor) -> Tensor:
    """LayerNorm over the last axis, computed in float32; answers in the dtype of `x`."""
    shape = list(layer.normalized_shape)
    return functional.layer_norm(x.float(), shape, layer.weight.float(), layer.bias.float(), layer.eps).to(x.dtype)


def group_norm(layer: nn.GroupNorm, x: Tensor) -> Tensor:
    """GroupNorm of [B, C, H, W], computed in float32; answers in the dtype of `x`."""
    weight, bias = layer.weight.float(), layer.bias.float()
    return functional.group_norm(x.float(), layer.num_groups, weight, bias, layer.eps).to(x.dtype)


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """Softmax(query · keyᵀ + bias) · value of [B, heads, length, size]; the query is already scaled.

    The scores of a whole picture with itself would fill gigabytes: without a bias, they are computed for a part of the
    queries at a time.
    """
    n_scores = query.shape[2] * key.shape[2]
    if bias is not None or n_scores <= MOST_SCORES:
        return _attention(query, key, value, bias)
    n_parts = -(-n_scores // MOST_SCORES)
    rows = -(-query.shape[2] // n_parts)
    parts = [query[:, :, start : start + rows] for start in range(0, query.shape[2], rows)]
    return torch.cat([_attention(part, key, value, None) for part in parts], dim=2)


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    scores = torch.matmul(query, key.transpose(2, 3)).float()
    weights = torch.softmax(scores if bias is None else scores + bias, dim=-1)
    return torch.matmul(weights, value.float()).to(query.dtype)


def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multi-head attention with the projections of a transformers module: [B, L, C] → [B, L, C].

    `bias` is float32, broadcast over [B, heads, L, S].
    """
    n_heads = getattr(module, "num_attention_heads", None) or module.num_heads
    q = split_heads(module.q_proj(query), n_heads)
    k = split_heads(module.k_proj(key), n_heads)
    v = split_heads(module.v_proj(value), n_heads)
    mixed = attention(q * q.shape[-1] ** -0.5, k, v, bias)
    projection = module.o_proj if hasattr(module, "o_proj") else module.out_proj
    result: Tensor = projection(join_heads(mixed))
    return result


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """[B, L, C] → [B, heads, L, C / heads]."""
    batch, length, width = x.shape
    return x.reshape(batch, length, n_heads, width // n_heads).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[B, heads, L, size] → [B, L, heads · size]."""
    batch, n_heads, length, size = x.shape
    return x.transpose(1, 2).reshape(batch, length, n_heads * size)


def mask_bias(valid: Tensor) -> Tensor:
    """Bool [P, L], True for what may be seen → float32 [P, 1, 1, L] to add to attention scores."""
    return (1.0 - valid.float())[:, None, None, :] * MASKED


def sine_frequencies(n_features: int) -> Tensor:
    """Float32 [n_features]: what a coordinate is divided by, in pairs for sine and cosine."""
    steps = torch.arange(n_features // 2).float() * 2 / n_features
    return (10000**steps).repeat_interleave(2)


def sine_code(coordinate: Tensor, frequencies: Tensor) -> Tensor:
    """[...] in units of the image → [..., len(frequencies)], sine and cosine in turn."""
    angles = (coordinate * (2 * math.pi))[..., None] / frequencies
    return torch.stack((angles[..., 0::2].sin(), angles[..., 1::2].cos()), dim=-1).flatten(-2)


def position_table(grid: int, width: int) -> Tensor:
    """Float32 [1, grid², width]: the code of each cell of the image, y first; cells count from 1, as in training."""
    cells = torch.arange(1, grid + 1).float() / (grid + 1e-6)
    code = sine_code(cells, sine_frequencies(width // 2))
    y = code[:, None].expand(grid, grid, -1)
    x = code[None].expand(grid, grid, -1)
    return torch.cat((y, x), dim=-1).reshape(1, grid * grid, width)


def corners(cxcywh: Tensor) -> Tensor:
    """Boxes [..., 4] as centre and size → corners x1 y1 x2 y2."""
    centre, size = cxcywh[..., :2], cxcywh[..., 2:]
    return torch.cat((centre - size / 2, centre + size / 2), dim=-1)
