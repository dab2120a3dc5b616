"""The models and runtimes, of which one is chosen, and how to get SAM 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.errors import CommandError
from annotator.model_choice import ModelChoice, use_model
from annotator.models import list_models, list_runtimes
from annotator.ui.panel import Reply, Request, ServerFunction, build_panel, text_in
from annotator.workspace import Workspace

if TYPE_CHECKING:
    import gradio


def build_models(workspace: Workspace, *, any_folder: bool) -> gradio.HTML:
    """The dialog behind the Models button; `any_folder` lets a person open models that are not installed."""
    return build_panel("models", model_functions(workspace, any_folder=any_folder))


def model_functions(workspace: Workspace, *, any_folder: bool = True) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def describe_models(request: Request) -> Reply:
        """Everything installed, and what of it is in use."""
        in_use = workspace.predictor.info.bundle_id
        models = [{**row.as_json(), "in_use": row.bundle_id == in_use} for row in list_models()]
        return {"models": models, "runtimes": [row.as_json() for row in list_runtimes()]}

    def choose_model(request: Request) -> Reply:
        """Load a model by name or folder and answer with it; the one in use stays where that fails."""
        if not any_folder and text_in(request, "model") not in {row.folder for row in list_models()}:
            raise CommandError("from another machine only installed models can be chosen; name the folder with --model")
        chosen = ModelChoice(text_in(request, "model"), text_in(request, "runtime"), text_in(request, "device"))
        use_model(workspace, chosen)
        return {}

    return [describe_models, choose_model]
