"""Piano pieces as 16-measure contexts of their upper line: the configs of `datasets_scripts/ailabs_1k7`.

Configs
-------
``stand_in``
    Short piano pieces made by a rule: chords under a melody. They are ours, lie in the folder, and judge no model.
``ailabs_1k7``
    The pieces of AILabs1k7, which MUSIB used to check its VLI, from the user's copy of the archive.

A piece is read in measures of four quarters from the start of its file, as VLI reads it, and its upper line is taken
(`symbolic.melody`): the encodings of this package hold one note at a time. The accompaniment is not in the rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.datasets.archives import read_archive
from music_evals.datasets.pieces import Piece, Reading, Source, read_pieces
from music_evals.datasets.tune_files import Placed, families_of, place, shown_on, split_counts, write_tunes, write_whole
from music_evals.datasets.tunes import Tune, tune_from_score
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.files import Store, cache_folder
from music_evals.symbolic.melody import skyline_score
from music_evals.symbolic.notes import make_notes

__all__ = ["PUBLISHED_PIECES", "build_archive", "build_stand_in", "piano_piece", "place_of", "prepare"]

PREPARED = {"ailabs_1k7": "prepare"}

STAND_IN, ARCHIVE = "stand_in", "ailabs_1k7"
PUBLISHED_PIECES = 1747
SEED = 42
BUILD = 2
READING = Reading(voices="skyline", measures="fixed")

N_STAND_INS, STAND_IN_MEASURES = 40, 24
TICKS = 6  # a quarter
PROGRESSIONS = ((0, 9, 5, 7), (0, 5, 7, 0), (9, 5, 0, 7), (0, 7, 9, 5))  # roots, one a measure, in C major
SCALE = (0, 2, 4, 5, 7, 9, 11)


def prepare(config: str) -> str:
    """Return the folder that was built from the user's archive; raise `NoDataError` if none was."""
    folder = place_of()
    if not (folder / "manifest.json").is_file():
        raise NoDataError(
            f"config {config} of ailabs_1k7 is made from the archive of AILabs1k7, which is not passed on; get it and "
            "run datasets_scripts/ailabs_1k7/build.py on it once, as the card says"
        )
    return str(folder)


def place_of() -> Path:
    """Return where what is built of the archive is kept."""
    return cache_folder("datasets") / f"ailabs_1k7-{BUILD}"


def build_archive(archive: Path, folder: Path | None = None) -> dict[str, Any]:
    """Read the user's archive, a tar or zip of MIDI files, and write its config; a stopped run goes on.

    A folder that is there already raises `InvalidInputError`, an archive without pieces of 16 measures `NoDataError`;
    others as `archives.read_archive`: `UnreadableFileError`, `FileTooLargeError`.
    """
    from tqdm import tqdm

    target = folder or place_of()
    if target.exists():
        raise InvalidInputError(f"{target} is there already; remove it, or name another folder")
    with tqdm(desc="unpacking the archive", unit="file") as bar:
        files = read_archive(archive, frozenset({".mid", ".midi"}), progress=lambda n: bar.update(n - bar.n))
    sources = [Source(Path(name).with_suffix("").as_posix(), ARCHIVE, ".mid", content) for name, content in files]
    with tqdm(desc="reading its files", unit="file") as bar:
        store = Store(cache_folder("pieces"))
        pieces: list[Piece] = list(read_pieces(sources, READING, store=store, progress=shown_on(bar)))
    tunes = [tune for piece in pieces for tune in piece.tunes]
    if not tunes:
        raise NoDataError(f"{archive}: none of {len(pieces)} files has 16 measures; it is not AILabs1k7")
    placed = place(tunes, families_of(tunes), seed=SEED)
    facts = {
        "source": archive.name,
        "published": {"pieces": PUBLISHED_PIECES},
        "found": {"files": len(pieces), "pieces": len(tunes)},
        "left_out": {piece.facts.filename: piece.left_out for piece in pieces if piece.left_out},
        "counts": {ARCHIVE: split_counts(placed)},
    }
    return write_whole(target, {ARCHIVE: placed}, "AILabs1k7, upper lines", facts)


def build_stand_in(folder: Path) -> dict[str, Any]:
    """Write `stand_in` into the data set's own folder, card apart."""
    placed = stand_ins()
    source = "made by music_evals/datasets/ailabs_1k7/build.py; no piece of AILabs1k7"
    return write_tunes(folder, {STAND_IN: placed}, source=source, counts={STAND_IN: split_counts(placed)})


def stand_ins() -> list[Placed]:
    """Return the upper lines of the pieces that are made, with families and splits as of any data set."""
    tunes: list[Tune] = [
        tune_from_score(
            skyline_score(piano_piece(seed)),
            f"made{seed:02d}",
            title=f"Piece {seed}, made by a rule",
            collection=STAND_IN,
            measures="fixed",
        )
        for seed in range(N_STAND_INS)
    ]
    return place(tunes, families_of(tunes), seed=SEED)


def piano_piece(seed: int, n_measures: int = STAND_IN_MEASURES) -> Score:
    """Return a piece for piano: broken chords under a melody that walks the scale and lands on chord notes."""
    rng = np.random.default_rng(seed)
    key = int(rng.integers(-5, 7))
    roots = PROGRESSIONS[seed % len(PROGRESSIONS)]
    rows: list[tuple[int, int, int]] = []
    step = 14  # of the scale, counted from the C below middle C
    for measure in range(n_measures):
        start, root = 4 * TICKS * measure, roots[measure % len(roots)]
        triad = [(root + above) % 12 for above in ((0, 3, 7) if root in {2, 4, 9} else (0, 4, 7))]  # of C major
        broken = [triad[place] for place in (0, 1, 2, 1) * 2]
        rows += [(start + place * TICKS // 2, TICKS // 2, 36 + key + note) for place, note in enumerate(broken)]
        position = 0
        while position < 4 * TICKS:
            length = min(int(rng.choice([3, 6, 6, 12])), 4 * TICKS - position)
            step = int(np.clip(step + rng.integers(-2, 3), 9, 20))
            while position == 0 and SCALE[step % 7] not in triad:
                step += 1
            rows.append((start + position, length, 48 + key + 12 * (step // 7) + SCALE[step % 7]))
            position += length
    onsets, durations, pitches = (np.array(column) for column in zip(*rows, strict=True))
    fifths = (7 * key + 5) % 12 - 5
    return Score(
        make_notes(onsets, durations, pitches),
        TICKS,
        (TimeSignature(0, 4, 4),),
        (),
        (KeySignature(0, fifths, minor=False),),
        ("piano",),
    )
