"""The dialog that pre-labels the folder in the background: what to look for, how far it is, what came of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from annotator.errors import CommandError
from annotator.phrase_list import parse_phrases
from annotator.prelabel_job import PrelabelJob
from annotator.prelabelling.options import PrelabelOptions
from annotator.repeats import ChoiceRules
from annotator.ui.panel import Reply, Request, ServerFunction, build_panel, text_in
from annotator.ui.views import queue_row
from annotator.workspace import Workspace
from engines.suppression import SuppressionLimits

if TYPE_CHECKING:
    import gradio

N_ROWS_AT_ONCE = 300


def build_prelabel(workspace: Workspace, job: PrelabelJob) -> gradio.HTML:
    """The dialog behind the Pre-label button."""
    return build_panel("prelabel", prelabel_functions(workspace, job))


def prelabel_functions(workspace: Workspace, job: PrelabelJob) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def list_phrases(request: Request) -> Reply:
        """The kept phrases with the names of their categories."""
        categories = workspace.categories()
        return {
            "phrases": [
                {"id": kept.phrase_id, "text": kept.text, "category": categories[kept.category_id].name}
                for kept in workspace.store.kept_phrases()
            ]
        }

    def add_phrase(request: Request) -> Reply:
        """Keep a phrase that is written as TEXT or TEXT=CATEGORY; answers its id."""
        [(text, category)] = parse_phrases([text_in(request, "written")])
        return {"id": workspace.keep_phrase(text, category).phrase_id}

    def usual_rules(request: Request) -> Reply:
        """Which masks are left out unless a person says otherwise; a limit of 1 leaves out none."""
        limits = workspace.suppression
        iou, containment = (1.0 if limit is None else limit for limit in (limits.iou, limits.containment))
        return {"suppress_iou": iou, "suppress_containment": containment, "min_area": ChoiceRules.min_area}

    def start_prelabel(request: Request) -> Reply:
        """Begin a run with some of the kept phrases."""
        chosen = {int(phrase_id) for phrase_id in request["phrases"]}
        kept = [one for one in workspace.store.kept_phrases() if one.phrase_id in chosen]
        accept_above = request["accept_above"]
        options = PrelabelOptions(
            score_threshold=_share(request["score_threshold"], "the score"),
            accept_above=None if accept_above is None else _share(accept_above, "the score for accepting"),
            redo=bool(request["redo"]),
            rules=_rules(request),
        )
        return job.start(kept, options).as_json()

    def stop_prelabel(request: Request) -> Reply:
        """End the run after the images in work."""
        job.stop()
        return job.state.as_json()

    def watch_prelabel(request: Request) -> Reply:
        """How far the run is, and the queue rows of images that it finished since a tab last asked.

        The tab names the run it has seen, and how many of its images; a tab that is new gets the latest.
        """
        state = job.state
        if request["number"] is None:
            since = max(0, job.n_worked_on - N_ROWS_AT_ONCE)
        else:
            since = int(request["seen"]) if int(request["number"]) == state.number else 0
        paths = job.worked_on(since, N_ROWS_AT_ONCE)
        rows = [queue_row(image) for path in paths if (image := workspace.store.image_at(path)) is not None]
        return {"job": state.as_json(), "rows": rows, "seen": since + len(paths)}

    return [list_phrases, usual_rules, add_phrase, start_prelabel, stop_prelabel, watch_prelabel]


def _rules(request: Request) -> ChoiceRules:
    limits = SuppressionLimits(
        _share(request["suppress_iou"], "the IoU of duplicates"),
        _share(request["suppress_containment"], "the share inside a better mask"),
    )
    min_area = request["min_area"]
    if not isinstance(min_area, (int, float)) or not math.isfinite(min_area) or min_area < 1:
        raise CommandError("the least area is a number of pixels, 1 or more")
    return ChoiceRules(limits, bool(request["across_categories"]), int(min_area))


def _share(value: object, name: str) -> float:
    """A number that a person typed."""
    if not isinstance(value, (int, float)) or not math.isfinite(value) or not 0 <= value <= 1:
        raise CommandError(f"{name} is a number from 0 to 1, such as 0.5")
    return float(value)
