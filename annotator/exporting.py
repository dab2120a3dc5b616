"""Writes a project as a dataset, in any installed format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import annotator.exporters
from annotator.errors import CommandError
from annotator.exporters.protocol import Exporter, ExportOptions, ExportReport, ExportSource
from annotator.records import Annotation, Decision, ImageRecord
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


@dataclass(frozen=True)
class _AnnotatedImages:
    """The chosen annotations, streamed anew each time they are walked."""

    store: ProjectStore
    decisions: tuple[Decision, ...]
    min_score: float | None

    def __iter__(self) -> Iterator[tuple[ImageRecord, Sequence[Annotation]]]:
        return iter(self.store.iter_annotated_images(self.decisions, self.min_score))


def check_options(format_name: str, options: ExportOptions) -> None:
    """Raise `CommandError` for an option that was chosen and does nothing in that format, or `UnknownKindError`."""
    heeded = choose(exporters(), "export format", format_name).options
    for field in fields(ExportOptions):
        if field.name not in heeded and getattr(options, field.name) != field.default:
            name = field.name.replace("_", "-")
            takers = [one.name for one in exporters().values() if field.name in one.options]
            raise CommandError(f"--{name} does nothing for the format {format_name}, only for: {', '.join(takers)}")


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
        images=_AnnotatedImages(store, tuple(decisions), min_score or None),
        folder=folder,
        description=f"Labelled with Phrasemask from {folder.name}",
    )
    return exporter.write(source, out, options)
