"""The graphs that a SAM 3 bundle holds, with the tensors that go in and come out."""

from __future__ import annotations

from engines.bundle import MANIFEST_NAME, GraphSpec, ModelBundle
from engines.errors import BundleManifestError

TOKENIZER_FILE = "tokenizer.json"
FEATURES = ("features_0", "features_1", "features_2")
"""The encoded image at 4, 2 and 1 times the vision transformer's grid, finest first."""

_TENSORS: dict[str, tuple[set[str], set[str]]] = {
    "vision": ({"image"}, {*FEATURES}),
    "text": ({"input_ids"}, {"text_features"}),
    "decoder": (
        {*FEATURES, "text_features", "text_mask", "boxes", "labels"},
        {"logits", "presence", "boxes_xyxy", "mask_logits"},
    ),
}


def check_contract(bundle: ModelBundle) -> None:
    """Raise `BundleManifestError` unless each graph is there and takes and gives the tensors that it should."""
    for role, (inputs, outputs) in _TENSORS.items():
        graph = bundle.graphs.get(role)
        if graph is None:
            raise _unfit(bundle, f"a SAM 3 model needs a graph '{role}'")
        _check_names(bundle, graph, "inputs", {spec.name for spec in graph.inputs}, inputs)
        _check_names(bundle, graph, "outputs", {spec.name for spec in graph.outputs}, outputs)


def context_length(bundle: ModelBundle) -> int:
    """Number of tokens that the text graph takes, start and end included."""
    return _fixed(bundle, bundle.graphs["text"], "input_ids", 1)


def image_side(bundle: ModelBundle) -> int:
    """Side in pixels of the square picture that the vision graph takes."""
    return _fixed(bundle, bundle.graphs["vision"], "image", 3)


def takes_several_images(bundle: ModelBundle) -> bool:
    """Whether the vision graph leaves it free how many pictures go in together."""
    return next(spec.shape for spec in bundle.graphs["vision"].inputs if spec.name == "image")[0] is None


def _fixed(bundle: ModelBundle, graph: GraphSpec, tensor: str, axis: int) -> int:
    shape = next(spec.shape for spec in graph.inputs if spec.name == tensor)
    size = shape[axis] if axis < len(shape) else None
    if size is None:
        raise _unfit(bundle, f"'{tensor}' of graph '{graph.role}' has no fixed size on axis {axis}")
    return size


def _check_names(bundle: ModelBundle, graph: GraphSpec, kind: str, got: set[str], wanted: set[str]) -> None:
    if got != wanted:
        named = [", ".join(sorted(names)) for names in (got, wanted)]
        raise _unfit(bundle, f"the {kind} of graph '{graph.role}' are {named[0]}, wanted {named[1]}")


def _unfit(bundle: ModelBundle, reason: str) -> BundleManifestError:
    return BundleManifestError(bundle.folder / MANIFEST_NAME, reason)
