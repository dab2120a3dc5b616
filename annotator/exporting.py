"""Writes a project as a dataset, in any installed format."""

from __future__ import annotations

from collections.abc import Collection
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

EXPORTS_FOLDER = "exports"
"""Where the page puts datasets, inside the project."""


@cache
def exporters() -> dict[str, Exporter]:
    """Every export format by name."""
    return discover(annotator.exporters, "EXPORTER", Exporter)


def export_project(
    store: ProjectStore,
    out: Path,
    format_name: str,
    decisions: Collection[Decision],
    options: ExportOptions,
    min_score: float = 0.0,
) -> ExportReport:
    """Write the annotations with one of those decisions and at least that score into the folder `out`.

    Drawn annotations have no score and pass every `min_score`. Raises `UnknownKindError` for a format that is not
    installed and `ExportError` when the dataset cannot be written or does not read back as it was written.
    """
    exporter = choose(exporters(), "export format", format_name)
    folder = Path(store.setting("folder") or ".")
    source = ExportSource(
        categories=store.categories(),
        images=store.iter_annotated_images(decisions, min_score or None),
        folder=folder,
        description=f"Labelled with Phrasemask from {folder.name}",
    )
    return exporter.write(source, out, options)
