"""Which model a project is labelled with: chosen on the page, and remembered with the project."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Lock

from annotator.errors import ModelLoadingError
from annotator.models import model_loader
from annotator.workspace import Workspace
from engines.errors import PhrasemaskError
from engines.loader import AUTO
from engines.protocols import Progress

_SETTING = "model"


@dataclass(frozen=True)
class ModelChoice:
    """A model by name or folder, and what runs it where."""

    model: str
    runtime: str = AUTO
    device: str = AUTO


class ModelSwitch:
    """Loads one model after the other for a workspace, and tells how far it is."""

    def __init__(self, workspace: Workspace) -> None:
        self.words = ""
        """What is being loaded; empty when nothing is."""
        self.share: float | None = None
        """How much of the step under way is done, 0 to 1; None where nobody can tell, nor stop it."""
        self._workspace = workspace
        self._turn = Lock()
        self._stop = Event()

    def use(self, choice: ModelChoice) -> None:
        """As `use_model`; raises `ModelLoadingError` while another model is being loaded."""
        if not self._turn.acquire(blocking=False):
            raise ModelLoadingError(self.words or "a model is being loaded")
        try:
            self._stop.clear()
            self.words = f"loading {Path(choice.model).name}"
            use_model(self._workspace, choice, self._progress_on(self.words))
        finally:
            self.words, self.share = "", None
            self._turn.release()

    def stop(self) -> None:
        """Ask the loading under way to end as soon as it can; `use` then raises `EngineCancelledError`."""
        self._stop.set()

    def _progress_on(self, words: str) -> Progress:
        def progress(what: str, share: float) -> bool:
            self.words, self.share = f"{words}: {what}, {share:.0%}", share
            return not self._stop.is_set()

        return progress


def use_model(workspace: Workspace, choice: ModelChoice, progress: Progress | None = None) -> None:
    """Load the model and answer with it from then on; what another model suggested stays until phrases are run again.

    Where it cannot be used, the one in use stays, and the error says why.
    """
    workspace.predictor.use(model_loader(choice.model, choice.runtime, choice.device, progress=progress))
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
