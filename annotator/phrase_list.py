"""Phrases with their categories as written on the command line or in a file: TEXT or TEXT=CATEGORY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from annotator.errors import CommandError
from annotator.records import MAX_CATEGORY_LENGTH, phrase_key
from engines.errors import PhraseError
from engines.types import Phrase


def parse_phrases(written: Sequence[str], file: Path | None = None) -> list[tuple[str, str]]:
    """(phrase, category) pairs in order, each phrase once; the category is the phrase where none is written.

    Raises `CommandError` for an empty phrase or category, a file that cannot be read, or nothing at all.
    """
    lines = [*written, *(_read_lines(file) if file is not None else ())]
    pairs: dict[str, tuple[str, str]] = {}
    for line in lines:
        text, category = _parse(line)
        if pairs.setdefault(phrase_key(text), (text, category))[1] != category:
            raise CommandError(f"the phrase '{text}' is given for two categories; one phrase goes to one category")
    if not pairs:
        raise CommandError('no phrase is given; add one with --phrase, such as --phrase "coffee cup=cup"')
    return list(pairs.values())


def _parse(line: str) -> tuple[str, str]:
    text, equals, category = line.partition("=")
    try:
        phrase = Phrase(text).text
    except PhraseError as error:
        raise CommandError(f"{error}; written: '{line}', wanted: TEXT or TEXT=CATEGORY") from None
    folded = " ".join(category.split())
    if equals and not folded:
        raise CommandError(f"the category in '{line}' is empty; write TEXT or TEXT=CATEGORY")
    return phrase, folded or phrase[:MAX_CATEGORY_LENGTH].rstrip()


def _read_lines(file: Path) -> Iterable[str]:
    """Lines that say something; a line that begins with # is a comment."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise CommandError(f"the phrase file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"the phrase file {file} is not UTF-8 text; save it as UTF-8") from None
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
