"""Pre-labels a folder: every phrase on every image that nobody has reviewed, resumable after any stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from annotator.errors import ModelFailingError
from annotator.records import ImageRecord, KeptPhrase, phrase_key
from annotator.workspace import Workspace
from engines.errors import ImageError, PhrasemaskError
from engines.types import Phrase

MAX_EQUAL_FAILURES = 20
"""After so many images in a row on which the model fails in the same way, the fault is not the images'."""


@dataclass(frozen=True)
class PrelabelOptions:
    """How a run chooses. Scores are in [0, 1]."""

    score_threshold: float = 0.5
    accept_above: float | None = None
    """Suggestions at or above this score are stored as accepted."""
    redo: bool = False
    """Run again what has been run; only suggestions that nobody has decided on are replaced."""


@dataclass
class PrelabelSummary:
    """What a run did so far."""

    n_images: int = 0
    n_done: int = 0
    n_reviewed: int = 0
    """Images left alone because a person has reviewed them."""
    n_already: int = 0
    """Images on which every phrase had been run before."""
    failures: dict[str, str] = field(default_factory=dict)
    """Reason by image path."""
    n_suggestions: dict[str, int] = field(default_factory=dict)
    """New suggestions by phrase."""
    understood: dict[str, str] = field(default_factory=dict)
    """What the model made of a phrase, where it had something to say."""


class Prelabeller:
    """One run over a project. Each image's suggestions are stored as it finishes, so a stop loses only that image."""

    def __init__(self, workspace: Workspace, phrases: Sequence[KeptPhrase], options: PrelabelOptions) -> None:
        self._workspace = workspace
        self._phrases = phrases
        self._options = options
        self.images = workspace.store.images(include_missing=False)
        self._n_equal_failures = 0
        self._last_model_failure = ""
        self.summary = PrelabelSummary(n_images=len(self.images), n_suggestions={item.text: 0 for item in phrases})

    def run(self) -> Iterator[PrelabelSummary]:
        """Work through the images, yielding the summary after each."""
        self._understand()
        finished = self._finished_runs()
        for image in self.images:
            self._work(image, finished)
            yield self.summary

    def _understand(self) -> None:
        for kept in self._phrases:
            sentence = self._workspace.predictor.understand(Phrase(kept.text)).sentence
            if sentence:
                self.summary.understood[kept.text] = sentence

    def _finished_runs(self) -> set[tuple[int, str]]:
        if self._options.redo:
            return set()
        bundle_id = self._workspace.predictor.info.bundle_id
        return self._workspace.store.finished_runs(bundle_id, self._options.score_threshold)

    def _work(self, image: ImageRecord, finished: set[tuple[int, str]]) -> None:
        image = self._workspace.store.image(image.image_id)  # a person may have reviewed it meanwhile
        todo = [kept for kept in self._phrases if (image.image_id, phrase_key(kept.text)) not in finished]
        if image.done:
            self.summary.n_reviewed += 1
        elif not todo:
            self.summary.n_already += 1
        else:
            self._suggest(image, todo)

    def _suggest(self, image: ImageRecord, todo: Sequence[KeptPhrase]) -> None:
        options = self._options
        try:
            for kept in todo:
                stored = self._workspace.suggest(
                    image.image_id, kept, options.score_threshold, options.accept_above, ahead=True
                )
                self.summary.n_suggestions[kept.text] += len(stored)
        except ImageError as error:
            self.summary.failures[image.path] = error.reason
        except PhrasemaskError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a model raises on one image, the others go on
            self._note_model_failure(image, error)
        else:
            self.summary.n_done += 1
            self._n_equal_failures = 0

    def _note_model_failure(self, image: ImageRecord, error: Exception) -> None:
        reason = f"the model failed on it: {type(error).__name__}: {error}"
        self._n_equal_failures = self._n_equal_failures + 1 if reason == self._last_model_failure else 1
        self._last_model_failure = reason
        self.summary.failures[image.path] = reason
        if self._n_equal_failures >= MAX_EQUAL_FAILURES:
            raise ModelFailingError(self._n_equal_failures, reason)
