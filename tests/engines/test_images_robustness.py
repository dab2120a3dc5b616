from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty_broken import bombs
from nasty_bytes import encoded, png_of
from nasty_files import NastyFile, make_nasty_files
from nasty_scene import noise_image

from engines.errors import ImageError, UnreadableImageError
from engines.images import image_size, read_image

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def nasty_files(tmp_path_factory: pytest.TempPathFactory) -> list[NastyFile]:
    return make_nasty_files(tmp_path_factory.mktemp("nasty"))


def test_bombs_are_refused_before_they_take_memory(tmp_path: Path):
    for bomb in bombs():
        (tmp_path / bomb.name).write_bytes(bomb.content)
    script = """
import resource, sys
from pathlib import Path
from engines.errors import ImageTooLargeError
from engines.images import image_size, read_image
import PIL.WebPImagePlugin, tifffile
def peak_mb(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak_mb()
for path in sorted(Path(sys.argv[1]).iterdir()):
    for open_it in (read_image, image_size):
        try: open_it(path)
        except ImageTooLargeError: continue
        sys.exit(f"{path} was not refused")
print(peak_mb() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, cwd=PROJECT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 30


def test_many_threads_read_the_same_pixels(nasty_files: list[NastyFile]):
    paths = [nasty.path for nasty in nasty_files if nasty.refusal is None][::5]
    alone = [read_image(path).rgb for path in paths]
    wrong: list[Path] = []

    def read_all() -> None:
        for path, wanted in zip(paths, alone, strict=True):
            if not np.array_equal(read_image(path).rgb, wanted):
                wrong.append(path)

    threads = [threading.Thread(target=read_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


WHOLE = {
    "PNG": encoded(noise_image(24, 20), "PNG"),
    "JPEG": encoded(noise_image(24, 20), "JPEG"),
    "progressive JPEG": encoded(noise_image(24, 20), "JPEG", progressive=True),
    "16-bit PNG": png_of(np.arange(24 * 20 * 3, dtype=np.uint16).reshape(24, 20, 3), 2),
}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "file"


@settings(max_examples=150, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(WHOLE)))
def test_changed_bytes_never_raise_anything_but_an_image_error(scratch: Path, data: st.DataObject, name: str):
    content = bytearray(WHOLE[name])
    places = st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255))
    for place, value in data.draw(st.lists(places, min_size=1, max_size=8)):
        content[place] = value
    scratch.write_bytes(content)
    reason_or_size(scratch)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(WHOLE)))
def test_a_cut_file_is_refused_wherever_it_is_cut(scratch: Path, data: st.DataObject, name: str):
    whole = WHOLE[name]
    # All but the checksum of a PNG's end marker may be missing without loss.
    end = data.draw(st.integers(0, len(whole) - 5))
    scratch.write_bytes(whole[:end])
    with pytest.raises(UnreadableImageError):
        read_image(scratch)


def reason_or_size(path: Path) -> None:
    for open_it in (read_image, image_size):
        try:
            open_it(path, max_pixels=1_000_000)
        except ImageError as error:
            assert error.reason
