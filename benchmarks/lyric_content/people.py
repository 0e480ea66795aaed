"""How many characters of lyrics stand in words: the range of people, and what falls out of it.

    python -m benchmarks.lyric_content.people          # about a minute on one core

Needs songs in the form of `caimd` (``--songs``); MuChin's are not part of this repository. They are halved by
performers: songs that share one, a title or their words are in one half. Ranges are the 1st and 99th percentile of the
half ``range``, which `music_evals.metrics.lyric_content` holds as constants; the songs of the half ``test`` had no part
in them. Writes people.csv and a table of README.md.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.tasks.songs import nonsense
from music_evals.benchmark.tasks.songs.songs import Song, load_songs
from music_evals.benchmark.tasks.songs.text_controls import on_one_character
from music_evals.errors import UndefinedMetricWarning
from music_evals.lyrics.words import cut_words
from music_evals.metrics.lyric_content import WORDS_OF_PEOPLE, line_repetition, lyric_diversity, outside, word_share
from music_evals.pipelines.lyric_content import lines_of

HERE = Path(__file__).resolve().parent
SONGS = HERE.parents[2] / "shared" / "data" / "muchin" / "dev.jsonl"
PERCENTILES = (1.0, 99.0)
LENGTHS = (20, 50, 100, 200)
"""Characters of the beginnings of songs that are scored as songs."""

Floats = npt.NDArray[np.float64]


class Row(NamedTuple):
    """A row of people.csv; what does not apply is NaN."""

    what: str
    half: str
    n: int
    low: float  # 1st percentile, median and 99th percentile
    median: float
    high: float
    auc: float  # against the true lyrics of this half, by the distance from the range
    outside: float  # share of lyrics outside of the range


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--songs", type=Path, default=SONGS, help="songs as JSON lines")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default: 0)")
    options = parser.parse_args()
    songs = load_songs(str(options.songs))
    rows = measure(songs, options.seed)
    write(rows, f"{len(songs)} songs of {options.songs.name}")


def halves(songs: Sequence[Song]) -> dict[str, list[Song]]:
    """Return the songs in two halves that share no performer, title with performer, or words."""
    leaders: dict[tuple[str, str], tuple[str, str]] = {}

    def leader(key: tuple[str, str]) -> tuple[str, str]:
        while leaders.setdefault(key, key) != key:
            key = leaders[key]
        return key

    for song in songs:
        for name in song.artist:
            leaders[leader(("artist", name.strip().casefold()))] = leader(("group", song.group))
    found: dict[str, list[Song]] = {"range": [], "test": []}
    for song in songs:
        drawn = hashlib.sha256("\0".join(leader(("group", song.group))).encode()).digest()[0]
        found["test" if drawn % 2 else "range"].append(song)
    return found


def true(song: Song, _: random.Random) -> str:
    """Return what people wrote."""
    return song.words_text()


def permuted(song: Song, rng: random.Random) -> str:
    """Return the characters of each line in another order."""

    def line(text: str) -> str:
        pool = rng.sample(found := text.replace(" ", ""), len(found))
        return "".join(" " if char == " " else pool.pop() for char in text)

    return "\n".join(each if each.startswith("(") else line(each) for each in song.words_text().splitlines())


def frequent(song: Song, rng: random.Random) -> str:
    """Return characters drawn from the song's own, as often as it has them."""
    pool = [char for section in song.words for line in section.lines for char in line if char != " "]
    return nonsense.filled(song.pattern_text(), lambda run: "".join(rng.choices(pool, k=len(run))))


LYRICS: Mapping[str, Callable[[Song, random.Random], str]] = {
    "true lyrics": true,
    "random characters that rhyme": lambda song, rng: nonsense.random_characters(song.pattern_text(), rng),
    "random characters of the song": frequent,
    "characters permuted within lines": permuted,
    "one character in all places": lambda song, _: on_one_character(song.pattern_text()),
    "random dictionary words that fit": lambda song, rng: nonsense.random_words(song.pattern_text(), rng),
    "shuffled true words": lambda song, rng: nonsense.shuffled_words(
        song.pattern_text(), [line for section in song.words for line in section.lines], rng
    ),
    "climbed": lambda song, rng: nonsense.climbed(song.pattern_text(), rng),
}


def share_of(text: str) -> float:
    """Return the share of the characters of lyrics that stand in words."""
    return word_share(cut_words(lines_of(text)))


def measure(songs: Sequence[Song], seed: int) -> list[Row]:
    """Return all rows."""
    warnings.simplefilter("ignore", UndefinedMetricWarning)
    found = halves(songs)
    rows = []
    for half, members in found.items():
        texts = [song.words_text() for song in members]
        for name, score in (("lyric_diversity", lyric_diversity), ("line repetition", line_repetition)):
            rows.append(_row(f"{name} of true lyrics", half, np.array([score(lines_of(text)) for text in texts])))
        people = np.array([share_of(text) for text in texts])
        for name, make in LYRICS.items():
            made = np.array([share_of(make(song, random.Random(f"{seed} {name} {song.id}"))) for song in members])
            rows.append(_row(name, half, made, people))
        for length in LENGTHS:
            begun = np.array([share_of(_beginning(song, length)) for song in members])
            rows.append(_row(f"the first {length} characters of true lyrics", half, begun, people))
    return rows


def auc(people: Floats, others: Floats) -> float:
    """Return the chance that other lyrics are farther from the range than people's; ties count half."""
    near, far = ([outside(share, WORDS_OF_PEOPLE) for share in side] for side in (people, others))
    higher = np.sign(np.subtract.outer(far, near))
    return float((higher.mean() + 1) / 2)


def _row(what: str, half: str, values: Floats, people: Floats | None = None) -> Row:
    low, high = np.nanpercentile(values, PERCENTILES)
    middle = float(np.nanmedian(values))
    if people is None:
        return Row(what, half, len(values), low, middle, high, np.nan, np.nan)
    out = float(np.mean([outside(share, WORDS_OF_PEOPLE) > 0 for share in values]))
    return Row(what, half, len(values), low, middle, high, auc(people, values), out)


def _beginning(song: Song, length: int) -> str:
    lines, count = [], 0
    for line in (line for section in song.words for line in section.lines):
        if count < length:
            lines.append(line)
        count += len(line.replace(" ", ""))
    return "\n".join(lines)


def write(rows: Sequence[Row], source: str) -> None:
    """Write people.csv and the table of README.md, and print it."""
    with (HERE / "people.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Row._fields)
        out.writerows([f"{value:.6f}" if isinstance(value, float) else value for value in row] for row in rows)
    text = table(rows, source)
    page = HERE / "README.md"
    before, start, rest = page.read_text(encoding="utf-8").partition("<!-- people -->\n")
    _, end, after = rest.partition("<!-- /people -->")
    page.write_text(f"{before}{start}{text}{end}{after}", encoding="utf-8")
    print(text)


def table(rows: Sequence[Row], source: str) -> str:
    """Return the rows in Markdown, both halves side by side."""
    known = {(row.what, row.half): row for row in rows}
    counts = {row.half: row.n for row in rows}
    spans = (f"1 %, median, 99 %: `range` ({counts['range']})", f"`test` ({counts['test']})")
    head = [source, *spans, "AUC, `range`", "AUC, `test`", "outside, `range`", "outside, `test`"]
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for what in dict.fromkeys(row.what for row in rows):
        pair = [known[what, half] for half in ("range", "test")]
        cells = [f"{row.low:.3f}, {row.median:.3f}, {row.high:.3f}" for row in pair]
        numbers = [*(row.auc for row in pair), *(row.outside for row in pair)]
        cells += ["" if np.isnan(value) else f"{value:.3f}" for value in numbers]
        lines.append(f"| {' | '.join([what, *cells])} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
