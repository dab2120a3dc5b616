"""Writes a project as a dataset, in any installed format."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import annotator.exporters
from annotator.exporters.protocol import Exporter, ExportOptions, ExportReport, ExportSource
from annotator.records import Decision
from annotator.store import ProjectStore
from engines.discovery import choose, discover

DECISIONS: dict[str, tuple[Decision, ...]] = {
    "accepted": (Decision.ACCEPTED,),
    "pending": (Decision.PENDING,),
    "all": (Decision.ACCEPTED, Decision.PENDING),
}
"""What `--decision` takes. A rejected annotation is never exported."""


@cache
def exporters() -> dict[str, Exporter]:
    """Every export format by name."""
    return discover(annotator.exporters, "EXPORTER", Exporter)
