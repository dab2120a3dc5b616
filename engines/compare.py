"""Whether a bundle answers as its original model does: tensor by tensor, and instance by instance."""

from __future__ import annotations

import json
from pathlib import Path

from engines.bundle import ModelBundle
from engines.check_files import REFERENCE_FILE
from engines.check_report import LEAST_MEAN_IOU, CheckLimits, CheckReport, write_report
from engines.engine_check import engine_limits
from engines.errors import NoReferenceAnswersError
from engines.loader import AUTO, check_device, check_engines, choose_runtime, graph_opener, open_bundle
from engines.protocols import Progress
from engines.reference_check import compare_with_reference

_STEM = "check_report"
REPORT_FILE = f"{_STEM}.json"
PAGE_FILE = f"{_STEM}.md"
_LARGEST_DIFFERENCE = {"fp32": 1e-3}
"""Other precisions are judged by their instances alone."""


def check_bundle(folder: Path, runtime: str = AUTO, device: str = AUTO) -> CheckReport:
    """What `check_model` reports, by the usual limits."""
    return check_model(folder, runtime, device)[0]


def check_model(
    folder: Path,
    runtime: str = AUTO,
    device: str = AUTO,
    least_iou: float = LEAST_MEAN_IOU,
    most_changed: int = 0,
    progress: Progress | None = None,
) -> tuple[CheckReport, Path]:
    """Run the bundle's check pictures and write what they show; answers it, and the page to read.

    Of a runtime that builds engines it is these that are judged, and the report lies beside them; `progress` is told
    how far that is, and can stop it. Of any other it is the bundle: the report lies in its folder as
    `check_report.json` and `check_report.md`. `least_iou` is of masks, on average; `most_changed` instances with a
    score of 0.5 or more may be lost, and of engines, as many gained.
    Raises a `BundleError`, also where the folder holds no answers to check by, and `RuntimeUnavailableError`.
    """
    bundle = open_bundle(folder)
    chosen = choose_runtime(runtime, device)
    check_device(chosen, device)
    if chosen.trial is not None:
        bundle.verify()
        if chosen.prepare is not None and progress is not None:
            chosen.prepare(bundle, device, progress)
        return check_engines(bundle, chosen, device, engine_limits(least_iou, most_changed), progress)
    if REFERENCE_FILE not in bundle.checks:
        raise NoReferenceAnswersError(folder)
    bundle.verify()
    found = compare_with_reference(bundle, graph_opener(bundle, chosen, device))
    limits = CheckLimits(least_iou, most_changed, largest_difference=_LARGEST_DIFFERENCE.get(bundle.precision))
    report = CheckReport.of(bundle, found, "the original", limits)
    return report, write_report(folder / _STEM, report)


def failed_check(bundle: ModelBundle) -> tuple[str, ...]:
    """What the last check of exactly this bundle found wrong; empty if it passed or was never checked."""
    try:
        report = json.loads((bundle.folder / REPORT_FILE).read_text("utf-8"))
        is_of_this = report["bundle_id"] == bundle.bundle_id
        return tuple(report["failures"]) if is_of_this else ()
    except (OSError, ValueError, KeyError, TypeError):
        return ()
