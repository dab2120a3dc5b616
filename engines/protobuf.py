"""Protobuf, as far as ONNX files need it: fields one after the other, each with a number and a value or a length."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

_LONGEST_VARINT = 10
_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5


class Message:
    """A message inside the content of a file. Reading a damaged one raises ValueError or IndexError."""

    def __init__(self, content: mmap.mmap, start: int = 0, end: int | None = None) -> None:
        self._content, self._start, self._end = content, start, len(content) if end is None else end

    def numbers(self, field: int) -> list[int]:
        """Every number in a field, also of those packed together."""
        found: list[int] = []
        for number, value in self._fields():
            if number != field:
                continue
            if isinstance(value, int):
                found.append(value)
            else:
                found += value._packed()
        return found

    def messages(self, field: int) -> list[Message]:
        """Every message in a field."""
        return [value for number, value in self._fields() if number == field and isinstance(value, Message)]

    def text(self, field: int) -> str:
        """The last text in a field, or none."""
        found = self.messages(field)
        return found[-1].content().decode("utf-8") if found else ""

    def content(self) -> bytes:
        """All of its bytes."""
        return self._content[self._start : self._end]

    def fields_but(self, *left_out: int) -> bytes:
        """Its bytes without the fields of these numbers."""
        return b"".join(self._content[start:end] for number, _, start, end in self._spans() if number not in left_out)

    def _packed(self) -> Iterator[int]:
        at = self._start
        while at < self._end:
            number, at = self._varint(at)
            yield number

    def _fields(self) -> Iterator[tuple[int, int | Message]]:
        return ((number, value) for number, value, _, _ in self._spans())

    def _spans(self) -> Iterator[tuple[int, int | Message, int, int]]:
        """Number, value, start and end of each field."""
        at = self._start
        while at < self._end:
            start = at
            key, at = self._varint(at)
            kind = key & 7
            if kind == _VARINT:
                number, at = self._varint(at)
                yield key >> 3, number, start, at
                continue
            if kind == _DELIMITED:
                length, at = self._varint(at)
            elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
                length = 8 if kind == _EIGHT_BYTES else 4
            else:
                raise ValueError(f"no field of protobuf has the kind {kind}")
            if at + length > self._end:
                raise ValueError("a field reaches beyond its message")
            yield key >> 3, Message(self._content, at, at + length), start, at + length
            at += length

    def _varint(self, at: int) -> tuple[int, int]:
        """A number in groups of 7 bits, lowest first, and where it ends."""
        number = 0
        for shift in range(0, _LONGEST_VARINT * 7, 7):
            byte = self._content[at]
            at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number, at
        raise ValueError("a number without an end")


def delimited(field: int, content: bytes) -> bytes:
    """A field that holds a text or a message."""
    return _varint(field << 3 | _DELIMITED) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])
