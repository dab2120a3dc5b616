"""Where a run's images are answered: what such a place must offer, and the place that is this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from annotator.predictor import Predictor
from annotator.prelabelling.asking import Asking
from annotator.prelabelling.image_places import FolderPlace, ImagePlace
from annotator.prelabelling.job import Job
from annotator.prelabelling.reading import Reader, n_readers
from annotator.prelabelling.threads import in_background, made_ahead
from annotator.records import KeptPhrase
from annotator.workspace import Workspace
from engines.protocols import SegmenterInfo
from engines.types import Phrase

_ENCODED_WAITING = 2
_ANSWERED_WAITING = 4


@dataclass(frozen=True)
class Question:
    """What is asked on the images of a run."""

    phrases: Sequence[KeptPhrase]
    score_threshold: float


@dataclass(frozen=True)
class LoadedModel:
    """The model that answers."""

    info: SegmenterInfo
    images_at_once: int
    understood: dict[str, str] = field(default_factory=dict)
    """What it makes of a phrase, where it has something to say."""

    @classmethod
    def of(cls, predictor: Predictor, phrases: Sequence[KeptPhrase]) -> LoadedModel:
        """The predictor's, loaded now if it is not yet."""
        said = {kept.text: predictor.understand(Phrase(kept.text)).sentence for kept in phrases}
        understood = {text: sentence for text, sentence in said.items() if sentence}
        return cls(predictor.info, predictor.images_at_once, understood)


class Answering(Protocol):
    """Reads images and asks a model about them; never writes to the project."""

    def begin(self, question: Question) -> LoadedModel:
        """Load the model."""

    def answered(
        self, jobs: Iterator[Job], stopping: Callable[[], bool], say: Callable[[str], None], ends: ExitStack
    ) -> Iterator[Job]:
        """The jobs in their order, each with answers or a failure, or as it was if nothing is to be done on it.

        Ends early when it is `stopping`. What it has to `say` is for the person; what it started ends with the stack.
        """


class Here:
    """Threads of this process: some read ahead, one or two ask the model."""

    def __init__(self, workspace: Workspace) -> None:
        self._predictor = workspace.predictor
        self._images: ImagePlace = FolderPlace(workspace.folder.root)

    def begin(self, question: Question) -> LoadedModel:
        """Load the model, if it is not loaded yet."""
        self._question = question
        self._model = LoadedModel.of(self._predictor, question.phrases)
        return self._model

    def answered(
        self, jobs: Iterator[Job], stopping: Callable[[], bool], say: Callable[[str], None], ends: ExitStack
    ) -> Iterator[Job]:
        """The jobs in their order; the threads that make them end with the stack."""
        phrases, info = self._question.phrases, self._model.info
        reader = Reader(self._images, self._predictor, phrases)
        asking = Asking(self._predictor, info.bundle_id, self._question.score_threshold, len(phrases), say)
        n_ahead = n_readers() + self._model.images_at_once
        read = made_ahead(jobs, reader.read, n_readers(), n_ahead, "prelabel-read")
        encoded = asking.encoded(read, stopping)
        if info.device != "cpu":  # on a CPU the graphs would only take each other's cores
            encoded = ends.enter_context(in_background(encoded, _ENCODED_WAITING, "prelabel-encode"))
        return ends.enter_context(in_background(asking.answered(encoded), _ANSWERED_WAITING, "prelabel-answer"))
