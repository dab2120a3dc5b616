"""SAM 3 files as others export them, with exactly their tensors, made of the three graphs of the small SAM 3 of shapes.

Around our graphs stand a few nodes that rename, turn and cut what goes in and comes out as each of these exporters
does. Nothing of that is the code that reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from contract_graph import BOOL, FLOAT, INT32, INT64, UINT8, Graph, Source
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from sam3_shapes import BUNDLE

NO_BOX = -10
NATIVE_SIDE = 1008


def positions(source: Source) -> NDArray[np.float32]:
    """The code of the coarsest cells, which our decoder holds and others hand from graph to graph."""
    graph = onnx.load(str(source.folder / "decoder.onnx")).graph
    [table] = [tensor for tensor in graph.initializer if tensor.name.endswith("positions")]
    return numpy_helper.to_array(table).reshape(source.grid, source.grid, source.width).transpose(2, 0, 1)[None].copy()


def _vision_outputs(graph: Graph, features: str, codes: str, kept_codes: range, n_levels: int = 3) -> None:
    """Features of all levels, then their position codes."""
    for level in range(n_levels):
        if level < 3:
            graph.then("Identity", f"features_{level}", f"{features}{level}")
        else:
            graph.then("MaxPool", "features_2", f"{features}{level}", kernel_shape=[2, 2], strides=[2, 2])
        graph.gives(f"{features}{level}", FLOAT, graph.source.level(level))
    for level in kept_codes:
        values = positions(graph.source) if level == 2 else np.zeros(graph.source.level(level), dtype=np.float32)
        graph.constant(f"code_{level}", values)
        graph.then("Identity", f"code_{level}", f"{codes}{level}")
        graph.gives(f"{codes}{level}", FLOAT, graph.source.level(level))


def _codes_first(graph: Graph) -> None:
    """samexporter and osam read the outputs by their order."""
    ordered = sorted(graph.graph.output, key=lambda output: (not output.name.startswith("vision"), output.name))
    del graph.graph.output[:]
    graph.graph.output.extend(ordered)


def _take_positions(graph: Graph, name: str) -> None:
    graph.takes(name, FLOAT, graph.source.levels[2])
    [table] = [tensor.name for tensor in graph.graph.initializer if tensor.name.endswith("positions")]
    graph.constant("cells_by_width", np.array([1, graph.source.width, graph.source.grid**2]))
    graph.first("Reshape", f"{name} cells_by_width", "code_rows")
    graph.first("Transpose", "code_rows", "code_cells", perm=[0, 2, 1])
    graph.rewire(table, "code_cells")


def _take_features(graph: Graph, prefix: str) -> None:
    for level, shape in enumerate(graph.source.levels):
        graph.takes(f"{prefix}{level}", FLOAT, shape)
        graph.rewire(f"features_{level}", f"{prefix}{level}")


def _forget_geometry_without_boxes(graph: Graph) -> None:
    """As in transformers: the token that sums up the boxes counts only if there is one."""
    [labelled] = [node for node in graph.users("labels") if node.op_type == "GreaterOrEqual"]
    valid = labelled.output[0]
    [counts] = [node for node in graph.users(valid) if node.op_type == "Concat"]
    at = list(graph.graph.node).index(counts)
    nodes = [
        helper.make_node("Cast", [valid], ["valid_number"], to=INT32),
        helper.make_node("ReduceMax", ["valid_number", "last_axis"], ["any_number"], keepdims=1),
        helper.make_node("Cast", ["any_number"], ["any_valid"], to=BOOL),
    ]
    graph.constant("last_axis", np.array([1]))
    counts.input[0] = "any_valid"
    for node in reversed(nodes):
        graph.graph.node.insert(at, node)


def _trio_vision(source: Source, external_input_dtype: int = UINT8) -> Graph:
    graph = Graph(source, "vision")
    graph.takes("image", external_input_dtype, (3, source.side, source.side))
    graph.constant("batch_axis", np.array([0]))
    graph.first("Unsqueeze", "image batch_axis", "images")
    if external_input_dtype == UINT8:
        graph.rewire("image", "images")
    else:
        _take_normalised(graph, "images")
    _vision_outputs(graph, "backbone_fpn_", "vision_pos_enc_", range(3))
    _codes_first(graph)
    return graph


def _take_normalised(graph: Graph, name: str) -> None:
    """The picture is normalised before: the steps that do it fall away."""
    tensor = "image"
    for operation in ("Cast", "Div", "Sub"):
        [node] = graph.users(tensor)
        assert node.op_type == operation
        tensor = node.output[0]
    graph.rewire(tensor, name)


def _trio_text(source: Source) -> Graph:
    graph = Graph(source, "text")
    graph.takes("tokens", INT64, (1, source.tokens))
    graph.first("Cast", "tokens", "tokens_32", to=INT32)
    graph.rewire("input_ids", "tokens_32")
    graph.constant("padding", np.array(0))
    graph.then("Equal", "tokens padding", "text_attention_mask")
    graph.then("Transpose", "text_features", "text_memory", perm=[1, 0, 2])
    graph.then("Identity", "text_memory", "text_embeds")
    graph.gives("text_attention_mask", BOOL, (1, source.tokens))
    graph.gives("text_memory", FLOAT, (source.tokens, 1, source.width))
    graph.gives("text_embeds", FLOAT, (source.tokens, 1, source.width))
    return graph


def _trio_decoder(source: Source) -> Graph:
    """Up to `kept`, the rows of queries that score more than a half, with their `scores`."""
    graph = Graph(source, "decoder")
    _take_features(graph, "backbone_fpn_")
    _take_positions(graph, "vision_pos_enc_2")
    graph.takes("language_mask", BOOL, (1, source.tokens))
    graph.takes("language_features", FLOAT, (source.tokens, 1, source.width))
    graph.takes("box_coords", FLOAT, (1, 1, 4))
    graph.takes("box_labels", INT64, (1, 1))
    graph.takes("box_masks", BOOL, (1, 1))
    graph.constant("no_box", np.array(NO_BOX))
    graph.first("Not", "language_mask", "text_mask")
    graph.first("Transpose", "language_features", "text_features", perm=[1, 0, 2])
    graph.first("Where", "box_masks no_box box_labels", "labels_64")
    graph.first("Cast", "labels_64", "labels", to=INT32)
    graph.rewire("boxes", "box_coords")
    graph.constant("half", np.array(0.5, dtype=np.float32))
    graph.constant("flat", np.array([-1]))
    graph.then("Sigmoid", "logits", "share")
    graph.then("Sigmoid", "presence", "presence_share")
    graph.then("Mul", "share presence_share", "score_row")
    graph.then("Reshape", "score_row flat", "all_scores")
    graph.then("Greater", "all_scores half", "is_kept")
    graph.then("NonZero", "is_kept", "kept_column")
    graph.then("Reshape", "kept_column flat", "kept")
    graph.then("Gather", "all_scores kept", "scores")
    graph.then("Gather", "boxes_xyxy kept", "kept_boxes", axis=1)
    graph.then("Gather", "mask_logits kept", "kept_logits", axis=1)
    graph.then("Transpose", "kept_logits", "logits_apart", perm=[1, 0, 2, 3])
    graph.constant("first_axis", np.array([0]))
    graph.then("Squeeze", "kept_boxes first_axis", "share_boxes")
    return graph


def _samexporter_decoder(source: Source) -> Graph:
    graph = _trio_decoder(source)
    for name in ("original_height", "original_width"):
        graph.takes(name, INT64, ())
        graph.first("Unsqueeze", f"{name} first_axis", f"{name}_row")
    graph.first("Concat", "original_width_row original_height_row " * 2, "size_int", axis=0)
    graph.first("Cast", "size_int", "size", to=FLOAT)
    graph.then("Mul", "share_boxes size", "boxes")
    graph.then("Shape", "logits_apart", "n_and_one", start=0, end=2)
    graph.then("Concat", "n_and_one original_height_row original_width_row", "full", axis=0)
    graph.then(
        "Resize", "logits_apart   full", "full_logits", mode="linear", coordinate_transformation_mode="half_pixel"
    )
    graph.after[-1].input[:] = ["logits_apart", "", "", "full"]
    graph.constant("zero", np.array(0, dtype=np.float32))
    graph.then("Greater", "full_logits zero", "masks")
    graph.gives("boxes", FLOAT, ("n", 4))
    graph.gives("scores", FLOAT, ("n",))
    graph.gives("masks", BOOL, ("n", 1, "height", "width"))
    return graph


def _osam_decoder(source: Source) -> Graph:
    graph = _trio_decoder(source)
    graph.then("Identity", "share_boxes", "boxes")
    graph.then("Sigmoid", "logits_apart", "masks")
    graph.gives("boxes", FLOAT, ("n", 4))
    graph.gives("scores", FLOAT, ("n",))
    graph.gives("masks", FLOAT, ("n", 1, source.mask_side, source.mask_side))
    return graph


def _usls_vision(source: Source) -> Graph:
    graph = Graph(source, "vision")
    graph.takes("images", FLOAT, ("b", 3, source.side, source.side))
    _take_normalised(graph, "images")
    _vision_outputs(graph, "fpn_feat_", "fpn_pos_", range(2, 3))
    return graph


def _ids(graph: Graph) -> None:
    source = graph.source
    graph.takes("input_ids", INT64, ("b", source.tokens))
    graph.takes("attention_mask", INT64, ("b", source.tokens))
    graph.first("Cast", "input_ids", "ids_32", to=INT32)
    graph.rewire("input_ids", "ids_32")


def _usls_text(source: Source) -> Graph:
    graph = Graph(source, "text")
    _ids(graph)
    graph.then("Cast", "attention_mask", "text_mask", to=BOOL)
    graph.gives("text_features", FLOAT, ("b", source.tokens, source.width))
    graph.gives("text_mask", BOOL, ("b", source.tokens))
    return graph


def _raw_answers(graph: Graph) -> None:
    source = graph.source
    for name, ours in (("pred_masks", "mask_logits"), ("pred_boxes", "boxes_xyxy"), ("pred_logits", "logits")):
        graph.then("Identity", ours, name)
    graph.gives("pred_masks", FLOAT, ("b", source.queries, source.mask_side, source.mask_side))
    graph.gives("pred_boxes", FLOAT, ("b", source.queries, 4))
    graph.gives("pred_logits", FLOAT, ("b", source.queries))


def _usls_decoder(source: Source) -> Graph:
    graph = Graph(source, "decoder")
    _forget_geometry_without_boxes(graph)
    _take_features(graph, "fpn_feat_")
    _take_positions(graph, "fpn_pos_2")
    graph.takes("text_features", FLOAT, ("b", source.tokens, source.width))
    graph.takes("text_mask", BOOL, ("b", source.tokens))
    graph.takes("input_boxes", FLOAT, ("b", "n", 4))
    graph.takes("input_boxes_labels", INT64, ("b", "n"))
    graph.first("Cast", "input_boxes_labels", "labels", to=INT32)
    graph.rewire("boxes", "input_boxes")
    _raw_answers(graph)
    graph.then("Identity", "presence", "presence_logits")
    graph.gives("presence_logits", FLOAT, ("b", 1))
    return graph


def _danilobukvic_vision(source: Source) -> Graph:
    graph = Graph(source, "vision")
    graph.takes("pixel_values", FLOAT, (1, 3, source.side, source.side))
    _take_normalised(graph, "pixel_values")
    _vision_outputs(graph, "fpn_hidden_state_", "fpn_position_encoding_", range(4), n_levels=4)
    return graph


def _danilobukvic_text(source: Source) -> Graph:
    graph = Graph(source, "text")
    _ids(graph)
    graph.gives("text_features", FLOAT, ("b", source.tokens, source.width))
    return graph


def _danilobukvic_decoder(source: Source) -> Graph:
    graph = Graph(source, "decoder")
    _forget_geometry_without_boxes(graph)
    _take_features(graph, "fpn_hidden_state_")
    _take_positions(graph, "fpn_position_encoding_2")
    graph.takes("text_features", FLOAT, ("b", source.tokens, source.width))
    graph.takes("attention_mask", INT64, ("b", source.tokens))
    graph.first("Cast", "attention_mask", "text_mask", to=BOOL)
    graph.constant("boxes", np.zeros((1, 1, 4), dtype=np.float32))
    graph.constant("labels", np.array([[NO_BOX]], dtype=np.int32))
    _raw_answers(graph)
    return graph


Files = dict[str, Callable[[Source], Graph]]
_TRIO: Files = {"sam3_image_encoder.onnx": _trio_vision, "sam3_language_encoder.onnx": _trio_text}
CONTRACTS: dict[str, Files] = {
    "sam3_samexporter": {**_TRIO, "sam3_decoder.onnx": _samexporter_decoder},
    "sam3_osam": {**_TRIO, "sam3_decoder.onnx": _osam_decoder},
    "sam3_usls": {
        "vision-encoder.onnx": _usls_vision,
        "text-encoder.onnx": _usls_text,
        "geo-encoder-mask-decoder.onnx": _usls_decoder,
    },
    "sam3_danilobukvic": {
        "vision_encoder.onnx": _danilobukvic_vision,
        "text_encoder.onnx": _danilobukvic_text,
        "decoder.onnx": _danilobukvic_decoder,
    },
}
EXTERNAL = ("sam3_samexporter", "sam3_osam")


def write_contract(name: str, folder: Path, bundle: Path = BUNDLE) -> Path:
    """The three files of that kind in a new folder; weights lie beside the graphs where that exporter puts them."""
    folder.mkdir(parents=True)
    source = Source.of(bundle)
    for file, make in CONTRACTS[name].items():
        make(source).save(folder / file, external=name in EXTERNAL)
    return folder


def write_samexporter_decoder(path: Path, change: Callable[[Graph], None]) -> None:
    """One whose last nodes, `Resize` and `Greater`, were changed."""
    graph = _samexporter_decoder(Source.of(BUNDLE))
    change(graph)
    path.unlink()
    path.with_name(f"{path.name}.data").unlink()
    graph.save(path, external=True)


def write_older_samexporter_vision(path: Path) -> None:
    """One of an older export, which takes a picture that is normalised already."""
    path.unlink()
    path.with_name(f"{path.name}.data").unlink()
    _trio_vision(Source.of(BUNDLE), FLOAT).save(path, external=False)


def write_osam_vision(path: Path, bundle: Path) -> None:
    """One that takes pictures of 1008 pixels, which osam always makes; the mean of some is one pixel of the bundle."""
    source = Source.of(bundle)
    cells = NATIVE_SIDE // source.side
    if cells == 1:
        return
    graph = _trio_vision(source)
    del graph.graph.input[:]
    graph.takes("image", UINT8, (3, NATIVE_SIDE, NATIVE_SIDE))
    graph.first("Cast", "images", "pixels", to=FLOAT)
    graph.first("AveragePool", "pixels", "cells", kernel_shape=[cells, cells], strides=[cells, cells])
    graph.first("Cast", "cells", "small_images", to=UINT8)
    graph.rewire("images", "small_images")
    path.unlink()
    path.with_name(f"{path.name}.data").unlink()
    graph.save(path, external=True)


def write_decoder_without_geometry_token(path: Path) -> None:
    """Our own decoder with our own tensors, where boxes' summing token counts only if there is a box."""
    graph = Graph(Source.of(BUNDLE), "decoder")
    whole = onnx.load(str(BUNDLE / "decoder.onnx")).graph
    graph.graph.input.extend(whole.input)
    graph.graph.output.extend(whole.output)
    _forget_geometry_without_boxes(graph)
    graph.save(path, external=False)
