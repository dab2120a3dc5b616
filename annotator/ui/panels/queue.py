"""The queue: the folder's images with thumbnails and state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotator.records import ImageState
from annotator.ui.panel import Reply, Request, ServerFunction, build_panel
from annotator.ui.views import file_url, queue_row
from annotator.workspace import Workspace
from engines.errors import ImageError

if TYPE_CHECKING:
    import gradio


def build_queue(workspace: Workspace) -> gradio.HTML:
    """The panel on the left."""
    return build_panel("queue", queue_functions(workspace))


def queue_functions(workspace: Workspace) -> list[ServerFunction]:
    """What the panel asks of Python."""

    def list_images(request: Request) -> Reply:
        """All images, and the one to begin with: the first that nobody has reviewed."""
        if request.get("rescan"):
            workspace.rescan()
        images = workspace.store.images()
        first = next((image for image in images if image.state is not ImageState.DONE and not image.failure), None)
        return {
            "folder": str(workspace.folder.root),
            "images": [queue_row(image) for image in images],
            "first": first.image_id if first else None,
        }

    def make_thumbnails(request: Request) -> Reply:
        """Addresses of thumbnails by image id; None for a file that cannot be read, with its reason."""
        urls: dict[str, str | None] = {}
        failures: dict[str, str] = {}
        for image_id in request["ids"]:
            try:
                urls[str(image_id)] = file_url(workspace.pictures.thumbnail(workspace.store.image(int(image_id))))
            except ImageError as error:
                urls[str(image_id)] = None
                failures[str(image_id)] = error.reason
        return {"urls": urls, "failures": failures}

    return [list_images, make_thumbnails]
