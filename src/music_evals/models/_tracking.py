"""Curves of a training in a dashboard of trackio, for those who have it; the files are written in any case."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from music_evals.errors import MissingBackendError

__all__ = ["Log", "tracking"]

Log = Callable[[Mapping[str, Any]], None]
"""Takes one row of values, an epoch."""


def _nowhere(_row: Mapping[str, Any]) -> None:
    """Log nothing."""


@contextlib.contextmanager
def tracking(project: str | None, settings: Mapping[str, Any]) -> Iterator[Log]:
    """Yield what logs a row to a new run of a project; None logs nothing and needs no package."""
    if project is None:
        yield _nowhere
        return
    try:
        import trackio
    except ModuleNotFoundError as error:
        if error.name != "trackio":
            raise  # one that trackio itself needs
        raise MissingBackendError("trackio", "", "following a training", install="pip install trackio") from error
    trackio.init(project=project, config=dict(settings))
    try:
        yield lambda row: trackio.log(dict(row))
    finally:
        trackio.finish()
