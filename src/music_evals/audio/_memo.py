"""What is worked out of a recording once, and kept with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

__all__ = ["Memo"]

Value = TypeVar("Value")


class Memo:
    """Values worked out once each, by whichever thread comes first; another process starts anew."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._lock = threading.Lock()

    def get(self, key: str, compute: Callable[[], Value]) -> Value:
        with self._lock:
            lock = self._locks.setdefault(key, threading.RLock())
        with lock:
            if key not in self._values:
                self._values[key] = compute()
            return cast("Value", self._values[key])

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()
