"""A model in use: encodes each image once, answers any number of phrases, and always serves the person first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from annotator.cache import FeatureCache, ImageFeaturesCache
from annotator.errors import ModelReplacedError
from annotator.feature_files import FeatureFiles
from annotator.recent_times import RecentTimes
from annotator.records import phrase_key
from engines.errors import DeviceMemoryError
from engines.protocols import (
    CountsTokens,
    PreparedImage,
    Segmenter,
    SegmenterInfo,
    decode_many,
    encode_images,
    images_at_once,
    on_device,
    prepare_image,
)
from engines.types import BoxPrompt, ImageFeatures, Instance, Phrase, SegmentOptions, Understanding

FEATURES_LIMIT_BYTES = 2 << 30
DEVICE_FEATURES_LIMIT_BYTES = 2 << 30
"""On a GPU: 36 images of SAM 3 in half precision, 18 in full."""
ANSWERS_LIMIT_BYTES = 256 << 20


Result = TypeVar("Result")


@dataclass(frozen=True)
class Answer:
    """What the model found for one phrase on one image, best first, and what it understood."""

    phrase: Phrase
    instances: tuple[Instance, ...]
    understanding: Understanding
    bundle_id: str
    """The model that answered: another one may have been chosen since."""

    @property
    def nbytes(self) -> int:
        """Memory held by the masks."""
        return 512 + sum(len(instance.mask.counts) + 512 for instance in self.instances)


class ModelLock:
    """One at a time, and whoever works for the person at the page before whatever runs ahead."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._taken = False
        self._n_waiting_first = 0

    @contextmanager
    def hold(self, *, ahead: bool = False) -> Iterator[None]:
        """Hold the model; with `ahead`, give way to everybody else who waits."""
        with self._condition:
            self._n_waiting_first += not ahead
            self._condition.wait_for(lambda: not self._taken and not (ahead and self._n_waiting_first))
            self._n_waiting_first -= not ahead
            self._taken = True
        try:
            yield
        finally:
            with self._condition:
                self._taken = False
                self._condition.notify_all()


_AnswerKey = tuple[str, str, float, tuple[BoxPrompt, ...]]
"""Image, phrase as it is compared, score threshold, exemplar boxes."""


class Predictor:
    """Loads its model on first use. Images are named by their content hash, so a renamed file is not encoded again.

    Encoding and answering have a lock each: an edit of the phrase never waits for an image that is encoded ahead.
    """

    def __init__(self, load: Callable[[], Segmenter], files: FeatureFiles | None = None) -> None:
        """`files` keeps features on the disk too, for models whose features can be written."""
        self._load = load
        self._files = files
        self._segmenter: Segmenter | None = None
        self._loading = Lock()
        self._encoding = ModelLock()
        self._answering = ModelLock()
        self._features = ImageFeaturesCache(FEATURES_LIMIT_BYTES, DEVICE_FEATURES_LIMIT_BYTES)
        self._answers: FeatureCache[_AnswerKey, Answer] = FeatureCache(ANSWERS_LIMIT_BYTES, lambda item: item.nbytes)
        self.times = RecentTimes()
        self.n_changes = 0
        """How often the model was replaced by another one."""

    def load(self) -> None:
        """Load the model now, so that the first image does not wait for it."""
        _ = self.segmenter

    def use(self, load: Callable[[], Segmenter]) -> None:
        """Load another model; from then on it answers. Until then, and where loading raises, the old one stays."""
        segmenter = load()
        with self._encoding.hold(), self._answering.hold():
            with self._loading:
                self._load, self._segmenter = load, segmenter
            self._features.clear()
            self._answers.clear()
            self.times = RecentTimes()
            self.n_changes += 1

    def use_later(self, load: Callable[[], Segmenter]) -> None:
        """Take this model when one is needed; does nothing once a model is loaded."""
        with self._loading:
            self._load = load

    def n_tokens(self, phrase: Phrase) -> tuple[int, int] | None:
        """Tokens of the phrase and how many the model takes; None for a model that takes any number."""
        segmenter = self.segmenter
        return segmenter.n_tokens(phrase) if isinstance(segmenter, CountsTokens) else None

    @property
    def segmenter(self) -> Segmenter:
        """The model, loaded now if it is not yet."""
        with self._loading:
            if self._segmenter is None:
                self._segmenter = self._load()
            return self._segmenter

    @property
    def info(self) -> SegmenterInfo:
        """What is loaded."""
        return self.segmenter.info

    @property
    def loaded_info(self) -> SegmenterInfo | None:
        """What is loaded; None while nothing is. Never waits."""
        segmenter = self._segmenter
        return None if segmenter is None else segmenter.info

    @property
    def options(self) -> SegmentOptions:
        """Ask for everything the model will answer: the threshold is applied where the answer is shown."""
        return SegmentOptions(score_threshold=self.info.capabilities.score_floor)

    def understand(self, phrase: Phrase) -> Understanding:
        """What the model makes of a phrase, without an image."""
        with self._answering.hold():
            return self.segmenter.encode_phrase(phrase).understanding

    def encode(self, image_id: str, read: Callable[[], NDArray[np.uint8]], *, ahead: bool = False) -> ImageFeatures:
        """Features of an image; `read` gives its (H, W, 3) RGB and is called only when they are not at hand."""
        features = self._at_hand(image_id)
        if features is not None:
            return features
        rgb = read()
        with self._encoding.hold(ahead=ahead):
            features = self._features.get(image_id)
            if features is None:
                started = time.perf_counter()
                features = self._with_room(lambda: self.segmenter.encode_image(rgb, image_id))
                self.times.add("encode", _ms_since(started))
                self._features.put(image_id, features)
                self._write(features)
        return features

    def close(self) -> None:
        """Bring to the disk what waits for it."""
        if self._files is not None:
            self._files.close()

    def _at_hand(self, image_id: str) -> ImageFeatures | None:
        """Features in memory, or on the disk, from where they come into memory."""
        features = self._features.get(image_id)
        if features is None:
            features = self._read(image_id)
            if features is not None:
                self._remember(features)
        return features

    def _read(self, image_id: str) -> ImageFeatures | None:
        segmenter = self.segmenter
        info = segmenter.info
        if self._files is None or not info.features_id:
            return None
        read = self._files.get(info.features_id, image_id, info.bundle_id)
        return None if read is None else self._with_room(lambda: on_device(segmenter, read))

    def _remember(self, features: ImageFeatures) -> None:
        """Keep what was read in memory, unless the model was replaced meanwhile."""
        with self._loading:
            if self._segmenter is not None and self._segmenter.info.bundle_id == features.bundle_id:
                self._features.put(features.image_id, features)

    def _write(self, features: ImageFeatures) -> None:
        if self._files is not None and self.info.features_id:
            self._files.put(self.info.features_id, features)

    @property
    def images_at_once(self) -> int:
        """How many images are best encoded together."""
        return images_at_once(self.segmenter)

    def prepare(self, rgb: NDArray[np.uint8], image_id: str) -> PreparedImage:
        """The (H, W, 3) RGB of an image, shrunk or stretched for the encoder; from any thread."""
        return prepare_image(self.segmenter, rgb, image_id)

    def encode_together(self, images: Sequence[PreparedImage], *, ahead: bool = False) -> list[ImageFeatures]:
        """Features of each image; those at hand are used, and nothing is remembered."""
        known = {image.image_id: self._features.get(image.image_id) or self._read(image.image_id) for image in images}
        missing = [image for image in images if known[image.image_id] is None]
        if missing:
            with self._encoding.hold(ahead=ahead):
                found = self._with_room(lambda: encode_images(self.segmenter, missing))
                for new in found:
                    self._write(new)
            known |= {image.image_id: features for image, features in zip(missing, found, strict=True)}
        return [features for image in images if (features := known[image.image_id]) is not None]

    def answer(
        self,
        image_id: str,
        read: Callable[[], NDArray[np.uint8]],
        phrase: Phrase,
        score_threshold: float | None = None,
        boxes: Sequence[BoxPrompt] = (),
        *,
        ahead: bool = False,
    ) -> Answer:
        """What the model finds for a phrase and exemplar boxes at or above a score, or without one at any it gives."""
        options = self._options(score_threshold)
        key = _answer_key(image_id, phrase, options, boxes)
        known = self._answers.get(key)
        if known is not None:
            return known
        with self._ready_to_answer(image_id, read, ahead=ahead) as features:
            started = time.perf_counter()
            encoded = self.segmenter.encode_phrase(phrase)
            encoded_at = time.perf_counter()
            instances = self._with_room(lambda: self.segmenter.decode(features, encoded, boxes, options))
            if not ahead:
                self.times.add("phrase", (encoded_at - started) * 1000)
                self.times.add("decode", _ms_since(encoded_at))
                self.times.add("edit", _ms_since(started))
            answer = Answer(phrase, tuple(instances), encoded.understanding, features.bundle_id)
            self._answers.put(key, answer)
        return answer

    @contextmanager
    def _ready_to_answer(
        self, image_id: str, read: Callable[[], NDArray[np.uint8]], *, ahead: bool = False
    ) -> Iterator[ImageFeatures]:
        """Hold the model with the image's features, made again if the model was replaced meanwhile."""
        while True:
            features = self.encode(image_id, read, ahead=ahead)
            with self._answering.hold(ahead=ahead):
                if features.bundle_id == self.info.bundle_id:
                    yield features
                    return

    def answer_many(
        self,
        image_id: str,
        read: Callable[[], NDArray[np.uint8]],
        phrases: Sequence[Phrase],
        score_threshold: float | None = None,
        *,
        ahead: bool = False,
    ) -> list[Answer]:
        """What `answer` finds for each phrase, without boxes; those not at hand are asked of the model in one go."""
        options = self._options(score_threshold)
        keys = [_answer_key(image_id, phrase, options) for phrase in phrases]
        answers = {key: self._answers.get(key) for key in keys}
        missing = {key: phrase for key, phrase in zip(keys, phrases, strict=True) if answers[key] is None}
        if missing:
            with self._ready_to_answer(image_id, read, ahead=ahead) as features:
                found = self._decode(features, list(missing.values()), options)
                for key, new in zip(missing, found, strict=True):
                    answers[key] = new
                    self._answers.put(key, new)
        return [answer for key in keys if (answer := answers[key]) is not None]

    def decode(
        self,
        features: ImageFeatures,
        phrases: Sequence[Phrase],
        score_threshold: float | None = None,
        *,
        ahead: bool = False,
    ) -> list[Answer]:
        """What the model finds for each phrase on an encoded image; nothing of it is remembered."""
        with self._answering.hold(ahead=ahead):
            if features.bundle_id != self.info.bundle_id:
                raise ModelReplacedError
            return self._decode(features, phrases, self._options(score_threshold))

    def _decode(self, features: ImageFeatures, phrases: Sequence[Phrase], options: SegmentOptions) -> list[Answer]:
        encoded = [self.segmenter.encode_phrase(phrase) for phrase in phrases]
        found = self._with_room(lambda: decode_many(self.segmenter, features, encoded, options))
        return [
            Answer(phrase, tuple(instances), one.understanding, features.bundle_id)
            for phrase, one, instances in zip(phrases, encoded, found, strict=True)
        ]

    def _with_room(self, work: Callable[[], Result]) -> Result:
        """Do it; where the device has no memory left, forget the features kept there and try once more."""
        try:
            return work()
        except DeviceMemoryError:
            if not self._features.clear_device():
                raise
        return work()

    def _options(self, score_threshold: float | None) -> SegmentOptions:
        return self.options if score_threshold is None else SegmentOptions(score_threshold=score_threshold)

    def example_phrases(self, image_id: str, read: Callable[[], NDArray[np.uint8]]) -> list[str]:
        """Phrases that will find something on the image, as far as the model can tell unasked."""
        with self._ready_to_answer(image_id, read) as features:
            return self.segmenter.example_phrases(features)

    def mask_box(self, image_id: str, read: Callable[[], NDArray[np.uint8]], box: BoxPrompt) -> Instance:
        """The thing inside a drawn box; raises `BoxError` for a box without area in the image."""
        with self._ready_to_answer(image_id, read) as features:
            started = time.perf_counter()
            instance = self._with_room(lambda: self.segmenter.mask_box(features, box))
            self.times.add("edit", _ms_since(started))
        return instance


def _answer_key(image_id: str, phrase: Phrase, options: SegmentOptions, boxes: Sequence[BoxPrompt] = ()) -> _AnswerKey:
    return image_id, phrase_key(phrase.text), options.score_threshold, tuple(boxes)


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
