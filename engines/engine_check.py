"""Whether engines answer as float32 does: the check that stands before the first answer of what a runtime has built.

A bundle that was exported here holds its original's answers. Others are asked beside ONNX Runtime on the CPU.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import ModelBundle
from engines.check_cases import CASES, draw_pictures
from engines.check_files import REFERENCE_FILE, sample
from engines.check_report import (
    LEAST_MEAN_IOU,
    CheckLimits,
    CheckReport,
    Compared,
    TensorDifference,
    tensor_difference,
    write_report,
)
from engines.errors import EngineCancelledError
from engines.images import read_image
from engines.protocols import Family, Progress, Segmenter, Session, Trial
from engines.reference_check import compare_with_reference
from engines.side_by_side import Answer, Question, answer_all, compare_answers

MOST_DISTANCE = 0.4
MOST_DRIFT = 0.2
"""Half precision and int8 stay far within both; halved scores and features that point elsewhere do not."""
_PICTURE_SIDE = 1008
_MOST_SORTED = 20_000

OpenGraph = Callable[[str], Session]


def engine_limits(least_iou: float = LEAST_MEAN_IOU, most_changed: int = 0) -> CheckLimits:
    """Of masks, and of instances lost and gained. Tensors may differ as lower precision makes them, or TF32."""
    return CheckLimits(least_iou, most_changed, most_changed, MOST_DRIFT, None, MOST_DISTANCE)


ENGINE_LIMITS = engine_limits()


def check_trial(
    bundle: ModelBundle,
    family: Family,
    trial: Trial,
    reference: OpenGraph,
    limits: CheckLimits,
    progress: Progress,
) -> tuple[CheckReport, Path]:
    """Compare, write the report beside the engines, and judge them; answers the report and its page."""

    def load(role: str) -> Session:
        return trial.load_graph(role)

    def told(open_graph: OpenGraph, done: float) -> OpenGraph:
        def open_if_wanted(role: str) -> Session:
            share = done + (1 - done) * list(bundle.graphs).index(role) / len(bundle.graphs)
            if not progress(f"checking the answers: {role}", share):
                raise EngineCancelledError(bundle.folder)
            return open_graph(role)

        return open_if_wanted

    if REFERENCE_FILE in bundle.checks:
        measure, found = "the original", compare_with_reference(bundle, told(load, 0.0))
    else:
        measure = "ONNX Runtime"
        found = compare_with_onnxruntime(bundle, family, told(load, 0.5), told(reference, 0.0))
    report = CheckReport.of(bundle, found, measure, limits)
    page = write_report(trial.report_folder / f"check_report_{found.runtime}", report)
    trial.judge(report.passed, page)
    return report, page


def compare_with_onnxruntime(bundle: ModelBundle, family: Family, load: OpenGraph, reference: OpenGraph) -> Compared:
    """Ask both the same about drawn pictures, one after the other, so that memory holds one of them."""
    with tempfile.TemporaryDirectory() as folder:
        pictures = _written_pictures(Path(folder))
        heard, heard_too = _Heard(reference), _Heard(load)
        segmenter = family.load(bundle, heard.open)
        questions = list(_questions(segmenter, pictures))
        heard.outputs.clear()  # only runs that both make can be compared
        measure, expected = segmenter.info, list(answer_all(segmenter, questions))
        del segmenter
        segmenter = family.load(bundle, heard_too.open)
        found: list[Answer] = list(answer_all(segmenter, questions))
    compared = compare_answers(measure, segmenter.info, zip(questions, expected, found, strict=True))
    tensors = tuple(_differences(heard.outputs, heard_too.outputs))
    return Compared(segmenter.info.runtime, segmenter.info.device, tensors, compared.cases)


def _written_pictures(folder: Path) -> list[Path]:
    paths = []
    for index, picture in enumerate(draw_pictures(_PICTURE_SIDE)):
        paths.append(folder / f"picture_{index}.png")
        picture.save(paths[-1])
    return paths


def _questions(segmenter: Segmenter, pictures: Sequence[Path]) -> Iterator[Question]:
    """What every check asks, and what the model itself says it will find."""
    for index, path in enumerate(pictures):
        features = segmenter.encode_image(read_image(path).rgb, str(path))
        asked = [case.phrase for case in CASES if case.picture == index and not case.boxes]
        for phrase in dict.fromkeys([*asked, *segmenter.example_phrases(features)]):
            yield Question(path, path.name, phrase)


class _Heard:
    """Opens graphs and keeps, of each run, a sample of each output."""

    def __init__(self, open_graph: OpenGraph) -> None:
        self._open_graph = open_graph
        self.outputs: dict[tuple[str, str], list[NDArray[Any]]] = defaultdict(list)

    def open(self, role: str) -> Session:
        return _HeardSession(self._open_graph(role), role, self.outputs)


class _HeardSession:
    """Runs by way of the host alone, where outputs can be looked at."""

    def __init__(self, session: Session, role: str, outputs: dict[tuple[str, str], list[NDArray[Any]]]) -> None:
        self.runtime, self.device = session.runtime, session.device
        self._session, self._role, self._outputs = session, role, outputs

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        found = self._session.run(feeds)
        for name, values in found.items():
            self._outputs[self._role, name].append(_kept(self._role, values))
        return found


def _kept(role: str, values: NDArray[Any]) -> NDArray[np.float32]:
    """Of a decoder only small outputs, in order of their values: its rows may change places. Masks are told by IoU."""
    if role != "decoder":
        return sample(values)
    return np.sort(sample(values)) if values.size <= _MOST_SORTED else np.empty(0, np.float32)


def _differences(
    expected: Mapping[tuple[str, str], Sequence[NDArray[Any]]], found: Mapping[tuple[str, str], Sequence[NDArray[Any]]]
) -> Iterator[TensorDifference]:
    """Of all runs together; of outputs whose length depends on what is found, where it is the same."""
    for (role, name), measured in expected.items():
        pairs = [
            (one, other) for one, other in zip(measured, found[role, name], strict=False) if len(one) == len(other)
        ]
        if any(len(one) for one, _ in pairs):
            wanted, got = (np.concatenate(side) for side in zip(*pairs, strict=True))
            yield tensor_difference(role, name, got, wanted)
