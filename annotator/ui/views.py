"""What the page shows of a project, as plain JSON values. Boxes and masks are in pixels of the upright original."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from annotator.predictor import Answer
from annotator.records import Annotation, ImageRecord, KeptPhrase, phrase_key
from annotator.workspace import Workspace
from engines.errors import ImageError
from engines.types import Instance

View = dict[str, Any]


def file_url(path: Path) -> str:
    """Where the browser finds a file that the page is allowed to serve."""
    return f"/gradio_api/file={quote(path.as_posix())}"


def queue_row(image: ImageRecord) -> View:
    """One line of the queue."""
    return {
        "id": image.image_id,
        "path": image.path,
        "state": image.state.value,
        "failure": "the file is no longer in the folder" if image.missing else image.failure,
        "n_pending": image.n_pending,
        "n_accepted": image.n_accepted,
        "revision": image.revision,
    }


def image_view(workspace: Workspace, image_id: int) -> View:
    """An image with everything on it; a file that cannot be read has its reason instead of a picture."""
    picture = _picture(workspace, image_id)
    image = workspace.store.image(image_id)
    shown, hidden = workspace.shown_annotations(image_id)
    return {
        "image": {**queue_row(image), **picture, "height": image.height, "width": image.width},
        "annotations": [annotation_view(item) for item in shown],
        "hidden_scores": [item.score for item in hidden],
        "suppression": {"iou": workspace.suppression.iou, "containment": workspace.suppression.containment},
        **project_view(workspace, image_id),
    }


def project_view(workspace: Workspace, image_id: int) -> View:
    """What stands beside every image: categories, kept phrases, what can be undone, and what the model is doing."""
    annotations = workspace.store.annotations(image_id)
    return {
        "categories": [
            {"id": item.category_id, "name": item.name, "color_index": item.category_id - 1}
            for item in workspace.store.categories()
        ],
        "phrases": [_phrase_view(kept, annotations) for kept in workspace.store.kept_phrases()],
        "undo": workspace.store.can_undo(),
        "redo": workspace.store.can_redo(),
        "timings": timings_view(workspace),
    }


def annotation_view(item: Annotation) -> View:
    """A stored annotation."""
    return {
        "id": item.annotation_id,
        "category_id": item.category_id,
        "phrase": item.phrase,
        "counts": item.mask.counts,
        "height": item.mask.height,
        "width": item.mask.width,
        "xyxy": item.xyxy,
        "score": item.score,
        "decision": item.decision.value,
        "drawn": item.drawn,
    }


def draft_view(answer: Answer, places: list[int], category: str, workspace: Workspace) -> View:
    """What the model finds for a phrase that is still being typed; `places` are those shown."""
    return {
        "text": answer.phrase.text,
        "category": category,
        "bundle_id": answer.bundle_id,
        "understanding": answer.understanding.sentence,
        "outside": answer.understanding.outside,
        "n_repeats": len(answer.instances) - len(places),
        "instances": [_draft_instance(place, answer.instances[place]) for place in places],
        "timings": timings_view(workspace),
    }


def timings_view(workspace: Workspace) -> View:
    """Milliseconds of the last encoding and the last edit."""
    times = workspace.predictor.times
    return {"encode_ms": _rounded(times.last("encode")), "edit_ms": _rounded(times.last("edit"))}


def _picture(workspace: Workspace, image_id: int) -> View:
    image = workspace.store.image(image_id)
    try:
        url = file_url(workspace.pictures.preview(image))
    except ImageError as error:
        return {"url": None, "failure": error.reason, "notes": []}
    notes = workspace.pictures.notes(workspace.store.image(image_id))
    return {"url": url, "failure": None, "notes": list(notes)}


def _phrase_view(kept: KeptPhrase, annotations: list[Annotation]) -> View:
    own = [item for item in annotations if phrase_key(item.phrase or "") == phrase_key(kept.text)]
    return {"id": kept.phrase_id, "text": kept.text, "category_id": kept.category_id, "n_here": len(own)}


def _draft_instance(place: int, instance: Instance) -> View:
    return {
        "place": place,
        "counts": instance.mask.counts,
        "height": instance.mask.height,
        "width": instance.mask.width,
        "xyxy": [float(value) for value in instance.xyxy],
        "score": float(instance.score),
    }


def _rounded(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds)
