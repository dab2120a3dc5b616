"""The stage: the picture with its masks, and the tools that act on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.ahead import RunAhead
from annotator.ui.panel import Reply, Request, ServerFunction, build_panel, text_in
from annotator.ui.presence import Presence
from annotator.ui.views import image_view
from annotator.workspace import Workspace
from engines.errors import ImageError

if TYPE_CHECKING:
    import gradio

N_AHEAD = 2
N_EXAMPLES = 3


def build_stage(workspace: Workspace, ahead: RunAhead) -> gradio.HTML:
    """The panel in the middle."""
    return build_panel("stage", stage_functions(workspace, ahead, Presence()))


def stage_functions(workspace: Workspace, ahead: RunAhead, presence: Presence) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def open_image(request: Request) -> Reply:
        """An image and what is on it already; no model is run, so that the picture is there at once."""
        return image_view(workspace, int(request["id"]))

    def run_phrases(request: Request) -> Reply:
        """Encode the image and run the kept phrases that are missing on it, then the next images ahead."""
        image_id = int(request["id"])
        ahead.ask(lambda: _prepare_next(workspace, image_id))
        examples = workspace.example_phrases(image_id)
        workspace.run_kept_phrases(image_id)
        return {**image_view(workspace, image_id), "examples": examples[:N_EXAMPLES]}

    def draw_box(request: Request) -> Reply:
        """Add the thing inside a box."""
        image_id = int(request["id"])
        x1, y1, x2, y2 = (float(value) for value in request["xyxy"])
        drawn = workspace.draw(image_id, (x1, y1, x2, y2), text_in(request, "category"), int(request["revision"]))
        return {**image_view(workspace, image_id), "drawn": drawn.annotation_id}

    def watch_image(request: Request) -> Reply:
        """Whether the image changed since this tab showed it, and whether another tab has it open."""
        image_id, revision = int(request["id"]), int(request["revision"])
        elsewhere = presence.seen(text_in(request, "tab"), image_id)
        seen = {"elsewhere": elsewhere, "n_changes": workspace.predictor.n_changes}
        if workspace.store.image(image_id).revision == revision:
            return {"changed": False, **seen}
        return {"changed": True, **seen, **image_view(workspace, image_id)}

    return [open_image, run_phrases, draw_box, watch_image]


def _prepare_next(workspace: Workspace, image_id: int) -> None:
    """Read, encode and run the phrases on the next images, giving way to the person."""
    for _ in range(N_AHEAD):
        image = workspace.store.next_image(image_id)
        if image is None:
            return
        image_id = image.image_id
        try:
            workspace.pictures.preview(image)
            workspace.encode(image_id, ahead=True)
            workspace.run_kept_phrases(image_id, ahead=True)
        except ImageError:
            continue  # it is recorded with the image, and shown when the person gets there
