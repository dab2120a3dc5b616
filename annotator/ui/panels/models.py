"""The models and runtimes, of which one is chosen, and how to get SAM 3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from annotator.errors import CommandError
from annotator.model_choice import ModelChoice, ModelSwitch
from annotator.models import ModelRow, list_models, list_runtimes, loaded_row, model_folders
from annotator.ui.panel import Reply, Request, ServerFunction, build_panel, text_in
from annotator.workspace import Workspace
from engines.protocols import SegmenterInfo

if TYPE_CHECKING:
    import gradio


def build_models(workspace: Workspace, *, any_folder: bool) -> gradio.HTML:
    """The dialog behind the Models button; `any_folder` lets a person open models that are not installed."""
    return build_panel("models", model_functions(workspace, any_folder=any_folder))


def model_functions(workspace: Workspace, *, any_folder: bool = True) -> list[ServerFunction]:
    """What the panel asks of Python."""
    switch = ModelSwitch(workspace)

    def describe_models(request: Request) -> Reply:
        """Everything installed, and what of it is in use; does not wait for a model that is being loaded."""
        info = workspace.predictor.loaded_info
        return {
            "models": [_card(row, info) for row in _rows(info)],
            "runtimes": [row.as_json() for row in list_runtimes()],
            "any_folder": any_folder,
            "own_folder": str(model_folders()[-1]),
        }

    def choose_model(request: Request) -> Reply:
        """Load a model by name or folder and answer with it; the one in use stays where that fails."""
        if not any_folder and text_in(request, "model") not in {row.folder for row in list_models()}:
            raise CommandError("from another machine only installed models can be chosen; name the folder with --model")
        model = _absolute(text_in(request, "model"))
        switch.use(ModelChoice(model, text_in(request, "runtime"), text_in(request, "device")))
        return {}

    def loading_model(request: Request) -> Reply:
        """What is being loaded and how far that is, also for another tab; without a share it cannot be stopped."""
        return {"words": switch.words, "share": switch.share}

    def stop_loading(request: Request) -> Reply:
        """End the loading under way as soon as it can; whoever asked for it is told."""
        switch.stop()
        return {}

    return [describe_models, choose_model, loading_model, stop_loading]


def _rows(info: SegmenterInfo | None) -> list[ModelRow]:
    rows = list_models()
    if info is None or any(row.bundle_id == info.bundle_id for row in rows):
        return rows
    return [loaded_row(info), *rows]


def _card(row: ModelRow, info: SegmenterInfo | None) -> Reply:
    return {**row.as_json(), "in_use": info is not None and row.bundle_id == info.bundle_id}


def _absolute(model: str) -> str:
    """The path of a folder in full, so that it is found again from anywhere; a name as it is."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model
