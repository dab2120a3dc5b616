"""The list of models and runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.models import list_models, list_runtimes
from annotator.ui.panel import Reply, Request, ServerFunction, build_panel
from annotator.workspace import Workspace

if TYPE_CHECKING:
    import gradio


def build_models(workspace: Workspace) -> gradio.HTML:
    """The dialog behind the Models button."""
    return build_panel("models", model_functions(workspace))


def model_functions(workspace: Workspace) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def describe_models(request: Request) -> Reply:
        """Everything installed, and what of it is in use."""
        in_use = workspace.predictor.info.bundle_id
        models = [{**row.as_json(), "in_use": row.bundle_id == in_use} for row in list_models()]
        return {"models": models, "runtimes": [row.as_json() for row in list_runtimes()]}

    return [describe_models]
