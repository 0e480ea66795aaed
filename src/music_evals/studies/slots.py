"""Which plan a participant follows: the one that the fewest have, written to the disk before it is sent.

One file a participant lies beside the submissions, made whole or not at all, so that a server that is killed gives
nobody a plan twice over, and a participant who comes back goes on with the same one. Its name holds plan, token and the
milliseconds of the server's clock when the plan was given; earlier versions wrote no time.

A study may be by invitation: a random code a person. The token of who comes with a code is a hash of it, so that a
code is one participant with one plan, however often it is used. Only these tokens are stored.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from music_evals.errors import InvalidInputError, OutputError
from music_evals.files import private_folder, write_atomically
from music_evals.studies.storage import MAX_SUBMISSIONS, Mirror, new_token

__all__ = ["SlotBook"]

_INVITED = "invitations.txt"
_FILE = re.compile(r"slot-(\d{1,6})-([0-9a-f]{32})(?:-(\d{1,15}))?")


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
    mirror, clock
        As of `studies.storage.SubmissionStore`.

    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        n_slots: int,
        *,
        max_participants: int = MAX_SUBMISSIONS,
        mirror: Mirror | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = Path(folder)
        self.n_slots = n_slots
        self.max_participants = max_participants
        self.mirror = mirror
        self.clock = clock

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder alone, among all servers; who is killed lets go of it."""
        place = os.open(private_folder(self.folder), os.O_RDONLY)
        try:
            fcntl.flock(place, fcntl.LOCK_EX)
            yield
        finally:
            os.close(place)

    def invited(self) -> frozenset[str]:
        """Return the tokens of everybody who was invited; none where the study is open."""
        path = self.folder / _INVITED
        return frozenset(path.read_text(encoding="ascii").split() if path.is_file() else ())

    def invite(self, count: int) -> list[str]:
        """Return new codes, one a person; those that were given before hold on."""
        if not 1 <= count <= self.max_participants:
            raise InvalidInputError(f"invite 1 to {self.max_participants} people, got {count}")
        codes = [new_token() for _ in range(count)]
        with self._locked():
            tokens = sorted({*self.invited(), *map(_token_of, codes)})
            write_atomically(self.folder / _INVITED, "\n".join(tokens).encode())
        return codes

    def joined(self) -> dict[str, tuple[int, float | None]]:
        """Return the plan of each token, and when it was given: Unix seconds, None where an earlier version did it."""
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        matches = filter(None, (_FILE.fullmatch(path.name) for path in paths))
        # if a mirror kept two, the participant follows the last one
        last = sorted(matches, key=lambda match: match[3] or "")
        return {match[2]: (int(match[1]), int(match[3]) / 1000 if match[3] else None) for match in last}

    def given(self) -> dict[str, int]:
        """Return the plan of each token."""
        return {token: slot for token, (slot, _) in self.joined().items()}

    def join(self, code: str = "") -> tuple[str, int]:
        """Return a token and its plan, 0..n_slots-1; both are on the disk when it returns.

        Of the plans that the fewest were given it is the first; who comes again with a code has what it had.

        Raises
        ------
        InvalidInputError
            The study is by invitation, and this is no code of it.
        OutputError
            The study is full, or its folder cannot be written.

        """
        invited = self.invited()
        if (code or invited) and _token_of(code) not in invited:
            raise InvalidInputError("this is no invitation to this study; open the link as it was sent to you")
        token = _token_of(code) if code else new_token()
        with self._locked():
            by_token = self.given()
            if token in by_token:
                return token, by_token[token]
            slots = list(by_token.values())
            if len(slots) >= self.max_participants:
                raise OutputError(f"{self.folder} has {self.max_participants} participants, which is the limit")
            slot = min(range(self.n_slots), key=slots.count)
            name = f"slot-{slot}-{token}-{round(1000 * self.clock()):013d}"
            if self.mirror is not None:
                self.mirror.put(name, name.encode())
            write_atomically(self.folder / name, name.encode())
            return token, slot

    def forget(self, token: str) -> None:
        """Remove a participant who withdrew; another one may be given the plan."""
        with self._locked():
            for path in self.folder.glob("slot-*"):
                if path.name.split("-")[2] != token:
                    continue
                if self.mirror is not None:
                    self.mirror.remove([path.name])
                path.unlink()


def _token_of(code: str) -> str:
    return hashlib.sha256(code.encode(errors="replace")).hexdigest()[:32]
