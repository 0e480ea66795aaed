"""Which plan a participant follows: the one that the fewest have been given, written down before it is told.

One file a participant lies beside the submissions, made whole or not at all, so that a server that is killed gives
nobody a plan twice over, and a participant who comes back goes on with the same one.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from music_evals.errors import OutputError
from music_evals.files import private_folder, write_atomically
from music_evals.studies.storage import MAX_SUBMISSIONS, Mirror, new_token

__all__ = ["SlotBook"]

_FILE = re.compile(r"slot-(\d{1,6})-([0-9a-f]{32})")


class SlotBook:
    """Who was given which plan.

    Parameters
    ----------
    folder
        Of the submissions of one study. It is made with the first participant.
    n_slots
        How many plans there are.
    max_participants
        More are refused, so that nobody fills the disk.
    mirror
        As of `studies.storage.SubmissionStore`.

    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        n_slots: int,
        *,
        max_participants: int = MAX_SUBMISSIONS,
        mirror: Mirror | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.n_slots = n_slots
        self.max_participants = max_participants
        self.mirror = mirror
        self._lock = threading.Lock()

    def given(self) -> dict[str, int]:
        """Return the plan of each token."""
        if not self.folder.is_dir():
            return {}
        found = (_FILE.fullmatch(path.name) for path in self.folder.iterdir())
        return {match[2]: int(match[1]) for match in found if match}

    def join(self) -> tuple[str, int]:
        """Return a new token and its plan, 0..n_slots-1; both are on the disk when it returns.

        Of the plans that the fewest were given it is the first. Two servers on one folder may both give it.

        Raises
        ------
        OutputError
            The study is full, or its folder cannot be written.

        """
        with self._lock:
            given = list(self.given().values())
            if len(given) >= self.max_participants:
                raise OutputError(f"{self.folder} has {self.max_participants} participants, which is the limit")
            slot = min(range(self.n_slots), key=given.count)
            token = new_token()
            name = f"slot-{slot}-{token}"
            if self.mirror is not None:
                self.mirror.put(name, name.encode())
            write_atomically(private_folder(self.folder) / name, name.encode())
            return token, slot

    def forget(self, token: str) -> None:
        """Remove a participant who withdrew; another one may be given the plan."""
        with self._lock:
            slot = self.given().get(token)
            if slot is None:
                return
            name = f"slot-{slot}-{token}"
            if self.mirror is not None:
                self.mirror.remove([name])
            (self.folder / name).unlink(missing_ok=True)
