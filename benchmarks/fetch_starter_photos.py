"""Gets the photographs of the starter benchmark that this project does not ship, out of the Debian packages that do.

    python benchmarks/fetch_starter_photos.py DIR
    python benchmarks/starter_quality.py --photos DIR

Needs apt-get and dpkg-deb (Debian 12). A photograph inside a Qt resource file is found by its sha256.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TRUTH = Path(__file__).parent / "starter_truth"


def main() -> None:
    """Write every photograph into the folder given."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python benchmarks/fetch_starter_photos.py DIR")
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    wanted = [photo for name in ("development", "held_back") for photo in _photos(name) if "package" in photo]
    with tempfile.TemporaryDirectory() as folder:
        for package in sorted({photo["package"] for photo in wanted}):
            subprocess.run(["apt-get", "download", package], cwd=folder, check=True)
            (archive,) = Path(folder).glob(f"{package}_*.deb")
            subprocess.run(["dpkg-deb", "-x", str(archive), folder], check=True)
        for photo in wanted:
            (target / photo["file"]).write_bytes(_content(Path(folder) / photo["inside"], photo.get("sha256")))
            print(target / photo["file"])


def _photos(name: str) -> list[dict[str, str]]:
    return list(json.loads((TRUTH / f"{name}.json").read_text(encoding="utf-8"))["photos"])


def _content(path: Path, sha256: str | None) -> bytes:
    """The file, or of a resource file the WebP picture with that sha256."""
    content = path.read_bytes()
    if sha256 is None:
        return content
    for picture in _webp_pictures(content):
        if hashlib.sha256(picture).hexdigest() == sha256:
            return picture
    raise SystemExit(f"{path} holds no picture with sha256 {sha256}: it is of another version of the package")


def _webp_pictures(content: bytes) -> Iterator[bytes]:
    start = content.find(b"RIFF")
    while start >= 0:
        length = 8 + int.from_bytes(content[start + 4 : start + 8], "little")
        if content[start + 8 : start + 12] == b"WEBP":
            yield content[start : start + length]
        start = content.find(b"RIFF", start + 4)


if __name__ == "__main__":
    main()
