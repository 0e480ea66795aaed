"""The three variants of the lyric score on true lyrics, on controls, and on known damage.

    python -m benchmarks.lyric_structure.variants          # about two minutes on one core

Songs are read from ``--songs``, a file in the form of `caimd`; without one the demo songs of the package stand in, and
the table says so. Every song is damaged once in each way, and once along a chain of ``--steps`` random losses, by one
seed. Writes variants.csv, and the tables of README.md and of the card of `lyric_structure`.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.lyric_structure.run import DATA, HERE, ROOT, Song, read_songs

from benchmarks.lyric_structure import damage
from music_evals.benchmark.tasks.songs.text_controls import on_one_character
from music_evals.metrics.lyric_structure import VARIANTS
from music_evals.pipelines.lyrics import lyric_structure

CARD = ROOT / "metrics" / "lyric_structure" / "README.md"
TRUE = "true lyrics"
NOT_A_RISE = 1e-9


class Row(NamedTuple):
    """A row of variants.csv."""

    table: str
    lyrics: str
    variant: str
    mean: float
    raised: float
    """Share of the songs, or of the steps, where the score is higher than before the damage; NaN of controls."""
    lowered: float
    n: int

    @property
    def shown(self) -> str:
        """The mean, and in brackets the share that was raised."""
        return f"{self.mean:.2f}" + ("" if np.isnan(self.raised) else f" ({percent(self.raised)})")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--songs", type=Path, default=DATA / "dev.jsonl", help="songs as JSON lines")
    parser.add_argument("--steps", type=int, default=12, help="steps of a chain (default: 12)")
    parser.add_argument("--seed", type=int, default=0, help="of the damage (default: 0)")
    options = parser.parse_args()
    real = options.songs.is_file()
    songs = read_songs(options.songs) if real else demo_songs()
    source = f"{len(songs)} songs of {options.songs.name}" if real else f"the {len(songs)} demo songs of caimd"
    rows = [*measure(songs, options.seed), *measure_chains(songs, options.steps, options.seed)]
    write(rows, source, options.steps)


def demo_songs() -> list[Song]:
    """Return the songs that come with the package."""
    from music_evals.annotations import sections_of_rows, sections_text
    from music_evals.datasets.caimd.demo import demo_rows

    rows = [row["structure"] for row in demo_rows()]
    fields = ("lines", "rhyme")
    return [Song(*(sections_text(sections_of_rows(structure, field)) for field in fields), ()) for structure in rows]


def score(pattern: str, words: str, variant: str) -> float:
    """Return the total, with rhymes by the single character."""
    return lyric_structure(pattern, words, variant=variant, rhyme="char", strict=False).total


def measure(songs: Sequence[Song], seed: int) -> Iterator[Row]:
    """Score controls and damaged lyrics under every variant."""
    made: dict[str, list[str]] = {
        TRUE: [song.words for song in songs],
        "the next song's": [songs[(place + 1) % len(songs)].words for place in range(len(songs))],
        "the pattern itself (echo)": [song.pattern for song in songs],
        "one character in all places": [on_one_character(song.pattern) for song in songs],
    }
    controls = tuple(made)
    for name, step in damage.LIKE_MODELS.items():
        rng = random.Random(f"{seed} {name}")
        made[name] = [damage.written(step(damage.read(song.words), rng)) for song in songs]
    for variant in VARIANTS:
        true = np.array([score(song.pattern, song.words, variant) for song in songs])
        for name, texts in made.items():
            found = np.array([score(song.pattern, text, variant) for song, text in zip(songs, texts, strict=True)])
            raised, lowered = float(np.mean(found > true + NOT_A_RISE)), float(np.mean(found < true - NOT_A_RISE))
            told = (np.nan, np.nan) if name in controls else (raised, lowered)
            yield Row("songs", name, variant, float(found.mean()), *told, len(songs))


def measure_chains(songs: Sequence[Song], steps: int, seed: int) -> Iterator[Row]:
    """Count the steps of random chains of losses that raise and that lower a score."""
    rng = random.Random(seed)
    chains = [damage.chain(damage.read(song.words), steps, rng) for song in songs]
    for variant in VARIANTS:
        changes: dict[str, list[float]] = {"all": []}
        for song, found in zip(songs, chains, strict=True):
            text, before = song.words, score(song.pattern, song.words, variant)
            for name, damaged in found:
                if (after := damage.written(damaged)) == text:
                    continue  # there was nothing to damage
                text, now = after, score(song.pattern, after, variant)
                for key in ("all", name):
                    changes.setdefault(key, []).append(now - before)
                before = now
        for name, values in changes.items():
            column = np.array(values)
            raised, lowered = float(np.mean(column > NOT_A_RISE)), float(np.mean(column < -NOT_A_RISE))
            yield Row("steps", name, variant, float(column.mean()), raised, lowered, len(column))


def write(rows: Sequence[Row], source: str, steps: int) -> None:
    """Write variants.csv and the tables of README.md and of the card, and print them."""
    with (HERE / "variants.csv").open("w", newline="", encoding="utf-8") as file:
        lines = [(*row[:3], *(f"{value:.6g}" for value in row[3:6]), row.n) for row in rows]
        csv.writer(file, lineterminator="\n").writerows([Row._fields, *lines])
    tables = {"variants": song_table(rows, source), "chains": step_table(rows, steps)}
    for path in (HERE / "README.md", CARD):
        page = path.read_text(encoding="utf-8")
        for marker, text in tables.items():
            page = re.sub(
                rf"(?<=<!-- {marker} -->\n).*?(?=<!-- /{marker} -->)", lambda _, text=text: text, page, flags=re.DOTALL
            )
        path.write_text(page, encoding="utf-8")
    print("\n".join(tables.values()))


def by_lyrics(rows: Sequence[Row], table: str) -> Mapping[str, dict[str, Row]]:
    """Return name of the lyrics -> variant -> row."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.table == table:
            found.setdefault(row.lyrics, {})[row.variant] = row
    return found


def song_table(rows: Sequence[Row], source: str) -> str:
    """Return means, and in brackets the share of songs that the damage raised."""
    body = [
        [
            name,
            *(f"{row.mean:.2f}" + ("" if np.isnan(row.raised) else f" ({percent(row.raised)})") for row in of.values()),
        ]
        for name, of in by_lyrics(rows, "songs").items()
    ]
    return markdown([f"lyrics, {source}", *(f"`{variant}`" for variant in VARIANTS)], body)


def step_table(rows: Sequence[Row], steps: int) -> str:
    """Return the shares of steps that raised and lowered a score."""
    body = [
        [name, next(iter(of.values())).n, *(f"{percent(row.raised)}, {percent(row.lowered)}" for row in of.values())]
        for name, of in by_lyrics(rows, "steps").items()
    ]
    head = [f"step, in chains of up to {steps}", "n", *(f"`{variant}`: raised, lowered" for variant in VARIANTS)]
    return markdown(head, body)


def percent(share: float) -> str:
    """Return a share in per cent with one decimal."""
    return f"{100 * share:.1f} %"


def markdown(head: Sequence[object], body: Sequence[Sequence[object]]) -> str:
    """Return a table."""
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (head, ["---"] * len(head), *body))


if __name__ == "__main__":
    main()
