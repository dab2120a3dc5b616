"""Which browser tabs have which image open, so that a second tab on the same image can say so."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

FORGET_AFTER_S = 10.0


class Presence:
    """Tabs report the image they show every few seconds; one that is silent is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._tabs: dict[str, tuple[int, float]] = {}

    def seen(self, tab: str, image_id: int) -> bool:
        """Note that this tab shows this image; whether another tab shows it too."""
        now = self._clock()
        with self._lock:
            self._tabs[tab] = (image_id, now)
            self._tabs = {name: entry for name, entry in self._tabs.items() if now - entry[1] <= FORGET_AFTER_S}
            return any(name != tab and entry[0] == image_id for name, entry in self._tabs.items())
