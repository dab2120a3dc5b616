from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from store_samples import BUNDLE, drawing, found, suggest, suggestion

from annotator.errors import DiskFullError, ProjectBusyError, ProjectDamagedError, ProjectReadOnlyError
from annotator.records import Decision
from annotator.store import ProjectStore
from engines.masks import Mask


@pytest.fixture
def store(tmp_path: Path):
    with ProjectStore.open(tmp_path, busy_timeout_s=0.05) as store:
        store.sync_images(found("a.jpg", "b.jpg"))
        store.ensure_category("cat")
        yield store


def _limit_pages(store: ProjectStore, n_more: int) -> None:
    n_pages = store._row("PRAGMA page_count")[0]
    store._row(f"PRAGMA max_page_count = {n_pages + n_more}")


def test_a_full_disk_keeps_nothing_of_the_action_and_all_of_the_earlier_ones(store: ProjectStore) -> None:
    earlier = suggest(store, 1, 0.9)
    revision = store.image(1).revision
    large = suggestion(mask=Mask(8, 10, "0" * 20_000))
    _limit_pages(store, 12)
    with pytest.raises(DiskFullError, match=r"no space is left to write .*project\.sqlite; free some and try again"):
        store.replace_suggestions(1, "striped cat", 1, BUNDLE, 0.4, [large] * 10)
    assert [each.annotation_id for each in store.annotations(1)] == earlier
    assert store.image(1).revision == revision
    assert not store.has_run(1, "striped cat", BUNDLE, 0.4)

    _limit_pages(store, 10_000)
    assert len(store.replace_suggestions(1, "striped cat", 1, BUNDLE, 0.4, [large] * 10)) == 10
    assert store._row("PRAGMA integrity_check") == ("ok",)


def test_a_full_disk_takes_nothing_from_undo(store: ProjectStore) -> None:
    store.draw(1, drawing(), None, "draw cat")
    _limit_pages(store, 0)
    with pytest.raises(DiskFullError):
        for _ in range(1000):
            store.adopt(2, [suggestion(decision=Decision.ACCEPTED)] * 20, None, "accept 20")
    n_actions = store._row("SELECT count(*) FROM action")[0]
    _limit_pages(store, 1000)
    assert len([store.undo() for _ in range(n_actions)]) == n_actions
    assert (store.undo(), store.annotations(1), store.annotations(2)) == (None, [], [])


def test_a_project_that_turned_read_only_says_so(store: ProjectStore) -> None:
    store._row("PRAGMA query_only = ON")
    with pytest.raises(ProjectReadOnlyError, match=r"project\.sqlite cannot be written"):
        store.set_setting("folder", "/pictures")
    store._row("PRAGMA query_only = OFF")
    store.set_setting("folder", "/pictures")
    assert store.setting("folder") == "/pictures"


def test_another_writer_is_waited_for_and_then_named(tmp_path: Path, store: ProjectStore) -> None:
    with ProjectStore.open(tmp_path) as other, other.atomic():
        other.set_setting("folder", "/other")
        with pytest.raises(ProjectBusyError, match=r"held by another program for more than 0\.05 s; nothing was saved"):
            store.set_setting("folder", "/mine")
        assert store.setting("folder") is None
    assert store.setting("folder") == "/other"
    store.set_setting("folder", "/mine")
    assert store.setting("folder") == "/mine"


def test_a_writer_that_ends_in_time_is_waited_for(tmp_path: Path, store: ProjectStore) -> None:
    with ProjectStore.open(tmp_path, busy_timeout_s=10) as other:
        with store.atomic():
            waiting = threading.Thread(target=other.set_setting, args=("folder", "/other"))
            waiting.start()
            waiting.join(0.05)
            assert waiting.is_alive()
            store.set_setting("folder", "/mine")
        waiting.join()
    assert store.setting("folder") == "/other"


def test_an_export_does_not_stop_the_labelling_and_the_labelling_not_the_export(store: ProjectStore) -> None:
    suggest(store, 1, 0.9)
    stream = store.iter_annotated_images([Decision.PENDING])
    with store.atomic():
        suggest(store, 2, 0.9)
        assert [image.path for image, _ in stream] == ["a.jpg"]


def test_an_action_that_fails_inside_another_can_be_passed_over(store: ProjectStore) -> None:
    with store.atomic():
        store.set_setting("kept", "yes")
        with pytest.raises(ZeroDivisionError), store.atomic():
            store.set_setting("dropped", "yes")
            raise ZeroDivisionError
        store.set_setting("kept too", "yes")
    assert [store.setting(name) for name in ("kept", "dropped", "kept too")] == ["yes", None, "yes"]


def test_an_error_in_the_outer_action_drops_the_inner_ones_too(store: ProjectStore) -> None:
    with pytest.raises(KeyboardInterrupt), store.atomic():
        store.draw(1, drawing(), None, "draw cat")
        raise KeyboardInterrupt
    assert (store.annotations(1), store.can_undo()) == ([], None)


def test_damage_found_while_reading_is_told_as_damage(tmp_path: Path) -> None:
    with ProjectStore.open(tmp_path) as store:
        store.sync_images(found(*(f"{n}.jpg" for n in range(1000))))
    path = tmp_path / "project.sqlite"
    content = bytearray(path.read_bytes())
    content[8192:] = b"\x55" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(ProjectDamagedError, match="is not a usable project"), ProjectStore.open(tmp_path) as store:
        store.images()


def test_a_mistake_in_the_program_is_not_dressed_up(store: ProjectStore) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        store._row("SELECT * FROM not_there")


@pytest.mark.parametrize(
    "values",
    ["1, 1, 8, 10, 'x', 0, 0, 1, 1, 1.5, 'pending'", "1, 1, 8, 10, 'x', 0, 0, 1, 1, NULL, 'pending'",
     "1, 1, 8, 10, 'x', 0, 0, 1, 1, 0.5, 'maybe'", "1, 9, 8, 10, 'x', 0, 0, 1, 1, 0.5, 'pending'",
     "9, 1, 8, 10, 'x', 0, 0, 1, 1, 0.5, 'pending'"],
    ids=["score above 1", "drawn but pending", "unknown decision", "unknown category", "unknown image"],
)  # fmt: skip
def test_the_file_itself_refuses_what_no_annotation_may_be(store: ProjectStore, values: str) -> None:
    columns = "image_id, category_id, height, width, counts, x1, y1, x2, y2, score, decision"
    with pytest.raises(sqlite3.IntegrityError), store.atomic():
        store._write(f"INSERT INTO annotation ({columns}) VALUES ({values})")
