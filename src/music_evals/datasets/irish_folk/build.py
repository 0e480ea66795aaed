"""Folk tunes as 16-measure contexts for score inpainting: the configs of `datasets_scripts/irish_folk`.

Configs
-------
``music21_folk_cleared``
    Ryan's Mammoth Collection, the one book of the three below whose terms were found clear. It lies in the folder.
``music21_folk``
    The tunes of three old books inside the music21 package. Built on first use, from the installed package. Taken are
    tunes in 4/4 or 2/2 throughout, one note at a time, with 16 measures of four quarters in a row, repeats written out;
    measure 0 is the first full one, and of a tune with an irregular measure the longest run without one is taken.
``small``
    171 tunes of `music21_folk`, as many as MUSIB's JSB set has songs, each in its split there. Built with it.
``folk_rnn``, ``folk_rnn_small``
    The data of MUSIB: tunes of thesession.org as MIDI, from the user's copy of folk-rnn's archive; see `folk_rnn`.

What is built is kept in the cache folder, whole or not at all.
"""

from __future__ import annotations

import importlib.resources
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.csv_files import csv_rows
from music_evals.datasets import tune_files
from music_evals.datasets.families import BAR_LINES, pair_overlaps
from music_evals.datasets.irish_folk import leakage
from music_evals.datasets.irish_folk.folk_rnn import PUBLISHED, read_folk_rnn, song_counts
from music_evals.datasets.pieces import Reading, Source, read_pieces, with_own_names
from music_evals.datasets.tunes import Tune
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError, NoDataError, importing
from music_evals.files import Store, cache_folder
from music_evals.symbolic.notation import abc_fields, split_abc

__all__ = [
    "CLEARED", "StoredSplits", "build_folk_rnn", "build_music21", "measure_leakage", "place_of", "prepare", "rebuild",
    "stored_splits",
]  # fmt: skip

PREPARED = {"music21_folk": "prepare", "small": "prepare", "folk_rnn": "prepare", "folk_rnn_small": "prepare"}

CLEARED = "music21_folk_cleared"
FROM_MUSIC21 = ("music21_folk", "small")

SMALL = {"train": 136, "validation": 17, "test": 18}
"""Tunes of `small`: those of MUSIB's JSB set, 171 in all."""

SEED = 42
BUILDS = {"music21": 3, "folk_rnn": 4}
"""Raised when what is built of a source changes, so that no older copy in a cache is taken for it."""


COLLECTIONS = {
    "airdsAirs": "A Selection of Scotch, English, Irish and Foreign Airs (J. Aird, Glasgow 1778-1801)",
    "oneills1850": "O'Neill's Music of Ireland (F. O'Neill, Chicago 1903)",
    "ryansMammoth": "Ryan's Mammoth Collection (E. Howe, Boston 1883)",
}
"""Folder in music21's corpus -> the book."""

CLEARED_COLLECTIONS = frozenset({"ryansMammoth"})
"""Those whose terms were found clear enough to pass on what is made of them; the card says why."""

METERS = {"C": "4/4", "C|": "2/2", "4/4": "4/4", "2/2": "2/2"}
"""The meters that are taken, as ABC writes them; both have four quarters."""


def corpus_folder() -> Path:
    """Return the folder of the corpus in the installed music21."""
    with importing("symbolic", "reading the folk tunes of music21"):
        import music21
    return Path(music21.__file__).parent / "corpus"


def tune_sources(corpus: Path) -> list[Source]:
    """Return the tunes whose header and body name none but the meters that are taken, sorted by collection and file."""
    sources = []
    for collection in COLLECTIONS:
        paths = sorted((corpus / collection).glob("*.abc"))
        if not paths:
            raise NoDataError(
                f"the corpus of the installed music21 holds no {collection}; some system packages leave it out: "
                "install music21 with pip"
            )
        for path in paths:
            texts = split_abc(path)
            for text in texts:
                meters = {meter.strip('" ') for meter in abc_fields(text, "M")}
                if meters and meters <= METERS.keys():
                    number = "".join(f"/{field}" for field in abc_fields(text, "X")[:1]) if len(texts) > 1 else ""
                    sources.append(Source(f"{collection}/{path.stem}{number}", collection, ".abc", text.encode()))
    return with_own_names(sources)  # files may hold two transcriptions of a page


def read_tunes(
    sources: Sequence[Source], *, store: Store | None = None, progress: Callable[[int, int], object] | None = None
) -> tuple[list[Tune], dict[str, int]]:
    """Read tunes, and count by collection how many were taken, and what was left out and why."""
    tunes: list[Tune] = []
    counts = Counter[str]()
    for source, piece in zip(sources, read_pieces(sources, Reading(), store=store, progress=progress), strict=True):
        counts[f"{source.collection}: in 4/4 or 2/2"] += 1
        if piece.left_out:
            counts[f"{source.collection}: left out ({piece.left_out.partition(':')[0]})"] += 1
        else:
            counts[f"{source.collection}: taken"] += 1
            counts[f"{source.collection}: taken, repeats as written"] += piece.as_written
            tunes.extend(piece.tunes)
    return tunes, dict(sorted(counts.items()))


class StoredSplits(NamedTuple):
    """Which tunes of `music21_folk` were drawn for what; it does not change where tunes are read otherwise."""

    splits: dict[str, str]  # name of a tune -> its split
    small: frozenset[str]  # names of the tunes of `small`


def stored_splits() -> StoredSplits:
    """Read `splits.csv`."""
    table = importlib.resources.files("music_evals.datasets.irish_folk") / "splits.csv"
    rows = csv_rows(table.read_text(encoding="utf-8"), table)
    splits = {row["song"]: row["split"] for row in rows}
    return StoredSplits(splits, frozenset(row["song"] for row in rows if row["small"]))


def prepare(config: str) -> str:
    """Return the folder that holds a config that is built on first use, built now if it was not.

    A config that needs the user's own copy of an archive raises `NoDataError` where nothing was built from one, and the
    others `MissingBackendError` without music21.
    """
    folder = place_of("music21" if config in FROM_MUSIC21 else "folk_rnn")
    if not (folder / "manifest.json").is_file():
        if config not in FROM_MUSIC21:
            raise NoDataError(
                f"config {config} of irish_folk is made from midi.tgz of folk-rnn, which is not passed on; get it "
                "and run datasets_scripts/irish_folk/build.py on it once, as the card says"
            )
        build_music21(folder)
    return str(folder)


def place_of(source: str) -> Path:
    """Return where what is built of a source is kept: ``"music21"`` or ``"folk_rnn"``."""
    name = f"irish_folk-{source}-{BUILDS[source]}"
    if source == "music21":
        with importing("symbolic", "reading the folk tunes of music21"):
            name += f"-{version('music21')}"
    return cache_folder("datasets") / name


def place_music21() -> tuple[list[tune_files.Placed], dict[str, int]]:
    """Read and group the tunes of music21, each family in its split; some minutes, with bars on stderr."""
    from tqdm import tqdm

    with tqdm(desc="reading the folk tunes of music21", unit="tune") as bar:
        store = Store(cache_folder("pieces"))
        tunes, counts = read_tunes(tune_sources(corpus_folder()), store=store, progress=tune_files.shown_on(bar))
    families = tune_files.families_of(tunes, BAR_LINES)  # bars are those of the page
    return tune_files.place_as(tunes, families, stored_splits().splits), counts


def build_music21(folder: Path) -> dict[str, Any]:
    """Write `music21_folk` and `small` into a folder."""
    placed, counts = place_music21()
    small = stored_splits().small
    configs = {"music21_folk": placed, "small": [item for item in placed if item.tune.name in small]}
    return tune_files.write_whole(
        folder, configs, "Folk tunes inside music21, built from the installed package", music21_facts(configs, counts)
    )


def rebuild(folder: Path) -> dict[str, Any]:
    """Write `music21_folk_cleared` into the data set's own folder, card apart, and the rest where it is kept."""
    prepare("music21_folk")
    placed, counts = place_music21()
    configs = {CLEARED: cleared_only(placed)}
    return tune_files.write_tunes(folder, configs, **music21_facts(configs, counts))


def music21_facts(configs: dict[str, list[tune_files.Placed]], counts: dict[str, int]) -> dict[str, Any]:
    """Return what the manifest says beside its files."""
    return {
        "version": BUILDS["music21"],
        "source": f"music21 {version('music21')} corpus, {', '.join(COLLECTIONS)}",
        "counts": {config: tune_files.split_counts(items) for config, items in configs.items()},
        "families": {config: len({item.family for item in items}) for config, items in configs.items()},
        "books": {
            config: {
                book: {
                    "songs": sum(item.tune.collection == book for item in items),
                    "measures": sum(item.tune.n_measures for item in items if item.tune.collection == book),
                    "windows": sum(item.tune.n_windows for item in items if item.tune.collection == book),
                }
                for book in COLLECTIONS
            }
            for config, items in configs.items()
        },
        "tunes": counts,
    }


def build_folk_rnn(archive: Path, folder: Path | None = None) -> dict[str, Any]:
    """Read the user's copy of folk-rnn's archive and write `folk_rnn` and `folk_rnn_small`; a stopped run goes on."""
    from tqdm import tqdm

    target = folder or place_of("folk_rnn")
    if target.exists():
        raise InvalidInputError(f"{target} is there already; remove it, or name another folder")
    with tqdm(desc="unpacking the archive", unit="file") as files, tqdm(desc="reading its files", unit="file") as bar:
        contents = read_folk_rnn(
            archive,
            store=Store(cache_folder("pieces")),
            unpacked=lambda n: files.update(n - files.n),
            progress=tune_files.shown_on(bar),
        )
    placed = tune_files.place(contents.tunes, tune_files.families_of(contents.tunes), seed=SEED)
    configs = {"folk_rnn": placed, "folk_rnn_small": draw_small(placed)}
    facts = {
        "version": BUILDS["folk_rnn"],
        "source": f"{archive.name} of folk-rnn",
        "published": PUBLISHED,
        "found": song_counts(contents.tunes),
        "filters": [[step.name, step.n_before, step.n_removed, step.n_kept] for step in contents.filters.steps],
        "left_out": contents.left_out,
        "counts": {config: tune_files.split_counts(items) for config, items in configs.items()},
    }
    return tune_files.write_whole(target, configs, "Tunes of folk-rnn's archive", facts)


def measure_leakage() -> str:
    """Return as JSON what splits of `music21_folk` let a model see of its test, and where the threshold lies."""
    placed, _ = place_music21()
    tunes = [item.tune for item in placed]
    overlaps = pair_overlaps([tune.tokens for tune in tunes], offsets=BAR_LINES)
    study = {
        **leakage.split_leakage(tunes, [item.split for item in placed], seed=SEED),
        "pairs_compared": len(overlaps),
        "same_title": leakage.title_check(overlaps, leakage.same_titles(tunes)),
        "pickups": leakage.pickup_check(tunes, overlaps, seed=SEED),
        "thresholds": leakage.threshold_table(tunes, overlaps, (0.2, 0.25, 0.3, 0.4, 0.5), seed=SEED),
    }
    return json.dumps(study, indent=2)


def cleared_only(placed: Sequence[tune_files.Placed]) -> list[tune_files.Placed]:
    """Return the tunes of the cleared collections, with the families and splits that they have among all."""
    return [item for item in placed if item.tune.collection in CLEARED_COLLECTIONS]


def draw_small(placed: Sequence[tune_files.Placed], *, seed: int = SEED) -> list[tune_files.Placed]:
    """Draw `SMALL` tunes of each split, or all where there are fewer, and keep their order."""
    rng = random.Random(seed)
    sampled: set[str] = set()
    for split, size in SMALL.items():
        names = [item.tune.name for item in placed if item.split == split]
        sampled.update(rng.sample(names, min(size, len(names))))
    return [item for item in placed if item.tune.name in sampled]


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__, {"Drawn": "StoredSplits", "drawn": "stored_splits"})
