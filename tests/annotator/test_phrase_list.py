"""Phrases as they are written on the command line and in files."""

from __future__ import annotations

import pytest

from annotator.errors import CommandError
from annotator.phrase_list import parse_phrases


def test_a_phrase_without_a_category_is_its_own_category():
    assert parse_phrases(["person", "coffee cup=cup"]) == [("person", "person"), ("coffee cup", "cup")]


def test_white_space_is_folded():
    assert parse_phrases(["  coffee   cup =  big  cup "]) == [("coffee cup", "big cup")]


def test_a_file_may_have_comments_blank_lines_and_a_byte_order_mark(tmp_path):
    file = tmp_path / "phrases.txt"
    file.write_text("\ufeff# things\n\nstriped cat=cat\nperson\n", encoding="utf-8")
    assert parse_phrases(["mug=cup"], file) == [("mug", "cup"), ("striped cat", "cat"), ("person", "person")]


def test_a_phrase_given_twice_is_taken_once():
    assert parse_phrases(["cat", "Cat=cat"]) == [("cat", "cat")]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ([], "no phrase is given"),
        (["  "], "is empty"),
        (["=cup"], "the phrase is empty.*'=cup'"),
        (["cup="], "the category in 'cup=' is empty"),
        (["cup=a", "CUP=b"], "two categories"),
    ],
)
def test_what_cannot_be_meant_is_refused(written, words):
    with pytest.raises(CommandError, match=words):
        parse_phrases(written)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"none\.txt cannot be read"):
        parse_phrases([], tmp_path / "none.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CommandError, match="not UTF-8"):
        parse_phrases([], tmp_path / "binary.txt")
