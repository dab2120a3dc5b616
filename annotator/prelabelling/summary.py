"""What a run has done: after each image for a progress bar, and in the end for a person or a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PrelabelProgress:
    """How far a run is, after one image."""

    path: str
    """The image, as in the project."""
    n_images: int
    n_looked_at: int
    """Images finished, failed, or passed over so far."""
    images_per_s: float | None
    """Of those that were worked on; None before the first."""
    seconds_left: float | None
    """None while nobody can tell."""


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
    notes: list[str] = field(default_factory=list)
    """What the run had to change in order to go on."""
    seconds: float = 0.0
    """From the first image on, without loading the model."""
    stopped: bool = False
    """It was told to stop before all images were looked at."""

    @property
    def n_looked_at(self) -> int:
        """Images finished, failed, or passed over."""
        return self.n_worked_on + self.n_reviewed + self.n_already

    @property
    def n_worked_on(self) -> int:
        """Images done or failed."""
        return self.n_done + len(self.failures)

    @property
    def images_per_s(self) -> float | None:
        """Of the images that were worked on; None before the first."""
        return self.n_worked_on / self.seconds if self.n_worked_on and self.seconds else None

    def as_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        rate = self.images_per_s
        return {
            "images": self.n_images,
            "done": self.n_done,
            "skipped": {"done_before": self.n_already, "reviewed": self.n_reviewed},
            "failed": self.failures,
            "instances": self.n_suggestions,
            "understood": self.understood,
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
            "images_per_s": None if rate is None else round(rate, 3),
            "stopped": self.stopped,
        }

    def lines(self) -> list[str]:
        """The same for a person, without the failures, which are messages."""
        rate = self.images_per_s
        speed = "" if rate is None else f", {rate:.3g} images/s"
        return [
            *(f"{text}: {n} new" for text, n in self.n_suggestions.items()),
            f"{self.n_images} images: {self.n_done} done, {self.n_already} done before, "
            f"{self.n_reviewed} reviewed and left alone, {len(self.failures)} failed{speed}",
        ]
