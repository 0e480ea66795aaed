"""Anybody's MIDI, MusicXML or ABC files as a style: whole pieces that networks of style transfer learn from.

What ``music-evals corpus build`` writes where a style is named. The rows are those of `style_pieces`, so a recipe of a
model trains on them by naming the folder. Of each piece the voices with the roles that were asked for are taken
(`symbolic.roles`); a piece that lacks one is left out, with the reason. Pieces whose upper line begins alike stand in
one split (`families.incipit_families`).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.datasets.corpus import CONFIG, FILTERS, Corpus, check_out, corpus_card, filtered_pieces
from music_evals.datasets.families import incipit_families
from music_evals.datasets.manifest import rows_sha256, write_dataset
from music_evals.datasets.pieces import Piece, Reading
from music_evals.datasets.style_pieces import PieceFacts, features
from music_evals.datasets.tune_files import SPLITS, parse_shares, split_families
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.files import write_atomically
from music_evals.symbolic.encodings.piano_rolls import STEPS_PER_QUARTER
from music_evals.symbolic.filters import make_filters
from music_evals.symbolic.melody import skyline
from music_evals.symbolic.piece_rows import score_of_row
from music_evals.symbolic.roles import MELODY, ROLES

__all__ = ["PIANO_AND_BASS", "StyleCorpusSettings", "build_style_corpus"]

PIANO_AND_BASS: Final = ("piano", "bass")
"""Roles that are taken where none are named."""


@dataclasses.dataclass(frozen=True)
class StyleCorpusSettings:
    """How a style is made of a folder of scores.

    Parameters
    ----------
    folder, out, filters, split, seed, workers
        See `corpus.CorpusSettings`; a split counts pieces.
    style
        What the pieces, and models that learn from them, call it, such as ``"bossa"``.
    roles
        Role -> names of the voices that have it, see `symbolic.roles.take_roles`; by default piano and bass, known by
        names and programs. With ``"melody"`` the pieces can be carried over to other styles too.
    ticks_per_quarter
        The grid: 8 for models of 32nd notes, 12 for those of triplets.

    Raises
    ------
    InvalidInputError
        The style has no name, the split cannot be read, or a number is not positive.
    UnknownNameError
        There is no such filter or role.
    """

    folder: str | os.PathLike[str]
    out: str | os.PathLike[str]
    style: str
    roles: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=lambda: dict.fromkeys(PIANO_AND_BASS, ()))
    ticks_per_quarter: int = STEPS_PER_QUARTER
    filters: str = FILTERS
    split: str = "8:1:1"
    seed: int = 42
    workers: int | None = None

    def __post_init__(self) -> None:
        if not self.style.strip() or not self.style.isprintable():
            raise InvalidInputError("give the style a name in `style`, such as 'bossa'")
        parse_shares(self.split)
        make_filters(self.filters)
        if not self.roles:
            raise InvalidInputError(f"name one role or more in `roles`, out of {', '.join(ROLES)}")
        for role in self.roles:
            if role not in ROLES:
                raise UnknownNameError("role", role, ROLES)
        for name in ("ticks_per_quarter", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInputError(f"`{name}` must be at least 1, got {value}")


def build_style_corpus(
    settings: StyleCorpusSettings, *, progress: Callable[[int, int, str], object] | None = None
) -> Corpus:
    """Build the data set, and name what could not be read or taken; see `corpus.build_corpus`.

    Raises
    ------
    NoDataError
        The folder holds no score file, or no piece has all roles.
    MissingBackendError
        MusicXML or ABC files without the extra ``symbolic``.
    InvalidInputError, OutputError
        The folder that is to be written holds other files, lies in the one that is read, or cannot be written.
    """
    root, out = Path(settings.folder), Path(settings.out)
    check_out(out, root)
    roles = {role: tuple(names) for role, names in settings.roles.items()}
    read = filtered_pieces(
        root,
        settings.filters,
        Reading(roles=roles, ticks_per_quarter=settings.ticks_per_quarter),
        workers=settings.workers,
        progress=lambda done, total: progress(done, total, "reading pieces") if progress is not None else None,
    )
    taken = {piece.facts.filename: piece for piece in read.passed if piece.columns is not None}
    left_out = {piece.facts.filename: piece.left_out for piece in read.passed if piece.columns is None}
    if not taken:
        first = next((f"; the first reason, of {name}: {reason}" for name, reason in left_out.items()), "")
        raise NoDataError(
            f"{settings.folder}: {len(read.pieces)} pieces were read, {len(read.passed)} passed the filters, and none "
            f"has voices for {', '.join(settings.roles)}{first}"
        )
    splits = _rows(taken, settings)
    counts = {
        split: {
            "pieces": len(rows),
            "families": len({row["family"] for row in rows}),
            "measures": sum(len(row["measure_starts"]) - 1 for row in rows),
            "notes": sum(len(row["notes"]) for row in rows),
        }
        for split, rows in splits.items()
    }
    corpus = read.corpus(out, counts, left_out, settings.split)
    (out / "manifest.json").unlink(missing_ok=True)
    for path in (out / "data" / CONFIG).glob("*.parquet"):
        path.unlink()
    named = ", ".join(f"{role} ({', '.join(names)})" if names else role for role, names in settings.roles.items())
    card = corpus_card(
        corpus,
        [rows_sha256(rows) for rows in splits.values() if rows],
        description=f"Whole pieces of the style {settings.style}",
        columns="Pieces | Families | Measures | Notes",
        remarks=[
            f"Roles: {named}; {settings.ticks_per_quarter} steps a quarter; filters: {settings.filters or 'none'};",
            f"split {settings.split}, seed {settings.seed}. Pieces whose upper line begins with the same intervals are",
            "a family; no family stands in two splits.",
        ],
    )
    write_atomically(out / "README.md", card.encode(), parents=True)
    write_dataset(
        out,
        {CONFIG: {split: rows for split, rows in splits.items() if rows}},
        features(),
        **corpus.manifest(settings, roles=roles),
    )
    return corpus


def _rows(taken: Mapping[str, Piece], settings: StyleCorpusSettings) -> dict[str, list[dict[str, Any]]]:
    """Return split -> rows, by name."""
    lines = {}
    for name, piece in taken.items():
        score = score_of_row(piece.columns or {})
        lines[name] = score.voice(score.voices.index(MELODY)) if MELODY in score.voices else skyline(score.notes)
    families = incipit_families({name: line["pitch"] for name, line in lines.items()})
    names = sorted(taken)
    placed = split_families([families[name] for name in names], shares=parse_shares(settings.split), seed=settings.seed)
    rows: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    for name, split in zip(names, placed, strict=True):
        facts = PieceFacts(
            name,
            settings.style,
            families[name],
            title=taken[name].title,
            source=name,
            melody=MELODY if MELODY in settings.roles else "",
        )
        rows[split].append({**dataclasses.asdict(facts), **(taken[name].columns or {})})
    return rows
