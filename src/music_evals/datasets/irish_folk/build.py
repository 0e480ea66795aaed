"""Folk tunes as 16-measure contexts for score inpainting: the configs of `datasets_scripts/irish_folk`.

Configs
-------
``music21_folk_cleared``
    Ryan's Mammoth Collection, the one book of the three below whose terms were found clear. It lies in the folder.
``music21_folk``
    The tunes of three old books inside the music21 package. Built on first use, from the installed package.
``small``
    171 tunes of `music21_folk`, as many as MUSIB's JSB set has songs, each in its split there. Built with it.
``folk_rnn``, ``folk_rnn_small``
    The data of MUSIB: tunes of thesession.org as MIDI, from the user's copy of folk-rnn's archive; see `folk_rnn`.

What is built is kept in the cache folder, whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import uuid
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from music_evals.datasets.families import find_families
from music_evals.datasets.irish_folk.folk_rnn import PUBLISHED, read_folk_rnn, song_counts
from music_evals.datasets.irish_folk.music21_tunes import (
    CLEARED_COLLECTIONS,
    COLLECTIONS,
    corpus_folder,
    read_tunes,
    tune_sources,
)
from music_evals.datasets.leakage import split_leakage
from music_evals.datasets.tune_files import SPLITS, Placed, place, split_counts, write_tunes
from music_evals.datasets.tunes import Tune
from music_evals.errors import InvalidInputError, NoDataError, importing
from music_evals.files import Store, cache_folder

__all__ = [
    "CLEARED",
    "CONFIGS",
    "build_folk_rnn",
    "build_music21",
    "measure_leakage",
    "place_of",
    "prepare",
    "rebuild",
]

CLEARED = "music21_folk_cleared"
FROM_MUSIC21 = ("music21_folk", "small")
FROM_ARCHIVE = ("folk_rnn", "folk_rnn_small")
CONFIGS = (CLEARED, *FROM_MUSIC21, *FROM_ARCHIVE)

SMALL = {"train": 136, "validation": 17, "test": 18}
"""Tunes of `small`: those of MUSIB's JSB set, 171 in all."""

SEED = 42
BUILD = 1
"""Raised when what is built changes, so that no older copy in a cache is taken for it."""


def prepare(config: str | None) -> str | None:
    """Return the folder that holds a config, built if it was not; None for one that lies in the data set's own folder.

    Raises
    ------
    MissingBackendError
        music21 is not installed.
    NoDataError
        The config needs the user's own copy of an archive, and nothing was built from one.

    """
    if config in FROM_MUSIC21:
        folder = place_of("music21")
        if not (folder / "manifest.json").is_file():
            build_music21(folder)
        return str(folder)
    if config in FROM_ARCHIVE:
        folder = place_of("folk_rnn")
        if not (folder / "manifest.json").is_file():
            raise NoDataError(
                f"config {config} of irish_folk is made from midi.tgz of folk-rnn, which is not passed on; get it "
                "and run datasets_scripts/irish_folk/build.py on it once, as the card says"
            )
        return str(folder)
    return None


def place_of(source: str) -> Path:
    """Return where what is built of a source is kept: ``"music21"`` or ``"folk_rnn"``."""
    name = f"irish_folk-{source}-{BUILD}"
    if source == "music21":
        with importing("symbolic", "reading the folk tunes of music21"):
            name += f"-{version('music21')}"
    return cache_folder("datasets") / name


def place_music21() -> tuple[list[Placed], dict[str, int]]:
    """Read, group and split the tunes of the installed music21; some minutes, with bars on stderr."""
    from tqdm import tqdm

    with tqdm(desc="reading the folk tunes of music21", unit="tune") as bar:
        store = Store(cache_folder("pieces"))
        tunes, counts = read_tunes(tune_sources(corpus_folder()), store=store, progress=shown_on(bar))
    return place(tunes, families_of(tunes), seed=SEED), counts


def families_of(tunes: Sequence[Tune]) -> list[int]:
    """Find families, with a bar on stderr."""
    from tqdm import tqdm

    with tqdm(desc="finding settings of one tune", unit="pair") as bar:
        return find_families([tune.tokens for tune in tunes], progress=shown_on(bar))


def build_music21(folder: Path) -> dict[str, Any]:
    """Write `music21_folk` and `small` into a folder."""
    placed, counts = place_music21()
    configs = {"music21_folk": placed, "small": draw_small(placed)}
    return write_whole(
        folder, configs, "Folk tunes inside music21, built from the installed package", music21_facts(configs, counts)
    )


def rebuild(folder: Path) -> dict[str, Any]:
    """Write `music21_folk_cleared` into the data set's own folder, card apart, and the rest where it is kept."""
    prepare("music21_folk")
    placed, counts = place_music21()
    configs = {CLEARED: cleared_only(placed)}
    return write_tunes(folder, configs, **music21_facts(configs, counts))


def music21_facts(configs: dict[str, list[Placed]], counts: dict[str, int]) -> dict[str, Any]:
    """Return what the manifest says beside its files."""
    return {
        "source": f"music21 {version('music21')} corpus, {', '.join(COLLECTIONS)}",
        "counts": {config: split_counts(items) for config, items in configs.items()},
        "tunes": counts,
    }


def build_folk_rnn(archive: Path, folder: Path | None = None) -> dict[str, Any]:
    """Read the user's copy of folk-rnn's archive and write `folk_rnn` and `folk_rnn_small`; a stopped run goes on."""
    from tqdm import tqdm

    target = folder or place_of("folk_rnn")
    if target.exists():
        raise InvalidInputError(f"{target} is there already; remove it, or name another folder")
    with tqdm(desc="reading the archive", unit="file") as bar:
        found = read_folk_rnn(archive, store=Store(cache_folder("pieces")), progress=shown_on(bar))
    placed = place(found.tunes, families_of(found.tunes), seed=SEED)
    configs = {"folk_rnn": placed, "folk_rnn_small": draw_small(placed)}
    facts = {
        "source": f"{archive.name} of folk-rnn",
        "published": PUBLISHED,
        "found": song_counts(found.tunes),
        "filters": [[step.name, step.n_before, step.n_removed, step.n_kept] for step in found.filters.steps],
        "left_out": found.left_out,
        "counts": {config: split_counts(items) for config, items in configs.items()},
    }
    return write_whole(target, configs, "Tunes of folk-rnn's archive", facts)


def measure_leakage() -> str:
    """Return as JSON what the splits of `music21_folk` by family and by tune let a model see of its test."""
    placed, _ = place_music21()
    shares = split_leakage([item.tune for item in placed], [item.family for item in placed], seed=SEED)
    return json.dumps(shares, indent=2)


def write_whole(folder: Path, configs: dict[str, list[Placed]], title: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Write a folder whole or not at all; of several writers one wins."""
    from tqdm import tqdm

    part = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.part")
    try:
        with tqdm(desc="writing windows", unit="window") as bar:
            manifest = write_tunes(part, configs, card=folder_card(title, configs), progress=shown_on(bar), **facts)
        with contextlib.suppress(OSError):  # somebody else was faster, with the same rows
            part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return manifest


def folder_card(title: str, configs: dict[str, list[Placed]]) -> str:
    """Return a card that says which files belong to which config."""
    lines = ["---", f"pretty_name: {title}", "configs:"]
    for config, placed in configs.items():
        splits = [split for split in SPLITS if any(item.split == split for item in placed)]
        lines += [f"- config_name: {config}", "  data_files:"]
        lines += [f'  - {{split: {split}, path: "data/{config}/{split}-*.parquet"}}' for split in splits]
    return "\n".join([*lines, "---", "", f"# {title}", "", "See the card of `irish_folk`.", ""])


def cleared_only(placed: Sequence[Placed]) -> list[Placed]:
    """Return the tunes of the cleared collections, with the families and splits that they have among all."""
    return [item for item in placed if item.tune.collection in CLEARED_COLLECTIONS]


def draw_small(placed: Sequence[Placed], *, seed: int = SEED) -> list[Placed]:
    """Draw `SMALL` tunes of each split, or all where there are fewer, and keep their order."""
    rng = random.Random(seed)
    drawn: set[str] = set()
    for split, size in SMALL.items():
        names = [item.tune.name for item in placed if item.split == split]
        drawn.update(rng.sample(names, min(size, len(names))))
    return [item for item in placed if item.tune.name in drawn]


def shown_on(bar: Any) -> Callable[[int, int], None]:
    """Return a function of what is done and all there is to do that moves a bar."""

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return show
