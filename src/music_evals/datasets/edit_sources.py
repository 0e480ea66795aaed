"""What data sets of edits share: recordings of the user's own, pieces that stand in for them, the list for ``edit``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.datasets.known_edits import build as known_edits
from music_evals.deprecation import renamed_options
from music_evals.errors import NoDataError
from music_evals.files import write_atomically

__all__ = ["STAND_IN_PIECES", "Attached", "attach", "file_hash", "render_pieces", "write_sources"]

STAND_IN_PIECES: Final = (
    "song_rock", "song_waltz", "song_ballad", "song_bossa", "song_disco", "song_synth",
    "song_pop", "song_jig", "song_funk", "song_march", "song_blues", "song_minuet",
)  # fmt: skip
"""Pieces of `known_edits` that stand in for music that may not be passed on."""

_INSTRUCTED = (
    "instruction", "source_prompt", "target_prompt", "before", "after", "task", "intended", "bars", "confidence",
    "targets",
)  # fmt: skip

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Attached:
    """Rows with a recording or a score, and what had to be left out."""

    rows: tuple[Row, ...]  # rows whose file is there; ``audio`` holds its path
    missing: tuple[str, ...]  # files that are not there, relative to the root, each once
    wrong: tuple[str, ...]  # files that are there but are not the ones of the manifest, each once
    noun: str = "recording"  # what a file is

    @property
    def summary(self) -> str:
        """Counts in words."""
        return (
            f"{len(self.rows)} rows with a {self.noun}; {len(self.missing)} {self.noun}s missing, "
            f"{len(self.wrong)} with another checksum"
        )


@renamed_options(what="dataset")
def attach(
    rows: Iterable[Row],
    root: str | Path,
    *,
    places: Callable[[str], Sequence[str]] = lambda name: (name, str(Path(name).with_suffix(".flac"))),
    dataset: str,
    where: str,
) -> Attached:
    """Find the recording of each row in a folder.

    Parameters
    ----------
    rows
        With ``audio_file``, and ``audio_sha256`` where there is one.
    root
        The folder.
    places
        Where in it a recording may lie, by its ``audio_file``; by default there, as WAV or FLAC.
    dataset, where
        For errors: whose copy it is, and where to get it.

    Raises
    ------
    NoDataError
        The folder does not exist, or holds none of the recordings.
    """
    folder = Path(root)
    if not folder.is_dir():
        raise NoDataError(f"{folder}: no such folder; give the root of your copy of {dataset}")
    present: list[Row] = []
    missing: dict[str, None] = {}
    wrong: dict[str, None] = {}
    for row in rows:
        candidates = (folder / place for place in places(row["audio_file"]))
        path = next((path for path in candidates if path.is_file()), None)
        if path is None:
            missing[row["audio_file"]] = None
        elif row.get("audio_sha256") not in {None, file_hash(path)}:
            wrong[row["audio_file"]] = None
        else:
            present.append({**row, "audio": str(path)})
    if not present:
        wanted = [*missing, *wrong] or ["any"]
        raise NoDataError(f"{folder}: none of the {len(wanted)} recordings is there, such as {wanted[0]}; {where}")
    return Attached(tuple(present), tuple(missing), tuple(wrong))


def write_sources(attached: Attached, path: str | Path) -> Path:
    """Write the rows with a file as the manifest that ``music-evals edit`` reads, and return its path."""
    rows = [
        {
            "id": row["id"],
            "source": str(Path(row["audio"]).resolve()),
            "group": row["excerpt"],
            **{name: row[name] for name in _INSTRUCTED if row.get(name) not in {None, ""}},
        }
        for row in attached.rows
    ]
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return write_atomically(Path(path), text.encode(), parents=True)


def render_pieces(folder: str | Path, *, pieces: Sequence[str] = STAND_IN_PIECES, renderer: str = "additive") -> Path:
    """Write the recordings of pieces of `known_edits` into a folder, which `attach` takes, and return it.

    The renderer is ``"additive"`` or ``"fluidsynth"``; one that is not installed raises `MissingBackendError`.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    rows = {row["piece"]: row for half in ("tuning", "held_out") for row in known_edits.load_rows("default", half)}
    for piece in pieces:
        recording = known_edits.render(rows[piece], renderer=renderer, which="reference")
        write_atomically(target / f"{piece}.wav", recording.read_bytes())
    return target


def file_hash(path: Path, kind: str = "sha256") -> str:
    """Return the checksum of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()
