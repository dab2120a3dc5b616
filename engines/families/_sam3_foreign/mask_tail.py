"""Where a decoder's masks come from, if it makes them at the size of the picture: the small logits before that."""

from __future__ import annotations

from pathlib import Path

from engines.bundle import TensorSpec
from engines.graph_nodes import GraphNodes, Node, open_nodes

_AS_WE_DO: dict[str, tuple[str | int, ...]] = {
    "mode": ("linear",),
    "coordinate_transformation_mode": ("half_pixel", "pytorch_half_pixel"),
    "antialias": (0,),
    "exclude_outside": (0,),
    "keep_aspect_ratio_policy": ("stretch",),
}
_BY_DEFAULT: dict[str, str | int] = {"mode": "nearest"}
"""What ONNX takes where an attribute is not given; for all others, the first of those above."""


def small_logits(path: Path, masks: str = "masks") -> TensorSpec | None:
    """The float tensor [N, 1, h, w] that the graph only stretches to the picture and cuts at 0, or at a probability of
    a half, to make `masks`; None where it does anything else."""
    with open_nodes(path) as nodes:
        name = _stretched_and_cut(nodes, masks)
    return TensorSpec(name, "float32", (None, 1, None, None)) if name else None


def _stretched_and_cut(nodes: GraphNodes, masks: str) -> str | None:
    cut = nodes.maker(masks)
    if cut is None or cut.operation != "Greater":
        return None
    before, threshold = nodes.maker(cut.inputs[0]), nodes.constant(cut.inputs[1])
    if before is not None and before.operation == "Sigmoid":
        before = nodes.maker(before.inputs[0]) if threshold == 0.5 else None
    elif threshold != 0:
        return None
    return before.inputs[0] if before is not None and _stretches(before) else None


def _stretches(node: Node) -> bool:
    """Bilinear, by the middles of pixels, as `engines.upsampling` does it."""
    if node.operation != "Resize":
        return False
    return all(
        node.attributes.get(name, _BY_DEFAULT.get(name, wanted[0])) in wanted for name, wanted in _AS_WE_DO.items()
    )
