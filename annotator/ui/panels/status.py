"""The line at the top: which model runs where, and how fast it was the last time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.ui.panel import Reply, Request, ServerFunction, build_panel
from annotator.ui.views import timings_view
from annotator.workspace import Workspace
from engines.loader import runtimes

if TYPE_CHECKING:
    import gradio


def build_status(workspace: Workspace) -> gradio.HTML:
    """The panel at the top."""
    return build_panel("status", status_functions(workspace))


def status_functions(workspace: Workspace) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def describe_model(request: Request) -> Reply:
        """What was really loaded; waits for the model if it is still loading."""
        info = workspace.predictor.info
        return {
            "model": info.name,
            "family": info.family,
            "precision": info.precision,
            "runtime": runtimes()[info.runtime].title,
            "device": info.device.upper(),
            "open_vocabulary": info.capabilities.open_vocabulary,
            "exemplar_boxes": info.capabilities.exemplar_boxes,
            "box_to_mask": info.capabilities.box_to_mask,
            "score_floor": info.capabilities.score_floor,
            "n_changes": workspace.predictor.n_changes,
            "notes": list(info.notes),
            "timings": timings_view(workspace),
            "project": str(workspace.project),
        }

    return [describe_model]
