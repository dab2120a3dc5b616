"""How a run chooses and when it gives up."""

from __future__ import annotations

from dataclasses import dataclass, field

from annotator.repeats import ChoiceRules


@dataclass(frozen=True)
class PrelabelOptions:
    """Scores are in [0, 1]."""

    score_threshold: float = 0.5
    accept_above: float | None = None
    """Suggestions at or above this score are stored as accepted."""
    redo: bool = False
    """Run again what has been run; only suggestions that nobody has decided on are replaced."""
    rules: ChoiceRules = field(default_factory=ChoiceRules)
    max_equal_errors: int = 20
    """After so many images in a row that fail in the same way, the fault is not the images'; 0 means never."""
