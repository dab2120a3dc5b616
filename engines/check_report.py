"""What a check has shown: tensor by tensor and instance by instance, judged by limits, and as a page to read."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.bundle import ModelBundle
from engines.check_files import BestInstances

SURE = 0.5
"""Score from which on an instance must not be lost."""
LEAST_MEAN_IOU = 0.95
_SAME_THING_IOU = 0.5

Array = NDArray[Any]


@dataclass(frozen=True)
class TensorDifference:
    """How far one output of a graph is from the measure's."""

    graph: str
    tensor: str
    largest: float
    """Largest absolute difference."""
    relative: float
    """The same divided by the largest absolute value of the reference."""
    cosine: float = 1.0
    """Of the angle between both, each taken as one long vector."""
    distance: float = 0.0
    """Length of the difference of these vectors, divided by the length of the reference."""


@dataclass(frozen=True)
class CaseComparison:
    """One question, answered by two models. Instances count from a score of 0.5 on."""

    picture: str
    phrase: str
    n_boxes: int
    n_expected: int
    n_found: int
    n_lost: int
    n_gained: int
    score_drift: float
    """Largest difference in score of instances that both have, or as with `ious`, of the best queries."""
    ious: tuple[float, ...]
    """Mask IoU of each pair of instances; in the check of a bundle, of the best query where PyTorch finds none."""


@dataclass(frozen=True)
class Compared:
    """What a model answers beside a measure, not judged yet."""

    runtime: str
    device: str
    tensors: tuple[TensorDifference, ...]
    cases: tuple[CaseComparison, ...]


@dataclass(frozen=True)
class CheckLimits:
    """What a check lets pass. Numbers that are none fail always; None is no limit."""

    least_iou: float = LEAST_MEAN_IOU
    most_lost: int = 0
    """Instances with a score of 0.5 or more, of all questions together."""
    most_gained: int | None = None
    most_drift: float | None = None
    """Of a score."""
    largest_difference: float | None = None
    """Of a tensor, relative to its largest value."""
    most_distance: float | None = None
    """Of a tensor: sees both another direction and another size, and no single value weighs much."""


@dataclass(frozen=True)
class CheckReport:
    """What the check of a model has shown."""

    bundle_id: str
    name: str
    precision: str
    runtime: str
    device: str
    tensors: tuple[TensorDifference, ...]
    cases: tuple[CaseComparison, ...]
    measure: str = "the original"
    limits: CheckLimits = CheckLimits()

    @classmethod
    def of(cls, bundle: ModelBundle, found: Compared, measure: str, limits: CheckLimits) -> CheckReport:
        """What was found about a bundle, to be judged by limits."""
        where = (bundle.bundle_id, bundle.name, bundle.precision, found.runtime, found.device)
        return cls(*where, found.tensors, found.cases, measure, limits)

    @property
    def mean_iou(self) -> float:
        """Over the instances that both find; over the best queries where the measure finds none at all."""
        sure = [iou for case in self.cases if case.n_expected for iou in case.ious]
        every = sure or [iou for case in self.cases for iou in case.ious]
        if every:
            return float(np.mean(every))
        # Nothing found where nothing is to be found: the tensors alone can tell.
        return float(bool(self.tensors) and not any(case.n_expected or case.n_found for case in self.cases))

    @property
    def failures(self) -> tuple[str, ...]:
        """Why the model should not be used, a sentence each; empty if it may."""
        found = []
        least = self.limits.least_iou
        if not self.mean_iou >= least:
            found.append(f"masks agree with {self.measure} only to a mean IoU of {self.mean_iou:.3f} ({least:g})")
        return (*found, *self._instance_failures(), *self._tensor_failures())

    def _instance_failures(self) -> list[str]:
        limits, found = self.limits, []
        lost, gained = (sum(getattr(case, name) for case in self.cases) for name in ("n_lost", "n_gained"))
        too_many_gained = limits.most_gained is not None and gained > limits.most_gained
        for case in self.cases:
            question = f"'{case.phrase}' on {case.picture}"
            if case.n_lost and lost > limits.most_lost:
                found.append(f"{question} loses {case.n_lost} of {case.n_expected} instances")
            if case.n_gained and too_many_gained:
                found.append(f"{question} finds {case.n_gained} instances that are not there")
            if limits.most_drift is not None and not case.score_drift <= limits.most_drift:
                found.append(f"{question} changes a score by {case.score_drift:.2f} ({limits.most_drift:g})")
        return found

    def _tensor_failures(self) -> list[str]:
        largest, most, found = self.limits.largest_difference, self.limits.most_distance, []
        for one in self.tensors:
            what = f"{one.tensor} of the {one.graph} graph"
            if not np.isfinite(one.relative):
                found.append(f"{what} holds values that are no numbers, or too many of them")
            elif largest is not None and one.relative > largest:
                found.append(f"{what} is {one.relative:.1e} off {self.measure} ({largest:g})")
            elif most is not None and not one.distance <= most:
                found.append(f"{what} is {one.distance:.2f} of its length off {self.measure} ({most:g})")
        return found

    @property
    def passed(self) -> bool:
        """Whether the model may be used."""
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        verdict = {"passed": self.passed, "failures": list(self.failures), "mean_iou": self.mean_iou}
        return {**verdict, **asdict(self)}


def write_report(stem: Path, report: CheckReport) -> Path:
    """Write the report as `<stem>.json` and `<stem>.md`, each at once; answers the path of the latter."""
    _replace(stem.with_name(f"{stem.name}.json"), json.dumps(report.as_dict(), indent=2, ensure_ascii=False) + "\n")
    readable = stem.with_name(f"{stem.name}.md")
    _replace(readable, page(report))
    return readable


def _replace(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False) as draft:
        try:
            draft.write(text)
            draft.flush()
            os.fsync(draft.fileno())
            Path(draft.name).chmod(0o644)
            Path(draft.name).replace(path)
        except OSError:
            Path(draft.name).unlink(missing_ok=True)
            raise


def page(report: CheckReport) -> str:
    """The report as Markdown."""
    verdict = "passed" if report.passed else "failed"
    lines = [f"# Check of {report.name}: {verdict}", ""]
    lines += [
        f"Precision {report.precision}, run by {report.runtime} on {report.device}, compared with {report.measure} on"
    ]
    lines += [f"drawn pictures. Mean mask IoU {report.mean_iou:.4f}.", ""]
    lines += [f"- {failure}" for failure in report.failures] + ([""] if report.failures else [])
    lines += ["| graph | tensor | largest difference | relative | distance | cosine |", "|---|---|---|---|---|---|"]
    lines += map(_tensor_row, report.tensors)
    lines += ["", "| phrase | boxes | expected | found | lost | gained | score drift | mask IoU |"]
    lines += ["|---|---|---|---|---|---|---|---|", *map(_case_row, report.cases), ""]
    return "\n".join(lines)


def _tensor_row(one: TensorDifference) -> str:
    differences = f"{one.largest:.2e} | {one.relative:.2e} | {one.distance:.2e} | {one.cosine:.4f}"
    return f"| {one.graph} | {one.tensor} | {differences} |"


def _case_row(case: CaseComparison) -> str:
    iou = f"{np.mean(case.ious):.4f}" if case.ious else ""
    counts = f"{case.n_expected} | {case.n_found} | {case.n_lost} | {case.n_gained}"
    return f"| {case.phrase} | {case.n_boxes} | {counts} | {case.score_drift:.4f} | {iou} |"


def tensor_difference(graph: str, tensor: str, got: Array, wanted: Array) -> TensorDifference:
    """Of two arrays of one shape."""
    given, measure = (side.astype(np.float64).ravel() for side in (got, wanted))
    largest = float(np.abs(given - measure).max(initial=0.0))
    scale = float(np.abs(measure).max(initial=0.0))
    distance = float(np.linalg.norm(given - measure) / max(float(np.linalg.norm(measure)), 1e-12))
    return TensorDifference(graph, tensor, largest, largest / max(scale, 1e-12), _cosine(given, measure), distance)


def _cosine(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / lengths if lengths else float(not (first.any() or second.any()))


def compare_instances(case: Mapping[str, Any], expected: BestInstances, found: BestInstances) -> CaseComparison:
    """Match what PyTorch finds with what the bundle finds, best score first, each once, by the IoU of masks."""
    iou = mask_iou(expected.masks, found.masks)
    n_expected, n_found = (int((one.scores >= SURE).sum()) for one in (expected, found))
    pairs = matched_pairs(iou[:n_expected, :n_found])
    drift = [abs(float(expected.scores[row] - found.scores[column])) for row, column in pairs]
    ious = [float(iou[row, column]) for row, column in pairs]
    if not n_expected:
        drift, ious = [abs(float(expected.scores[0] - found.scores[0]))], [float(iou[0].max())]
    return CaseComparison(
        picture=case["picture"],
        phrase=case["phrase"],
        n_boxes=len(case["boxes"]),
        n_expected=n_expected,
        n_found=n_found,
        n_lost=n_expected - len(pairs),
        n_gained=n_found - len(pairs),
        score_drift=float(np.max(drift, initial=0.0)),
        ious=tuple(ious),
    )


def matched_pairs(iou: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Which row of an IoU matrix [n, m] is which column: row after row the best column left, if it reaches 0.5."""
    pairs: list[tuple[int, int]] = []
    for row in range(iou.shape[0]):
        free = [column for column in range(iou.shape[1]) if column not in {second for _, second in pairs}]
        best = max(free, key=lambda column: iou[row, column], default=None)
        if best is not None and iou[row, best] >= _SAME_THING_IOU:
            pairs.append((row, best))
    return pairs


def mask_iou(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> NDArray[np.float64]:
    """IoU of each mask [n, h, w] with each of [m, h, w]: [n, m]; two empty masks are the same."""
    a, b = (masks.reshape(len(masks), -1).astype(np.float64) for masks in (first, second))
    overlap = a @ b.T
    union = a.sum(axis=1)[:, None] + b.sum(axis=1)[None] - overlap
    return np.where(union == 0, 1.0, overlap / np.maximum(union, 1.0))
