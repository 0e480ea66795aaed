"""What songs of people show of the limits of `caimap.domain.grades` and of repeated tags.

    python -m benchmarks.caimap.thresholds                      # the half of MuChin beside the repository, a minute
    python -m benchmarks.caimap.thresholds --songs songs.jsonl  # others in the same form
    python -m benchmarks.caimap.thresholds --write              # and into the README

The songs are third-party, so that they are in no repository. Each was described by one professional and one amateur.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.musib.tables import fill

from music_evals.annotations import AUDIO_EFFECTS
from music_evals.files import write_atomically

HERE = Path(__file__).resolve()
SONGS = HERE.parents[3] / "shared" / "data" / "muchin" / "dev.jsonl"
README = HERE.with_name("README.md")
GROUPS = ("professional", "amateur")
DRAWS = 40_000


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures; with ``--write`` put them into the README."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--songs", type=Path, default=SONGS, help="songs as JSON lines")
    parser.add_argument("--write", action="store_true", help="put the figures into the README")
    options = parser.parse_args(argv)
    songs = [json.loads(line) for line in options.songs.read_text(encoding="utf-8").splitlines()]
    lines = ["| of the songs of people | figure |", "|---|---|"]
    lines += [f"| {what} | {figure} |" for what, figure in [*_structures(songs), *_descriptions(songs)]]
    print("\n".join(lines))
    if options.write:
        write_atomically(README, fill(README.read_text(encoding="utf-8"), {"thresholds": "\n".join(lines)}).encode())


def _structures(songs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    sequences = [tuple(section["label"] for section in song["structure"]) for song in songs]
    largest = []
    for song in songs:
        lines = Counter[str]()
        for section in song["structure"]:
            lines[section["label"]] += len(section["lines"])
        largest.append(max(lines.values()) / max(1, lines.total()))
    codes = np.unique([str(one) for one in sequences], return_inverse=True)[1]
    rng = np.random.default_rng(0)
    found = [
        ("songs", f"{len(songs)}"),
        ("nine lines of ten or more under one label", f"{sum(share >= 0.9 for share in largest)} songs"),
    ]
    for row, most in ((5, 2), (10, 5)):
        few = [len(set(rng.choice(codes, row, replace=False))) <= most for _ in range(DRAWS)]
        found.append((f"at most {most} sequences of labels in {row} songs drawn", f"{np.mean(few):.3%} of the draws"))
    return found


def _descriptions(songs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    found = []
    repeated = [_repeated(song[group]) for song in songs for group in GROUPS]
    found.append(("most of the tags of a description that repeat another", f"{max(repeated):.2f}"))
    for group in GROUPS:
        texts = [[song[group]["overall_text"], *_texts(song[group])] for song in songs]
        tags = [{(name, tag) for name, given in _tags(song[group]) for tag in given} for song in songs]
        found += [
            (
                f"most runs of three that two {group} descriptions share, all texts",
                f"{max(_best(map(_runs, texts))):.2f}",
            ),
            (
                f"{group}: overall texts of 50 characters with nine runs of ten in another",
                f"{_twins([_runs(one[:1]) for one in texts if len(one[0] or '') >= 50]):.1%}",
            ),
            (f"{group}: descriptions with nine tags of ten in another", f"{_twins(tags):.1%}"),
        ]
    return found


def _tags(described: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    dimensions = described["dimensions"].items()
    return [
        (name, [tag.strip().casefold() for tag in said["tags"]]) for name, said in dimensions if name != AUDIO_EFFECTS
    ]


def _texts(described: Mapping[str, Any]) -> list[str]:
    return [said["text"] for said in described["dimensions"].values()]


def _repeated(described: Mapping[str, Any]) -> float:
    tags = [tag for _, given in _tags(described) for tag in given]
    return 1 - len(set(tags)) / len(tags)


def _runs(texts: Sequence[str | None]) -> set[str]:
    plain = ["".join((text or "").split()) for text in texts]
    return {text[at : at + 3] for text in plain for at in range(len(text) - 2)}


def _best(sets: Any) -> list[float]:
    """Return for each set the largest share (Dice) that it has in common with another."""
    held = list(sets)
    best = [0.0] * len(held)
    for (a, one), (b, other) in itertools.combinations(enumerate(held), 2):
        share = 2 * len(one & other) / max(1, len(one) + len(other))
        best[a], best[b] = max(best[a], share), max(best[b], share)
    return best


def _twins(sets: Sequence[set[Any]]) -> float:
    return float(np.mean([share >= 0.9 for share in _best(sets)]))


if __name__ == "__main__":
    main()
