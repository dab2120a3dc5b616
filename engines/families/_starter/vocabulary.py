"""Which of the 80 COCO categories a phrase asks for, and which of its words have an effect."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.families._starter.colours import COLOUR_WORDS
from engines.families._starter.noun_phrase import DETERMINERS, NounPhrase, noun_phrases, read_tokens
from engines.types import Understanding

_NO_COLOUR = frozenset({"person", "zebra", "giraffe"})
"""Categories of which a colour word says something else than the colour of most pixels."""


@dataclass(frozen=True)
class Wanted:
    """One thing to look for: categories (COCO ids) and, or not, a colour."""

    categories: tuple[int, ...]
    colour: str | None = None


@dataclass(frozen=True)
class _Head:
    """The known word that a noun phrase ends in."""

    n_tokens: int
    names: tuple[str, ...]
    general: bool


class Vocabulary:
    """The table that `scripts/make_starter_vocabulary.py` makes.

    `categories` maps each name to its COCO id, `nouns` each known word to category names (an empty list: known to be
    another thing), `general` lists words for many categories, `plurals` the irregular ones.
    """

    def __init__(
        self,
        categories: Mapping[str, int],
        nouns: Mapping[str, Sequence[str]],
        general: Sequence[str] = (),
        plurals: Mapping[str, str] | None = None,
    ) -> None:
        self.categories = dict(categories)
        self._nouns = nouns
        self._general = frozenset(general)
        self._plurals = plurals or {}
        self._longest = max((word.count(" ") + 1 for word in nouns), default=1)

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """The table in a JSON file."""
        table = json.loads(path.read_text(encoding="utf-8"))
        return cls(table["categories"], table["nouns"], table["general"], table["plurals"])

    def name_of(self, category: int) -> str:
        """The name of a COCO id."""
        return next(name for name, number in self.categories.items() if number == category)

    def understand(self, text: str) -> tuple[tuple[Wanted, ...], Understanding]:
        """What to look for, and what to tell the person; nothing to look for where the phrase is outside."""
        tokens, cut = read_tokens(text)
        wanted: list[Wanted] = []
        matched: list[str] = []
        ignored: list[str] = []
        for phrase in noun_phrases(tokens, self._ends_in_known_word):
            things, names, rest = self._read(phrase)
            wanted += [thing for thing in things if thing not in wanted]
            matched += [name for name in names if name not in matched]
            ignored += [word for word in rest if word not in ignored]
        if not wanted:
            return (), Understanding(outside=True, cut=cut)
        return tuple(wanted), Understanding(tuple(matched), tuple(ignored), cut)

    def _read(self, phrase: NounPhrase) -> tuple[list[Wanted], list[str], list[str]]:
        """Things, their names, and the words without effect of one noun phrase."""
        rest = [phrase.modifier] if phrase.modifier else []
        head = None if phrase.negated else self._head(phrase.words)
        if head is None:
            return [], [], [" ".join(phrase.words), *rest]
        before = phrase.words[: len(phrase.words) - head.n_tokens]
        colours = [word for word in before if word in COLOUR_WORDS]
        colour = COLOUR_WORDS[colours[0]] if len(colours) == 1 else None
        effective = colour if colour and not _NO_COLOUR.intersection(head.names) else None
        used = colours if effective else []
        ignored = [word for word in before if word not in used and word not in DETERMINERS]
        thing = Wanted(tuple(self.categories[name] for name in head.names), effective)
        return [thing], [f"{effective} {name}" if effective else name for name in head.names], [*ignored, *rest]

    def _head(self, words: Sequence[str]) -> _Head | None:
        """The longest known ending of a noun phrase; None for another thing, or nothing known."""
        for n_tokens in range(min(self._longest, len(words)), 0, -1):
            word = self._known(" ".join(words[-n_tokens:]))
            if word is None:
                continue
            names = tuple(self._nouns[word])
            general = word in self._general
            if not names or (general and any(self._names_a_category(other) for other in words[:-n_tokens])):
                return None  # "koala bear" is another thing; so is "cat food", of which the table has only "food"
            return _Head(n_tokens, names, general)
        return None

    def _ends_in_known_word(self, words: Sequence[str]) -> bool:
        return self._head(words) is not None

    def _names_a_category(self, word: str) -> bool:
        known = self._known(word)
        return known is not None and bool(self._nouns[known])

    def _known(self, word: str) -> str | None:
        """The table's form of a word in singular or plural."""
        before, space, last = word.rpartition(" ")
        irregular = [self._plurals[part] for part in (word, last) if part in self._plurals]
        singulars = [last, *irregular, *_singulars(last)]
        candidates = [word, *(before + space + singular for singular in singulars), *irregular]
        return next((candidate for candidate in candidates if candidate in self._nouns), None)


def _singulars(word: str) -> list[str]:
    """What a regular plural may come from, the likelier first."""
    if word.endswith("men"):
        return [word[:-3] + "man"]
    found: list[str] = []
    if len(word) < 3 or not word.endswith("s") or word.endswith("ss"):
        return found
    if word.endswith("ies"):
        found.append(word[:-3] + "y")
    if word.endswith("ves"):
        found += [word[:-3] + "fe", word[:-3] + "f"]
    found.append(word[:-1])
    if word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        found.append(word[:-2])
    return found
