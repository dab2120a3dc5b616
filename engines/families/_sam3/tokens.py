"""A phrase as the tokens of CLIP's byte-pair encoding, cleaned up and cut as in the training of SAM 3."""

from __future__ import annotations

import html
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.errors import GraphLoadError, PhraseError

_START, _END = "<|startoftext|>", "<|endoftext|>"
_PADDING = 0


@dataclass(frozen=True)
class Tokens:
    """Token ids from start to end token, and the end of the phrase that did not fit."""

    ids: tuple[int, ...]
    cut: str
    n_in_all: int = 0
    """How many the whole phrase has, without start and end token."""

    def padded(self, length: int, padding: int = _PADDING) -> NDArray[np.int32]:
        """Int32 [1, length], padded as the model's authors do, with 0, unless told otherwise."""
        return np.array([[*self.ids, *[padding] * (length - len(self.ids))]], dtype=np.int32)

    def mask(self, length: int) -> NDArray[np.bool_]:
        """Bool [1, length]: True where a token stands."""
        return np.arange(length)[None] < len(self.ids)


class PhraseTokenizer:
    """The tokenizer of a bundle; `context` is the number of tokens that fit, start and end token included."""

    def __init__(self, path: Path, context: int) -> None:
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # noqa: BLE001 - the library raises nothing more exact
            raise GraphLoadError(path, "tokenizers", str(error)) from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._start, self._end = (self._id_of(token, path) for token in (_START, _END))
        self._room = context - 2

    def count(self, text: str) -> tuple[int, int]:
        """Tokens of the whole phrase and how many there is room for, without start and end. Raises `PhraseError`."""
        return self.tokens(text).n_in_all, self._room

    def tokens(self, text: str) -> Tokens:
        """Raises `PhraseError` for a phrase without any letter, number or pictogram."""
        cleaned = clean(text)
        if not any(_says_something(character) for character in cleaned):
            raise PhraseError(text)
        encoded = self._tokenizer.encode(cleaned, add_special_tokens=False)
        ids = (self._start, *encoded.ids[: self._room], self._end)
        if len(encoded.ids) <= self._room:
            return Tokens(ids, "", len(encoded.ids))
        first_lost = encoded.offsets[self._room][0]
        # The person's own spelling, unless the clean-up has moved the characters.
        return Tokens(ids, (text if len(text) == len(cleaned) else cleaned)[first_lost:], len(encoded.ids))

    def _id_of(self, token: str, path: Path) -> int:
        number = self._tokenizer.token_to_id(token)
        if number is None:
            raise GraphLoadError(path, "SAM 3", f"it has no token {token}, so it is not the tokenizer of this model")
        return number


def clean(text: str) -> str:
    """Broken encodings and typographic quotes mended, HTML entities resolved, white space folded, lower case."""
    import ftfy

    mended = html.unescape(html.unescape(ftfy.fix_text(text)))
    return " ".join(mended.split()).lower()


def _says_something(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LN" or category == "So"
