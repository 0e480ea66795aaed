"""The manifest of real recordings, and the user's own copies of them, known by their hashes."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import httpx2
from tqdm import tqdm

from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically

HALVES = ("development", "test")
SHORTEST_SEC, LONGEST_SEC = 15.0, 30.0  # a third can be cut out, and sections are still defined: they take 10 s
TRAINABLE = ("Public domain", "CC0-1.0", "CC-BY", "CC-BY-3.0", "CC-BY-4.0")
"""Licences that allow derivatives and commercial use, and bind nothing that is made of them."""
RAW = "https://raw.githubusercontent.com"


@dataclasses.dataclass(frozen=True)
class Recording:
    """A line of the manifest.

    Parameters
    ----------
    name
        Unique.
    source
        Artist or corpus: all recordings of a source stand in one half, and are one cluster of the intervals.
    repository, commit, path, sha256
        Where the file lies in public, and what it holds.
    start_sec, length_sec
        The excerpt, 15 to 30 s.
    half
        ``"development"`` or ``"test"``.
    licence, evidence
        Of the recording, and the file of the repository that says so.
    training
        Whether a network of ours may learn from it: only under a licence of `TRAINABLE`. The others only measure.

    Raises
    ------
    InvalidInputError
        A value out of range.

    """

    name: str
    source: str
    repository: str
    commit: str
    path: str
    sha256: str
    start_sec: float
    length_sec: float
    half: str
    licence: str
    evidence: str
    training: bool

    def __post_init__(self) -> None:
        problems = {
            f"half must be one of {', '.join(HALVES)}": self.half not in HALVES,
            f"length_sec must lie in {SHORTEST_SEC:g}..{LONGEST_SEC:g}": not (
                SHORTEST_SEC <= self.length_sec <= LONGEST_SEC and self.start_sec >= 0
            ),
            "path must lie below the repository": ".." in PurePosixPath(self.path).parts or self.path.startswith("/"),
            f"licence {self.licence} does not allow training": self.training and self.licence not in TRAINABLE,
            "licence and evidence must be named": not (self.licence and self.evidence),
        }
        for problem, found in problems.items():
            if found:
                raise InvalidInputError(f"{self.name}: {problem}; got {self}")

    @property
    def place(self) -> PurePosixPath:
        """Where it lies below the folder of recordings: ``owner/name/path``."""
        return PurePosixPath(self.repository) / self.path

    @property
    def url(self) -> str:
        """Where it can be fetched."""
        return f"{RAW}/{self.repository}/{self.commit}/{quote(self.path)}"


def load_manifest(path: Path) -> list[Recording]:
    """Return the recordings of a manifest, in its order.

    Raises
    ------
    InvalidInputError
        A line breaks a rule, a name stands twice, or a source stands in both halves.

    """
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    recordings = []
    for row in rows:
        numbers = {name: float(row.pop(name)) for name in ("start_sec", "length_sec")}
        training = row.pop("training") == "yes"
        recordings.append(Recording(**row, **numbers, training=training))
    names = [recording.name for recording in recordings]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{path}: a name stands twice; every recording needs its own")
    halves = {(recording.source, recording.half) for recording in recordings}
    sources = [source for source, _ in halves]
    if len(set(sources)) < len(sources):
        twice = sorted({source for source in sources if sources.count(source) > 1})
        raise InvalidInputError(f"{path}: {', '.join(twice)}: a source may stand in one half only")
    return recordings


def attach(recordings: Sequence[Recording], folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Return name -> file of those that are there and whole, and name -> reason of the rest."""
    found, missing = {}, {}
    for recording in recordings:
        path = folder / recording.place
        if not path.is_file():
            missing[recording.name] = f"{path} is missing"
        elif _digest(path.read_bytes()) != recording.sha256:
            missing[recording.name] = f"{path} is another file: its SHA-256 is not {recording.sha256}"
        else:
            found[recording.name] = path
    return found, missing


def fetch(recordings: Sequence[Recording], folder: Path) -> None:
    """Download the recordings that are missing, each checked by its hash.

    Raises
    ------
    InvalidInputError
        What came is not what the manifest names.
    httpx2.HTTPError
        No connection, or no such file.

    """
    _, missing = attach(recordings, folder)
    for recording in tqdm([one for one in recordings if one.name in missing], desc="recordings", unit="file"):
        content = httpx2.get(recording.url, timeout=60, follow_redirects=True).raise_for_status().content
        if _digest(content) != recording.sha256:
            raise InvalidInputError(f"{recording.url} is not the file of the manifest; its hash is {_digest(content)}")
        write_atomically(folder / recording.place, content, parents=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
