"""How long the last encodings and edits took."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from annotator.ui.panel import Reply, Request, ServerFunction, build_panel
from annotator.workspace import Workspace

if TYPE_CHECKING:
    import gradio


def build_speed(workspace: Workspace) -> gradio.HTML:
    """The dialog behind the times at the top."""
    return build_panel("speed", speed_functions(workspace))


def speed_functions(workspace: Workspace) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def describe_speed(request: Request) -> Reply:
        """Percentiles by stage, and the last edits one by one, in milliseconds."""
        times = workspace.predictor.times
        return {
            "stages": {stage: asdict(one) for stage, one in times.summary().items()},
            "edits": [round(milliseconds, 1) for milliseconds in times.of("edit")],
        }

    return [describe_speed]
