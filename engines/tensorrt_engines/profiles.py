"""Which sizes an engine must serve: each free axis of a graph's inputs, told by role, tensor and place.

TensorRT builds for a range of each and tunes for the usual size in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from engines.bundle import GraphSpec, TensorSpec


@dataclass(frozen=True)
class Limits:
    """The least, the usual and the largest size of an axis, or value of a size that is itself an input."""

    least: int
    usual: int
    most: int


IMAGES = Limits(1, 1, 8)
PHRASES = Limits(1, 1, 4)
BOXES = Limits(1, 1, 20)
PICTURE_SIDES = Limits(1, 1024, 8192)
"""For graphs that are told the picture's own height and width, in pixels."""
_TRAINED_SIDE = Limits(1008, 1008, 1008)
_TOKENS = Limits(32, 32, 32)
_FEATURE_SIDES = [Limits(side, side, side) for side in (288, 144, 72, 36)]
"""Of a picture of 1008 × 1008, from the finest scale on."""
_ANYTHING = Limits(1, 1, 20)


@dataclass(frozen=True)
class InputProfile:
    """Sizes of one input's axes; of an input without axes, its value in the one place."""

    tensor: str
    least: tuple[int, ...]
    usual: tuple[int, ...]
    most: tuple[int, ...]


def profiles_of(spec: GraphSpec) -> tuple[InputProfile, ...]:
    """One for each input with a free axis, and each whole number without axes, which may say a size."""
    found = []
    for tensor in spec.inputs:
        if None in tensor.shape:
            found.append(_profile(tensor, [_limits(spec.role, tensor, axis) for axis in range(len(tensor.shape))]))
        elif not tensor.shape and tensor.dtype.startswith("int"):
            found.append(_profile(tensor, [PICTURE_SIDES]))
    return tuple(found)


def _profile(tensor: TensorSpec, axes: list[Limits]) -> InputProfile:
    least, usual, most = zip(*((axis.least, axis.usual, axis.most) for axis in axes), strict=True)
    return InputProfile(tensor.name, least, usual, most)


def _limits(role: str, tensor: TensorSpec, axis: int) -> Limits:
    size = tensor.shape[axis]
    if size is not None:
        return Limits(size, size, size)
    if role == "vision":
        return _TRAINED_SIDE if axis >= len(tensor.shape) - 2 else IMAGES
    if role == "text":
        return PHRASES if axis == 0 else _TOKENS
    if role == "decoder":
        return _decoder_limits(tensor, axis)
    return _ANYTHING


def _decoder_limits(tensor: TensorSpec, axis: int) -> Limits:
    """All first axes go together, also that of features: graphs that leave it free want it alike in all inputs."""
    if axis == 0:
        return PHRASES
    if "box" in tensor.name or "label" in tensor.name:
        return BOXES
    if len(tensor.shape) == 4 and tensor.name[-1:].isdigit():
        return _FEATURE_SIDES[min(int(tensor.name[-1]), len(_FEATURE_SIDES) - 1)]
    return _TOKENS
