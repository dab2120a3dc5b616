"""An edit of the phrase through samexporter's and osam's own Python inference, and through ours, on the same files.

    python benchmarks/peers_edit.py [BUNDLE] [--edits 12] [--sizes 640x480 4000x3000] [--peers samexporter osam]
        [--processor-time]

The peers are packages of PyPI and no part of this project; docs/benchmarks.md says how to install them beside it.
From a SAM 3 bundle (without one, the small SAM 3 of shapes) the files that each peer reads are made; the peer and we
answer the same phrases on them, one after the other in the same process, and we once more on the bundle itself.
"Model" is time inside ONNX Runtime, "around it" is all the rest of a call.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "engines")]

from contract_models import write_contract, write_osam_vision  # noqa: E402
from sam3_shapes import ASSETS, BUNDLE  # noqa: E402

from engines.bundle import ModelBundle  # noqa: E402
from engines.loader import choose_runtime, families, open_bundle  # noqa: E402
from engines.masks import Mask, iou_matrix  # noqa: E402
from engines.protocols import Segmenter, Session  # noqa: E402
from engines.types import ImageFeatures, Instance, Phrase  # noqa: E402

PICTURE = ASSETS / "shapes_pictures" / "shapes_00.png"
THINGS = ("star", "black star", "white ring", "black object")
ARTICLES = ("", "a ", "the ", "this ", "some ")
"""No phrase is asked twice: we would remember its features."""
PAUSE_S = 0.05
"""Between two calls, for the threads of the last one to fall asleep."""
ROLES = ("vision", "text", "decoder")


class Clock:
    """Adds up the time inside ONNX Runtime and lists which graphs run."""

    now = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        self.model_s = 0.0
        self.runs: list[str] = []

    def around(self, role: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            started = self.now()
            outputs = run(*arguments)
            self.model_s += self.now() - started
            self.runs.append(role)
            return outputs

        return timed


class TimedPeerSession:
    """An ONNX Runtime session of a peer, timed; it asks for nothing else than what stands here."""

    def __init__(self, session: Any, role: str, clock: Clock) -> None:
        self._run = clock.around(role, session.run)
        self.get_inputs, self.get_outputs = session.get_inputs, session.get_outputs
        self.last: list[NDArray[Any]] = []

    def run(self, *arguments: Any) -> list[NDArray[Any]]:
        self.last = self._run(*arguments)
        return self.last


class TimedSession:
    """A session of ours, timed."""

    def __init__(self, session: Session, role: str, clock: Clock) -> None:
        self.runtime, self.device = session.runtime, session.device
        self.run = clock.around(role, session.run)


@dataclass
class Way:
    """One way to answer a phrase on a picture that has been seen before."""

    name: str
    edit: Callable[[str], Any]
    """What is timed: the phrase → an answer as this way gives it."""
    masks: Callable[[Any], list[Mask]]
    """The answer's masks, to be compared; not timed."""
    clock: Clock
    total_s: list[float] = field(default_factory=list)
    model_s: list[float] = field(default_factory=list)
    found: list[list[Mask]] = field(default_factory=list)
    uncropped: Callable[[], list[Mask]] | None = None
    """The masks of the last answer as they would be, did the peer not crop them."""
    found_uncropped: list[list[Mask]] = field(default_factory=list)
    runs: str = ""
    """The graphs that the last edit ran."""

    def time(self, phrase: str) -> None:
        before, self.clock.runs = self.clock.model_s, []
        started = self.clock.now()
        answer = self.edit(phrase)
        self.total_s.append(self.clock.now() - started)
        self.model_s.append(self.clock.model_s - before)
        self.runs = ", ".join(self.clock.runs)
        self.found.append(self.masks(answer))
        self.found_uncropped.append(self.uncropped() if self.uncropped else [])
        time.sleep(PAUSE_S)

    @property
    def around_s(self) -> list[float]:
        return [total - model for total, model in zip(self.total_s, self.model_s, strict=True)]

    def forget(self) -> None:
        """What was measured while everything warmed up."""
        self.total_s, self.model_s, self.found, self.found_uncropped = [], [], [], []


def timed_segmenter(bundle: ModelBundle, clock: Clock) -> Segmenter:
    runtime = choose_runtime()

    def open_graph(role: str) -> Session:
        graph = bundle.graphs[role]
        return TimedSession(runtime.load_graph(bundle.file(graph.file), graph, "cpu"), role, clock)

    return families()[bundle.family].load(bundle, open_graph)


def our_way(name: str, folder: Path, rgb: NDArray[np.uint8]) -> tuple[Way, Segmenter]:
    clock = Clock()
    segmenter = timed_segmenter(open_bundle(folder), clock)
    features = segmenter.encode_image(rgb, "picture")

    def edit(text: str) -> list[Instance]:
        return segmenter.decode(features, segmenter.encode_phrase(Phrase(text)))

    return Way(name, edit, lambda found: [one.mask for one in found], clock), segmenter


def samexporter_ways(folder: Path, rgb: NDArray[np.uint8]) -> tuple[list[Way], Mapping[str, NDArray[Any]]]:
    """As its own command line calls it, and with the picture's features kept, and the features themselves."""
    from samexporter.sam3_onnx import SegmentAnything3ONNX

    clock = Clock()
    files = [str(folder / f"sam3_{part}.onnx") for part in ("image_encoder", "decoder", "language_encoder")]
    model = SegmentAnything3ONNX(*files, providers="cpu")
    for role, part in zip(ROLES, (model.image_encoder, model.language_encoder, model.decoder), strict=True):
        part.session = TimedPeerSession(part.session, role, clock)
    bgr = np.ascontiguousarray(rgb[..., ::-1])
    kept = model.encode(bgr, THINGS[0])

    def as_called(text: str) -> Any:
        return model.predict_masks(model.encode(bgr, text), [{"type": "text", "data": text}])

    def features_kept(text: str) -> Any:
        phrase = dict(
            zip(("language_mask", "language_features", "language_embeds"), model.language_encoder(text), strict=True)
        )
        return model.predict_masks({**kept, **phrase}, [{"type": "text", "data": text}])

    def masks(found: NDArray[np.bool_]) -> list[Mask]:
        return [Mask.encode(one[0]) for one in found]

    tensors = {name: tensor for name, tensor in kept.items() if isinstance(tensor, np.ndarray)}
    ways = [
        Way("samexporter, its own calls", as_called, masks, clock),
        Way("samexporter, features kept by hand", features_kept, masks, clock),
    ]
    return ways, tensors


def osam_ways(folder: Path, rgb: NDArray[np.uint8]) -> tuple[list[Way], Mapping[str, NDArray[Any]]]:
    """As its README calls it, and with the picture's features kept as labelme does, and the features themselves."""
    import osam
    from loguru import logger

    logger.disable("osam")
    clock = Clock()
    model = local_osam_model(folder)()
    for role, part in zip(ROLES, ("image_encoder", "language_encoder", "decoder"), strict=True):
        model._inference_sessions[part] = TimedPeerSession(model._inference_sessions[part], role, clock)
    osam.apis.running_model = model
    kept = model.encode_image(rgb)

    def request(text: str, **picture: Any) -> Any:
        prompt = osam.types.Prompt(texts=[text], iou_threshold=1.0, score_threshold=0.01, max_annotations=1000)
        return osam.apis.generate(osam.types.GenerateRequest(model=model.name, prompt=prompt, **picture))

    def masks(response: Any) -> list[Mask]:
        return [placed(one.mask, one.bounding_box, rgb.shape[:2]) for one in response.annotations]

    def uncropped() -> list[Mask]:
        shares = [one[0] for one in model._inference_sessions["decoder"].last[2]]
        return [Mask.encode(cv2.resize(one, rgb.shape[1::-1], interpolation=cv2.INTER_LINEAR) > 0.5) for one in shares]

    names = ("backbone_fpn_1", "backbone_fpn_2", "vision_pos_enc_2")
    tensors = {name: one[None] for name, one in zip(names, kept.extra_features, strict=True)}
    ways = [
        Way("osam, picture in the request", lambda text: request(text, image=rgb), masks, clock),
        Way(
            "osam, features kept (labelme)",
            lambda text: request(text, image=rgb, image_embedding=kept),
            masks,
            clock,
            uncropped=uncropped,
        ),
    ]
    return ways, {"backbone_fpn_0": kept.embedding[None], **tensors}


def local_osam_model(folder: Path) -> Any:
    """osam's model with files of a folder: its own are downloaded, and known by their sha256."""
    from types import SimpleNamespace

    from osam._models import Sam3

    parts = ("image_encoder", "language_encoder", "decoder")

    class LocalSam3(Sam3):  # type: ignore[misc]
        _blobs: ClassVar = {part: SimpleNamespace(path=str(folder / f"sam3_{part}.onnx")) for part in parts}

        @classmethod
        def pull(cls, *_: Any, **__: Any) -> None:
            """They are here."""

    return LocalSam3


def placed(mask: NDArray[np.bool_], box: Any, size: tuple[int, int]) -> Mask:
    """A mask of a box's pixels, the far edge inclusive, as one of the picture, beyond which the box may reach."""
    (height, width), (tall, wide) = size, mask.shape
    padded = np.zeros((height + 2 * tall, width + 2 * wide), dtype=bool)
    padded[box.ymin + tall : box.ymax + tall + 1, box.xmin + wide : box.xmax + wide + 1] = mask
    return Mask.encode(padded[tall : tall + height, wide : wide + width])


PEERS = {"samexporter": ("sam3_samexporter", samexporter_ways), "osam": ("sam3_osam", osam_ways)}


def agreement(some: Sequence[list[Mask]], others: Sequence[list[Mask]]) -> str:
    """How many instances two ways have, and the lowest and the median IoU of the first with their like."""
    n, m = (sum(map(len, found)) for found in (some, others))
    best = [iou_matrix(a, b).max(axis=1) for a, b in zip(some, others, strict=True) if a and b]
    ious = np.concatenate([np.zeros(0), *best])
    return f"{n} and {m} instances, IoU ≥ {ious.min():.4f}, median {np.median(ious):.4f}" if ious.size else f"{n}, {m}"


def on_their_features(segmenter: Segmenter, tensors: Mapping[str, Any], rgb: Any, phrases: list[str]) -> list[Any]:
    """Our masks from the features that the peer made: what differs then is only what follows the graphs."""
    features = ImageFeatures(segmenter.info.bundle_id, "theirs", rgb.shape[0], rgb.shape[1], tensors, 0)
    found = (segmenter.decode(features, segmenter.encode_phrase(Phrase(text))) for text in phrases)
    return [[one.mask for one in instances] for instances in found]


def compare(peer: str, trio: Path, bundle: Path, rgb: NDArray[np.uint8], phrases: list[str]) -> None:
    ways, tensors = PEERS[peer][1](trio, rgb)
    ours, segmenter = our_way("ours, the same files", trio, rgb)
    own, _ = our_way("ours, our own bundle", bundle, rgb)
    ways += [ours, own]
    for number, phrase in enumerate(["warm up", *phrases]):
        for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
            way.time(phrase)
        if number == 0:
            for way in ways:
                way.forget()
    report(f"{peer}'s files, {rgb.shape[1]}×{rgb.shape[0]}", ways, ours, own, len(phrases))
    alike = on_their_features(segmenter, tensors, rgb, phrases)
    print(f"- {peer}'s masks to ours: {agreement(ways[1].found, ours.found)}")
    print(f"- {peer}'s masks to ours on the features that {peer} made: {agreement(ways[1].found, alike)}")
    if any(ways[1].found_uncropped):
        print(f"- the same, if {peer} did not crop: {agreement(ways[1].found_uncropped, alike)}")
    print(f"- ours to those of our own bundle: {agreement(ours.found, own.found)}\n")


def report(title: str, ways: list[Way], ours: Way, own: Way, n_edits: int) -> None:
    print(f"{title}, medians of {n_edits} edits")
    print("| way | runs | an edit | model | around it | against ours, same files | against ours, own bundle |")
    print("|---|---|---|---|---|---|---|")
    for way in ways:
        times = " | ".join(f"{statistics.median(x) * 1e3:.1f} ms" for x in (way.total_s, way.model_s, way.around_s))
        ratios = [statistics.median(way.total_s) / statistics.median(one.total_s) for one in (ours, own)]
        print(f"| {way.name} | {way.runs} | {times} | {ratios[0]:.1f} | {ratios[1]:.1f} |")


def size_of(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path, nargs="?", default=BUNDLE)
    parser.add_argument("--edits", type=int, default=12)
    parser.add_argument("--sizes", type=size_of, nargs="+", default=[(640, 480), (4000, 3000)])
    parser.add_argument("--peers", choices=PEERS, nargs="+", default=list(PEERS))
    parser.add_argument(
        "--processor-time", action="store_true", help="of this process, where others keep the machine busy"
    )
    arguments = parser.parse_args()
    if arguments.processor_time:
        Clock.now = staticmethod(time.process_time)
    phrases = [article + thing for article in ARTICLES for thing in THINGS][: arguments.edits]
    with tempfile.TemporaryDirectory() as room:
        for peer in arguments.peers:
            trio = write_contract(PEERS[peer][0], Path(room) / peer, arguments.bundle)
            if peer == "osam":
                write_osam_vision(trio / "sam3_image_encoder.onnx", arguments.bundle)
            for size in arguments.sizes:
                rgb = np.asarray(Image.open(PICTURE).convert("RGB").resize(size, Image.Resampling.LANCZOS))
                compare(peer, trio, arguments.bundle, rgb, phrases)


if __name__ == "__main__":
    main()
