"""Keeps what TensorRT says while it builds, since it answers a failure with None and its reason goes to a log."""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Any, Protocol

_KEPT_MESSAGES = 50
_SHOWN_MESSAGES = 3


class MessageLog(Protocol):
    """A logger of TensorRT that remembers."""

    def clear(self) -> None:
        """Forget everything."""

    def last_errors(self) -> list[str]:
        """The last few errors, oldest first, each once."""


@cache
def message_log(trt: Any) -> MessageLog:
    """The one logger of that module: TensorRT takes a single one for the whole process, the first it is given."""

    class CollectingLogger(trt.ILogger):
        def __init__(self) -> None:
            super().__init__()
            self._errors: deque[str] = deque(maxlen=_KEPT_MESSAGES)

        def log(self, severity: Any, message: str) -> None:
            if severity <= trt.ILogger.Severity.ERROR:
                self._errors.append(" ".join(message.split()))

        def clear(self) -> None:
            self._errors.clear()

        def last_errors(self) -> list[str]:
            return list(dict.fromkeys(self._errors))[-_SHOWN_MESSAGES:]

    return CollectingLogger()
