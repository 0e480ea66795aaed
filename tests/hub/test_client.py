"""What the client raises, by our names."""

from __future__ import annotations

import errno

import pytest

from music_evals.errors import HubOfflineError, UnreadableFileError
from music_evals.hub.client import named


def lost() -> OSError:
    return FileNotFoundError(errno.ENOENT, "No such file or directory", "weights.safetensors")


def test_a_file_on_this_machine_is_no_lost_connection() -> None:
    with (
        pytest.raises(UnreadableFileError, match=r"committing: weights.safetensors on this machine fails"),
        named("committing"),
    ):
        raise lost()
    with pytest.raises(UnreadableFileError, match=r"weights.safetensors"), named("committing"):
        raise RuntimeError("upload") from lost()


def test_a_lost_connection() -> None:
    for error in (ConnectionResetError(errno.ECONNRESET, "reset"), TimeoutError("late")):
        with pytest.raises(HubOfflineError, match="connection to the Hub failed"), named("committing"):
            raise error
