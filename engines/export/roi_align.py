"""ROI align as two matrix products, which every runtime has; equal to torchvision's for boxes inside the image."""

from __future__ import annotations

import torch
from torch import Tensor


def roi_align(features: Tensor, boxes_xyxy: Tensor, size: int) -> Tensor:
    """Mean of bilinear samples in each of `size` × `size` parts of each box, as many samples as cells the part covers.

    Features [1, C, g, g] of one image and boxes [R, 4] in its cells → [R, C, size, size].
    """
    n_channels, height, width = features.shape[1:]
    across = _weights(boxes_xyxy[:, 0], boxes_xyxy[:, 2], width, size)
    down = _weights(boxes_xyxy[:, 1], boxes_xyxy[:, 3], height, size)
    # All boxes in one product of two matrices: a batch of no box is one that runtimes refuse to broadcast.
    columns = torch.matmul(features.reshape(n_channels * height, width), across.reshape(-1, width).T)
    columns = columns.reshape(n_channels, height, -1, size).permute(2, 0, 1, 3)
    return torch.matmul(down[:, None], columns)


def _weights(low: Tensor, high: Tensor, n_cells: int, size: int) -> Tensor:
    """[R, size, n_cells]: the share of each cell in each part of the side of a box."""
    part = (high - low).clamp(min=1.0) / size
    n_samples = torch.ceil(part)[:, None, None]
    most = -(-n_cells // size) + 1
    sample = torch.arange(most).float()[None, None]
    start = low[:, None, None] + part[:, None, None] * torch.arange(size).float()[None, :, None]
    at = start + part[:, None, None] * (sample + 0.5) / n_samples
    counts = ((sample < n_samples) & (at >= -1) & (at <= n_cells)).float()
    distance = at.clamp(0, n_cells - 1)[..., None] - torch.arange(n_cells).float()
    bilinear = (1 - distance.abs()).clamp(min=0)
    return (bilinear * counts[..., None]).sum(dim=2) / n_samples
