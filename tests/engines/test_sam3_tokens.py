"""Phrases as tokens: ids as transformers' CLIPTokenizer gives them for a phrase cleaned up by ftfy."""

from __future__ import annotations

import numpy as np
import pytest
from sam3_shapes import BUNDLE

from engines.errors import GraphLoadError, PhraseError
from engines.families._sam3.tokens import PhraseTokenizer, clean

START, END = 49406, 49407
GOLDEN = {
    "red circle": "736 7117",
    "Red Circle": "736 7117",
    "  RED   circle \n": "736 7117",
    "shape": "6448",
    "visual": "7195",
    "striped cat": "22192 2368",
    "a cat’s toy": "320 2368 568 5988",
    "cat's toy": "2368 568 5988",
    "person's left hand": "2533 568 1823 2463",
    "don't": "847 713",
    "fish & chips": "2759 261 8855",
    "fish &amp; chips": "2759 261 8855",
    "fish &amp;amp; chips": "2759 261 8855",
    "&lt;b&gt;": "283 321 285",
    "<b> fish &amp;amp; chips": "283 321 285 2759 261 8855",
    "20 cars": "273 271 3346",
    "2nd shelf": "273 1764 10955",
    "t-shirt": "339 268 2523",
    "U.S. flag": "340 269 338 269 4859",
    "red/green light": "736 270 1901 1395",
    "café": "15304",
    "cafe\u0301": "15304",
    "naïve": "1097 35689 563",
    "Straße": "1894 127 253 324",
    "İstanbul": "328 16384 11231",
    "ΟΔΟΣ": "138 123 138 112 138 123 139 480",
    "ὈΔΥΣΣΕΎΣ": "157 121 222 138 112 139 227 139 225 139 225 138 113 139 235 139 480",
    "красная машина": "27152 16370 16912 23669 22705 16912 141 493 38018 16912 141 230 16701 22705 27080",
    "猫": "163 234 360",
    "一只条纹猫": "19759 222 34517 103 27667 94 163 118 117 163 234 360",
    "赤い 丸": "164 113 97 38850 19759 372",
    "빨간 원": "24193 101 21122 482 36495",
    "قطة": "27585 32050 20915",
    "חתול": "147 245 147 103 147 243 147 506",
    "🐱": "22979",
    "cat 🐱 dog": "2368 22979 1929",
    "½ orange": "33613 4287",
    "x²": "343 41175",
    "ｃａｔ": "2368",
    "ﬁsh": "2759",
    "cafÃ©": "15304",
    "“quoted”": "257 27706 257",
    "rock—paper": "2172 2005 2802",
    "a...b": "320 678 321",
    "hello_world": "3306 318 1002",
    "#1": "258 272",
    "$5 bill": "259 276 2886",
    "C++": "322 19056",
    "cat\u00a0dog": "2368 1929",
    "cat\u200bdog": "2368 9844 1929",
    "supercalifragilisticexpialidocious": "1642 2857 13093 2076 5868 26850 835 639 38466",
    "👨\u200d👩\u200d👧": "25023 26304 964 356",
}


@pytest.fixture(scope="module")
def tokenizer() -> PhraseTokenizer:
    return PhraseTokenizer(BUNDLE / "tokenizer.json", 32)


@pytest.mark.parametrize("text", GOLDEN)
def test_ids_are_those_of_the_reference(text, tokenizer):
    tokens = tokenizer.tokens(text)
    assert tokens.ids == (START, *(int(number) for number in GOLDEN[text].split()), END)
    assert tokens.cut == ""


def test_padding_is_zero_and_masked(tokenizer):
    tokens = tokenizer.tokens("red circle")
    padded, mask = tokens.padded(32), tokens.mask(32)
    assert (padded.dtype, padded.shape) == (np.int32, (1, 32))
    assert padded[0, :5].tolist() == [START, 736, 7117, END, 0]
    assert not padded[0, 4:].any()
    assert (mask.dtype, mask.shape) == (np.bool_, (1, 32))
    assert mask[0].tolist() == [True] * 4 + [False] * 28


def test_thirty_tokens_of_words_fit_and_no_more(tokenizer):
    fits, one_more = (" ".join(["Striped cat"] * n) for n in (15, 16))
    assert tokenizer.tokens(fits).cut == ""
    assert tokenizer.tokens(one_more).ids == tokenizer.tokens(fits).ids
    assert tokenizer.tokens(one_more).ids[-3:] == (22192, 2368, END)
    assert tokenizer.tokens(one_more).cut == "Striped cat"


def test_the_cut_is_told_in_the_spelling_of_the_person(tokenizer):
    assert tokenizer.tokens("a " * 30 + "Ångström ΟΔΟΣ").cut == "Ångström ΟΔΟΣ"


def test_the_cut_is_told_as_it_was_cleaned_where_the_clean_up_moved_it(tokenizer):
    assert tokenizer.tokens("a &amp; " * 20 + "Ångström").cut == "a & " * 5 + "ångström"


def test_a_word_of_five_thousand_letters_is_cut_inside(tokenizer):
    tokens = tokenizer.tokens("striped" + "x" * 5000)
    assert len(tokens.ids) == 32
    assert tokens.ids[-1] == END
    assert 0 < len(tokens.cut) < 5000
    assert set(tokens.cut) == {"x"}


def test_a_context_of_another_length_is_kept(tokenizer):
    short = PhraseTokenizer(BUNDLE / "tokenizer.json", 4).tokens("red Circle there")
    assert short.ids == (START, 736, 7117, END)
    assert short.cut == "there"


@pytest.mark.parametrize("text", [".", "-- !", "\u200b\u2060", "&nbsp;", "+", "\x00"])
def test_a_phrase_without_letter_number_or_pictogram_is_refused(text, tokenizer):
    with pytest.raises(PhraseError, match="holds no word; type a noun phrase such as: striped cat"):
        tokenizer.tokens(text)


def test_a_lone_surrogate_is_no_trouble(tokenizer):
    assert tokenizer.tokens("cat \ud800").ids[:2] == (START, 2368)


def test_clean_up_mends_unescapes_folds_and_lowers():
    assert clean(" The\u00a0“caf\u00c3\u00a9” &amp;amp;\n CO. ") == 'the "café" & co.'


def test_a_file_that_is_no_tokenizer_is_named(tmp_path):
    for content in ("{}", "not json"):
        (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
        with pytest.raises(GraphLoadError, match=r"cannot load .*tokenizer\.json"):
            PhraseTokenizer(tmp_path / "tokenizer.json", 32)


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    Tokenizer(BPE(vocab={"a": 0}, merges=[])).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(GraphLoadError, match=r"has no token <\|startoftext\|>"):
        PhraseTokenizer(tmp_path / "tokenizer.json", 32)
