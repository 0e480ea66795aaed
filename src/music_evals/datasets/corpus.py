"""Anybody's MIDI, MusicXML or ABC files as a data set of contexts: what ``music-evals corpus build`` writes.

The rows are those of the folk tunes (`datasets.tunes`), and the splits keep settings of one tune together
(`datasets.families`); so what trains and judges on `jsb_chorales` or `irish_folk` does so on the user's own files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from music_evals.datasets.families import find_families, link
from music_evals.datasets.pieces import VOICES, Piece, Reading, Source, Voices, read_pieces, with_own_names
from music_evals.datasets.tune_files import SPLITS, config_lines, parse_shares, place, split_counts, write_tunes
from music_evals.deprecation import renamed_options, warn_renamed
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.files import Store, cache_folder
from music_evals.options import MISSING, option
from music_evals.symbolic.contexts import Measures, check_measures
from music_evals.symbolic.files import READERS
from music_evals.symbolic.filters import FilterReport, apply_filters, make_filters
from music_evals.symbolic.notation import abc_fields, split_abc

__all__ = [
    "CONFIG", "FILTERS", "Corpus", "CorpusSettings", "FilteredPieces", "build_corpus", "check_out", "corpus_card",
    "filtered_pieces",
]  # fmt: skip

CONFIG = "default"
FILTERS = "non_empty,unique"

_REMEDIES = {
    "voices='each'": "each voice",
    "voices='skyline'": "the highest notes",
    "measures='fixed'": "measures of four quarters from the start",
}
"""Settings that may make a tune of a piece that gives none, and what they take."""


@dataclasses.dataclass(frozen=True)
class CorpusSettings:
    """How a data set is made of a folder of scores.

    Parameters
    ----------
    folder
        Searched with its sub-folders for files that end as `symbolic.files.READERS` says.
    out
        Folder that is written: Parquet files, README.md and manifest.json.
    filters, split, seed
        Names of filters and of recipes, with commas (`symbolic.filters`); shares of train, validation, test in tunes.
    voices
        ``"one"``: a piece in which several voices have notes is left out. ``"each"``: each of them is a tune, those
        of one name with a number, and all of one piece stand in one split. ``"skyline"``: the highest note wherever
        notes start; see `symbolic.melody`. Drums are no voice in any of them.
    measures
        ``"notated"`` or ``"fixed"``; see `tunes.tune_from_score`.

    Raises
    ------
    InvalidInputError
        The split cannot be read, or `workers` is not positive.
    UnknownNameError
        There is no such filter, or no such way to take voices or to lay measures.
    """

    folder: str | os.PathLike[str] = option(MISSING, "searched with its sub-folders", flag="folder")
    out: str | os.PathLike[str] = option(MISSING, "folder for the data set", metavar="DIR")
    filters: str = option(
        FILTERS, "names of filters and of recipes, with commas, as of the verb frame (default: %(default)s)"
    )
    split: str = option("8:1:1", "shares of train, validation and test (default: %(default)s)", metavar="N:N:N")
    seed: int = option(42, "of the split (default: %(default)s)")
    voices: Voices = option(
        "one",
        "of a piece with several: leave it out, take each, or the highest notes; drums are none (default: %(default)s)",
        choices=("one", "each", "skyline"),
    )
    measures: Measures = option(
        "notated",
        "as on the page, or four quarters each from the start (default: %(default)s)",
        choices=("notated", "fixed"),
    )
    workers: int | None = option(None, "processes (default: one for each processor)")

    GROUPS: ClassVar = {"how": ""}

    def __post_init__(self) -> None:
        parse_shares(self.split)
        make_filters(self.filters)
        if self.voices not in VOICES:
            raise UnknownNameError("way to take voices", self.voices, VOICES)
        check_measures(self.measures)
        if self.workers is not None and self.workers < 1:
            raise InvalidInputError(f"`workers` must be at least 1, got {self.workers}")


class Corpus(NamedTuple):
    """What was built."""

    folder: Path
    counts: dict[str, dict[str, int]]  # split -> songs, families, measures, windows
    filters: FilterReport
    failures: dict[str, str]  # piece -> why it could not be read
    left_out: dict[str, str]  # piece that passed the filters -> why it gives no tune
    remarks: tuple[str, ...] = ()  # what a reader should know of it, a sentence each

    def manifest(self, settings: Any, **others: Any) -> dict[str, Any]:
        """Return the content of the manifest: settings without folders and workers, and counts."""
        options = {name: value for name, value in vars(settings).items() if name not in {"folder", "out", "workers"}}
        return {
            "settings": options | others,
            "counts": self.counts,
            "filters": [[step.name, step.n_before, step.n_removed, step.n_kept] for step in self.filters.steps],
            "removed": {step.name: dict(step.removed) for step in self.filters.steps[1:] if step.removed},
            "failures": self.failures,
            "left_out": self.left_out,
        }


def build_corpus(settings: CorpusSettings, *, progress: Callable[[int, int, str], object] | None = None) -> Corpus:
    """Build the data set, and name what could not be read or taken.

    A run that was stopped goes on where it was: what was read is kept in the cache folder. The manifest is written
    last, so that a folder without one is not a data set yet. `progress` is called with what is done, all there is to
    do, and what it is.

    Raises
    ------
    NoDataError
        The folder holds no score file, or none gives a window of 16 measures.
    InvalidInputError
        The folder that is to be written holds other files, or lies in the one that is read.
    OutputError
        The folder cannot be written.
    """

    def shown(label: str) -> Callable[[int, int], object]:
        return lambda done, total: progress(done, total, label) if progress is not None else None

    root, out = Path(settings.folder), Path(settings.out)
    check_out(out, root)
    reading = Reading(voices=settings.voices, measures=settings.measures)
    read = filtered_pieces(root, settings.filters, reading, workers=settings.workers, progress=shown("reading pieces"))
    tunes = [tune for piece in read.passed for tune in piece.tunes]
    if not tunes:
        first = next((f"; the first reason: {piece.left_out}" for piece in read.passed if piece.left_out), "")
        first += _advice(remedy for piece in read.passed for remedy in piece.remedies)
        raise NoDataError(
            f"{root}: {len(read.pieces)} pieces were read, {len(read.passed)} passed the filters, and none gives a "
            f"window of 16 measures of 4/4{first}"
        )
    families = find_families([tune.tokens for tune in tunes], progress=shown("finding settings of one tune"))
    # the voices of one piece sound together, and what one does tells of the others: they are one family
    first_voice: dict[str, int] = {}
    pairs: dict[tuple[int, int], float] = {}
    for index, (tune, family) in enumerate(zip(tunes, families, strict=True)):
        pairs[family, index] = pairs[first_voice.setdefault(tune.name, index), index] = 1.0
    families = link(len(tunes), pairs, 1.0)
    placed = place(tunes, families, shares=parse_shares(settings.split), seed=settings.seed)
    counts = split_counts(placed)
    left_out = {
        piece.facts.filename: f"{piece.left_out}{_advice(piece.remedies)}" for piece in read.passed if piece.left_out
    }
    corpus = read.corpus(out, counts, left_out, settings.split)
    card = corpus_card(
        corpus,
        [repr((item.split, item.tune.name, item.tune.tokens.tobytes())) for item in placed],
        description="Sixteen-measure windows of melodies",
        columns="Songs | Families | Measures | Windows",
        remarks=[
            f"Filters: {settings.filters or 'none'}; voices: {settings.voices}; measures: {settings.measures};",
            f"split {settings.split}, seed {settings.seed}. A family is a group of tunes that share passages,",
            "as settings of one tune do; no family stands in two splits.",
        ],
    )
    facts = corpus.manifest(settings)
    write_tunes(out, {CONFIG: placed}, card=card, progress=shown("writing windows"), **facts)
    return corpus


class FilteredPieces(NamedTuple):
    """The pieces of a folder, and those that passed the filters."""

    pieces: list[Piece]
    passed: list[Piece]
    report: FilterReport

    @property
    def kept(self) -> list[Piece]:
        """Old name of `passed`."""
        warn_renamed("FilteredPieces.kept", "passed")
        return self.passed

    def corpus(self, out: Path, counts: dict[str, dict[str, int]], left_out: dict[str, str], shares: str) -> Corpus:
        """Return what is built of them, with a remark for each split that should hold something and does not."""
        failures = {piece.facts.filename: piece.facts.error for piece in self.pieces if piece.facts.error}
        n = sum(count["families"] for count in counts.values())
        remarks = tuple(
            f"the split {split} is empty: of {n} families, which stay whole, none was left for it; ask for other "
            f"shares than {shares} with `split`, or give more music"
            for split, share in zip(SPLITS, parse_shares(shares), strict=True)
            if share and not counts[split]["families"]
        )
        return Corpus(out, counts, self.report, failures, left_out, remarks)


def filtered_pieces(
    root: Path, filters: str, reading: Reading, *, workers: int | None, progress: Callable[[int, int], object]
) -> FilteredPieces:
    """Read the pieces of a folder and filter them."""
    store = Store(cache_folder("pieces"))
    pieces = list(read_pieces(score_sources(root), reading, store=store, workers=workers, progress=progress))
    report = apply_filters([piece.facts for piece in pieces], make_filters(filters))
    passed = {row.filename for row in report.passed}
    return FilteredPieces(pieces, [piece for piece in pieces if piece.facts.filename in passed], report)


def score_sources(root: Path) -> list[Source]:
    """Return the pieces of a folder, sorted by path: one a file, and each tune of an ABC book."""
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in READERS and path.is_file())
    if not paths:
        if root.is_file():
            raise NoDataError(f"{root} is a file; give the folder that it lies in")
        problem = f"holds no file that ends in {', '.join(READERS)}" if root.is_dir() else "no such folder"
        raise NoDataError(f"{root}: {problem}; give a folder of scores")
    sources: list[Source] = []
    for path in paths:
        name, suffix = path.relative_to(root).as_posix(), path.suffix.lower()
        collection = path.relative_to(root).parent.as_posix()
        collection = root.resolve().name if collection == "." else collection
        contents: list[tuple[str, bytes | Path]] = [(name, path)]
        if suffix == ".abc":
            contents = [
                ("/".join([name, *filter(None, abc_fields(text, "X")[:1])]), text.encode()) for text in split_abc(path)
            ]
        sources += [Source(given, collection, suffix, content) for given, content in contents]
    return with_own_names(sources)


@renamed_options(what="description")
def corpus_card(
    corpus: Corpus, contents: Sequence[str], *, description: str, columns: str, remarks: Sequence[str]
) -> str:
    """Return the card of a corpus: what it is, its counts under the heads of `columns`, remarks and filters.

    The data set library keeps a copy of a folder by the config of its card, and would hand out that of an earlier
    corpus of the same name: so the card holds a digest of the rows, `contents`.
    """
    digest = hashlib.sha256("\n".join(contents).encode()).hexdigest()
    name, counts = corpus.folder.resolve().name, corpus.counts
    filled = [split for split in SPLITS if next(iter(counts[split].values()))]
    return "\n".join(
        [
            "---",
            f"pretty_name: {name}",
            "license: unknown",
            *config_lines({CONFIG: filled}, default="true", description=f"digest {digest}"),
            "---",
            "",
            f"# {name}",
            "",
            f"{description}, made by `music-evals corpus build`.",
            "The terms of the files that it was made from are not known here: say them before you pass it on.",
            "",
            f"| Split | {columns} |",
            "|---" * (2 + columns.count("|")) + "|",
            *(f"| {split} | " + " | ".join(f"{n:,}" for n in counts[split].values()) + " |" for split in SPLITS),
            "",
            *remarks,
            "",
            "```",
            corpus.filters.table(),
            "```",
            "",
        ]
    )


def check_out(out: Path, root: Path) -> None:
    """Raise for a folder that holds anything but a corpus of ours, finished or not, or that lies in the one read."""
    inside = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    ours = {name for name in inside if name.startswith(f"data/{CONFIG}/") or name in {"README.md", "manifest.json"}}
    made_here = "manifest.json" not in inside or '"settings"' in (out / "manifest.json").read_text(encoding="utf-8")
    if inside - ours or not made_here:
        raise InvalidInputError(f"{out} holds other files; name a new folder, an empty one, or one that was built so")
    if out.resolve().is_relative_to(root.resolve()):
        raise InvalidInputError(
            f"{out} lies in {root}, which is searched with its sub-folders; name a folder outside of it"
        )


def _advice(remedies: Iterable[str]) -> str:
    """Say which settings may make a tune of a piece."""
    phrases = [f"{_REMEDIES[remedy]}, `{remedy}`" for remedy in dict.fromkeys(remedies)]
    return f"; take {', or '.join(phrases)}" if phrases else ""
