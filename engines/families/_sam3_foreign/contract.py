"""A kind of SAM 3 files, described by the tensors of its three graphs: file names say nothing, two kinds share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from engines.bundle import TensorSpec
from engines.families._sam3.answer import SCORE_FLOOR, Answer
from engines.graph_signature import GraphSignature
from engines.types import BoxPrompt, ImageFeatures

ROLES = ("vision", "text", "decoder")
Feeds = Mapping[str, NDArray[Any]]

_KINDS = {
    "float": ("float16", "float32"),
    "int": ("int32", "int64"),
    "bool": ("bool",),
    "picture": ("uint8", "float16", "float32"),
}


@dataclass(frozen=True)
class Slot:
    """A tensor that a graph of this kind has, or with `optional` may have: its name, sort of dtype, number of axes."""

    name: str
    kind: str
    ranks: tuple[int, ...]
    optional: bool = False

    def fits(self, spec: TensorSpec) -> bool:
        """Whether a tensor of that name is what it should be."""
        return spec.dtype in _KINDS[self.kind] and len(spec.shape) in self.ranks


def slots(kind: str, rank: int, names: str, optional: bool = False) -> list[Slot]:
    """One slot for each of the names, which stand apart by spaces."""
    return [Slot(name, kind, (rank,), optional) for name in names.split()]


@dataclass(frozen=True)
class Part:
    """The tensors of one graph. An exporter leaves out what a graph does not use: such slots are optional."""

    inputs: Sequence[Slot]
    outputs: Sequence[Slot]

    def fits(self, signature: GraphSignature) -> bool:
        """Whether the graph has each tensor of this part as it should be, and takes no other ones."""
        known = {slot.name for slot in self.inputs}
        return (
            all(spec.name in known for spec in signature.inputs)
            and _fit(self.inputs, signature.inputs)
            and _fit(self.outputs, signature.outputs)
        )


@dataclass(frozen=True)
class Contract:
    """A kind of SAM 3 files."""

    name: str
    title: str
    reference: str
    """Whose behaviour the graphs follow: `meta`, or `transformers`, which adds no geometry token to a mere phrase."""
    parts: Mapping[str, Part]
    prompt: Callable[[Sequence[BoxPrompt], ImageFeatures], Feeds]
    """Boxes and picture → the decoder's inputs that come neither from the picture's features nor from the phrase."""
    answer: Callable[[Feeds, ImageFeatures], Answer]
    """The decoder's outputs → what they say."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The decoder's inputs that another graph gives under another name."""
    max_boxes: int | None = None
    """How many exemplar boxes there is a place for; None for any number."""
    label_input: str = ""
    """The decoder's input that tells negative boxes from positive ones."""
    score_floor: float = SCORE_FLOOR
    notes: tuple[str, ...] = ()
    small_masks: Callable[[Path], TensorSpec | None] | None = None
    """The decoder's file → the tensor inside it to ask for in place of `masks`, where there is one."""
    note_on_whole_masks: str = ""
    """What is to say where there is none."""

    def files(self, signatures: Mapping[str, GraphSignature]) -> dict[str, list[str]]:
        """Files that could be the graph of each role."""
        return {
            role: [name for name, signature in signatures.items() if part.fits(signature)]
            for role, part in self.parts.items()
        }

    def source(self, decoder_input: str) -> str:
        """Name under which the tensor for that input is made."""
        return self.renamed.get(decoder_input, decoder_input)


def _fit(slots: Sequence[Slot], specs: Sequence[TensorSpec]) -> bool:
    by_name = {spec.name: spec for spec in specs}
    return all(slot.fits(by_name[slot.name]) if slot.name in by_name else slot.optional for slot in slots)
