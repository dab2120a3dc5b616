"""Checks a model, or its engines, from the command line: a bar while it lasts, then what it has shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from annotator.progress_bar import progress_bar
from engines.check_report import CheckReport
from engines.compare import check_model


def check_on_terminal(
    folder: Path, runtime: str, device: str, least_iou: float, most_changed: int
) -> tuple[CheckReport, Path]:
    """As `check_model`; `EngineCancelledError` after Ctrl+C while engines are built or tried."""
    with progress_bar() as progress:
        return check_model(folder, runtime, device, least_iou, most_changed, progress)


def check_lines(report: CheckReport, readable: Path) -> Iterator[str]:
    """The verdict, what speaks against the model, and where the report lies."""
    verdict = "passed" if report.passed else "FAILED"
    yield f"{report.name} by {report.runtime}: {verdict}, mean IoU {report.mean_iou:.4f} with {report.measure}"
    yield from (f"    {failure}" for failure in report.failures)
    yield str(readable)
