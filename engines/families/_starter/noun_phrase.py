"""Cuts a typed phrase into noun phrases: "a man with a hat; two dogs" → "man" (with a hat), "dogs"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engines.families._starter.colours import COLOUR_WORDS

_MAX_WORDS = 64
_SHOWN_CUT = 60
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[;,.:/|&+\n!?()]")
_BREAKS = frozenset(";,.:/|&+\n!?()") | {"and", "or", "plus"}

DETERMINERS = frozenset(
    "a an the this that these those some any all every each both another other my your his her its our their "
    "one two three four five six seven eight nine ten eleven twelve several many few most various multiple "
    "find show segment label select detect mark me please".split()
)
"""Words before a noun that say nothing about which thing it is, and requests around the phrase."""

_NEGATIONS = frozenset({"no", "not", "never", "without", "except", "non"})
_AFTER_NOUN = frozenset(
    "of in on at with by near under below over above behind beside besides between from to for into onto inside "
    "outside around across along against among through toward towards off up down next while as like than who whom "
    "whose which that is are was were be being has have having had does do can there where when".split()
)
_POSTURES = frozenset(
    "sitting standing walking running riding holding wearing carrying lying laying sleeping looking eating drinking "
    "playing driving jumping flying swimming smiling talking working reading using facing crossing waiting leaning "
    "hanging cooking surfing skiing skating chasing grazing resting moving posing pulling pushing climbing crouching "
    "dressed parked seated covered filled placed painted stacked tied attached located surrounded made".split()
)
_MEASURES = frozenset(
    "pair pairs group groups bunch herd flock crowd lot lots number couple dozen dozens slice slices piece pieces "
    "photo photograph picture image photos pictures images kind kinds type types pack team row stack set".split()
)


@dataclass(frozen=True)
class NounPhrase:
    """`words` up to and with the head noun; `modifier`, the words after it; `negated`: "no dog"."""

    words: tuple[str, ...]
    modifier: str = ""
    negated: bool = False


def read_tokens(text: str) -> tuple[list[str], str]:
    """Lower-case words and breaks of the first 64 words, and the beginning of what was cut off."""
    tokens: list[str] = []
    n_words = 0
    for match in _TOKEN.finditer(text):
        n_words += match.group() not in _BREAKS
        if n_words > _MAX_WORDS:
            rest = text[match.start() :]
            return tokens, rest if len(rest) <= _SHOWN_CUT else rest[: _SHOWN_CUT - 1] + "…"
        tokens.append(match.group().lower())
    return tokens, ""


def noun_phrases(tokens: Sequence[str], is_known: Callable[[Sequence[str]], bool]) -> Iterator[NounPhrase]:
    """The noun phrases, in order; `is_known` tells whether words end in a noun of the vocabulary."""
    carried: list[str] = []
    for chunk in _chunks(tokens):
        phrase = _noun_phrase([*carried, *chunk], is_known)
        carried = []
        if phrase is None:
            continue
        if not phrase.modifier and not phrase.negated and _may_describe_the_next(phrase.words):
            carried = list(phrase.words)  # "black and white cat"
        else:
            yield phrase
    if carried:
        yield NounPhrase(tuple(carried))


def _chunks(tokens: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for token in tokens:
        if token not in _BREAKS:
            chunk.append(token)
        elif chunk:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _may_describe_the_next(words: Sequence[str]) -> bool:
    return all(word in COLOUR_WORDS or word in DETERMINERS for word in words) and words[-1] != "orange"


def _noun_phrase(chunk: Sequence[str], is_known: Callable[[Sequence[str]], bool]) -> NounPhrase | None:
    words = _without_leading(list(chunk))
    negated = bool(words) and words[0] in _NEGATIONS
    end = _end_of_noun(words, is_known)
    if end + 1 < len(words) and words[end] == "of" and words[end - 1] in _MEASURES and not is_known(words[:end]):
        return _noun_phrase(words[end + 1 :], is_known)  # "a pair of scissors"
    head = words[:end]
    return NounPhrase(tuple(head), " ".join(words[end:]), negated) if head else None


def _without_leading(words: list[str]) -> list[str]:
    start = 0
    while start < len(words) and (words[start] in DETERMINERS or words[start].isdigit()):
        start += 1
    return words[start:]


def _end_of_noun(words: Sequence[str], is_known: Callable[[Sequence[str]], bool]) -> int:
    """Where the words after the head noun begin."""
    for index, word in enumerate(words):
        if index == 0:
            continue
        if word in _AFTER_NOUN or word in _NEGATIONS:
            return index
        if word in _POSTURES and is_known(words[:index]):
            return index
    return len(words)
