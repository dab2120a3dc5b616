from __future__ import annotations

import os
from pathlib import Path

import pytest
from nasty_files import make_file_system_oddities, make_nasty_files

from engines.images import IMAGE_SUFFIXES, find_images


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def found(folder: Path, recursive: bool = True) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in find_images(folder, recursive)]


def test_numbers_are_ordered_as_numbers_and_a_folder_before_its_sub_folders(tmp_path: Path):
    touch(tmp_path, "img10.jpg", "img2.jpg", "IMG1.png", "a/9.jpg", "a/10.jpg", "a2/1.jpg", "a10/1.jpg")
    assert found(tmp_path) == ["IMG1.png", "img2.jpg", "img10.jpg", "a/9.jpg", "a/10.jpg", "a2/1.jpg", "a10/1.jpg"]


def test_names_that_differ_in_case_or_zeros_only_keep_one_order(tmp_path: Path):
    touch(tmp_path, "b.jpg", "B.jpg", "01.jpg", "1.jpg", "001.jpg", "٣.jpg")
    assert found(tmp_path) == ["001.jpg", "01.jpg", "1.jpg", "٣.jpg", "B.jpg", "b.jpg"]


def test_only_picture_suffixes_count_in_any_case(tmp_path: Path):
    touch(tmp_path, "a.JPG", "b.HeIc", "c.dcm", "d.txt", "e", "f.jpg.bak", "g.json", "h..jpg")
    assert found(tmp_path) == ["a.JPG", "b.HeIc", "c.dcm", "h..jpg"]
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in IMAGE_SUFFIXES)


def test_hidden_files_and_folders_are_passed_over(tmp_path: Path):
    touch(tmp_path, ".a.jpg", "._b.jpg", ".thumbnails/c.jpg", "d.jpg")
    assert found(tmp_path) == ["d.jpg"]


def test_folders_may_be_nested_deeply(tmp_path: Path):
    folder = tmp_path
    for _ in range(700):
        folder = folder / "d"
        folder.mkdir()
    touch(folder, "a.jpg")
    assert len(list(find_images(tmp_path))) == 1


def test_sub_folders_are_left_out_when_asked(tmp_path: Path):
    touch(tmp_path, "a.jpg", "sub/b.jpg")
    assert found(tmp_path, recursive=False) == ["a.jpg"]


def test_a_folder_named_like_a_picture_is_searched_but_not_listed(tmp_path: Path):
    touch(tmp_path, "dir.jpg/a.jpg")
    assert found(tmp_path) == ["dir.jpg/a.jpg"]


def test_links_to_folders_are_not_followed_and_links_to_files_are(tmp_path: Path):
    touch(tmp_path, "real/a.jpg", "outside")
    (tmp_path / "real" / "up").symlink_to("..", target_is_directory=True)
    (tmp_path / "again").symlink_to("real", target_is_directory=True)
    (tmp_path / "named.jpg").symlink_to("real", target_is_directory=True)
    (tmp_path / "link.jpg").symlink_to("real/a.jpg")
    assert found(tmp_path) == ["link.jpg", "real/a.jpg"]


def test_a_search_may_start_at_a_link(tmp_path: Path):
    touch(tmp_path, "real/a.jpg")
    (tmp_path / "link").symlink_to("real", target_is_directory=True)
    assert found(tmp_path / "link") == ["a.jpg"]


def test_whatever_cannot_be_opened_is_listed_so_that_it_is_named_later(tmp_path: Path):
    oddities = make_file_system_oddities(tmp_path)
    wanted = {nasty.path.name for nasty in oddities if nasty.is_found}
    assert {"dangling.jpg", "own_link.jpg", "pipe.jpg"} <= wanted <= set(found(tmp_path))
    assert "dir_named.jpg" not in found(tmp_path)


def test_two_spellings_of_an_accent_stay_two_files(tmp_path: Path):
    touch(tmp_path, "e\u0301.jpg", "\u00e9.jpg")
    assert sorted(found(tmp_path)) == ["e\u0301.jpg", "\u00e9.jpg"]


def test_every_nasty_file_is_found_just_once_unless_it_is_hidden(tmp_path: Path):
    wanted = [nasty.path for nasty in make_nasty_files(tmp_path) if nasty.is_found]
    assert sorted(find_images(tmp_path)) == sorted(wanted)


def test_a_sub_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    touch(tmp_path, "a.jpg", "locked/b.jpg")
    scandir = os.scandir

    def refusing(folder: Path) -> object:
        if folder.name == "locked":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    assert found(tmp_path) == ["a.jpg", "locked"]


def test_the_folder_itself_must_be_one(tmp_path: Path):
    touch(tmp_path, "a.jpg")
    with pytest.raises(FileNotFoundError):
        find_images(tmp_path / "missing")
    with pytest.raises(NotADirectoryError):
        find_images(tmp_path / "a.jpg")
