from __future__ import annotations

import time
from pathlib import Path

import pytest
from store_samples import BUNDLE, found, suggest

from annotator.errors import UnknownImageError
from annotator.records import Decision, FoundImage, ImageOrder, ImageState, SyncReport
from annotator.store import ProjectStore


@pytest.fixture
def store(tmp_path: Path):
    with ProjectStore.open(tmp_path) as store:
        store.ensure_category("cat")
        yield store


def _paths(images) -> list[str]:
    return [image.path for image in images]


def test_the_first_listing_adds_every_image_as_untouched(store: ProjectStore) -> None:
    report = store.sync_images([FoundImage("a/IMG_0001.jpg", 10, 20), FoundImage("b/IMG_0001.jpg", 30, 40)])
    assert report == SyncReport(n_known=0, n_new=2, n_missing=0, n_returned=0)
    first, second = store.images()
    assert (first.path, first.size_bytes, first.mtime_ns) == ("a/IMG_0001.jpg", 10, 20)
    assert (first.state, first.sha256, first.height, first.failure, first.missing) == ("untouched", *[None] * 3, False)
    assert second.image_id != first.image_id


def test_a_vanished_image_is_marked_and_keeps_its_work_until_it_returns(store: ProjectStore) -> None:
    store.sync_images(found("a.jpg", "b.jpg"))
    image_id = store.image_at("a.jpg").image_id
    suggest(store, image_id, 0.9)

    assert store.sync_images(found("b.jpg", "c.jpg")) == SyncReport(1, 1, 1, 0)
    assert store.image(image_id).missing
    assert _paths(store.images()) == ["a.jpg", "b.jpg", "c.jpg"]
    assert _paths(store.images(include_missing=False)) == ["b.jpg", "c.jpg"]
    assert len(store.annotations(image_id)) == 1

    assert store.sync_images(found("a.jpg", "b.jpg", "c.jpg")) == SyncReport(3, 0, 0, 1)
    assert not store.image(image_id).missing


def test_a_listing_that_fails_half_way_changes_nothing(store: ProjectStore) -> None:
    store.sync_images(found("a.jpg"))

    def broken():
        yield from found("b.jpg")
        raise OSError("the disk went away")

    with pytest.raises(OSError, match="went away"):
        store.sync_images(broken())
    assert _paths(store.images()) == ["a.jpg"]
    assert not store.image_at("a.jpg").missing


@pytest.mark.parametrize("path", ["100%#?.jpg", "emoji 🐈.png", "é/é.jpg", "x" * 204, "a;b'c\"d.jpg", "a.b.c.jpg"])
def test_odd_names_are_kept_as_they_are(store: ProjectStore, path: str) -> None:
    store.sync_images(found(path))
    assert store.image_at(path).path == path


def test_composed_and_decomposed_names_are_two_images(store: ProjectStore) -> None:
    store.sync_images(found("\u00e9.jpg", "e\u0301.jpg"))
    assert len(store.images()) == 2


def test_a_name_that_is_not_text_is_left_out_and_told(store: ProjectStore) -> None:
    report = store.sync_images(found("good.jpg", "bad\udcff.jpg"))
    assert (report.n_new, report.refused_paths) == (1, ("bad\udcff.jpg",))
    assert _paths(store.images()) == ["good.jpg"]


def test_images_are_sorted_as_people_sort(store: ProjectStore) -> None:
    store.sync_images(
        [
            FoundImage("b/img1.jpg", 1, 3),
            FoundImage("a/img10.jpg", 1, 2),
            FoundImage("a/IMG9.jpg", 1, 9),
            FoundImage("a/img010.jpg", 1, 1),
        ]
    )
    assert _paths(store.images()) == ["a/IMG9.jpg", "a/img010.jpg", "a/img10.jpg", "b/img1.jpg"]
    by_name = ["b/img1.jpg", "a/IMG9.jpg", "a/img010.jpg", "a/img10.jpg"]
    assert _paths(store.images(order=ImageOrder.NAME)) == by_name
    by_time = ["a/img010.jpg", "a/img10.jpg", "b/img1.jpg", "a/IMG9.jpg"]
    assert _paths(store.images(order=ImageOrder.MODIFIED)) == by_time


def _in_each_state(store: ProjectStore) -> dict[str, int]:
    store.sync_images(found("1.jpg", "2.jpg", "3.jpg", "4.jpg"))
    ids = {image.path: image.image_id for image in store.images()}
    suggest(store, ids["2.jpg"], 0.9)
    store.mark_done(ids["3.jpg"], True, None, "done")
    return ids


def test_images_are_listed_by_state(store: ProjectStore) -> None:
    _in_each_state(store)
    assert {state: _paths(store.images(state)) for state in ImageState} == {
        "untouched": ["1.jpg", "4.jpg"],
        "suggested": ["2.jpg"],
        "done": ["3.jpg"],
    }


def test_next_goes_on_from_the_image_shown_and_starts_again_after_the_last(store: ProjectStore) -> None:
    ids = _in_each_state(store)
    walk = ["2.jpg", "4.jpg", "1.jpg"]
    shown, seen = ids["1.jpg"], []
    for _ in walk:
        shown = store.next_image(shown).image_id
        seen.append(store.image(shown).path)
    assert seen == walk
    assert store.next_image(None).path == "1.jpg"
    assert store.next_image(ids["4.jpg"], [ImageState.DONE]).path == "3.jpg"
    assert store.next_image(ids["3.jpg"], [ImageState.DONE]) is None
    assert store.next_image(None, []) is None
    assert store.next_image(ids["1.jpg"], order=ImageOrder.NAME).path == "2.jpg"


def test_next_passes_over_missing_and_failed_images(store: ProjectStore) -> None:
    store.sync_images(found("1.jpg", "2.jpg", "3.jpg", "4.jpg"))
    ids = {image.path: image.image_id for image in store.images()}
    store.record_failure(ids["2.jpg"], "cut off")
    store.sync_images(found("1.jpg", "2.jpg", "4.jpg"))
    assert store.next_image(ids["1.jpg"]).path == "4.jpg"


def test_what_an_image_was_when_read_is_kept(store: ProjectStore) -> None:
    store.sync_images(found("a.jpg"))
    store.record_failure(1, "cut off after 3 rows")
    assert store.image(1).failure == "cut off after 3 rows"
    assert store.record_opened(1, "c0ffee", 480, 640, 1234, 99) is False
    image = store.image(1)
    assert (image.sha256, image.height, image.width, image.size_bytes, image.mtime_ns, image.failure) == (
        *("c0ffee", 480, 640, 1234, 99),
        None,
    )


def test_a_file_that_changed_underneath_is_told_until_a_person_works_on_it_again(store: ProjectStore) -> None:
    store.sync_images(found("a.jpg"))
    store.record_opened(1, "before", 8, 10, 1000, 1)
    (annotation_id,) = suggest(store, 1, 0.9)
    store.decide(1, {annotation_id: Decision.ACCEPTED}, None, "accept 1")
    assert not store.image(1).changed

    assert store.record_opened(1, "after", 8, 10, 1000, 2) is True
    assert store.record_opened(1, "after", 8, 10, 1000, 2) is True
    assert store.image(1).changed
    assert not store.has_run(1, "striped cat", BUNDLE, 0.5)
    assert [each.decision for each in store.annotations(1)] == ["accepted"]

    store.mark_done(1, True, None, "done")
    assert not store.image(1).changed
    assert store.record_opened(1, "after", 8, 10, 1000, 2) is False


def test_a_listing_does_not_hide_that_a_read_file_changed(store: ProjectStore) -> None:
    store.sync_images(found("a.jpg", size_bytes=1000, mtime_ns=1))
    store.record_opened(1, "before", 8, 10, 1000, 1)
    suggest(store, 1, 0.9)
    store.sync_images(found("a.jpg", size_bytes=1000, mtime_ns=2))
    assert store.image(1).mtime_ns == 1
    assert store.has_run(1, "striped cat", BUNDLE, 0.5)
    store.sync_images(found("a.jpg", size_bytes=1001, mtime_ns=2))
    assert not store.has_run(1, "striped cat", BUNDLE, 0.5)


def test_a_failed_file_is_tried_again_only_when_it_changed(store: ProjectStore) -> None:
    store.sync_images(found("a.jpg", mtime_ns=1))
    store.record_failure(1, "cut off")
    store.sync_images(found("a.jpg", mtime_ns=1))
    assert store.image(1).failure == "cut off"
    store.sync_images(found("a.jpg", mtime_ns=2))
    assert (store.image(1).failure, store.image(1).mtime_ns) == (None, 2)


def test_reading_an_image_again_is_no_change_of_its_labels(store: ProjectStore) -> None:
    store.sync_images(found("a.jpg"))
    before = store.image(1).revision
    store.record_opened(1, "c0ffee", 8, 10, 1000, 1)
    store.record_failure(1, "cut off")
    assert store.image(1).revision == before


def test_unknown_images_are_refused_by_id_and_none_by_path(store: ProjectStore) -> None:
    with pytest.raises(UnknownImageError, match="the project holds no image 7"):
        store.image(7)
    with pytest.raises(UnknownImageError):
        store.record_failure(7, "cut off")
    assert store.image_at("nothing.jpg") is None


def test_labelled_paths_are_those_with_a_persons_work(store: ProjectStore) -> None:
    store.sync_images(found("suggested.jpg", "decided.jpg", "done.jpg", "untouched.jpg"))
    ids = {image.path: image.image_id for image in store.images()}
    suggest(store, ids["suggested.jpg"], 0.9)
    (annotation_id,) = suggest(store, ids["decided.jpg"], 0.9)
    store.decide(ids["decided.jpg"], {annotation_id: Decision.REJECTED}, None, "reject 1")
    store.mark_done(ids["done.jpg"], True, None, "done")
    assert store.labelled_paths() == {"decided.jpg", "done.jpg"}


def test_a_hundred_thousand_images_are_synced_and_ten_thousand_listed_quickly(store: ProjectStore) -> None:
    images = [FoundImage(f"{n % 100}/img{n}.jpg", 1000, 1) for n in range(100_000)]
    started = time.perf_counter()
    store.sync_images(images)
    store.sync_images(images[:10_000])
    assert time.perf_counter() - started < 15
    started = time.perf_counter()
    assert len(store.images(include_missing=False)) == 10_000
    assert time.perf_counter() - started < 2
