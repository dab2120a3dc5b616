"""How fast a model is here: each stage of a first query and of an edit, images a second, memory of the GPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engines.bundle import ModelBundle
from engines.cuda_driver import gpu_memory_used
from engines.discovery import choose
from engines.images import read_image
from engines.loader import AUTO, check_device, choose_runtime, families, load_by
from engines.protocols import PreparedImage, Segmenter, encode_images, prepare_image
from engines.stage_times import DOWNLOAD, UPLOAD, Percentiles, StageTimes, timed_session
from engines.types import ImageFeatures, Phrase, SegmentOptions

BATCHES = (1, 4, 8)
_WATCH_EVERY_S = 0.02
_BATCH_RUNS = 3


@dataclass(frozen=True)
class BenchReport:
    """What was measured. A first query reads, encodes and answers; an edit asks another phrase on the same features."""

    model: str
    precision: str
    runtime: str
    device: str
    n_pictures: int
    n_edits: int
    stages: dict[str, Percentiles]
    first_query: Percentiles
    edit: Percentiles
    images_per_s: dict[int, float]
    """By how many images go through the encoder together."""
    gpu_peak_bytes: int
    """In use on the GPU at most, by whatever program; 0 on a CPU."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def bench(
    bundle: ModelBundle,
    pictures: Sequence[Path],
    phrases: Sequence[str],
    n_edits: int,
    batches: Sequence[int] = BATCHES,
    runtime: str = AUTO,
    device: str = AUTO,
) -> BenchReport:
    """Ask the phrases in turn, `n_edits` edits on each picture. Raises what loading and reading raise."""
    times = StageTimes()
    segmenter = _load(bundle, runtime, device, times)
    index = int(segmenter.info.device.partition(":")[2] or -1)
    first, edits = [], []
    with _gpu_watched(index) as peak:
        _query(segmenter, pictures[0], phrases[0], times)  # to warm up
        times.entries.clear()
        for picture in pictures:
            features = _query(segmenter, picture, phrases[0], times)
            first.append(sum(times.end_turn().values()))
            for number in range(n_edits):
                _answer(segmenter, features, _edited(phrases[number % len(phrases)], number, segmenter), times)
                edits.append(sum(times.end_turn().values()))
        rates = {size: _images_per_s(segmenter, pictures[0], size) for size in batches}
    numbers = (times.summary(), Percentiles.of(first), Percentiles.of(edits), rates, peak[0])
    info = segmenter.info
    return BenchReport(info.name, info.precision, info.runtime, info.device, len(pictures), n_edits, *numbers)


def _load(bundle: ModelBundle, runtime: str, device: str, times: StageTimes) -> Segmenter:
    chosen = choose_runtime(runtime, device)
    check_device(chosen, device)
    bundle.verify()

    choose(families(), "model family", bundle.family)
    return load_by(bundle, chosen, device, wrap=lambda role, session: timed_session(session, role, times))


def _query(segmenter: Segmenter, picture: Path, phrase: str, times: StageTimes) -> ImageFeatures:
    with times.timed("read"):
        rgb = read_image(picture).rgb
    with times.timed("resize"):
        prepared = prepare_image(segmenter, rgb, picture.name)
    features = encode_images(segmenter, [prepared])[0]
    _answer(segmenter, features, phrase, times)
    return features


def _answer(segmenter: Segmenter, features: ImageFeatures, phrase: str, times: StageTimes) -> None:
    """What is neither a graph nor on the way to it or back is the work on masks."""
    options = SegmentOptions(score_threshold=segmenter.info.capabilities.score_floor)
    encoded = segmenter.encode_phrase(Phrase(phrase))
    before, started = times.turn_ms, time.perf_counter()
    segmenter.decode(features, encoded, (), options)
    whole_ms = (time.perf_counter() - started) * 1000
    times.add("masks", max(0.0, whole_ms - (times.turn_ms - before)))


def _edited(phrase: str, number: int, segmenter: Segmenter) -> str:
    """A phrase that is not remembered from the last time, for a model that takes any."""
    return f"{phrase} {number}" if segmenter.info.capabilities.open_vocabulary else phrase


def _images_per_s(segmenter: Segmenter, picture: Path, size: int) -> float:
    rgb = read_image(picture).rgb
    prepared: list[PreparedImage] = [prepare_image(segmenter, rgb, str(number)) for number in range(size)]
    encode_images(segmenter, prepared)
    started = time.perf_counter()
    for _ in range(_BATCH_RUNS):
        encode_images(segmenter, prepared)
    return _BATCH_RUNS * size / (time.perf_counter() - started)


@contextmanager
def _gpu_watched(index: int) -> Iterator[list[int]]:
    """The most bytes in use so far, as the only entry of a list; 0 without a GPU of that index."""
    peak, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(_WATCH_EVERY_S):
            peak[0] = max(peak[0], gpu_memory_used(index))

    watcher = threading.Thread(target=watch, daemon=True)
    if index >= 0:
        watcher.start()
    try:
        yield peak
    finally:
        over.set()
        if index >= 0:
            watcher.join()


def table(report: BenchReport) -> list[str]:
    """Lines for a terminal."""
    info = f"{report.model}, {report.precision}, {report.runtime} on {report.device}"
    lines = [f"{info}: {report.n_pictures} pictures, {report.n_edits} edits on each", ""]
    lines.append(f"{'':14}{'p50':>10}{'p95':>10}{'p99':>10}  ms")
    rows = {**report.stages, "first query": report.first_query, "edit": report.edit}
    order = ("read", "resize", UPLOAD, "vision", "text", "decoder", DOWNLOAD, "masks")
    for stage in sorted(rows, key=lambda name: order.index(name) if name in order else len(order)):
        one = rows[stage]
        lines.append(f"{stage:14}{one.p50_ms:10.1f}{one.p95_ms:10.1f}{one.p99_ms:10.1f}")
    lines.append("")
    lines += [f"{rate:.2f} images/s, {size} together" for size, rate in report.images_per_s.items()]
    if report.gpu_peak_bytes:
        lines.append(f"{report.gpu_peak_bytes / 2**30:.2f} GiB in use on the GPU at most")
    return lines
