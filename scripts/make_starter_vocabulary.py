"""Makes the starter model's vocabulary.json from WordNet 3.0 (Debian package wordnet-base): words → COCO categories.

    python scripts/make_starter_vocabulary.py [--wordnet /usr/share/wordnet] [--out FILE]

`starter_categories.tsv` beside this script names, for each category, the WordNet synsets whose hyponyms belong to it
and the words that WordNet lacks or ranks otherwise. The result is the same on every run.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
DEFAULT_OUT = HERE.parent / "engines" / "models" / "starter" / "vocabulary.json"
_ANIMAL, _ARTIFACT, _FOOD, _PLANT = "05", "06", "13", "20"
_THINGS = {_ANIMAL, _ARTIFACT, _FOOD, _PLANT}
_PERSON = "person"
_COLOURS = {
    *("black", "white", "red", "green", "blue", "brown", "grey", "gray", "pink", "yellow", "purple", "violet"),
    *("golden", "silver", "orange"),
}
_COLOURS_AND_OTHER_WORDS = (_COLOURS - {"orange"}) | {
    *("one", "two", "dozen", "other", "all", "some", "i", "me", "he", "she", "it", "us", "a", "an"),
}
"""WordNet lists these as people or things too; in a phrase for a picture they are not what is asked for."""
_MORE_ADJECTIVES = {"baby", "young", "elevator", "reading", "reception"}
_MORE_IRREGULAR = {"women": "woman", "men": "man", "children": "child", "oxen": "ox", "mice": "mouse"}
_OTHER_THINGS = {
    *("glasses", "speaker", "model", "figure", "subject", "object", "light", "reader", "mask", "shadow", "spirit"),
    *("charger", "mount", "beef"),
}
"""In a photograph these are most often something that the model does not know."""


@dataclass(frozen=True)
class Synset:
    """One meaning: its lexicographer file, its words, and the offsets of its hyponyms."""

    lexicographer_file: str
    words: tuple[str, ...]
    hyponyms: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One line of the table: a category (`number` > 0) or a general word (`number` 0)."""

    number: int
    name: str
    sources: tuple[str, ...]
    words: tuple[str, ...]


class WordNet:
    """The nouns of a WordNet folder."""

    def __init__(self, folder: Path) -> None:
        self.synsets = dict(_read_synsets(folder / "data.noun"))
        self.senses = dict(_read_senses(folder / "index.noun"))
        self.adjectives = {word for word, _ in _read_senses(folder / "index.adj")} | _MORE_ADJECTIVES
        self.irregular = dict(_read_irregular(folder / "noun.exc"))
        self._kinds: dict[str, set[str]] = {}

    def hyponym_words(self, seeds: Iterable[str]) -> set[str]:
        """Words whose first sense lies under one of the seeds (`word#sense`)."""
        seen = self._closure(self._offset(seed) for seed in seeds)
        words = {word for offset in seen for word in self.synsets[offset].words}
        return {word for word in words if self.senses[word][0] in seen}

    def is_kind_of(self, word: str, kind: str) -> bool:
        """Whether any sense of `word` lies under any sense of `kind`."""
        below = self._kinds.get(kind)
        if below is None:
            below = self._kinds[kind] = self._closure(self.senses.get(kind, ()))
        return not below.isdisjoint(self.senses[word])

    def is_also_a_thing(self, word: str) -> bool:
        """Whether the word has a sense as an animal, artifact, food or plant."""
        return any(self.synsets[offset].lexicographer_file in _THINGS for offset in self.senses.get(word, ()))

    def _closure(self, offsets: Iterable[str]) -> set[str]:
        seen: set[str] = set()
        stack = list(offsets)
        while stack:
            offset = stack.pop()
            if offset not in seen:
                seen.add(offset)
                stack.extend(self.synsets[offset].hyponyms)
        return seen

    def _offset(self, seed: str) -> str:
        word, sense = seed.split("#")
        return self.senses[word][int(sense) - 1]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    arguments = parser.parse_args()
    table = make_table(WordNet(arguments.wordnet), list(read_rows(HERE / "starter_categories.tsv")))
    arguments.out.write_text(json.dumps(table, ensure_ascii=True, indent=0, sort_keys=True) + "\n", encoding="ascii")
    print(f"{arguments.out}: {len(table['nouns'])} nouns, {arguments.out.stat().st_size / 1000:.0f} kB")


def make_table(wordnet: WordNet, rows: list[Row]) -> dict[str, object]:
    """`categories` name → COCO id; `nouns` word → names (none: known as another thing); `general` words; `plurals`."""
    order = [row.name for row in rows if row.number]
    nouns = _category_nouns(wordnet, rows)
    general = _replace_by_table(nouns, rows)
    for word in _COLOURS_AND_OTHER_WORDS:
        nouns.pop(word, None)
    others = _other_things(nouns, general, wordnet)
    own_words = {word for row in rows for word in (row.name, *row.words)}
    nouns = _without_what_the_last_word_says(nouns, own_words) | others | {word: set() for word in _OTHER_THINGS}
    irregular = wordnet.irregular | _MORE_IRREGULAR
    plurals = {plural: word for plural, word in irregular.items() if word in nouns and plural not in nouns}
    return {
        "categories": {row.name: row.number for row in rows if row.number},
        "nouns": {word: sorted(names, key=order.index) for word, names in nouns.items()},
        "general": sorted(general),
        "plurals": plurals,
    }


def _category_nouns(wordnet: WordNet, rows: list[Row]) -> dict[str, set[str]]:
    nouns: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.number:
            for word in wordnet.hyponym_words(row.sources):
                if row.name != _PERSON or not wordnet.is_also_a_thing(word):
                    nouns[word].add(row.name)
    return nouns


def _replace_by_table(nouns: dict[str, set[str]], rows: list[Row]) -> set[str]:
    """The table's own words mean what the table says, whatever WordNet has first. Returns the general ones."""
    own: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for word in {row.name, *row.words}:
            own[word] |= {row.name} if row.number else set(row.sources)
    nouns.update(own)
    return {word for row in rows if not row.number for word in {row.name, *row.words}}


def _without_what_the_last_word_says(nouns: dict[str, set[str]], own_words: set[str]) -> dict[str, set[str]]:
    """Leave out "fishing boat" where "boat" alone says the same.

    Words of the table stay, and so do names with a colour in them: no golden retriever has to be golden.
    """
    return {
        word: names
        for word, names in nouns.items()
        if " " not in word
        or word in own_words
        or (names != {_PERSON} and not _COLOURS.isdisjoint(word.split()))
        or nouns.get(word.rpartition(" ")[2]) != names
    }


def _other_things(nouns: dict[str, set[str]], general: set[str], wordnet: WordNet) -> dict[str, set[str]]:
    """Compounds that end in a known word and are none of its kind: a koala bear is no bear.

    An adjective before the word does not make a compound: a black cat is a cat, whatever else WordNet calls so.
    """
    others: dict[str, set[str]] = {}
    for word in wordnet.senses:
        tail = _known_tail(word, nouns)
        if not tail or word in nouns or wordnet.adjectives.issuperset(word.removesuffix(tail).split()):
            continue
        if tail in general or not wordnet.is_kind_of(word, tail):
            others[word] = set()
    return others


def _known_tail(word: str, nouns: dict[str, set[str]]) -> str:
    """The longest proper ending of a compound that is in the table, or nothing."""
    while " " in word:
        word = word.partition(" ")[2]
        if word in nouns:
            return word
    return ""


def read_rows(path: Path) -> Iterator[Row]:
    """The lines of the table that are not comments."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            number, name, sources, words = line.split("\t")
            yield Row(int(number), name, _split(sources), _split(words))


def _split(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in cell.split(",") if part.strip())


def _plain(word: str) -> str:
    """WordNet's spelling in lower case, with blanks for underscores and hyphens."""
    return word.lower().replace("_", " ").replace("-", " ")


def _read_synsets(path: Path) -> Iterator[tuple[str, Synset]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            continue
        fields = line.split(" | ")[0].split(" ")
        n_words = int(fields[3], 16)
        words = tuple(_plain(fields[4 + 2 * index]) for index in range(n_words))
        pointers = fields[5 + 2 * n_words :]
        hyponyms = tuple(pointers[index + 1] for index in range(0, len(pointers) - 1, 4) if pointers[index] == "~")
        yield fields[0], Synset(fields[1], words, hyponyms)


def _read_senses(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Word → offsets of its synsets, the most frequent first."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("  "):
            fields = line.split()
            yield _plain(fields[0]), tuple(fields[-int(fields[2]) :])


def _read_irregular(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        plural, word = line.split()[:2]
        yield _plain(plural), _plain(word)


if __name__ == "__main__":
    main()
