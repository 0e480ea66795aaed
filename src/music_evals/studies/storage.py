"""Where submissions of a study are kept, and which plan each participant follows: files, written whole or not at all.

A submission is one file, named by the participant's token, the hash of its bytes and the milliseconds of the server's
clock when it came, and is moved into its place complete. So any number of processes may write at once, a writer that is
killed leaves no half submission, the same submission sent again is kept once, with its first time, and another one of
the same participant stands beside the first. What was acknowledged is on the disk. Earlier versions wrote no time.

A participant follows the plan that the fewest have, written to the disk before it is sent: one file a participant, so
that nobody is given a plan twice over, and who comes back goes on with the same one. Its name holds plan, token and
milliseconds. A study may be by invitation: a random code a person. The token of who comes with a code is a hash of it,
so that a code is one participant with one plan, however often it is used. Only these tokens are stored.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from music_evals.errors import CorruptRecordsError, FileTooLargeError, InvalidInputError, NoDataError, OutputError
from music_evals.files import private_folder, write_atomically

__all__ = [
    "MAX_BYTES",
    "MAX_SUBMISSIONS",
    "Mirror",
    "SlotBook",
    "Submission",
    "SubmissionStore",
    "is_secret",
    "is_token",
    "new_token",
]

MAX_BYTES = 4_000_000
"""Of one submission: a log of half an hour of editing has room."""

MAX_SUBMISSIONS = 10_000
"""Of one study, so that nobody fills the disk."""

_TOKEN = re.compile(r"[0-9a-f]{32}")
_FILE = re.compile(r"([0-9a-f]{32})-([0-9a-f]{64})(?:-(\d{1,15}))?\.json")
_INVITED = "invitations.txt"
_SLOT = re.compile(r"slot-(\d{1,6})-([0-9a-f]{32})(?:-(\d{1,15}))?")


class Submission(NamedTuple):
    """What one participant sent."""

    token: str  # of the participant; it says nothing of who it is
    receipt: str  # SHA-256 of the bytes that are stored
    content: dict[str, Any]
    received_at: float | None  # Unix seconds of the server's clock; None where an earlier version stored it


class Mirror(Protocol):
    """Another place that has a file before it is acknowledged, such as `hub.mirrors.HubMirror`."""

    def put(self, name: str, content: bytes) -> None:
        """Keep a file, or raise a `MusicEvalsError`; the same file may come again."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove files, or raise a `MusicEvalsError`."""


def new_token() -> str:
    """Return a random token of a participant: 128 bits from the system's source, as 32 hexadecimal digits."""
    return secrets.token_hex(16)


def is_token(value: object) -> bool:
    """Tell whether a value has the form of a token of `new_token`."""
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def _check_token(token: str) -> None:
    if not is_token(token):
        raise InvalidInputError("the token must be 32 hexadecimal digits; take the number that the page shows")


def is_secret(secret: str, expected: str) -> bool:
    """Tell whether the organiser's secret was given, in a time that does not depend on where the two differ.

    Raises `InvalidInputError` where none is set.
    """
    if not expected:
        raise InvalidInputError("the organiser's secret is empty; set one, such as studies.storage.new_token()")
    return hmac.compare_digest(secret.encode(errors="replace"), expected.encode())


@dataclasses.dataclass(eq=False)
class SubmissionStore:
    """The submissions of one study."""

    folder: Path  # of this study alone; made with the first submission
    _: dataclasses.KW_ONLY
    max_bytes: int = MAX_BYTES  # of one submission
    max_submissions: int = MAX_SUBMISSIONS  # writers that come at the same moment may pass it by their number
    mirror: Mirror | None = None  # has each file first, so that what is acknowledged is in both places
    clock: Callable[[], float] = time.time  # Unix seconds

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)

    def submit(self, token: str, content: Mapping[str, Any]) -> str:
        """Store a submission of plain values, and return its receipt, the same for the same content.

        Raises `InvalidInputError` (no token of ours, no JSON object), `FileTooLargeError`, and `OutputError` where the
        study is full or cannot be written; then nothing is left behind.
        """
        _check_token(token)
        if not isinstance(content, Mapping):
            raise InvalidInputError(f"a submission must be an object of JSON, got {type(content).__name__}")
        try:
            stored = json.dumps(dict(content), sort_keys=True, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"the submission is no JSON ({error})") from error
        if len(stored) > self.max_bytes:
            raise FileTooLargeError(f"the submission has {len(stored)} bytes; at most {self.max_bytes} are taken")
        receipt = hashlib.sha256(stored).hexdigest()
        files = self._files()
        if any(path.name.startswith(f"{token}-{receipt}") for path in files):
            return receipt
        if len(files) >= self.max_submissions:
            raise OutputError(f"{self.folder} holds {self.max_submissions} submissions, which is the limit; raise it")
        name = f"{token}-{receipt}-{round(1000 * self.clock()):013d}.json"
        if self.mirror is not None:
            self.mirror.put(name, stored)
        write_atomically(private_folder(self.folder) / name, stored)  # tokens and answers are nobody else's
        return receipt

    def read(self, token: str = "", *, or_none: bool = False) -> tuple[Submission, ...]:
        """Return all submissions, or those of one participant, by token and receipt.

        Raises `NoDataError` where there are none, unless `or_none`, and `CorruptRecordsError` where a file was changed.
        """
        submissions: dict[tuple[str, str], Submission] = {}
        for path in self._files(token):
            token, receipt, *ms = path.stem.split("-")
            stored = path.read_bytes()
            if hashlib.sha256(stored).hexdigest() != receipt:
                raise CorruptRecordsError(f"{path} was changed after it was stored; take it from a copy, or remove it")
            received_at = int(ms[0]) / 1000 if ms else None
            # two that came at one moment are one, with the first time
            submissions.setdefault((token, receipt), Submission(token, receipt, json.loads(stored), received_at))
        if not submissions and not or_none:
            raise NoDataError(f"{self.folder} holds no submissions")
        return tuple(submissions.values())

    def withdraw(self, token: str) -> int:
        """Remove all that a participant sent, and return how many submissions that were.

        Raises `InvalidInputError` where that is no token of ours, `OutputError` where they cannot be removed.
        """
        _check_token(token)
        mine = self._files(token)
        if self.mirror is not None and mine:
            self.mirror.remove([path.name for path in mine])
        try:
            for path in mine:
                path.unlink()
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be changed ({error.strerror}); check who owns it") from error
        return len(mine)

    def _files(self, token: str = "") -> list[Path]:
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path for path in paths if path.name.startswith(token) and _FILE.fullmatch(path.name))


@dataclasses.dataclass(eq=False)
class SlotBook:
    """Who was given which plan."""

    folder: Path  # of the submissions of one study; made with the first participant
    n_slots: int
    _: dataclasses.KW_ONLY
    max_participants: int = MAX_SUBMISSIONS  # more are refused, so that nobody fills the disk
    mirror: Mirror | None = None  # as of `SubmissionStore`
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)

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
        matches = filter(None, (_SLOT.fullmatch(path.name) for path in paths))
        # if a mirror kept two, the participant follows the last one
        last = sorted(matches, key=lambda match: match[3] or "")
        return {match[2]: (int(match[1]), int(match[3]) / 1000 if match[3] else None) for match in last}

    def given(self) -> dict[str, int]:
        """Return the plan of each token."""
        return {token: slot for token, (slot, _) in self.joined().items()}

    def join(self, code: str = "") -> tuple[str, int]:
        """Return a token and its plan, 0..n_slots-1; who comes again with a code has what it had.

        Raises `InvalidInputError` where that is no code of this study, `OutputError` where it is full or not writable.
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
            slot = min(range(self.n_slots), key=slots.count)  # of those that the fewest have, the first
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
