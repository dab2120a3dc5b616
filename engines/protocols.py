"""What a runtime and a model family must provide, and the descriptors by which they are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engines.bundle import GraphSpec, ModelBundle
from engines.graph_signature import GraphSignature
from engines.types import BoxPrompt, ImageFeatures, Instance, Phrase, PhraseFeatures, SegmentOptions


class Session(Protocol):
    """One loaded graph. Tensors go in and come out by name."""

    @property
    def runtime(self) -> str:
        """Name of the runtime, such as `onnxruntime`."""

    @property
    def device(self) -> str:
        """Where the graph really runs: `cpu` or `cuda:N`."""

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Every output by name. Raises `TensorMismatchError` for a tensor that the graph does not declare."""


class DeviceTensor(Protocol):
    """A tensor that lies on a device. `numpy.asarray` brings its numbers to the host."""

    device: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of axes."""

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""

    def __getitem__(self, row: int) -> Any:
        """One entry of the first axis; only its numbers are brought to the host when they are asked for."""

    def kept_row(self, row: int) -> DeviceTensor:
        """One entry with its axis, in memory of its own."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The numbers on the host."""


@runtime_checkable
class KeepsOnDevice(Protocol):
    """A session whose outputs can stay on its device, where other sessions read them."""

    def run_kept(self, feeds: Mapping[str, Any]) -> dict[str, DeviceTensor]:
        """As `run`, but outputs stay on the device until nothing refers to them. Feeds may lie there too."""

    def upload(self, array: NDArray[Any]) -> DeviceTensor:
        """The array on the session's device, there to be a feed; running does it for those that are not."""


def run_kept(session: Session, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Every output by name, on the session's device where it can keep them there, else on the host."""
    return session.run_kept(feeds) if isinstance(session, KeepsOnDevice) else session.run(feeds)


@dataclass(frozen=True)
class Capabilities:
    """What a model can be asked."""

    open_vocabulary: bool
    """Any noun phrase, or only a fixed vocabulary."""
    box_to_mask: bool
    """`mask_box` turns a drawn box into the mask of the thing inside it."""
    exemplar_boxes: bool
    """`decode` takes positive and negative boxes that show what to look for."""
    score_floor: float = 0.0
    """Instances below this score are never answered, whatever the threshold."""
    exemplar_phrase: str = ""
    """The phrase to encode when only boxes show what to look for; empty where boxes need a phrase of a person."""


@dataclass(frozen=True)
class SegmenterInfo:
    """What was really loaded, for the status line and the log."""

    name: str
    bundle_id: str
    family: str
    precision: str
    runtime: str
    device: str
    capabilities: Capabilities
    notes: tuple[str, ...] = ()
    """What this model cannot do or does otherwise than its kind: half sentences for a person."""
    features_id: str = ""
    """Tells the graph whose outputs image features are, and nothing but arrays in them: models with the same one can
    use each other's features. Empty where features are something else."""


class Segmenter(Protocol):
    """A promptable model: encode an image once, then decode any number of phrases on its features."""

    @property
    def info(self) -> SegmenterInfo:
        """What was loaded."""

    def encode_image(self, rgb: NDArray[np.uint8], image_id: str) -> ImageFeatures:
        """Features of an upright (H, W, 3) uint8 RGB image."""

    def encode_phrase(self, phrase: Phrase) -> PhraseFeatures:
        """Features of a phrase; costs nothing of the image."""

    def decode(
        self,
        image: ImageFeatures,
        phrase: PhraseFeatures,
        boxes: Sequence[BoxPrompt] = (),
        options: SegmentOptions = SegmentOptions(),
    ) -> list[Instance]:
        """Every instance at or above the score threshold, best first."""

    def example_phrases(self, image: ImageFeatures) -> list[str]:
        """Phrases that will find something on the image, surest first; empty where the model cannot tell unasked."""

    def mask_box(self, image: ImageFeatures, box: BoxPrompt) -> Instance:
        """The thing inside a box drawn by a person.

        Raises `BoxError` for a box without area in the image, and `NothingFoundError` where the model finds nothing.
        """


@runtime_checkable
class CountsTokens(Protocol):
    """A segmenter whose model takes only so many tokens of a phrase."""

    def n_tokens(self, phrase: Phrase) -> tuple[int, int]:
        """Tokens of the whole phrase, and how many the model takes; without running any graph. Raises `PhraseError`."""


@runtime_checkable
class DecodesTogether(Protocol):
    """A segmenter that answers several phrases at once for less than one after the other."""

    def decode_many(
        self, image: ImageFeatures, phrases: Sequence[PhraseFeatures], options: SegmentOptions = SegmentOptions()
    ) -> list[list[Instance]]:
        """What `decode` finds for each phrase, without boxes."""


def decode_many(
    segmenter: Segmenter,
    image: ImageFeatures,
    phrases: Sequence[PhraseFeatures],
    options: SegmentOptions = SegmentOptions(),
) -> list[list[Instance]]:
    """What `Segmenter.decode` finds for each phrase, without boxes; at once where the segmenter can."""
    if isinstance(segmenter, DecodesTogether):
        return segmenter.decode_many(image, phrases, options)
    return [segmenter.decode(image, phrase, (), options) for phrase in phrases]


Progress = Callable[[str, float], bool]
"""Told what is being done and the share of it that is, from 0 to 1; answers whether to go on."""


@dataclass(frozen=True)
class PreparedImage:
    """An image shrunk or stretched for its encoder; `pixels` are opaque to all but the family that made them.

    `height` and `width` are those of the upright original, in pixels.
    """

    image_id: str
    height: int
    width: int
    pixels: NDArray[np.uint8]


@runtime_checkable
class EncodesTogether(Protocol):
    """A segmenter whose work on a picture before the encoder can be done apart, and that may encode several at once."""

    @property
    def images_at_once(self) -> int:
        """How many images go best through the encoder together, on the device it is on; 1 where it takes no more."""

    def prepare_image(self, rgb: NDArray[np.uint8], image_id: str) -> PreparedImage:
        """What the encoder needs of an upright (H, W, 3) uint8 RGB image; from any thread, without the model."""

    def encode_images(self, images: Sequence[PreparedImage]) -> list[ImageFeatures]:
        """What `encode_image` finds for each image. Raises `DeviceMemoryError` for more than the device can hold."""


def images_at_once(segmenter: Segmenter) -> int:
    """How many images are best encoded together."""
    return segmenter.images_at_once if isinstance(segmenter, EncodesTogether) else 1


def prepare_image(segmenter: Segmenter, rgb: NDArray[np.uint8], image_id: str) -> PreparedImage:
    """An upright (H, W, 3) uint8 RGB image as `encode_images` takes it."""
    if isinstance(segmenter, EncodesTogether):
        return segmenter.prepare_image(rgb, image_id)
    return PreparedImage(image_id, rgb.shape[0], rgb.shape[1], rgb)


def encode_images(segmenter: Segmenter, images: Sequence[PreparedImage]) -> list[ImageFeatures]:
    """What `Segmenter.encode_image` finds for each image; at once where the segmenter can."""
    if isinstance(segmenter, EncodesTogether):
        return segmenter.encode_images(images)
    return [segmenter.encode_image(image.pixels, image.image_id) for image in images]


@runtime_checkable
class ReadsOnDevice(Protocol):
    """A segmenter that answers faster on features that lie on its device."""

    def on_device(self, image: ImageFeatures) -> ImageFeatures:
        """The same features on the device, if it has one. Raises `DeviceMemoryError` where it has no room for them."""


def on_device(segmenter: Segmenter, image: ImageFeatures) -> ImageFeatures:
    """The same features where the segmenter reads them best, so that no answer has to bring them there."""
    return segmenter.on_device(image) if isinstance(segmenter, ReadsOnDevice) else image


@dataclass(frozen=True)
class Availability:
    """Whether something can be used on this machine, and if not, why."""

    usable: bool
    reason: str = ""
    installed: bool = True
    """False where its package is absent: then nobody expects it to be used."""


class Trial(Protocol):
    """What a runtime has built of a bundle's graphs, to be checked before it is used."""

    report_folder: Path
    """Where the report of the check is kept."""

    def load_graph(self, role: str) -> Session:
        """As `Runtime.load_graph`, whatever a check has shown; built now if it is not yet."""

    def judge(self, passed: bool, report: Path) -> None:
        """Write down what the check of the loaded graphs has shown. Raises `EngineFolderError`."""


@dataclass(frozen=True)
class Runtime:
    """Descriptor of a runtime: one per module in `engines/runtimes/`, named `RUNTIME`."""

    name: str
    title: str
    availability: Callable[[], Availability]
    devices: Callable[[], list[str]]
    load_graph: Callable[[Path, GraphSpec, str], Session]
    """Graph file, its spec, device (`auto`, `cpu` or `cuda:N`) → session."""
    preference: int = 0
    """Of the runtimes that can be used, `auto` takes the one with the largest; one with 0 it never takes."""
    prepare: Callable[[ModelBundle, str, Progress], None] | None = None
    """For runtimes that must work on a bundle once, for minutes, before its graphs load fast: bundle, device, progress.
    Raises an error of the engines where it is stopped. `load_graph` does without, only slowly and silently."""
    trial: Callable[[ModelBundle, str], Trial] | None = None
    """For runtimes that build something of their own of a graph, which may answer wrongly: bundle, device → trial.
    Their `load_graph` raises `EngineUncheckedError` before a check, and `EngineFailedCheckError` after a failed one."""
    check_device: Callable[[str], None] | None = None
    """For runtimes whose devices cannot be listed: raises `RuntimeUnavailableError` for one that cannot be."""


@dataclass(frozen=True)
class Family:
    """Descriptor of a model family: one per module in `engines/families/`, named `FAMILY`."""

    name: str
    title: str
    summary: str
    """What such a model is good for, in a sentence for a person who chooses one."""
    load: Callable[[ModelBundle, Callable[[str], Session]], Segmenter]
    """Bundle, and a function that opens the graph of a role → segmenter."""
    recognise: Callable[[Path, Mapping[str, GraphSignature]], ModelBundle | None] | None = None
    """For families of files without a manifest: folder and the signature of each ONNX file → bundle, or None where
    they are not of this family. Raises a `BundleError` where they are, and something is missing."""
