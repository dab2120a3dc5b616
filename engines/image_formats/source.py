"""A picture file being opened: its bytes, the limit it is held to, and the words it is refused with."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from PIL import Image

from engines.errors import ImageError, ImageTooLargeError, UnreadableImageError
from engines.image_formats.signature import HEAD_BYTES, ImageKind, describe_foreign, detect_kind

MAX_FILE_BYTES = 4 << 30
"""Larger files are refused unread. A picture at the pixel limit, stored raw as 16-bit RGBA, has half of that."""

CUT_OFF = "the picture is cut off before its end; copy or download it again"

_CUT_OFF_WORDS = ("truncat", "end of file", "outside of file bounds", "not enough", "premature", "eof")


@dataclass(frozen=True)
class PictureSource:
    """One picture file: `stream` stands at its beginning, `data` is all of it, or None if only the header is wanted."""

    path: Path
    kind: ImageKind
    stream: BinaryIO
    data: bytes | None
    max_pixels: int

    def check_size(self, height: int, width: int) -> None:
        """Refuse more pixels than the limit, and less than one."""
        if height * width > self.max_pixels:
            raise ImageTooLargeError(self.path, height, width, self.max_pixels)
        if height < 1 or width < 1:
            raise self.refusal(f"the {self.kind} header claims {width}×{height} pixels, so there is nothing to show")

    def refusal(self, reason: str) -> UnreadableImageError:
        """The error for this file, to be raised by the caller."""
        return UnreadableImageError(self.path, reason)


@contextmanager
def opened_file(path: Path) -> Iterator[tuple[BinaryIO, ImageKind]]:
    """The open file at its beginning, and its format; refuses whatever is no picture file."""
    with _file_failures(path):
        _refuse_unless_regular(path)
        stream = path.open("rb")
    with stream:
        with _file_failures(path):
            head = stream.read(HEAD_BYTES)
            stream.seek(0)
        yield stream, _known_kind(path, head)


def read_whole(path: Path, stream: BinaryIO) -> bytes:
    """All bytes of an open file, unless it is larger than any picture within the limits."""
    with _file_failures(path):
        size_bytes = os.fstat(stream.fileno()).st_size
        if size_bytes > MAX_FILE_BYTES:
            raise UnreadableImageError(
                path, f"the file has {size_bytes / 1e9:.1f} GB, more than the limit of {MAX_FILE_BYTES / 1e9:.1f} GB"
            )
        return stream.read()


@contextmanager
def decoder_failures(path: Path, kind: ImageKind) -> Iterator[None]:
    """Turns whatever a decoder raises into an `UnreadableImageError` with one sentence."""
    try:
        yield
    except ImageError:
        raise
    except Exception as error:  # decoders raise anything when they are fed damaged data
        raise UnreadableImageError(path, _decoder_reason(error, kind)) from error


def _decoder_reason(error: Exception, kind: ImageKind) -> str:
    if isinstance(error, MemoryError):
        return f"there is not enough memory to open this {kind} picture; close other programs or scale it down"
    if isinstance(error, Image.DecompressionBombError):
        return f"the {kind} data claims more pixels than can be read; scale the picture down or cut it into tiles"
    if any(word in str(error).lower() for word in _CUT_OFF_WORDS):
        return CUT_OFF
    return f"the {kind} data is damaged or of a kind that cannot be read; save the picture again as PNG or JPEG"


def _known_kind(path: Path, head: bytes) -> ImageKind:
    if not head:
        raise UnreadableImageError(path, "the file is empty (0 bytes); copy or download it again")
    kind = detect_kind(head)
    if kind is None:
        raise UnreadableImageError(path, f"this is not a picture: the content is {describe_foreign(head)}")
    return kind


def _refuse_unless_regular(path: Path) -> None:
    # A named pipe would block for ever, and a device never ends.
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise UnreadableImageError(path, "this is a folder, not a picture")
    if not stat.S_ISREG(mode):
        raise UnreadableImageError(path, "this is a pipe or a device, not a picture file")


@contextmanager
def _file_failures(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise UnreadableImageError(path, _missing_reason(path)) from error
    except PermissionError as error:
        raise UnreadableImageError(path, "there is no permission to read the file; change its permissions") from error
    except MemoryError as error:
        raise UnreadableImageError(path, "there is not enough memory to read the file") from error
    except OSError as error:
        raise UnreadableImageError(path, f"the file cannot be read ({error.strerror or error})") from error
    except ImageError:
        raise
    except ValueError as error:  # a name that holds a zero byte
        raise UnreadableImageError(path, "no file can have this name") from error


def _missing_reason(path: Path) -> str:
    if path.is_symlink():
        return "this is a link to a file that is not there"
    return "the file is not there: it was moved, renamed or deleted"
