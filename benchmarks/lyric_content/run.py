"""What the content scores of lyrics see: true lyrics, controls, and known damage.

    python -m benchmarks.lyric_content.run                                  # about a minute; themes by spelling
    python -m benchmarks.lyric_content.run --encoder BAAI/bge-large-zh-v1.5   # where its weights are

Songs are read from ``--songs``, a file in the form of `caimd`; without one the demo songs of the package stand in, and
the tables say so. Writes results.csv, and the tables of README.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.lyric_structure import damage
from music_evals.annotations import sections_of_rows, sections_text, theme_of_row
from music_evals.benchmark.songs.text_controls import on_one_character
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.lyrics.embeddings import CHAR_NGRAMS, load_encoder
from music_evals.pipelines.lyric_content import evaluate_diversity, evaluate_themes

HERE = Path(__file__).resolve().parent
SONGS = HERE.parents[2] / "shared" / "data" / "muchin" / "dev.jsonl"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


class Song(NamedTuple):
    """Lyrics, their pattern, and what they are about."""

    words: str
    pattern: str
    theme: str


class Row(NamedTuple):
    """A row of results.csv."""

    score: str
    lyrics: str
    value: float
    beside: float
    """Share in the corpus' range; of themes the similarity to those of other songs."""
    n: int


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--songs", type=Path, default=SONGS, help="songs as JSON lines")
    parser.add_argument("--encoder", default=CHAR_NGRAMS, help="of themes (default: char-ngrams, which knows spelling)")
    parser.add_argument("--seed", type=int, default=0, help="of the damage (default: 0)")
    options = parser.parse_args()
    songs = read_songs(options.songs)
    source = f"{len(songs)} songs of {options.songs.name}" if options.songs.is_file() else "the demo songs of caimd"
    rows = [*diversities(songs, options.seed), *themes(songs, options.encoder, options.seed)]
    write(rows, source, options.encoder)


def read_songs(path: Path) -> list[Song]:
    """Return the songs of a file, or those of the demo where it is missing."""
    found = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else demo_rows()
    )
    return [Song(_text(row, "lines"), _text(row, "rhyme"), theme_of_row(row) or "") for row in found]


def _text(row: dict[str, Any], field: str) -> str:
    return sections_text(sections_of_rows(row["structure"], field))


def on_one_line(text: damage.Text, _: random.Random) -> damage.Text:
    """Sing the first line of each section in all of its places."""
    return [(label, [lines[0]] * len(lines) if lines else []) for label, lines in text]


def in_a_loop(text: damage.Text, _: random.Random) -> damage.Text:
    """Sing the first two lines of each section over and over."""
    return [(label, [lines[place % 2] for place in range(len(lines))]) for label, lines in text]


def stammered(text: damage.Text, _: random.Random) -> damage.Text:
    """Say the first two characters of a line again until it is full."""
    return [(label, [(line[:2] * len(line))[: len(line)] for line in lines]) for label, lines in text]


def scrambled(text: damage.Text, rng: random.Random) -> damage.Text:
    """Put all characters of the song in another order."""
    pool = [char for _, lines in text for line in lines for char in line if char != " "]
    rng.shuffle(pool)
    return [
        (label, ["".join(" " if char == " " else pool.pop() for char in line) for line in lines])
        for label, lines in text
    ]


DAMAGE: dict[str, Callable[[damage.Text, random.Random], damage.Text]] = {
    "two lines of each section in a loop": in_a_loop,
    "one line of each section in all places": on_one_line,
    "two characters of each line over and over": stammered,
    "all characters of the song in another order": scrambled,
}


def diversities(songs: Sequence[Song], seed: int) -> list[Row]:
    """Score true lyrics, controls and damage against the corpus itself."""
    true = [song.words for song in songs]
    made = {
        "true lyrics": true,
        "the next song's": [*true[1:], true[0]],
        "one character in all places": [on_one_character(song.pattern) for song in songs],
    }
    for name, step in DAMAGE.items():
        rng = random.Random(f"{seed} {name}")
        made[name] = [damage.written(step(damage.read(words), rng)) for words in true]
    rows = []
    for name, texts in made.items():
        found = evaluate_diversity(true, texts)
        inside, n = found["lyric_diversity_in_range"], found["lyric_diversity_n_defined"]
        rows.append(Row("lyric_diversity", name, found["lyric_diversity"], inside, n))
        rows.append(Row("lyric_line_repetition", name, found["lyric_line_repetition"], float("nan"), n))
    low, high = found["lyric_diversity_range"]
    return [
        *rows,
        Row("range of the corpus", "5th percentile", low, np.nan, n),
        Row("range of the corpus", "95th percentile", high, np.nan, n),
    ]


def themes(songs: Sequence[Song], encoder: str, seed: int) -> list[Row]:
    """Score lyrics in which a share of the sections is another song's."""
    told = [song for song in songs if song.theme.strip()]
    loaded = load_encoder(encoder)
    rows = []
    for share in SHARES:
        rng = random.Random(seed)
        texts = []
        for place, song in enumerate(told):
            own, other = damage.read(song.words), damage.read(told[(place + 1) % len(told)].words)
            chosen = set(rng.sample(range(len(own)), round(share * len(own))))
            mixed = [other[at % len(other)] if at in chosen else section for at, section in enumerate(own)]
            texts.append(damage.written(mixed))
        found = evaluate_themes([song.theme for song in told], texts, encoder=loaded)
        name = f"{100 * share:.0f} % of the sections are the next song's"
        rows.append(
            Row(
                "lyric_theme_similarity",
                name,
                found["lyric_theme_similarity"],
                found["lyric_theme_similarity_other"],
                len(told),
            )
        )
    return rows


def write(rows: Sequence[Row], source: str, encoder: str) -> None:
    """Write results.csv and the tables of README.md, and print them."""
    with (HERE / "results.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [Row._fields, *((*row[:2], f"{row.value:.6f}", f"{row.beside:.6f}", row.n) for row in rows)]
        )
    found = {(row.score, row.lyrics): row for row in rows}
    low, high = (row.value for row in rows if row.score == "range of the corpus")
    body = [
        f"| {name} | {row.value:.3f} | {row.beside:.2f} | {found['lyric_line_repetition', name].value:.3f} |\n"
        for (score, name), row in found.items()
        if score == "lyric_diversity"
    ]
    head = f"| lyrics, {source} | `lyric_diversity` | share within {low:.3f} to {high:.3f} | lines that repeat |\n"
    near = [row for row in rows if row.score == "lyric_theme_similarity"]
    told = "".join(
        f"| {row.lyrics} | {row.value:.4f} | {row.beside:.4f} | {row.value - row.beside:+.4f} |\n" for row in near
    )
    about = f"| lyrics, {near[0].n} themes, encoder `{encoder}` | own theme | themes of other songs | difference |\n"
    tables = {
        "diversity": f"{head}| --- | --- | --- | --- |\n{''.join(body)}",
        "themes": f"{about}| --- | --- | --- | --- |\n{told}",
    }
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    for marker, table in tables.items():
        before, start, rest = text.partition(f"<!-- {marker} -->\n")
        _, end, after = rest.partition(f"<!-- /{marker} -->")
        text = f"{before}{start}{table}{end}{after}"
    page.write_text(text, encoding="utf-8")
    print("\n".join(tables.values()))


if __name__ == "__main__":
    main()
