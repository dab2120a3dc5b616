"""Which model a project is labelled with: chosen on the page, and remembered with the project."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from annotator.models import model_loader
from annotator.workspace import Workspace
from engines.errors import PhrasemaskError
from engines.loader import AUTO

_SETTING = "model"


@dataclass(frozen=True)
class ModelChoice:
    """A model by name or folder, and what runs it where."""

    model: str
    runtime: str = AUTO
    device: str = AUTO


def use_model(workspace: Workspace, choice: ModelChoice) -> None:
    """Load the model and answer with it from then on; what another model suggested stays until phrases are run again.

    Where it cannot be used, the one in use stays, and the error says why.
    """
    workspace.predictor.use(model_loader(choice.model, choice.runtime, choice.device))
    workspace.store.set_setting(_SETTING, json.dumps(asdict(choice)))


def use_remembered_model(workspace: Workspace) -> str:
    """Take the model that was chosen last; answers a sentence where that is not possible any more."""
    setting = workspace.store.setting(_SETTING)
    if setting is None:
        return ""
    try:
        choice = ModelChoice(**json.loads(setting))
        workspace.predictor.use_later(model_loader(choice.model, choice.runtime, choice.device))
    except (PhrasemaskError, ValueError, TypeError) as error:
        return f"the model chosen last cannot be used: {error}"
    return ""
