"""Where submissions of a study are kept: one folder a study, one file a submission, written whole or not at all.

A file is named by the participant's token, the hash of its bytes and the milliseconds of the server's clock when it
came, and is moved into its place complete. So any number of processes may write at once, a writer that is killed leaves
no half submission, the same submission sent again is kept once, with its first time, and another one of the same
participant stands beside the first. What was acknowledged is on the disk. Earlier versions wrote no time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from music_evals.errors import CorruptRecordsError, FileTooLargeError, InvalidInputError, NoDataError, OutputError
from music_evals.files import private_folder, write_atomically

__all__ = [
    "MAX_BYTES",
    "MAX_SUBMISSIONS",
    "Mirror",
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


class Submission(NamedTuple):
    """What one participant sent.

    Attributes
    ----------
    token
        Of the participant; it says nothing of who it is.
    receipt
        SHA-256 of the bytes that are stored.
    content
        What was sent, as plain values.
    received_at
        Unix seconds of the server's clock when it first came; None where an earlier version stored it.

    """

    token: str
    receipt: str
    content: dict[str, Any]
    received_at: float | None


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

    Parameters
    ----------
    secret
        What somebody entered.
    expected
        The secret, which must not be empty.

    Raises
    ------
    InvalidInputError
        No secret is set: an empty one would let everybody in.

    """
    if not expected:
        raise InvalidInputError("the organiser's secret is empty; set one, such as studies.storage.new_token()")
    return hmac.compare_digest(secret.encode(errors="replace"), expected.encode())


class SubmissionStore:
    """The submissions of one study.

    Parameters
    ----------
    folder
        Of this study alone. It is made with the first submission.
    max_bytes
        Of one submission.
    max_submissions
        Of the study. Writers that come at the same moment may pass it by their number.
    mirror
        What has each file first, so that what is acknowledged is in both places.
    clock
        Returns Unix seconds.

    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        max_bytes: int = MAX_BYTES,
        max_submissions: int = MAX_SUBMISSIONS,
        mirror: Mirror | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = Path(folder)
        self.max_bytes = max_bytes
        self.max_submissions = max_submissions
        self.mirror = mirror
        self.clock = clock

    def submit(self, token: str, content: Mapping[str, Any]) -> str:
        """Store a submission, and return its receipt; once it returns, the submission is kept.

        Parameters
        ----------
        token
            Of the participant, from `new_token`.
        content
            Plain values.

        Returns
        -------
        str
            SHA-256 of the stored bytes; the same for the same content.

        Raises
        ------
        InvalidInputError
            No token of ours, or content that is no JSON object.
        FileTooLargeError
            More than `max_bytes`.
        OutputError
            The study is full, or its folder cannot be written. Nothing is left behind.

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
        """Return all submissions, by token and receipt.

        Parameters
        ----------
        token
            Of one participant; by default of all.
        or_none
            Return an empty tuple if there are no submissions.

        Raises
        ------
        NoDataError
            No submissions, unless `or_none`.
        CorruptRecordsError
            A file is not what its name says: it was changed after it was stored.

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

        Parameters
        ----------
        token
            Of the participant.

        Raises
        ------
        InvalidInputError
            No token of ours.
        OutputError
            A file cannot be removed.

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
