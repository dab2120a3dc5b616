"""The vision graph: a square picture → features at three scales."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from engines.export.layers import apply, attention, join_heads, layer_norm, split_heads


class VisionGraph(nn.Module):
    """`image` uint8 [B, 3, S, S] → `features_0/1/2` [B, C, 4g, 4g], [B, C, 2g, 2g], [B, C, g, g] with g = S / 14.

    It takes over the encoder it is given: the rows of its query and key projections are reordered, so that a rotation
    by position turns the first half of a head against the second half, without interleaving.
    """

    def __init__(self, encoder: Any, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.backbone = encoder.backbone
        self.scales = nn.ModuleList(encoder.neck.fpn_layers[:3])
        config = encoder.backbone.config
        self.dtype = dtype
        self.n_heads = int(config.num_attention_heads)
        self.grid = int(config.image_size) // int(config.patch_size)
        self.window = int(config.window_size)
        _split_rotary_halves(self.backbone.layers, self.n_heads)
        positions = tile_positions(self.backbone.embeddings.position_embeddings.detach(), self.grid)
        self.register_buffer("positions", positions.to(dtype), persistent=False)
        self._register_rotations(config)

    def _register_rotations(self, config: Any) -> None:
        size = int(config.hidden_size) // self.n_heads
        theta = float(config.rope_parameters["rope_theta"])
        for name, grid in (("window", self.window), ("image", self.grid)):
            cosine, sine = rotations(grid, size, theta, self.window / grid)
            self.register_buffer(f"cosine_{name}", cosine, persistent=False)
            self.register_buffer(f"sine_{name}", sine, persistent=False)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """See the class."""
        pixels = (image.float() / 127.5 - 1.0).to(self.dtype)
        x = self.backbone.embeddings.patch_embeddings(pixels) + self.positions
        x = layer_norm(self.backbone.layer_norm, x)
        for layer in self.backbone.layers:
            x = x + self._attend(layer, layer_norm(layer.layer_norm1, x))
            x = x + layer.mlp(layer_norm(layer.layer_norm2, x))
        features = x.transpose(1, 2).reshape(x.shape[0], x.shape[2], self.grid, self.grid)
        return tuple(apply(scale, features) for scale in self.scales)

    def _attend(self, layer: Any, x: Tensor) -> Tensor:
        if layer.window_size == 0:
            return self._rotary_attention(layer.attention, x, self.cosine_image, self.sine_image)
        windows = self._rotary_attention(layer.attention, self._cut(x), self.cosine_window, self.sine_window)
        return self._join(windows, x.shape[0])

    def _rotary_attention(self, module: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        query = rotate(split_heads(module.q_proj(x), self.n_heads), cosine, sine)
        key = rotate(split_heads(module.k_proj(x), self.n_heads), cosine, sine)
        value = split_heads(module.v_proj(x), self.n_heads)
        mixed = attention(query * query.shape[-1] ** -0.5, key, value)
        result: Tensor = module.o_proj(join_heads(mixed))
        return result

    @property
    def _n_windows(self) -> int:
        return -(-self.grid // self.window)

    def _cut(self, x: Tensor) -> Tensor:
        """[B, g², C] → [B · windows, window², C]; a last window that the grid does not fill is filled with zeros."""
        batch, _, width = x.shape
        n, window, missing = self._n_windows, self.window, self._n_windows * self.window - self.grid
        cells = x.reshape(batch, self.grid, self.grid, width)
        if missing:
            cells = functional.pad(cells, (0, 0, 0, missing, 0, missing))
        cells = cells.reshape(batch, n, window, n, window, width).permute(0, 1, 3, 2, 4, 5)
        return cells.reshape(batch * n * n, window * window, width)

    def _join(self, windows: Tensor, batch: int) -> Tensor:
        n, window, width = self._n_windows, self.window, windows.shape[-1]
        cells = windows.reshape(batch, n, n, window, window, width).permute(0, 1, 3, 2, 4, 5)
        cells = cells.reshape(batch, n * window, n * window, width)
        return cells[:, : self.grid, : self.grid].reshape(batch, self.grid * self.grid, width)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn the first half of each head against the second; float32 inside, answers in the dtype of `x`."""
    first, second = x.float().split(x.shape[-1] // 2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).to(x.dtype)


def rotations(grid: int, head_size: int, theta: float, step: float) -> tuple[Tensor, Tensor]:
    """Cosine and sine, float32 [grid², head_size / 2], of each cell: x turns the first half of the pairs, y the rest.

    `step` is the distance of two cells, so that a grid of any size spans what one window spans.
    """
    half = head_size // 2
    speeds = 1.0 / (theta ** (torch.arange(0, half, 2).float() / half))
    cells = torch.arange(grid).float() * step
    angles = cells[:, None] * speeds
    x = angles[None].expand(grid, grid, -1)
    y = angles[:, None].expand(grid, grid, -1)
    table = torch.cat((x, y), dim=-1).reshape(grid * grid, half)
    return table.cos(), table.sin()


def tile_positions(positions: Tensor, grid: int) -> Tensor:
    """Learnt positions [1, n², C], repeated over a grid of any size: [1, grid², C]."""
    side = round(positions.shape[1] ** 0.5)
    repeats = -(-grid // side)
    tiled = positions.reshape(side, side, -1).tile(repeats, repeats, 1)[:grid, :grid]
    return tiled.reshape(1, grid * grid, -1)


@torch.no_grad()
def _split_rotary_halves(layers: Any, n_heads: int) -> None:
    for layer in layers:
        for projection in (layer.attention.q_proj, layer.attention.k_proj):
            rows = torch.arange(projection.weight.shape[0]).reshape(n_heads, -1)
            order = torch.cat((rows[:, 0::2], rows[:, 1::2]), dim=1).flatten()
            projection.weight = nn.Parameter(projection.weight[order], requires_grad=False)
            projection.bias = nn.Parameter(projection.bias[order], requires_grad=False)
