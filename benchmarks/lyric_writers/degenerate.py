"""Eighteen writers that write no song, beside the true lyrics, under every score of a run and the advice on them.

    python -m benchmarks.lyric_writers.degenerate      # a few minutes on one core

Songs are those of ``--songs``, a file in the form of `caimd`; without one the demo songs of the package stand in, and
the table says so. A run of ``lyrics`` scores the texts, with themes by spelling (`char-ngrams`), which the writers
that copy the theme climb as well. Writes degenerate.csv and a table of README.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.lyric_content.people import frequent, permuted

from music_evals.benchmark.tasks.songs import nonsense
from music_evals.benchmark.tasks.songs.lyrics import LYRICS, Settings
from music_evals.benchmark.tasks.songs.songs import Song, load_songs
from music_evals.benchmark.tasks.songs.text_controls import TRUE_LYRICS, on_one_character
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.lyrics.embeddings import CHAR_NGRAMS
from music_evals.lyrics.words import dictionary_words

HERE = Path(__file__).resolve().parent
SONGS = HERE.parents[2] / "shared" / "data" / "muchin" / "dev.jsonl"
POEM = "床前明月光疑是地上霜举头望明月低头思故乡春眠不觉晓处处闻啼鸟夜来风雨声花落知多少"
SCORES: Final = {
    "lyric_structure_corrected": "structure, corrected",
    "lyric_wordlikeness": "wordlikeness",
    "lyric_diversity": "diversity",
    "lyric_theme_similarity": "theme",
    "lyric_structure_gated": "structure, gated",
}
"""Scores of the table, with their headings."""

Writer = Callable[[Song, Song, random.Random], str]
"""From a song, another song and random numbers to a text."""


class Row(NamedTuple):
    """A row of degenerate.csv; a score that no text defines is None."""

    system: str
    n: int
    lyric_structure_corrected: float
    lyric_wordlikeness: float | None
    lyric_diversity: float | None
    lyric_theme_similarity: float | None
    lyric_structure_gated: float


def main() -> None:
    """Write, score, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--songs", type=Path, default=SONGS, help="songs as JSON lines")
    parser.add_argument("--limit", type=int, help="the first songs only (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default: 0)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = options.songs if options.songs.is_file() else demo_file(Path(folder) / "demo.jsonl")
        results = measure(given, Path(folder), seed=options.seed, limit=options.limit)
    rows = rows_of(results)
    source = options.songs.name if options.songs.is_file() else "the demo songs of caimd"
    write(rows, f"{rows[0].n} songs of {source}")


def demo_file(path: Path) -> Path:
    """Write the demo songs, which are our own."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in demo_rows()), encoding="utf-8")
    return path


def poured(pattern: str, words: str, *, rhyming: bool = False) -> str:
    """Pour the characters of a text into a pattern, over and over; each rhyming line may end on a rhyme."""
    chars = [char for char in words if "\u4e00" <= char <= "\u9fff"] or ["啦"]
    at = 0

    def fill(run: str) -> str:
        nonlocal at
        text = "".join(chars[(at + step) % len(chars)] for step in range(len(run)))
        at += len(run)
        return text[:-1] + nonsense.RHYMES[at % len(nonsense.RHYMES)] if rhyming and run[-1] == "R" else text

    return nonsense.filled(pattern, fill)


def of_one_line(pattern: str, rng: random.Random) -> str:
    """Sing the beginning of one line of words at random in all places."""
    line = nonsense.random_words("(verse)\n" + "c" * 40, rng).splitlines()[1]
    return nonsense.filled(pattern, lambda run: (line * (1 + len(run) // len(line)))[: len(run)])


def idioms(pattern: str, rng: random.Random) -> str:
    """Put words of four characters into all places, the last one of a line cut off."""
    known = [word for word in dictionary_words() if len(word) == 4]
    return nonsense.filled(pattern, lambda run: "".join(rng.choices(known, k=len(run)))[: len(run)])


def _lines(song: Song) -> list[str]:
    return [line for section in song.words for line in section.lines]


WRITERS: Mapping[str, Writer] = {
    "nothing": lambda song, _, rng: "",  # noqa: ARG005
    "the pattern": lambda song, _, rng: song.pattern_text(),  # noqa: ARG005
    "English": lambda song, _, rng: "".join(f"({each.label})\nbaby come back to me\n" for each in song.words),  # noqa: ARG005
    "one syllable": lambda song, _, rng: on_one_character(song.pattern_text()),  # noqa: ARG005
    "one word": lambda song, _, rng: poured(song.pattern_text(), rng.choice(dictionary_words())),
    "one line": lambda song, _, rng: of_one_line(song.pattern_text(), rng),
    "any characters": lambda song, _, rng: poured(
        song.pattern_text(), "".join(chr(rng.randrange(0x4E00, 0x9FA6)) for _ in range(2000))
    ),
    "rhyming characters": lambda song, _, rng: nonsense.random_characters(song.pattern_text(), rng),
    "characters of the song": lambda song, _, rng: frequent(song, rng),
    "permuted lines": lambda song, _, rng: permuted(song, rng),
    "dictionary words": lambda song, _, rng: nonsense.random_words(song.pattern_text(), rng),
    "idioms": lambda song, _, rng: idioms(song.pattern_text(), rng),
    "shuffled true words": lambda song, _, rng: nonsense.shuffled_words(song.pattern_text(), _lines(song), rng),
    "another song poured in": lambda song, other, rng: poured(song.pattern_text(), "".join(_lines(other))),  # noqa: ARG005
    "two poems poured in": lambda song, _, rng: poured(song.pattern_text(), POEM),  # noqa: ARG005
    "the theme poured in": lambda song, _, rng: poured(song.pattern_text(), song.theme),  # noqa: ARG005
    "the theme, rhyming": lambda song, _, rng: poured(song.pattern_text(), song.theme, rhyming=True),  # noqa: ARG005
    "a local search": lambda song, _, rng: nonsense.climbed(song.pattern_text(), rng),
}
"""Name -> writer; not one of them writes a song."""


def measure(songs: Path, folder: Path, *, seed: int = 0, limit: int | None = None) -> Mapping[str, Any]:
    """Return the results of a run over what all writers write for the songs."""
    known = load_songs(str(songs), limit=limit, columns=["structure"])
    for name, write_song in WRITERS.items():
        rows = []
        for place, song in enumerate(known):
            other = known[(place + 1) % len(known)]
            text = write_song(song, other, random.Random(f"{seed} {name} {song.id}"))
            rows.append({"id": song.id, "text": text, "system": name})
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    settings = Settings(
        out=folder / "run",
        dataset=str(songs),
        predictions=[f"{name}={folder / name}.jsonl" for name in WRITERS],
        limit=limit,
        theme_encoder=CHAR_NGRAMS,
        n_resamples=100,
        report=False,
    )
    return LYRICS.run(settings).results


def rows_of(results: Mapping[str, Any]) -> list[Row]:
    """Return the rows of the true lyrics and of the writers, in the order of the advice."""
    scores = results["scores"]
    found = [
        Row(system, scores[system][SCORE]["n"], *(scores[system][name]["value"] for name in Row._fields[2:]))
        for system in (TRUE_LYRICS, *WRITERS)
    ]
    return advised(found)


SCORE: Final = "lyric_structure_gated"


def advised(rows: Sequence[Row]) -> list[Row]:
    """Return rows in the order that the card of `lyric_wordlikeness` advises; those that are equal keep their order.

    By the gated structure, and where that is equal by the theme as far as the true lyrics reach: who is nearer to a
    theme than people are has copied it.
    """
    [true] = [row for row in rows if row.system == TRUE_LYRICS]
    return sorted(rows, key=lambda row: merit(row, true), reverse=True)


def merit(row: Row, true: Row) -> tuple[float, float]:
    """Return what a row is ordered by, higher first."""
    theme = -1.0 if row.lyric_theme_similarity is None else row.lyric_theme_similarity
    return row.lyric_structure_gated, min(theme, true.lyric_theme_similarity or -1.0)


def write(rows: Sequence[Row], source: str) -> None:
    """Write degenerate.csv and the table of README.md, and print it."""
    with (HERE / "degenerate.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Row._fields)
        out.writerows([round(value, 6) if isinstance(value, float) else value for value in row] for row in rows)
    text = table(rows, source)
    page = HERE / "README.md"
    before, start, rest = page.read_text(encoding="utf-8").partition("<!-- degenerate -->\n")
    _, end, after = rest.partition("\n<!-- /degenerate -->")
    page.write_text(f"{before}{start}{text}{end}{after}", encoding="utf-8")
    print(text)


def table(rows: Sequence[Row], source: str) -> str:
    """Return a row a system in Markdown, in the order of the advice."""
    lines = [f"| lyrics, {source} | {' | '.join(SCORES.values())} |", f"| --- |{' ---: |' * len(SCORES)}"]
    for row in rows:
        cells = [_cell(getattr(row, name), name) for name in SCORES]
        lines.append(f"| {row.system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None, name: str) -> str:
    return "n/a" if value is None else f"{value:.2f}" if name.startswith("lyric_structure") else f"{value:.3f}"


if __name__ == "__main__":
    main()
