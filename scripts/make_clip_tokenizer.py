"""Make engines/models/clip_bpe/tokenizer.json from CLIP's list of merges.

    python scripts/make_clip_tokenizer.py bpe_simple_vocab_16e6.txt.gz

The file lies in the PyPI package `clip-anytorch`. Run it from the folder of the project.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

TOKENIZER = Path(__file__).parents[1] / "engines" / "models" / "clip_bpe" / "tokenizer.json"
N_MERGES = 49152 - 256 - 2
WORD_END = "</w>"
SPECIAL = ["<|startoftext|>", "<|endoftext|>"]
WORDS = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def byte_letters() -> list[str]:
    """The letter that stands for each byte in the list of merges: printable ones first, each as itself."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    n_others = 256 - len(printable)
    return [*map(chr, printable), *(chr(256 + index) for index in range(n_others))]


def clip_tokenizer(merges: list[tuple[str, str]]) -> Tokenizer:
    """CLIP's byte-pair encoding: ids count letters, letters that end a word, merges, start, end."""
    letters = byte_letters()
    tokens = [*letters, *(letter + WORD_END for letter in letters), *("".join(pair) for pair in merges), *SPECIAL]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    model = models.BPE(vocabulary, merges, unk_token=SPECIAL[1], end_of_word_suffix=WORD_END)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(WORDS), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def main(source: Path) -> None:
    """Read the merges, leaving out the file's first line, which is a title, and those beyond CLIP's vocabulary."""
    lines = gzip.decompress(source.read_bytes()).decode("utf-8").split("\n")[1 : N_MERGES + 1]
    first_second = [line.split() for line in lines]
    content = json.loads(clip_tokenizer([(first, second) for first, second in first_second]).to_str())
    TOKENIZER.write_text(json.dumps(content, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
