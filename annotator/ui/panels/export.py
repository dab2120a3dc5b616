"""The export dialog: writes the dataset into the project, in any format, and offers it for download."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotator.errors import CommandError
from annotator.export_zip import zip_folder
from annotator.exporters.protocol import Exporter, ExportOptions, ExportReport
from annotator.exporting import DECISIONS, EXPORTS_FOLDER, export_project, exporters
from annotator.ui.panel import Reply, Request, ServerFunction, build_panel, text_in
from annotator.ui.views import file_url
from annotator.workspace import Workspace
from engines.discovery import choose

if TYPE_CHECKING:
    import gradio


def build_export(workspace: Workspace) -> gradio.HTML:
    """The dialog behind the Export button."""
    return build_panel("export", export_functions(workspace))


def export_functions(workspace: Workspace) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def list_formats(request: Request) -> Reply:
        """Every format with the options that it heeds."""
        return {
            "formats": [
                {"name": one.name, "title": one.title, "options": sorted(one.options)} for one in exporters().values()
            ]
        }

    def export_dataset(request: Request) -> Reply:
        """Write the dataset; the addresses of what can be downloaded, and how it is loaded."""
        exporter = choose(exporters(), "export format", text_in(request, "format"))
        options = _options(exporter, request)
        decisions, min_score = DECISIONS[text_in(request, "decision")], float(request["min_score"] or 0)
        out = workspace.project / EXPORTS_FOLDER / exporter.name
        report = export_project(workspace.store, out, exporter.name, decisions, options, min_score)
        return {
            "files": [_download(file) for file in _offered(workspace, out, report, options)],
            "summary": report.summary,
            "notes": [*report.notes, *report.problems],
            "folder": str(out.resolve()),
            "how_to_load": exporter.how_to_load.splitlines(),
        }

    return [list_formats, export_dataset]


def _offered(workspace: Workspace, out: Path, report: ExportReport, options: ExportOptions) -> list[Path]:
    """Single files as they are; a dataset that is a folder, as one ZIP file."""
    lies_flat = all(file.is_file() and file.parent == out for file in report.files)
    if lies_flat and options.images == "none":
        return list(report.files)
    return [zip_folder(out, out.with_name(f"{workspace.folder.root.name or 'dataset'}-{out.name}.zip"))]


def _download(file: Path) -> dict[str, str]:
    """The address changes with the file, so that the browser never hands out an older one."""
    return {"name": file.name, "url": f"{file_url(file.resolve())}?{file.stat().st_mtime_ns}"}


def _options(exporter: Exporter, request: Mapping[str, Any]) -> ExportOptions:
    """The options that the format heeds, as they were typed. Raises `CommandError` for one that cannot be."""
    given = {name: value for name, value in request["options"].items() if name in exporter.options}
    if "ratio" in given:
        train, valid, test = (int(part) for part in given["ratio"])
        given["ratio"] = train, valid, test
    for name, kind in (("min_area", int), ("tolerance_px", float), ("category_base", int), ("seed", int)):
        if name in given:
            given[name] = kind(given[name])
    try:
        return ExportOptions(**given)
    except ValueError as error:
        raise CommandError(str(error)) from None
