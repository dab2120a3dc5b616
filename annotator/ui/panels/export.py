"""The export dialog: writes the dataset into the project and offers it for download."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.exporters.protocol import ExportOptions
from annotator.exporting import DECISIONS, EXPORTS_FOLDER, export_project
from annotator.ui.panel import Reply, Request, ServerFunction, build_panel, text_in
from annotator.ui.views import file_url
from annotator.workspace import Workspace

if TYPE_CHECKING:
    import gradio


def build_export(workspace: Workspace) -> gradio.HTML:
    """The dialog behind the Export button."""
    return build_panel("export", export_functions(workspace))


def export_functions(workspace: Workspace) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def export_dataset(request: Request) -> Reply:
        """Write the dataset; addresses of its files."""
        options = ExportOptions(
            segmentation=text_in(request, "segmentation"), min_area=max(1, int(request["min_area"]))
        )
        decisions, min_score = DECISIONS[text_in(request, "decision")], float(request["min_score"])
        out = workspace.project / EXPORTS_FOLDER
        report = export_project(workspace.store, out, "coco", decisions, options, min_score)
        return {
            "files": [{"name": file.name, "url": file_url(file.resolve())} for file in report.files],
            "summary": report.summary,
            "notes": [*report.notes, *report.problems],
        }

    return [export_dataset]
