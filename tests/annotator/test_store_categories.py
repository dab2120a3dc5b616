from __future__ import annotations

from pathlib import Path

import pytest
from store_samples import BUNDLE, drawing, found, suggest

from annotator.errors import CategoryNameError, UnknownCategoryError
from annotator.records import Category, Decision, KeptPhrase, phrase_key
from annotator.store import ProjectStore
from engines.errors import PhraseError


@pytest.fixture
def store(tmp_path: Path):
    with ProjectStore.open(tmp_path) as store:
        store.sync_images(found("a.jpg", "b.jpg"))
        yield store


def test_a_category_is_made_once_with_its_white_space_folded(store: ProjectStore) -> None:
    cat = store.ensure_category("  tabby \t cat\n")
    assert cat == Category(1, "tabby cat", "object")
    assert store.ensure_category("tabby cat") == cat
    assert store.ensure_category("Tabby cat") == Category(2, "Tabby cat", "object")
    assert store.ensure_category("a, b; 'c'").name == "a, b; 'c'"
    assert [each.name for each in store.categories()] == ["tabby cat", "Tabby cat", "a, b; 'c'"]


@pytest.mark.parametrize("name", ["", " \t\n"])
def test_an_empty_category_name_is_refused(store: ProjectStore, name: str) -> None:
    with pytest.raises(CategoryNameError, match="it is empty"):
        store.ensure_category(name)
    assert store.categories() == []


def test_a_category_is_renamed_and_a_taken_name_is_refused(store: ProjectStore) -> None:
    cat, dog = store.ensure_category("cat"), store.ensure_category("dog")
    assert store.rename_category(cat.category_id, " house  cat ") == Category(1, "house cat")
    assert store.rename_category(cat.category_id, "house cat").name == "house cat"
    with pytest.raises(CategoryNameError, match="'dog' cannot be used: another category has it"):
        store.rename_category(cat.category_id, "dog")
    with pytest.raises(UnknownCategoryError):
        store.rename_category(77, "bird")
    assert [each.name for each in store.categories()] == ["house cat", dog.name]


def test_spellings_of_one_phrase_are_kept_once(store: ProjectStore) -> None:
    cat, cup = store.ensure_category("cat").category_id, store.ensure_category("cup").category_id
    assert store.keep_phrase(" Coffee  cup ", cat) == KeptPhrase(1, "Coffee cup", cat)
    store.keep_phrase("mug", cup)
    assert store.keep_phrase("COFFEE cup", cup) == KeptPhrase(1, "COFFEE cup", cup)
    assert [each.text for each in store.kept_phrases()] == ["COFFEE cup", "mug"]


def test_case_space_and_unicode_form_do_not_make_another_phrase() -> None:
    assert phrase_key(" STRASSE \t Caf\u00e9") == phrase_key("stra\u00dfe cafe\u0301")
    assert phrase_key("红色 杯子") == "红色 杯子"


def test_a_phrase_needs_words_and_a_category(store: ProjectStore) -> None:
    with pytest.raises(PhraseError):
        store.keep_phrase("  ", store.ensure_category("cat").category_id)
    with pytest.raises(UnknownCategoryError):
        store.keep_phrase("cat", 99)
    assert store.kept_phrases() == []


def _decided_and_pending(store: ProjectStore) -> tuple[int, int, int]:
    """Category ids of cat and cup; the id of a pending annotation beside an accepted and a drawn one on image 1."""
    cat, cup = store.ensure_category("cat").category_id, store.ensure_category("cup").category_id
    accepted, pending = suggest(store, 1, 0.9, 0.8, phrase="Striped  CAT", category_id=cat)
    store.decide(1, {accepted: Decision.ACCEPTED}, None, "accept 1")
    store.draw(1, drawing(cat), None, "draw cat")
    return cat, cup, pending


def test_moving_a_phrase_moves_its_pending_suggestions_and_nothing_else(store: ProjectStore) -> None:
    cat, cup, pending = _decided_and_pending(store)
    store.keep_phrase("striped cat", cat)
    revisions = [store.image(1).revision, store.image(2).revision]
    store.keep_phrase("striped cat", cup)
    moved = {each.annotation_id for each in store.annotations(1) if each.category_id == cup}
    assert moved == {pending}
    assert [store.image(1).revision, store.image(2).revision] == [revisions[0] + 1, revisions[1]]
    store.keep_phrase("striped cat", cup)
    assert store.image(1).revision == revisions[0] + 1


def test_forgetting_a_phrase_removes_its_pending_suggestions_everywhere_and_no_human_work(store: ProjectStore) -> None:
    cat, _, pending = _decided_and_pending(store)
    suggest(store, 2, 0.7)
    (other,) = suggest(store, 2, 0.6, phrase="mug")
    kept = store.keep_phrase("striped cat", cat)
    revisions = [store.image(1).revision, store.image(2).revision]

    store.forget_phrase(kept.phrase_id)

    assert store.kept_phrases() == []
    assert pending not in {each.annotation_id for each in store.annotations(1)}
    assert [each.decision for each in store.annotations(1)] == ["accepted", "accepted"]
    assert [each.annotation_id for each in store.annotations(2)] == [other]
    assert [store.image(1).revision, store.image(2).revision] == [each + 1 for each in revisions]
    assert not store.has_run(2, "striped cat", BUNDLE)
    assert store.has_run(2, "mug", BUNDLE)
    store.forget_phrase(kept.phrase_id)
