"""One part of the model as an ONNX file."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engines.bundle import GraphSpec, TensorSpec
from engines.export.checkpoint import CONTEXT_LENGTH, LITE_TEXT, PATCH, Checkpoint, load_part
from engines.export.extra import import_or_explain

OPSET = 18
EXTERNAL_ABOVE_BYTES = 100_000_000
"""Weights above this lie in a file of their own: one ONNX file cannot hold more than 2 GB."""
_MOST_OF_ONE_AXIS = 64


def build_module(checkpoint: Checkpoint, role: str, image_size: int, n_instances: int, half: bool = False) -> Any:
    """The torch module of a part, ready to run or export; with `half`, its large matrices are float16."""
    torch = import_or_explain("torch")
    dtype = torch.float16 if half else torch.float32
    model = load_part(checkpoint, role, image_size)
    if half:
        halve(model)
    module = _part(model, checkpoint.kind, role, image_size // PATCH, n_instances, dtype)
    return module.requires_grad_(False).eval()


def halve(model: Any) -> None:
    """Matrices to float16; what decides about boxes and scores, and the norms, stay float32."""
    model.half()
    for name, module in model.named_modules():
        if "norm" in name.rpartition(".")[2] or name.endswith(_KEPT_FLOAT32):
            module.float()


_KEPT_FLOAT32 = (
    "box_rpb_embed_x",
    "box_rpb_embed_y",
    "box_head",
    "presence_head",
    "ref_point_head",
    "dot_product_scoring",
    "mask_embedder",
    "boxes_direct_project",
    "boxes_pool_project",
    "boxes_pos_enc_project",
)


def feature_width(checkpoint: Checkpoint) -> int:
    """Number of channels of the features that go between the graphs."""
    return checkpoint.setting("detr_encoder_config", "hidden_size", 256)


def n_queries(checkpoint: Checkpoint) -> int:
    """How many instances the model can answer at most."""
    return checkpoint.setting("detr_decoder_config", "num_queries", 200)


def export_graph(module: Any, role: str, spec: GraphSpec, path: Path) -> None:
    """Write the module as `path`, with its weights beside it where they are large. Raises OSError."""
    torch = import_or_explain("torch")
    import_or_explain("onnxscript")
    sizes = sum(tensor.numel() * tensor.element_size() for tensor in module.state_dict().values())
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            module,
            example_inputs(role, spec),
            input_names=[tensor.name for tensor in spec.inputs],
            output_names=[tensor.name for tensor in spec.outputs],
            dynamic_shapes=_dynamic_shapes(role, spec),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
        _forget_sources(program.model)
        program.save(str(path), external_data=sizes > EXTERNAL_ABOVE_BYTES)


def graph_spec(role: str, image_size: int, width: int, n_instances: int, features: str = "float32") -> GraphSpec:
    """The tensors of a part as `docs/bundle.md` has them; `features` is the dtype of an encoded image."""
    grid = image_size // PATCH
    batch = None if role == "vision" else 1
    levels = [(f"features_{n}", (batch, width, grid * scale, grid * scale)) for n, scale in enumerate((4, 2, 1))]
    encoded = tuple(TensorSpec(name, features, shape) for name, shape in levels)
    phrase = TensorSpec("text_features", "float32", (None, CONTEXT_LENGTH, width))
    if role == "vision":
        image = TensorSpec("image", "uint8", (None, 3, image_size, image_size))
        return GraphSpec(role, "vision.onnx", (image,), encoded)
    if role == "text":
        ids = TensorSpec("input_ids", "int32", (None, CONTEXT_LENGTH))
        return GraphSpec(role, "text.onnx", (ids,), (phrase,))
    prompts = (
        phrase,
        TensorSpec("text_mask", "bool", (None, CONTEXT_LENGTH)),
        TensorSpec("boxes", "float32", (None, None, 4)),
        TensorSpec("labels", "int32", (None, None)),
    )
    answers = (
        TensorSpec("logits", "float32", (None, n_instances)),
        TensorSpec("presence", "float32", (None, 1)),
        TensorSpec("boxes_xyxy", "float32", (None, n_instances, 4)),
        TensorSpec("mask_logits", "float32", (None, n_instances, 4 * grid, 4 * grid)),
    )
    return GraphSpec(role, "decoder.onnx", (*encoded, *prompts), answers)


def example_inputs(role: str, spec: GraphSpec) -> tuple[Any, ...]:
    """Tensors of the right shapes: 2 images or phrases, 3 boxes."""
    torch = import_or_explain("torch")
    generator = torch.Generator().manual_seed(0)
    made = []
    for tensor in spec.inputs:
        shape = [size if size is not None else 2 + axis for axis, size in enumerate(tensor.shape)]
        values = torch.rand(shape, generator=generator)
        if tensor.name == "input_ids":
            values = values * 49000
        made.append(values.to(getattr(torch, tensor.dtype)))
    return tuple(made)


def _part(model: Any, kind: str, role: str, grid: int, n_instances: int, dtype: Any) -> Any:
    if role == "vision":
        from engines.export.vision_graph import VisionGraph

        return VisionGraph(model.vision_encoder, dtype)
    if role == "text":
        from engines.export.text_graph import LiteTextGraph, TextGraph

        graph = LiteTextGraph if kind == LITE_TEXT else TextGraph
        return graph(model.text_encoder, model.text_projection, CONTEXT_LENGTH)
    from engines.export.decoder_graph import DecoderGraph

    return DecoderGraph(model, grid, n_instances, dtype)


def _forget_sources(model: Any) -> None:
    """The exporter notes for each node the lines of code it comes from: paths of this machine, and half the file."""
    for node in model.graph.all_nodes():
        node.metadata_props.clear()
        node.doc_string = None
        for value in node.outputs:
            value.metadata_props.clear()
    for owner in (model, model.graph):
        owner.metadata_props.clear()
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        value.metadata_props.clear()


def _dynamic_shapes(role: str, spec: GraphSpec) -> tuple[Any, ...]:
    torch = import_or_explain("torch")
    names = ("images" if role == "vision" else "phrases", "boxes")
    axes = [torch.export.Dim(name, min=1, max=_MOST_OF_ONE_AXIS) for name in names]
    return tuple(
        {axis: axes[axis] for axis, size in enumerate(tensor.shape) if size is None} or None for tensor in spec.inputs
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter reports its progress and its doubts about itself; neither helps a person here."""
    levels = {name: logging.getLogger(name).level for name in ("torch.onnx", "onnxscript", "onnx_ir", "torch.export")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in levels:
                logging.getLogger(name).setLevel(logging.ERROR)
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
