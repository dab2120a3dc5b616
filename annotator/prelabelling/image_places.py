"""Where a run finds the files of its images: in a folder, or below an address that fsspec reads, such as s3://."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from annotator.errors import CommandError
from engines.errors import UnreadableImageError


class ImagePlace(Protocol):
    """Images by their path in the project. Can be handed to another process."""

    def file(self, path: str) -> AbstractContextManager[Path]:
        """The image as a file of this machine, for as long as it is held. Raises `UnreadableImageError`."""


@dataclass(frozen=True)
class FolderPlace:
    """A folder that is at the same path wherever images are read."""

    root: Path

    @contextmanager
    def file(self, path: str) -> Iterator[Path]:
        """The file itself."""
        yield self.root / path


@dataclass(frozen=True)
class UrlPlace:
    """Images below an address such as s3://bucket/folder; each is fetched into a temporary file."""

    url: str

    @contextmanager
    def file(self, path: str) -> Iterator[Path]:
        """A copy, gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="phrasemask-") as folder:
            fetched = Path(folder) / "picture"
            self._fetch(path, fetched)
            yield fetched

    def _fetch(self, path: str, target: Path) -> None:
        import fsspec

        url = f"{self.url.rstrip('/')}/{path}"
        try:
            with fsspec.open(url, "rb") as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
        except FileNotFoundError:
            raise UnreadableImageError(url, f"there is no such file below {self.url}") from None
        except Exception as error:  # each kind of storage raises classes of its own
            words = str(error).replace(url, "it").replace(path, "it")  # equal reasons are counted: no names in them
            reason = f"it cannot be fetched from {self.url}: {type(error).__name__}: {words}"
            raise UnreadableImageError(url, reason) from error


def url_place(url: str) -> UrlPlace:
    """The place below an address. Raises `CommandError` for what is none."""
    if len(urlsplit(url).scheme) < 2:
        raise CommandError(f"--images-url takes an address such as s3://bucket/folder, not '{url}'")
    return UrlPlace(url)
