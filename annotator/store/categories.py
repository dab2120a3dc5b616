"""Categories, and the phrases kept for them."""

from __future__ import annotations

from annotator.errors import CategoryNameError, UnknownCategoryError
from annotator.records import MAX_CATEGORY_LENGTH, Category, KeptPhrase, phrase_key
from annotator.store.images import Images
from engines.types import Phrase, folded_text, is_valid_text


class Categories(Images):
    """The categories' and kept phrases' part of the store."""

    def categories(self) -> list[Category]:
        """In the order they were made."""
        rows = self._rows("SELECT category_id, name, supercategory FROM category ORDER BY category_id")
        return [Category(*row) for row in rows]

    def ensure_category(self, name: str) -> Category:
        """The category of exactly that name, white space folded, made if there is none. Raises `CategoryNameError`."""
        folded = _folded(name)
        with self.atomic():
            found = self._category_named(folded)
            if found is not None:
                return found
            return Category(self._insert("INSERT INTO category (name) VALUES (?)", (folded,)), folded)

    def rename_category(self, category_id: int, name: str) -> Category:
        """Give a category another name. Raises `CategoryNameError` or `UnknownCategoryError`."""
        folded = _folded(name)
        with self.atomic():
            taken_by = self._category_named(folded)
            if taken_by is not None and taken_by.category_id != category_id:
                raise CategoryNameError(folded, "another category has it; choose another name")
            self._check_category(category_id)
            self._write("UPDATE category SET name = ? WHERE category_id = ?", (folded, category_id))
            row = self._row(
                "SELECT category_id, name, supercategory FROM category WHERE category_id = ?", (category_id,)
            )
            return Category(*row)

    def kept_phrases(self) -> list[KeptPhrase]:
        """In the order they were first kept."""
        rows = self._rows("SELECT phrase_id, text, category_id FROM kept_phrase ORDER BY phrase_id")
        return [KeptPhrase(*row) for row in rows]

    def keep_phrase(self, text: str, category_id: int) -> KeptPhrase:
        """Keep a phrase for a category, or move a kept one there with its pending suggestions.

        Phrases that differ in case or white space only are one phrase; the newest spelling is shown. Raises
        `PhraseError` or `UnknownCategoryError`.
        """
        folded, key = Phrase(text).text, phrase_key(text)
        with self.atomic():
            self._check_category(category_id)
            self._write(
                "INSERT INTO kept_phrase (text, phrase_key, category_id) VALUES (?, ?, ?) "
                "ON CONFLICT (phrase_key) DO UPDATE SET text = excluded.text, category_id = excluded.category_id",
                (folded, key, category_id),
            )
            self._bump_revisions_of_pending(key, other_than=category_id)
            self._write(
                "UPDATE annotation SET category_id = ? WHERE phrase_key = ? AND decision = 'pending'",
                (category_id, key),
            )
            row = self._row("SELECT phrase_id, text, category_id FROM kept_phrase WHERE phrase_key = ?", (key,))
            return KeptPhrase(*row)

    def forget_phrase(self, phrase_id: int) -> None:
        """Stop running a phrase, and remove its suggestions that nobody decided on; human decisions stay."""
        with self.atomic():
            row = self._row("SELECT phrase_key FROM kept_phrase WHERE phrase_id = ?", (phrase_id,))
            if row is None:
                return
            self._bump_revisions_of_pending(row[0])
            self._write(
                "DELETE FROM annotation WHERE phrase_key = ? AND decision = 'pending' AND score IS NOT NULL", row
            )
            self._write("DELETE FROM finished_run WHERE phrase_key = ?", row)
            self._write("DELETE FROM kept_phrase WHERE phrase_id = ?", (phrase_id,))

    def _bump_revisions_of_pending(self, key: str, other_than: int | None = None) -> None:
        """Of the images with pending suggestions for a phrase, leaving out those that are of a category already."""
        self._write(
            "UPDATE image SET revision = revision + 1 WHERE image_id IN (SELECT image_id FROM annotation "
            "WHERE phrase_key = ? AND decision = 'pending' AND category_id IS NOT ?)",
            (key, other_than),
        )

    def _category_named(self, name: str) -> Category | None:
        row = self._row("SELECT category_id, name, supercategory FROM category WHERE name = ?", (name,))
        return None if row is None else Category(*row)

    def _check_category(self, category_id: int) -> None:
        if self._row("SELECT 1 FROM category WHERE category_id = ?", (category_id,)) is None:
            raise UnknownCategoryError(category_id)


def _folded(name: str) -> str:
    folded = folded_text(name)
    if not folded:
        raise CategoryNameError(name, "it is empty; type a name such as: cat")
    if len(folded) > MAX_CATEGORY_LENGTH:
        raise CategoryNameError(f"{folded[:20]}…", f"it is longer than {MAX_CATEGORY_LENGTH} characters; shorten it")
    if not is_valid_text(folded):
        raise CategoryNameError(ascii(folded), "it holds characters that are not valid text; type it again")
    return folded
