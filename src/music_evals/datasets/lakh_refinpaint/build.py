"""Six pieces of the Lakh MIDI data set, fifty refinements each: the sources of RefinPaint.

Which six files MuseCPBench took is not published, nor which bars and confidences. Here the bars are all ten ranges of
whole four-bar phrases in the first sixteen bars, each at five confidences, and the six files are the first that suit,
by MD5, in the user's own copy, or six that the user names. The config ``stand_in`` needs no copy.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from music_evals.annotations import DRUMS
from music_evals.datasets.edit_sources import Attached, file_hash, write_sources
from music_evals.datasets.known_edits import build as known_edits
from music_evals.datasets.manifest import flat_features
from music_evals.errors import FileTooLargeError, InvalidInputError, MusicEvalsError, NoDataError
from music_evals.files import write_atomically
from music_evals.symbolic.midi import read_midi, write_midi

__all__ = [
    "BARS", "CONFIDENCES", "CONFIGS", "MOST_NOTES", "N_BARS", "N_PIECES", "attach", "build_config", "features",
    "unsuitable", "write_sources", "write_stand_in",
]  # fmt: skip

CONFIGS: Final = ("lakh", "stand_in")
"""Names of the configs; `stand_in` is our own."""

N_PIECES: Final = 6
"""Pieces of a config, as many as MuseCPBench has."""
N_BARS: Final = 16
"""Bars that are refined lie in the first sixteen."""
BARS: Final = tuple(itertools.combinations(range(0, N_BARS + 1, 4), 2))
"""First bar and the one after the last, counted from 0: all ten ranges of whole four-bar phrases."""
CONFIDENCES: Final = (0, 2, 4, 6, 8)
"""How much of the bars is kept, of 10."""
MOST_NOTES: Final = 164
"""Notes that may begin in these bars: 16 bars of at most 3 tokens a note, a beginning and an end, of 512 tokens."""

STAND_IN_PIECES: Final = ("song_rock", "song_bossa", "song_disco", "song_synth", "song_pop", "song_funk")
STAND_IN_ROLES: Final = ("melody", "bass")  # tune and bass alone, so that sixteen bars fit into 512 tokens

_MD5 = re.compile(r"[0-9a-f]{32}")

Row = dict[str, Any]

_COLUMNS = {
    "id": "string",
    "piece": "int64",  # 1 to 6
    "excerpt": "string",  # the group of an interval
    "midi_file": "string",  # null in `lakh`, like the checksum, until a copy is attached
    "midi_md5": "string",
    "task": "string",
    "instruction": "string",
    "first_bar": "int64",  # counted from 0
    "end_bar": "int64",  # the one after the last
    "bars": "string",  # both, as `music-evals edit` reads them
    "confidence": "int64",
    "origin": "string",
}


features = functools.partial(flat_features, _COLUMNS)
"""Return the `datasets.Features` of the rows."""


def build_config(config: str) -> list[Row]:
    """Return the 300 rows of one of `CONFIGS`: by piece, range of bars and confidence."""
    rows = []
    for piece in range(1, N_PIECES + 1):
        if config == "stand_in":
            name = STAND_IN_PIECES[piece - 1]
            place: Row = {"excerpt": name, "midi_file": f"{name}.mid", "origin": "music_evals"}
            place["midi_md5"] = hashlib.md5(_stand_in_midi(name), usedforsecurity=False).hexdigest()
        else:
            place = {"excerpt": f"piece_{piece}", "midi_file": None, "midi_md5": None, "origin": "Lakh MIDI Dataset"}
        rows += [
            {
                "piece": piece,
                **place,
                "task": "refine",
                "instruction": f"Refine bars {first + 1} to {end} at confidence {confidence} of 10.",
                "first_bar": first,
                "end_bar": end,
                "bars": f"{first}:{end}",
                "confidence": confidence,
            }
            for (first, end), confidence in itertools.product(BARS, CONFIDENCES)
        ]
    return [{"id": f"{config}_{number:04d}", **row} for number, row in enumerate(rows)]


def attach(rows: Iterable[Row], root: str | Path, *, md5s: Sequence[str] = ()) -> Attached:
    """Find the pieces in the user's own copy, and check each by its MD5.

    For rows of ``lakh`` the pieces are chosen now: files named by an MD5 (``<md5>.mid``, in any folder below the root,
    as in ``lmd_full``), in the order of these names, the first six whose content has that MD5 and that are not
    `unsuitable`. They have the MD5 of their piece as ``excerpt`` and ``midi_md5``.

    For ``stand_in`` the root is the folder that `write_stand_in` wrote to. `md5s` are six MD5s to take in place of
    those that the rule finds, for ``lakh`` alone. `NoDataError`: the folder does not exist, or holds fewer than six
    suitable files (none of the named ones; of ``stand_in``). `InvalidInputError`: `md5s` are not six different MD5s, go
    with ``stand_in``, or name a piece that is `unsuitable`.
    """
    folder, wanted = Path(root), list(rows)
    if not folder.is_dir():
        raise NoDataError(f"{folder}: no such folder; give the root of your copy of the Lakh MIDI Dataset")
    if any(row["midi_md5"] for row in wanted):
        if md5s:
            raise InvalidInputError("md5s choose pieces of the config lakh; leave them out for stand_in")
        chosen = {row["midi_md5"]: folder / row["midi_file"] for row in wanted}
        named = wanted
    else:
        chosen = _named(folder, md5s) if md5s else _first_that_suit(folder)
        by_piece = dict(enumerate(chosen, start=1))
        named = [
            {**row, "excerpt": md5, "midi_md5": md5, "midi_file": f"{md5}.mid"}
            for row in wanted
            for md5 in [by_piece[row["piece"]]]
        ]
    there = {md5: path for md5, path in chosen.items() if path is not None and path.is_file()}
    right = {md5 for md5, path in there.items() if file_hash(path, "md5") == md5}
    if not right:
        raise NoDataError(f"{folder}: none of the {len(chosen)} pieces is there with its checksum; {_REMEDY}")
    for md5 in right if md5s else ():
        if reason := unsuitable(there[md5]):
            raise InvalidInputError(f"{md5} cannot be refined by these rows: {reason}; name another piece")
    return Attached(
        tuple({**row, "audio": str(there[row["midi_md5"]])} for row in named if row["midi_md5"] in right),
        tuple(dict.fromkeys(row["midi_file"] for row in named if row["midi_md5"] not in there)),
        tuple(dict.fromkeys(row["midi_file"] for row in named if row["midi_md5"] in there.keys() - right)),
        noun="score",
    )


_REMEDY = (
    "the Lakh MIDI Dataset is at https://colinraffel.com/projects/lmd/ (lmd_full); write_stand_in makes the pieces of "
    "stand_in"
)


def _named(folder: Path, md5s: Sequence[str]) -> dict[str, Path | None]:
    if len(set(md5s)) != N_PIECES or len(md5s) != N_PIECES or not all(map(_MD5.fullmatch, md5s)):
        raise InvalidInputError(
            f"md5s must be {N_PIECES} different MD5s of 32 hexadecimal digits in lower case, got {', '.join(md5s)}"
        )
    copies = dict(_copies(folder))
    return {md5: copies.get(md5) for md5 in md5s}


def _first_that_suit(folder: Path) -> dict[str, Path | None]:
    chosen: dict[str, Path | None] = {}
    for md5, path in sorted(_copies(folder)):
        if md5 not in chosen and file_hash(path, "md5") == md5 and not unsuitable(path):
            chosen[md5] = path
            if len(chosen) == N_PIECES:
                return chosen
    raise NoDataError(
        f"{folder}: {len(chosen)} files suit, {N_PIECES} are needed: named <md5>.mid with the content of that MD5, 4/4 "
        f"throughout, notes in each of the first {N_BARS} bars, {MOST_NOTES} at most; {_REMEDY}"
    )


def _copies(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files that are named by an MD5."""
    yield from ((path.stem, path) for path in folder.rglob("*.mid") if _MD5.fullmatch(path.stem) and path.is_file())


def unsuitable(path: str | Path) -> str:
    """Return why a MIDI file cannot be one of the six, or an empty text where it can.

    It must be readable, say that it is in 4/4 and stay in it, and have notes other than drums in each of its first
    `N_BARS` bars, at most `MOST_NOTES` in all.
    """
    try:
        score = read_midi(path)
    except FileTooLargeError:
        return "it is larger than a file may be"
    except MusicEvalsError as error:
        return f"it cannot be read ({error})"
    if not score.time_signatures or score.time_signatures[0].tick != 0:
        return "it does not say its meter from the beginning on"
    if any((signature.numerator, signature.denominator) != (4, 4) for signature in score.time_signatures):
        return "it is not in 4/4 throughout"
    # in which bar each note begins, drums and later bars left out
    is_drum = np.array([program == DRUMS for program in score.programs or [0] * len(score.voices)])
    bars = score.notes["onset_tick"][~is_drum[score.notes["voice"]]] // (4 * score.ticks_per_quarter)
    bars = bars[bars < N_BARS]
    if set(bars.tolist()) != set(range(N_BARS)):
        return f"one of its first {N_BARS} bars has no notes"
    return "" if len(bars) <= MOST_NOTES else f"{len(bars)} notes begin in its first {N_BARS} bars, over {MOST_NOTES}"


def write_stand_in(folder: str | Path) -> Path:
    """Write the MIDI files of ``stand_in``, tune and bass of songs of `known_edits`, into a folder, and return it."""
    target = Path(folder)
    for piece in STAND_IN_PIECES:
        write_atomically(target / f"{piece}.mid", _stand_in_midi(piece), parents=True)
    return target


def _stand_in_midi(name: str) -> bytes:
    piece = known_edits.compose_piece(name)
    parts = tuple(part for part in piece.parts if part.role in STAND_IN_ROLES)
    return write_midi(dataclasses.replace(piece, parts=parts).score())
