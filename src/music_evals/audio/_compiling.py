"""A word before a long silence: code that numba compiles at its first use."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterator
from typing import Any

__all__ = ["telling_of_compiling"]

LOGGER = logging.getLogger(__name__)


@contextlib.contextmanager
def telling_of_compiling() -> Iterator[None]:
    """Warn, once a process, when code is compiled inside; code that numba finds in its cache is not."""
    from numba.core import event

    listener = _listener()
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]


@functools.cache
def _listener() -> Any:
    from numba.core.event import Event, Listener

    class Teller(Listener):
        """Tells of the first compilation."""

        told = False

        def on_start(self, event: Event) -> None:  # noqa: ARG002 (as numba calls it)
            if not self.told:
                self.told = True
                LOGGER.warning("compiling the extractors, once on this machine; this takes up to half a minute")

        def on_end(self, event: Event) -> None:
            """Say nothing."""

    return Teller()
