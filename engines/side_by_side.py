"""What two models answer to the same questions, instance by instance; the first is the measure of the second."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from engines.boxes import cxcywh_to_xyxy, scale
from engines.bundle import ModelBundle
from engines.check_files import CASES_FILE
from engines.check_report import SURE, CaseComparison, matched_pairs
from engines.errors import BoxError, BoxesNotTakenError, ImageError, PhraseError
from engines.images import read_image
from engines.masks import iou_matrix
from engines.protocols import Segmenter, SegmenterInfo
from engines.types import BoxPrompt, ImageFeatures, Instance, Phrase, SegmentOptions

_OPTIONS = SegmentOptions(score_threshold=SURE)


@dataclass(frozen=True)
class Question:
    """What is asked about a picture: a phrase, and boxes as shares of the picture with labels 1 or 0, as in a bundle's
    check files. `name` is what the picture is called in the report."""

    picture: Path
    name: str
    phrase: str
    boxes_cxcywh: tuple[tuple[float, float, float, float], ...] = ()
    labels: tuple[int, ...] = ()

    def box_prompts(self, height: int, width: int) -> list[BoxPrompt]:
        """The boxes in pixels."""
        if not self.boxes_cxcywh:
            return []
        corners = scale(cxcywh_to_xyxy(self.boxes_cxcywh), width, height).tolist()
        return [BoxPrompt(tuple(xyxy), label == 1) for xyxy, label in zip(corners, self.labels, strict=True)]


@dataclass(frozen=True)
class Answer:
    """Instances at a score of 0.5 or more, best first; or why there is no answer."""

    instances: Sequence[Instance] = ()
    problem: str = ""
    failed: bool = False
    """Something is wrong with the picture or the phrase; false where the model has no place for boxes."""


@dataclass(frozen=True)
class LeftOut:
    """A question that one of the models, or both, did not answer."""

    picture: str
    phrase: str
    reason: str
    failed: bool


@dataclass(frozen=True)
class Comparison:
    """What the comparison of `other` with `measure` has shown."""

    measure: SegmenterInfo
    other: SegmenterInfo
    cases: tuple[CaseComparison, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def n_expected(self) -> int:
        """Instances that the measure finds."""
        return sum(case.n_expected for case in self.cases)

    @property
    def n_lost(self) -> int:
        """Those of them that the other does not find."""
        return sum(case.n_lost for case in self.cases)

    @property
    def n_gained(self) -> int:
        """Instances that only the other finds."""
        return sum(case.n_gained for case in self.cases)

    @property
    def mean_iou(self) -> float | None:
        """Of the masks of instances that both find; None where there are none."""
        ious = [iou for case in self.cases for iou in case.ious]
        return float(np.mean(ious)) if ious else None

    @property
    def score_drift(self) -> float:
        """Largest difference in score of instances that both find."""
        return max((case.score_drift for case in self.cases), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("n_expected", "n_lost", "n_gained", "mean_iou", "score_drift")
        return {**{name: getattr(self, name) for name in names}, **asdict(self)}


def check_questions(bundle: ModelBundle) -> list[Question]:
    """The questions of a bundle's check files; empty where it has none. Raises `BundleFileMissingError`."""
    if CASES_FILE not in bundle.checks:
        return []
    cases = json.loads(bundle.file(CASES_FILE).read_text("utf-8"))
    return [
        Question(bundle.file(name), name, case["phrase"], tuple(map(tuple, case["boxes"])), tuple(case["labels"]))
        for case in cases
        for name in [case["picture"]]
    ]


def answer_all(segmenter: Segmenter, questions: Iterable[Question]) -> Iterator[Answer]:
    """An answer to each question, in order; a picture is encoded once for the questions about it in a row."""
    for picture, group in groupby(questions, key=lambda question: question.picture):
        try:
            features = segmenter.encode_image(read_image(picture).rgb, str(picture))
        except ImageError as error:
            yield from (Answer(problem=str(error), failed=True) for _ in group)
            continue
        for question in group:
            yield _answer(segmenter, features, question)


def _answer(segmenter: Segmenter, features: ImageFeatures, question: Question) -> Answer:
    try:
        boxes = question.box_prompts(features.height, features.width)
        if boxes and not segmenter.info.capabilities.exemplar_boxes:
            raise BoxesNotTakenError(segmenter.info.name, "phrases only")
        phrase = segmenter.encode_phrase(Phrase(question.phrase))
        return Answer(segmenter.decode(features, phrase, boxes, _OPTIONS))
    except BoxesNotTakenError as error:
        return Answer(problem=str(error))
    except (PhraseError, BoxError) as error:
        return Answer(problem=str(error), failed=True)


def compare_answers(
    measure: SegmenterInfo, other: SegmenterInfo, answers: Iterable[tuple[Question, Answer, Answer]]
) -> Comparison:
    """From the answers of both models to each question."""
    cases, left_out = [], []
    for question, expected, found in answers:
        without = next((one for one in (expected, found) if one.problem), None)
        if without is None:
            cases.append(_compared(question, expected.instances, found.instances))
        else:
            left_out.append(LeftOut(question.name, question.phrase, without.problem, without.failed))
    return Comparison(measure, other, tuple(cases), tuple(left_out))


def _compared(question: Question, expected: Sequence[Instance], found: Sequence[Instance]) -> CaseComparison:
    """Match the instances of two answers, best score first, each once, by the IoU of their masks."""
    iou = iou_matrix([one.mask for one in expected], [one.mask for one in found])
    pairs = matched_pairs(iou)
    return CaseComparison(
        picture=question.name,
        phrase=question.phrase,
        n_boxes=len(question.boxes_cxcywh),
        n_expected=len(expected),
        n_found=len(found),
        n_lost=len(expected) - len(pairs),
        n_gained=len(found) - len(pairs),
        score_drift=max((abs(expected[row].score - found[column].score) for row, column in pairs), default=0.0),
        ious=tuple(float(iou[row, column]) for row, column in pairs),
    )
