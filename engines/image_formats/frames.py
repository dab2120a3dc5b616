"""Files of several pictures, of which only the first is read: saying so."""

from __future__ import annotations

MAX_COUNTED = 10_000


def first_of(count: int, noun: str) -> tuple[str, ...]:
    """The note for a picture that is the first of several; none for the only one."""
    if count > MAX_COUNTED:
        return (f"first of more than {MAX_COUNTED} {noun}",)
    return (f"first of {count} {noun}",) if count > 1 else ()
