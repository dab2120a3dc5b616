"""The instances on the image: decisions on them, their category, undo and redo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.errors import AnswerReplacedError
from annotator.records import Action, Decision
from annotator.ui.panel import Reply, Request, ServerFunction, boxes_in, build_panel, text_in
from annotator.ui.views import image_view
from annotator.workspace import Workspace
from engines.suppression import SuppressionLimits

if TYPE_CHECKING:
    import gradio

_DRAFT = "draft:"


def build_instances(workspace: Workspace) -> gradio.HTML:
    """The panel at the bottom right."""
    return build_panel("instances", instance_functions(workspace))


def instance_functions(workspace: Workspace) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def decide(request: Request) -> Reply:
        """Store decisions; instances of a phrase that is still being typed are kept with their phrase first."""
        image_id, revision = int(request["id"]), int(request["revision"])
        decisions = {str(key): Decision(value) for key, value in request["decisions"].items()}
        _answer_draft(workspace, image_id, request.get("draft"))
        with workspace.store.atomic():
            ids, revision = _store_draft(workspace, image_id, request.get("draft"), revision)
            chosen = {ids.get(key, key): decision for key, decision in decisions.items()}
            stored = {int(key): decision for key, decision in chosen.items() if not str(key).startswith(_DRAFT)}
            workspace.decide(image_id, stored, revision, text_in(request, "label"))
        return image_view(workspace, image_id)

    def finish(request: Request) -> Reply:
        """Accept what is left at or above the threshold, of what was seen, and call the image reviewed."""
        image_id, revision = int(request["id"]), int(request["revision"])
        _answer_draft(workspace, image_id, request.get("draft"))
        with workspace.store.atomic():
            ids, revision = _store_draft(workspace, image_id, request.get("draft"), revision)
            seen = [ids.get(key, key) for key in map(str, request["seen"])]
            stored = {int(key) for key in seen if not key.startswith(_DRAFT)}
            workspace.finish(image_id, float(request["threshold"]), revision, stored)
        return image_view(workspace, image_id)

    def relabel(request: Request) -> Reply:
        """Give an annotation another category."""
        image_id = int(request["id"])
        workspace.relabel(
            image_id, [int(request["annotation_id"])], text_in(request, "category"), int(request["revision"])
        )
        return image_view(workspace, image_id)

    def set_suppression(request: Request) -> Reply:
        """Hide fewer or more of the suggestions that repeat something better; the model is not run again."""
        workspace.suppression = SuppressionLimits(_share(request, "iou"), _share(request, "containment"))
        return image_view(workspace, int(request["id"]))

    def undo(request: Request) -> Reply:
        """Take back the last step, wherever it was made."""
        shown = int(request["id"])
        return _after(workspace.store.undo(), shown)

    def redo(request: Request) -> Reply:
        """Do again the step that was taken back last."""
        shown = int(request["id"])
        return _after(workspace.store.redo(), shown)

    def _after(action: Action | None, shown: int) -> Reply:
        image_id = action.image_id if action else shown
        return {**image_view(workspace, image_id), "label": action.label if action else None}

    return [decide, finish, relabel, set_suppression, undo, redo]


def _share(request: Request, name: str) -> float:
    """A number from 0 to 1."""
    share = float(request[name])
    if not 0 <= share <= 1:
        raise ValueError(f"{name} is not from 0 to 1")
    return share


def _answer_draft(workspace: Workspace, image_id: int, draft: Request | None) -> None:
    """Let the model answer before the project is locked for writing. It must be the one whose answer was seen."""
    if draft is not None:
        answer = workspace.try_phrase(image_id, text_in(draft, "text"), boxes=boxes_in(draft))
        if answer.bundle_id != text_in(draft, "bundle_id"):
            raise AnswerReplacedError


def _store_draft(
    workspace: Workspace, image_id: int, draft: Request | None, revision: int
) -> tuple[dict[str, str], int]:
    """Keep the phrase being typed and its suggestions; their ids by draft name, and the image's new revision."""
    if draft is None:
        return {}, revision
    workspace.check_revision(image_id, revision)
    _answer_draft(workspace, image_id, draft)
    stored = workspace.keep_draft(image_id, text_in(draft, "text"), text_in(draft, "category"), boxes_in(draft))
    ids = {f"{_DRAFT}{place}": str(annotation_id) for place, annotation_id in stored.items()}
    return ids, workspace.store.image(image_id).revision
