"""A cache bounded in bytes that forgets what was used least recently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Generic, TypeVar

from engines.types import HOST, ImageFeatures

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class FeatureCache(Generic[Key, Value]):
    """Values by key, at most `limit_bytes` in all; safe to use from several threads.

    The newest value is kept even when it alone is larger than the limit: it is the one in use.
    """

    def __init__(self, limit_bytes: int, size_bytes: Callable[[Value], int]) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = size_bytes
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = RLock()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Value | None:
        """The value, now the most recently used; None when it is not there."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, forgetting older ones as needed."""
        with self._lock:
            self.discard(key)
            size = self._size_bytes(value)
            self._entries[key] = (value, size)
            self.nbytes += size
            while self.nbytes > self._limit_bytes and len(self._entries) > 1:
                self.discard(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.nbytes = 0

    def discard(self, key: Key) -> None:
        """Forget a value; nothing happens when it is not there."""
        with self._lock:
            if key in self._entries:
                self.nbytes -= self._entries.pop(key)[1]


class ImageFeaturesCache:
    """Features by image id: what lies in this computer's memory and what lies on a device have a limit each."""

    def __init__(self, host_limit_bytes: int, device_limit_bytes: int) -> None:
        self._host: FeatureCache[str, ImageFeatures] = FeatureCache(host_limit_bytes, _nbytes)
        self._device: FeatureCache[str, ImageFeatures] = FeatureCache(device_limit_bytes, _nbytes)

    def get(self, image_id: str) -> ImageFeatures | None:
        """The features, now the most recently used; None when they are not there."""
        return self._host.get(image_id) or self._device.get(image_id)

    def put(self, image_id: str, features: ImageFeatures) -> None:
        """Keep features where they lie, forgetting older ones there as needed."""
        (self._host if features.device == HOST else self._device).put(image_id, features)

    def clear(self) -> None:
        """Forget everything."""
        self._host.clear()
        self._device.clear()

    def clear_device(self) -> bool:
        """Forget what lies on a device; whether there was anything."""
        had_any = len(self._device) > 0
        self._device.clear()
        return had_any


def _nbytes(features: ImageFeatures) -> int:
    return features.nbytes
