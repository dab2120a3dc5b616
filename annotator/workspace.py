"""A project open with a model: what the page, the command line and a batch run do to images goes through here."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from annotator.errors import FolderMismatchError, ProjectNotFoundError, RevisionConflictError
from annotator.folder import ImageFolder
from annotator.pictures import Pictures
from annotator.predictor import Answer, Predictor
from annotator.previews import Previews
from annotator.records import (
    Action,
    Annotation,
    Category,
    Decision,
    ImageRecord,
    KeptPhrase,
    NewAnnotation,
    phrase_key,
    xyxy_tuple,
)
from annotator.repeats import (
    DEFAULT_LIMITS,
    hidden_ids,
    places_not_there,
    places_shown,
)
from annotator.store import ProjectStore
from annotator.suggesting import Run, store_answer
from engines.protocols import SegmenterInfo
from engines.types import BoxPrompt, Phrase

_log = logging.getLogger(__name__)
_FOLDER = "folder"


class Workspace:
    """One folder of images, its project, and a model.

    Raises what it is given to raise by name: an `ImageError` for a picture that cannot be read, a `PhraseError` or
    `BoxError` for a prompt that asks for nothing, a `ProjectError` when the store cannot save.
    """

    def __init__(self, store: ProjectStore, folder: ImageFolder, predictor: Predictor, project: Path) -> None:
        self.store = store
        self.folder = folder
        self.predictor = predictor
        self.project = project
        self.previews = Previews(project)
        self.pictures = Pictures(store, folder, self.previews)
        self.suppression = DEFAULT_LIMITS
        """When an open suggestion is hidden on the page because something better shows the same thing."""

    @classmethod
    def open(cls, project: Path, predictor: Predictor, folder: Path | None = None) -> Workspace:
        """Open a project, made if it is new, over `folder` or the folder it was last opened with."""
        images = ImageFolder(folder, project) if folder is not None else None
        store = ProjectStore.open(project, create=images is not None)
        try:
            images = images or ImageFolder(_last_folder(store, project), project)
            _check_moved(store, images, project)
            _sync(store, images)
            store.set_setting(_FOLDER, str(images.root))
        except BaseException:
            store.close()
            raise
        return cls(store, images, predictor, project)

    def close(self) -> None:
        """Release the project file."""
        self.store.close()

    def rescan(self) -> None:
        """List the folder again: new images join the queue, vanished ones are marked and keep their annotations.

        Files that could not be read are tried again when they are opened.
        """
        self.store.forget_failures()
        _sync(self.store, self.folder)

    def check_revision(self, image_id: int, revision: int) -> None:
        """Raise `RevisionConflictError` if the image has changed since it had this revision."""
        image = self.store.image(image_id)
        if image.revision != revision:
            raise RevisionConflictError(image.path, revision, image.revision)

    def open_image(self, image_id: int) -> ImageRecord:
        """The image, its file read if it is new or has changed. Raises an `ImageError`, recorded with the image."""
        return self.pictures.open(self.store.image(image_id))

    def encode(self, image_id: int, *, ahead: bool = False) -> None:
        """Have the model's features of an image at hand. Raises an `ImageError`, recorded with the image."""
        image = self.open_image(image_id)
        self.predictor.encode(str(image.sha256), lambda: self.pictures.rgb(image), ahead=ahead)

    def example_phrases(self, image_id: int) -> list[str]:
        """Phrases that will find something on the image; the image is encoded if it is not yet."""
        image = self.open_image(image_id)
        return self.predictor.example_phrases(str(image.sha256), lambda: self.pictures.rgb(image))

    def try_phrase(
        self,
        image_id: int,
        text: str,
        score_threshold: float | None = None,
        boxes: Sequence[BoxPrompt] = (),
        *,
        ahead: bool = False,
    ) -> Answer:
        """What the model finds for a phrase with exemplar boxes, or for boxes alone; nothing is stored."""
        phrase = Phrase(text or (self.predictor.info.capabilities.exemplar_phrase if boxes else ""))
        image = self.open_image(image_id)
        return self.predictor.answer(
            str(image.sha256), lambda: self.pictures.rgb(image), phrase, score_threshold, boxes, ahead=ahead
        )

    def fresh_places(self, image_id: int, answer: Answer, category_name: str) -> list[int]:
        """Places of the answer's instances that would be new annotations of that category, and not hidden ones."""
        named = [item.category_id for item in self.store.categories() if item.name == category_name]
        kept = KeptPhrase(0, answer.phrase.text, named[0] if named else 0)
        annotations = self.store.annotations(image_id)
        places = places_not_there(kept, answer.instances, annotations)
        return places_shown(kept, answer.instances, places, annotations, self.suppression)

    def shown_annotations(self, image_id: int) -> tuple[list[Annotation], list[Annotation]]:
        """The image's annotations, and apart from them the open suggestions that are hidden as repeats."""
        annotations = self.store.annotations(image_id)
        hidden = hidden_ids(annotations, self.suppression)
        shown = [item for item in annotations if item.annotation_id not in hidden]
        return shown, [item for item in annotations if item.annotation_id in hidden]

    def keep_phrase(self, text: str, category_name: str) -> KeptPhrase:
        """Keep a phrase for the project: it will be run on each image that is opened."""
        with self.store.atomic():
            category = self.category(category_name)
            return self.store.keep_phrase(Phrase(text).text, category.category_id)

    def suggest(
        self,
        image_id: int,
        kept: KeptPhrase,
        score_threshold: float | None = None,
        *,
        ahead: bool = False,
        reviewed_too: bool = False,
    ) -> dict[int, int]:
        """Store what the model finds for a kept phrase as suggestions, in place of its earlier ones.

        An instance that repeats another annotation of its category (mask IoU ≥ 0.5) is left out. Returns the new
        annotation ids by the instance's place in the model's answer. Nothing is stored when, by the time of the
        answer, the phrase has been forgotten, or a person has reviewed the image (unless `reviewed_too`).
        """
        threshold = self.predictor.options.score_threshold if score_threshold is None else score_threshold
        answer = self.try_phrase(image_id, kept.text, threshold, ahead=ahead)
        with self.store.atomic():
            now_kept = next((one for one in self.store.kept_phrases() if one.phrase_id == kept.phrase_id), None)
            if now_kept is None or (self.store.image(image_id).done and not reviewed_too):
                return {}
            return store_answer(self.store, image_id, now_kept, answer.instances, Run(answer.bundle_id, threshold))

    def keep_draft(
        self, image_id: int, text: str, category_name: str, boxes: Sequence[BoxPrompt] = ()
    ) -> dict[int, int]:
        """Keep what a person typed, and store what it found on the image, with its exemplar boxes if there are any.

        The phrase, if there is one, is kept for all images; boxes belong to this image alone. Returns as `suggest`.
        """
        kept = self.keep_phrase(text, category_name) if text else None
        if kept is not None and not boxes:
            return self.suggest(image_id, kept, reviewed_too=True)
        answer = self.try_phrase(image_id, text, boxes=boxes)
        with self.store.atomic():
            category_id = self.category(category_name).category_id
            kept = kept or KeptPhrase(0, _name_of(boxes), category_id)
            run = Run(answer.bundle_id, self.predictor.options.score_threshold)
            return store_answer(self.store, image_id, kept, answer.instances, run)

    def missing_phrases(self, image_id: int) -> list[KeptPhrase]:
        """Kept phrases that this model has not been run with on this image."""
        bundle_id = self.predictor.info.bundle_id
        return [kept for kept in self.store.kept_phrases() if not self.store.has_run(image_id, kept.text, bundle_id)]

    def run_kept_phrases(self, image_id: int, *, ahead: bool = False) -> None:
        """Suggest for every kept phrase that is missing on an image nobody has reviewed, all of them asked at once."""
        missing = [] if self.store.image(image_id).done else self.missing_phrases(image_id)
        if not missing:
            return
        image = self.open_image(image_id)
        threshold = self.predictor.options.score_threshold
        phrases = [Phrase(kept.text) for kept in missing]
        self.predictor.answer_many(str(image.sha256), lambda: self.pictures.rgb(image), phrases, threshold, ahead=ahead)
        for kept in missing:
            self.suggest(image_id, kept, threshold, ahead=ahead)

    def note_model(self, info: SegmenterInfo) -> None:
        """Have the project remember what its runs by this model are called."""
        setting, name = f"model {info.bundle_id}", f"{info.name} ({info.precision})"
        if self.store.setting(setting) != name:
            self.store.set_setting(setting, name)

    def decide(
        self,
        image_id: int,
        decisions: Mapping[int, Decision],
        revision: int | None,
        label: str,
        *,
        done: bool | None = None,
    ) -> Action:
        """Record a person's decisions by annotation id, and whether the image is reviewed, as one undoable step."""
        return self.store.decide(image_id, decisions, revision, label, done=done)

    def finish(
        self, image_id: int, score_threshold: float, revision: int | None, seen: Collection[int] | None = None
    ) -> Action:
        """Accept every suggestion at or above the threshold and call the image reviewed.

        `seen` has the ids of those that were on the screen; None means those that are not hidden now.
        """
        if seen is None:
            seen = {item.annotation_id for item in self.shown_annotations(image_id)[0]}
        pending = self.store.annotations(image_id, [Decision.PENDING])
        sure = [item.annotation_id for item in pending if (item.score or 0.0) >= score_threshold]
        accepted = {annotation_id: Decision.ACCEPTED for annotation_id in sure if annotation_id in seen}
        label = f"accept {len(accepted)} and finish" if accepted else "finish"
        return self.decide(image_id, accepted, revision, label, done=True)

    def draw(
        self, image_id: int, xyxy: tuple[float, float, float, float], category_name: str, revision: int | None
    ) -> Annotation:
        """Add the thing inside a box drawn by a person, accepted. Raises `BoxError` for an empty box."""
        image = self.open_image(image_id)
        box = BoxPrompt(xyxy).clipped(int(image.height or 0), int(image.width or 0))
        instance = self.predictor.mask_box(str(image.sha256), lambda: self.pictures.rgb(image), box)
        with self.store.atomic():
            category = self.category(category_name)
            new = NewAnnotation(
                category.category_id, None, instance.mask, xyxy_tuple(instance), None, None, Decision.ACCEPTED
            )
            _, annotation_id = self.store.draw(image_id, new, revision, f"draw {category.name}")
        return self.store.annotation(annotation_id)

    def relabel(self, image_id: int, annotation_ids: Sequence[int], category_name: str, revision: int | None) -> Action:
        """Give annotations another category, made if it is new, as one undoable step."""
        with self.store.atomic():
            category = self.category(category_name)
            changes = dict.fromkeys(annotation_ids, category.category_id)
            return self.store.relabel(image_id, changes, revision, f"change to {category.name}")

    def categories(self) -> dict[int, Category]:
        """Categories by id."""
        return {category.category_id: category for category in self.store.categories()}

    def category(self, name: str) -> Category:
        """The category of that name, whatever its case, made if there is none."""
        key = phrase_key(name)
        same = (item for item in self.store.categories() if phrase_key(item.name) == key)
        return next(same, None) or self.store.ensure_category(name)


def _name_of(boxes: Sequence[BoxPrompt]) -> str:
    """What stands for the phrase of annotations that boxes alone found."""
    x1, y1, x2, y2 = boxes[0].xyxy
    return f"like the box at {x1:.0f},{y1:.0f} of {x2 - x1:.0f}×{y2 - y1:.0f}"


def _sync(store: ProjectStore, images: ImageFolder) -> None:
    for path in store.sync_images(images.find()).refused_paths:
        _log.warning("skipped %s: its name is not valid text; rename the file", ascii(path))


def _last_folder(store: ProjectStore, project: Path) -> Path:
    folder = store.setting(_FOLDER)
    if folder is None:
        raise ProjectNotFoundError(project)
    return Path(folder)


def _check_moved(store: ProjectStore, images: ImageFolder, project: Path) -> None:
    """A project follows its images to a new place, but is not laid over a folder that has none of them."""
    if store.setting(_FOLDER) in (None, str(images.root)):
        return
    labelled = store.labelled_paths()
    if labelled and not any(images.path(path).exists() for path in labelled):
        raise FolderMismatchError(images.root, project)
