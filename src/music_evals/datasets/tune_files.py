"""Tunes that have a family and a split, written as a data set that `load_dataset` reads: Parquet, card and manifest."""

from __future__ import annotations

import json
import random
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.datasets.families import ANY_OFFSET, find_families
from music_evals.datasets.manifest import facts_of, parquet_bytes
from music_evals.datasets.tunes import Training, Tune, features, tune_rows
from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically

SPLITS = ("train", "validation", "test")
SHARES = (8, 1, 1)
LARGEST = 0.1
ROWS_PER_FILE = 5000


class Placed(NamedTuple):
    """A tune, the name of the first tune of its family, and its split."""

    tune: Tune
    family: str
    split: str


def parse_shares(text: str) -> tuple[int, int, int]:
    """Read shares such as ``"8:1:1"``."""
    parts = text.split(":")
    if len(parts) != len(SPLITS) or not all(part.isascii() and part.isdecimal() for part in parts) or not int(parts[0]):
        raise InvalidInputError(
            f"split {text!r}: expected three whole numbers for train, validation and test, the first not 0, as in 8:1:1"
        )
    train, validation, test = map(int, parts)
    return train, validation, test


def split_families(families: Sequence[Any], *, shares: tuple[int, int, int] = SHARES, seed: int = 42) -> list[str]:
    """Return the split of each tune, so that no family stands in two.

    Families are shuffled. Each goes to test while there is room for all of its tunes, then to validation, and else to
    train. One that would fill more than `LARGEST` of a split goes to train: a test of one family judges little. Shares
    are the relative sizes of train, validation and test in tunes.
    """
    sizes = Counter(families)
    order = list(sizes)
    random.Random(seed).shuffle(order)
    # no split that was asked for stays empty where there are families for all
    least = min(sizes.values()) if len(order) >= len(SPLITS) else 0
    room = {
        split: max(len(families) * share // sum(shares), least * (share > 0))
        for split, share in zip(SPLITS, shares, strict=True)
    }
    most = {split: max(LARGEST * size, least) for split, size in room.items()}
    chosen = {}
    for family in order:
        split = next(
            (split for split in ("test", "validation") if sizes[family] <= min(room[split], most[split])), "train"
        )
        chosen[family] = split
        room[split] -= sizes[family]
    return [chosen[family] for family in families]


def place(
    tunes: Sequence[Tune], families: Sequence[int], *, shares: tuple[int, int, int] = SHARES, seed: int = 42
) -> list[Placed]:
    """Give tunes their family, by the name of its first tune, and their split."""
    names = [tunes[family].name for family in families]
    return [
        Placed(tune, family, split)
        for tune, family, split in zip(tunes, names, split_families(names, shares=shares, seed=seed), strict=True)
    ]


def place_as(tunes: Sequence[Tune], families: Sequence[int], known_splits: Mapping[str, str]) -> list[Placed]:
    """Give tunes their family, and the split that was drawn for it once; families that are new go to train.

    A family goes where its tunes were (`known_splits`, by their names). One that has grown together out of several
    splits goes to the first of train, validation and test: what a model may have learned from never comes to be tested.
    """
    names = [tunes[family].name for family in families]
    splits: dict[str, str] = {}
    for tune, family in zip(tunes, names, strict=True):
        if tune.name in known_splits:
            splits[family] = min(splits.get(family, SPLITS[-1]), known_splits[tune.name], key=SPLITS.index)
    return [Placed(tune, family, splits.get(family, "train")) for tune, family in zip(tunes, names, strict=True)]


def split_counts(placed: Sequence[Placed]) -> dict[str, dict[str, int]]:
    """Count songs, families, measures and windows of each split."""
    counts = {}
    for split in SPLITS:
        tunes = [item.tune for item in placed if item.split == split]
        counts[split] = {
            "songs": len({tune.name for tune in tunes}),
            "families": len({item.family for item in placed if item.split == split}),
            "measures": sum(tune.n_measures for tune in tunes),
            "windows": sum(tune.n_windows for tune in tunes),
        }
    return counts


def write_tunes(
    folder: Path,
    configs: Mapping[str, Sequence[Placed]],
    *,
    card: str = "",
    progress: Callable[[int, int], object] | None = None,
    **facts: Any,
) -> dict[str, Any]:
    """Write every config in files of some thousand rows, the card, and the manifest that vouches for them at last.

    What an earlier data set left in the folder is removed: its manifest first, and its Parquet files in the end.
    Without `card` its README.md stays. `progress` is called with the number of windows written and of all; `facts` are
    further entries of the manifest.
    """
    (folder / "manifest.json").unlink(missing_ok=True)
    files: dict[str, Any] = {}
    total = sum(item.tune.n_windows for placed in configs.values() for item in placed)
    written = 0
    for config, placed in configs.items():
        train = Training.of([item.tune for item in placed if item.split == "train"])
        for split in SPLITS:
            shards: list[list[Placed]] = []
            n_rows = ROWS_PER_FILE
            for item in (item for item in placed if item.split == split):
                if n_rows >= ROWS_PER_FILE:  # of the last file
                    shards.append([])
                    n_rows = 0
                shards[-1].append(item)
                n_rows += item.tune.n_windows
            for number, shard in enumerate(shards):
                rows = [row for item in shard for row in tune_rows(item.tune, item.family, split, train)]
                content = parquet_bytes(rows, features())
                name = f"data/{config}/{split}-{number:05d}-of-{len(shards):05d}.parquet"
                write_atomically(folder / name, content, parents=True)
                files[name] = facts_of(rows, content)
                written += len(rows)
                if progress is not None:
                    progress(written, total)
    for path in folder.glob("data/*/*.parquet"):
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    if card:
        write_atomically(folder / "README.md", card.encode(), parents=True)
    manifest = {**facts, "files": files}
    write_atomically(folder / "manifest.json", (json.dumps(manifest, indent=2) + "\n").encode(), parents=True)
    return manifest


def write_whole(folder: Path, configs: dict[str, list[Placed]], title: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Write a folder whole or not at all; of several writers one wins."""
    from tqdm import tqdm

    part = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.part")
    try:
        card = [
            "---",
            f"pretty_name: {title}",
            *config_lines({config: [item.split for item in placed] for config, placed in configs.items()}),
            "---",
            "",
            f"# {title}",
            "",
            "Built where it is used; see the card of the data set.",
            "",
        ]
        with tqdm(desc="writing windows", unit="window") as bar:
            manifest = write_tunes(part, configs, card="\n".join(card), progress=shown_on(bar), **facts)
        try:
            part.rename(folder)
        except OSError:
            if not (folder / "manifest.json").is_file():  # else somebody was faster, with the same rows
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return manifest


def config_lines(configs: Mapping[str, Collection[str]], **facts: str) -> list[str]:
    """Return the YAML of a card that says which files belong to which config and split; facts stand in each config."""
    lines = ["configs:"]
    for config, splits in configs.items():
        lines += [f"- config_name: {config}", *(f"  {name}: {value}" for name, value in facts.items()), "  data_files:"]
        lines += [
            f'  - {{split: {split}, path: "data/{config}/{split}-*.parquet"}}' for split in SPLITS if split in splits
        ]
    return lines


def shown_on(bar: Any) -> Callable[[int, int], None]:
    """Return a function of what is done and all there is to do that moves a bar."""

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return show


def families_of(tunes: Sequence[Tune], offsets: Sequence[tuple[int, int]] = ANY_OFFSET) -> list[int]:
    """Find families, with a bar on stderr; `offsets` as in `find_families`."""
    from tqdm import tqdm

    with tqdm(desc="finding settings of one tune", unit="pair") as bar:
        return find_families([tune.tokens for tune in tunes], offsets=offsets, progress=shown_on(bar))
