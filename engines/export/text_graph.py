"""The text graph: the tokens of a phrase → its features, for SAM 3's own text encoder and for LiteText's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from engines.export.layers import MASKED, attend, layer_norm

END_TOKEN = 49407


class TextGraph(nn.Module):
    """`input_ids` int32 [P, 32] → `text_features` [P, 32, C]: CLIP's encoder, where a token sees those before it.

    What follows the end token cannot change the tokens before, so the padding needs no mask here.
    """

    def __init__(self, encoder: Any, projection: nn.Linear, context_length: int) -> None:
        super().__init__()
        self.encoder = encoder.text_model
        self.projection = projection
        later = torch.triu(torch.full((context_length, context_length), MASKED), 1)
        self.register_buffer("causal", later[None, None], persistent=False)
        positions = self.encoder.embeddings.position_embedding.weight.detach()
        self.register_buffer("positions", positions[None, :context_length].clone(), persistent=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        """See the class."""
        x = self.encoder.embeddings.token_embedding(input_ids) + self.positions
        for layer in self.encoder.encoder.layers:
            x = transformer_layer(layer, x, self.causal)
        features: Tensor = self.projection(layer_norm(self.encoder.final_layer_norm, x))
        return features.float()


class LiteTextGraph(nn.Module):
    """The same tensors with LiteText's encoder, where every token sees every other up to the end token."""

    def __init__(self, encoder: Any, projection: nn.Linear, context_length: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.projection = projection
        positions = encoder.embeddings.position_embedding(context_length).detach()
        self.register_buffer("positions", positions.clone(), persistent=False)
        before = torch.triu(torch.ones(context_length, context_length), 1)
        self.register_buffer("before", before, persistent=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        """See the class."""
        n_ends_before = torch.matmul((input_ids == END_TOKEN).float(), self.before)
        bias = (n_ends_before > 0.5).float()[:, None, None, :] * MASKED
        x = self.encoder.embeddings.token_embedding(input_ids) + self.positions
        for layer in self.encoder.layers:
            x = transformer_layer(layer, x, bias) if hasattr(layer, "self_attn") else layer(x)
        features: Tensor = self.projection(layer_norm(self.encoder.final_layer_norm, x))
        return features.float()


def transformer_layer(layer: Any, x: Tensor, bias: Tensor) -> Tensor:
    """Self-attention and MLP, each after a norm and added to what it read."""
    normed = layer_norm(layer.layer_norm1, x)
    x = x + attend(layer.self_attn, normed, normed, normed, bias)
    result: Tensor = x + layer.mlp(layer_norm(layer.layer_norm2, x))
    return result
