"""Whether a bundle answers as its original model does: tensor by tensor, and instance by instance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engines.bundle import ModelBundle
from engines.check_files import CASES_FILE, DECODER_FILE, N_BEST, REFERENCE_FILE, BestInstances, sample
from engines.errors import BundleFileMissingError, NoReferenceAnswersError
from engines.loader import AUTO, check_device, choose_runtime, open_bundle
from engines.protocols import Session

REPORT_FILE = "check_report.json"
PAGE_FILE = "check_report.md"
SURE = 0.5
"""Score from which on an instance must not be lost."""
LEAST_MEAN_IOU = 0.95
_SAME_THING_IOU = 0.5
_LARGEST_DIFFERENCE = {"fp32": 1e-3}
"""Of a tensor, relative to its largest value. Other precisions are judged by their instances alone."""
_NO_BOX = -10
_FEATURES = ("features_0", "features_1", "features_2")

Array = NDArray[Any]


@dataclass(frozen=True)
class TensorDifference:
    """How far one output of a graph, given what PyTorch was given, is from PyTorch's."""

    graph: str
    tensor: str
    largest: float
    """Largest absolute difference."""
    relative: float
    """The same divided by the largest absolute value of the reference."""


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
    """Largest difference in score of instances that both have."""
    ious: tuple[float, ...]
    """Mask IoU of each pair of instances; in the check of a bundle, of the best query where PyTorch finds none."""


@dataclass(frozen=True)
class CheckReport:
    """What the check of a bundle has shown."""

    bundle_id: str
    name: str
    precision: str
    runtime: str
    device: str
    tensors: tuple[TensorDifference, ...]
    cases: tuple[CaseComparison, ...]

    @property
    def mean_iou(self) -> float:
        """Over the instances that both find; over the best queries where PyTorch finds none at all."""
        sure = [iou for case in self.cases if case.n_expected for iou in case.ious]
        every = sure or [iou for case in self.cases for iou in case.ious]
        return float(np.mean(every)) if every else 0.0

    @property
    def failures(self) -> tuple[str, ...]:
        """Why the bundle should not be used, a sentence each; empty if it may."""
        found = []
        if not self.mean_iou >= LEAST_MEAN_IOU:
            found.append(f"masks agree with the original only to a mean IoU of {self.mean_iou:.3f} ({LEAST_MEAN_IOU})")
        for case in self.cases:
            if case.n_lost:
                found.append(f"'{case.phrase}' on {case.picture} loses {case.n_lost} of {case.n_expected} instances")
        limit = _LARGEST_DIFFERENCE.get(self.precision, np.inf)
        for one in self.tensors:
            if not (np.isfinite(one.relative) and one.relative <= limit):
                found.append(
                    f"{one.tensor} of the {one.graph} graph is {one.relative:.1e} off the original ({limit:g})"
                )
        return tuple(found)

    @property
    def passed(self) -> bool:
        """Whether the bundle may be used."""
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        verdict = {"passed": self.passed, "failures": list(self.failures), "mean_iou": self.mean_iou}
        return {**verdict, **asdict(self)}


def check_bundle(folder: Path, runtime: str = AUTO, device: str = AUTO) -> CheckReport:
    """Run the bundle's check pictures and write `check_report.json` and `check_report.md` into it.

    Raises a `BundleError`, also where the folder holds no answers to check by, and `RuntimeUnavailableError`.
    """
    bundle = open_bundle(folder)
    if REFERENCE_FILE not in bundle.checks:
        raise NoReferenceAnswersError(folder)
    bundle.verify()
    chosen = choose_runtime(runtime, device)
    check_device(chosen, device)
    reference, alone = _arrays(bundle, REFERENCE_FILE), _arrays(bundle, DECODER_FILE)
    cases = json.loads(bundle.file(CASES_FILE).read_text("utf-8"))

    def load(role: str) -> Session:
        graph = bundle.graphs[role]
        return chosen.load_graph(bundle.file(graph.file), graph, device)

    session = load("vision")
    features = {name: session.run({"image": _pixels(bundle.file(name))}) for name in _pictures(cases)}
    tensors = list(_vision_differences(features, reference))
    del session  # before the next is loaded: at full size, vision alone holds several gigabytes
    session = load("text")
    phrases = session.run({"input_ids": reference["input_ids"]})["text_features"]
    tensors.append(_difference("text", "text_features", phrases, reference["text_features"]))
    del session
    session = load("decoder")
    tensors += _decoder_differences(session, bundle, alone)
    compared = tuple(_compare_cases(session, cases, features, phrases, reference))
    where = (bundle.bundle_id, bundle.name, bundle.precision, session.runtime, session.device)
    report = CheckReport(*where, tuple(tensors), compared)
    write_report(folder, report)
    return report


def failed_check(bundle: ModelBundle) -> tuple[str, ...]:
    """What the last check of exactly this bundle found wrong; empty if it passed or was never checked."""
    try:
        report = json.loads((bundle.folder / REPORT_FILE).read_text("utf-8"))
        is_of_this = report["bundle_id"] == bundle.bundle_id
        return tuple(report["failures"]) if is_of_this else ()
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def write_report(folder: Path, report: CheckReport) -> None:
    """Write both forms of the report; they are no part of the model and not in its manifest."""
    (folder / REPORT_FILE).write_text(json.dumps(report.as_dict(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    (folder / PAGE_FILE).write_text(page(report), "utf-8")


def page(report: CheckReport) -> str:
    """The report as Markdown."""
    verdict = "passed" if report.passed else "failed"
    lines = [f"# Check of {report.name}: {verdict}", ""]
    lines += [f"Precision {report.precision}, run by {report.runtime} on {report.device}, compared with PyTorch in"]
    lines += [f"float32 on drawn pictures. Mean mask IoU {report.mean_iou:.4f}.", ""]
    lines += [f"- {failure}" for failure in report.failures] + ([""] if report.failures else [])
    lines += ["| graph | tensor | largest difference | relative |", "|---|---|---|---|"]
    lines += [f"| {one.graph} | {one.tensor} | {one.largest:.2e} | {one.relative:.2e} |" for one in report.tensors]
    lines += ["", "| phrase | boxes | expected | found | lost | gained | score drift | mask IoU |"]
    lines += ["|---|---|---|---|---|---|---|---|", *map(_case_row, report.cases), ""]
    return "\n".join(lines)


def _case_row(case: CaseComparison) -> str:
    iou = f"{np.mean(case.ious):.4f}" if case.ious else ""
    counts = f"{case.n_expected} | {case.n_found} | {case.n_lost} | {case.n_gained}"
    return f"| {case.phrase} | {case.n_boxes} | {counts} | {case.score_drift:.4f} | {iou} |"


def _arrays(bundle: ModelBundle, name: str) -> dict[str, Array]:
    if name not in bundle.checks:
        raise BundleFileMissingError(bundle.folder, name)
    with np.load(bundle.file(name)) as archive:
        return dict(archive)


def _pictures(cases: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(case["picture"] for case in cases))


def _pixels(path: Path) -> NDArray[np.uint8]:
    with Image.open(path) as picture:
        return np.ascontiguousarray(np.asarray(picture.convert("RGB")).transpose(2, 0, 1)[None])


def _vision_differences(
    features: Mapping[str, Mapping[str, Array]], reference: Mapping[str, Array]
) -> Iterable[TensorDifference]:
    """The worst of all pictures for each scale."""
    for name in _FEATURES:
        each = [
            _difference("vision", name, sample(outputs[name]), reference[f"vision/{index}/{name}"])
            for index, outputs in enumerate(features.values())
        ]
        yield max(each, key=lambda one: np.nan_to_num(one.relative, nan=np.inf))


def _decoder_differences(
    session: Session, bundle: ModelBundle, alone: Mapping[str, Array]
) -> Iterable[TensorDifference]:
    """Rows of the answer may change places where two score alike: each expected row is compared with its nearest."""
    dtypes = {spec.name: spec.dtype for spec in bundle.graphs["decoder"].inputs}
    got = session.run({name: alone[f"in/{name}"].astype(dtype) for name, dtype in dtypes.items()})
    wanted = {name: alone[f"out/{name}"] for name in got}
    n_phrases = len(wanted["logits"])
    yield _difference("decoder", "presence", got["presence"], wanted["presence"])
    rows = [_nearest_rows(got, wanted, phrase) for phrase in range(n_phrases)]
    for name in ("logits", "boxes_xyxy"):
        pairs = [(got[name][phrase][row], wanted[name][phrase][: len(row)]) for phrase, row in enumerate(rows)]
        yield _difference("decoder", name, *map(np.stack, zip(*pairs, strict=True)))
    masks = [[sample(got["mask_logits"][phrase][index]) for index in row] for phrase, row in enumerate(rows)]
    yield _difference("decoder", "mask_logits", np.array(masks), wanted["mask_logits"])


def _nearest_rows(got: Mapping[str, Array], wanted: Mapping[str, Array], phrase: int) -> list[int]:
    """For each of the best expected rows, the row of the answer with the same box and score."""
    n_best = min(N_BEST, wanted["logits"].shape[1])
    columns = [
        np.concatenate((side["boxes_xyxy"][phrase], side["logits"][phrase][:, None]), axis=1) for side in (got, wanted)
    ]
    distance = np.abs(columns[1][:n_best, None] - columns[0][None]).sum(axis=2)
    return [int(row) for row in distance.argmin(axis=1)]


def _difference(graph: str, tensor: str, got: Array, wanted: Array) -> TensorDifference:
    largest = float(np.abs(got.astype(np.float64) - wanted).max())
    scale = float(np.abs(wanted).max())
    return TensorDifference(graph, tensor, largest, largest / max(scale, 1e-12))


def _compare_cases(
    session: Session,
    cases: list[dict[str, Any]],
    features: Mapping[str, Mapping[str, Array]],
    phrases: Array,
    reference: Mapping[str, Array],
) -> Iterable[CaseComparison]:
    for index, case in enumerate(cases):
        feeds = {
            **{name: features[case["picture"]][name] for name in _FEATURES},
            "text_features": phrases[index : index + 1],
            "text_mask": reference["text_mask"][index : index + 1],
            "boxes": np.array([case["boxes"] or [[0.0] * 4]], dtype=np.float32),
            "labels": np.array([case["labels"] or [_NO_BOX]], dtype=np.int32),
        }
        found = BestInstances.of(session.run(feeds))
        yield compare_instances(case, BestInstances.unpacked(reference, f"case/{index}"), found)


def compare_instances(case: Mapping[str, Any], expected: BestInstances, found: BestInstances) -> CaseComparison:
    """Match what PyTorch finds with what the bundle finds, best score first, each once, by the IoU of masks."""
    iou = mask_iou(expected.masks, found.masks)
    n_expected, n_found = (int((one.scores >= SURE).sum()) for one in (expected, found))
    pairs = matched_pairs(iou[:n_expected, :n_found])
    drift = [abs(float(expected.scores[row] - found.scores[column])) for row, column in pairs]
    ious = [float(iou[row, column]) for row, column in pairs] if n_expected else [float(iou[0].max())]
    return CaseComparison(
        picture=case["picture"],
        phrase=case["phrase"],
        n_boxes=len(case["boxes"]),
        n_expected=n_expected,
        n_found=n_found,
        n_lost=n_expected - len(pairs),
        n_gained=n_found - len(pairs),
        score_drift=max(drift, default=0.0),
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
