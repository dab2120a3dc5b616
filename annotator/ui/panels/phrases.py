"""The phrases: what is being typed, what is kept, and the category each goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.ui.panel import Reply, Request, ServerFunction, boxes_in, build_panel, text_in
from annotator.ui.views import draft_view, image_view
from annotator.workspace import Workspace
from engines.types import Phrase

if TYPE_CHECKING:
    import gradio


def build_phrases(workspace: Workspace) -> gradio.HTML:
    """The panel at the top right."""
    return build_panel("phrases", phrase_functions(workspace))


def phrase_functions(workspace: Workspace) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def try_phrase(request: Request) -> Reply:
        """What the model finds for the words typed so far; nothing is stored."""
        image_id, category = int(request["id"]), text_in(request, "category")
        answer = workspace.try_phrase(image_id, text_in(request, "text"), boxes=boxes_in(request))
        places = workspace.fresh_places(image_id, answer, category)
        return {"draft": draft_view(answer, places, category, workspace)}

    def count_tokens(request: Request) -> Reply:
        """How long a phrase is to the model, and how much it takes; nothing where it takes any length."""
        text = text_in(request, "text").strip()
        counted = workspace.predictor.n_tokens(Phrase(text)) if text else None
        return {} if counted is None else {"n": counted[0], "most": counted[1]}

    def keep_phrase(request: Request) -> Reply:
        """Keep a phrase for its category and store its suggestions on this image, and what its boxes show."""
        image_id = int(request["id"])
        workspace.keep_draft(image_id, text_in(request, "text"), text_in(request, "category"), boxes_in(request))
        return image_view(workspace, image_id)

    def forget_phrase(request: Request) -> Reply:
        """Drop a kept phrase and the suggestions nobody has decided on."""
        workspace.store.forget_phrase(int(request["phrase_id"]))
        return image_view(workspace, int(request["id"]))

    return [try_phrase, count_tokens, keep_phrase, forget_phrase]
