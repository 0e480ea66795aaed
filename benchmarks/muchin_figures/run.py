"""MuChin's figures 12 to 14 and 16 of songs at hand: structures, tags, and published scores over sizes.

    python -m benchmarks.muchin_figures.run     # demo songs, and MuChin's development songs
    python -m benchmarks.muchin_figures.run --songs FOLDER_OR_FILE --out FOLDER  # a build or an export of your own

Only counts are written: structures as letters, tags that at least `LEAST` songs have, no title and no line of a song.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.drawing import INK, ORANGE, plt, save
from benchmarks.musib.tables import Row, fill, write_csv

from music_evals.annotations import DIMENSIONS
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.published import read_published
from music_evals.benchmark.tasks.songs.songs import COLUMNS, Song, read_songs
from music_evals.files import write_atomically
from music_evals.lyrics.tag_groups import fold_tag
from music_evals.pipelines.discrepancy import FACING, common_tags

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEMO = ROOT / "datasets_scripts" / "caimd"
DEV = ROOT.parent / "shared" / "data" / "muchin" / "dev.jsonl"  # third-party songs, never in the repository

LETTERS: Final = {
    "intro": "i", "verse": "v", "pre-chorus": "p", "chorus": "c", "bridge": "b", "interlude": "n", "ending": "e",
}  # fmt: skip
"""Kind of section -> its letter; the paper's six, and ``n`` for interludes."""
LEAST: Final = 3
"""Songs that have a structure or a tag before it is named."""
SHOWN: Final = 10
COUNTS = ("data", "what", "name", "songs", "share")


def structure_letters(song: Song) -> str:
    """Return the sections of a song in order, a letter each: ``"vvccvcccc"``."""
    return "".join(LETTERS[section.kind] for section in song.pattern)


def tag_counts(songs: Iterable[Song], group: str, dimension: str) -> Counter[str]:
    """Return in how many songs each tag of a dimension stands."""
    return Counter(tag for song in songs for tag in {fold_tag(tag) for tag in song.tags[group].get(dimension, ())})


def count_rows(data: str, songs: Sequence[Song]) -> Iterator[Row]:
    """Yield rows of counts.csv: structures, tags of each group and dimension, and songs with a tag in common."""
    counts = {"structure": Counter(map(structure_letters, songs))}
    for group, dimensions in DIMENSIONS.items():
        counts |= {f"{group}/{dimension}": tag_counts(songs, group, dimension) for dimension in dimensions}
    for what, counted in counts.items():
        for name, n in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN]:
            if n >= LEAST:
                yield {"data": data, "what": what, "name": name, "songs": n, "share": n / len(songs)}
    shared = [common_tags(song.tags) for song in songs]
    for name, facing in FACING.items():
        n = sum(bool(tags[name]) for tags in shared)
        yield {"data": data, "what": "common", "name": facing.english, "songs": n, "share": n / len(songs)}


def draw_bars(rows: Sequence[Row], what: Sequence[str], path: Path) -> None:
    """Draw the counts of some kinds, a panel each."""
    columns = 1 if len(what) == 1 else 3
    lines = -(-len(what) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(3.4 * columns, 2.8 * lines), squeeze=False)
    for panel in grid.flat[len(what) :]:
        panel.set_visible(False)
    for panel, kind in zip(grid.flat, what, strict=False):
        shown = [row for row in rows if row["what"] == kind][::-1]
        panel.barh([row["name"] for row in shown], [100 * row["share"] for row in shown], color=INK)
        panel.set_title(kind.rpartition("/")[2].replace("_", " "))
        panel.set_xlabel("% of songs")
    with warnings.catch_warnings(
        action="ignore", category=UserWarning
    ):  # glyphs: text stays text, whoever reads has them
        figure.tight_layout()
        save(figure, path)


def draw_sizes(path: Path) -> list[Row]:
    """Draw published scores over parameters and hours (figure 16), and return what was drawn."""
    points: list[Row] = []
    for table, scores in (
        ("muchin_table1", ("lyric_structure",)),
        ("muchin_table2", ("professional_average", "amateur_average")),
    ):
        sizes, means = (read_published(name).means for name in (f"{table}_sizes", table))
        for system, size in sizes.items():
            points += [
                {"table": table, "system": system, "score": score, "mean": means[system][score], **size}
                for score in scores
            ]
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.2))
    panes = (
        ("lyric_structure", "parameters", "billions of parameters"),
        ("average", "parameters", "millions of parameters"),
        ("average", "hours_high", "hours of training audio, the most that is printed"),
    )
    for panel, (score, over, label) in zip(panels, panes, strict=True):
        for point in points:
            if point["score"].endswith(score):
                panel.plot(point[over], point["mean"], "o", color=ORANGE if "amateur" in point["score"] else INK)
                place = (point[over], point["mean"])
                panel.annotate(point["system"], place, fontsize=6, xytext=(3, 3), textcoords="offset points")
        panel.set(xscale="log", xlabel=label, ylabel="score" if score == "lyric_structure" else "similarity of tags")
    figure.tight_layout()
    save(figure, path)
    return points


def claims(points: Sequence[Row]) -> str:
    """Return what the paper says of size, beside its own numbers, as a table."""
    scores = {(point["system"], point["score"]): point["mean"] for point in points}
    lyric = {system: mean for (system, score), mean in scores.items() if score == "lyric_structure"}
    untuned = sorted(
        (point["parameters"], lyric[point["system"]])
        for point in points
        if point["system"] in lyric and "tuned" not in point["system"]
    )
    grows = all(low[1] < high[1] for low, high in itertools.pairwise(untuned))
    parts = read_published("muchin_table1").means["Qwen 14B base"]
    added = sum(value for name, value in parts.items() if name != "lyric_structure")
    best_tuned = max(lyric, key=lambda system: lyric[system])
    smaller = [scores["MERT 95M", f"{group}_average"] - scores["MERT 330M", f"{group}_average"] for group in DIMENSIONS]
    as_printed = "yes" if grows else "no"
    mended = "no" if added > lyric["Baichuan-2 53B"] else "yes"
    size = f"{as_printed}, as printed; {mended} with the sum of Qwen's six parts, {added:.2f}, for its printed total"
    fewer = f"by {smaller[0]:+.4f} (professional) and {smaller[1]:+.4f} (amateur); n, for an interval, is not printed"
    rows = [
        ("Claim of the paper", "In its own numbers"),
        ("---", "---"),
        ("lyrics: the score grows with size", size),
        ("lyrics: tuning helps most", f"{best_tuned} is first with {lyric[best_tuned]:.2f}; one model was tuned"),
        ("tags: MERT 95M is above MERT 330M", fewer),
    ]
    return markdown_rows(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Count, draw, and write table, pictures and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--songs", help="a folder or a file of songs in CaiMD's columns, or a name on the Hub")
    parser.add_argument("--config", help="of the data set")
    parser.add_argument("--out", type=Path, default=HERE, help="default: this folder")
    options = parser.parse_args(arguments)
    places = {"demo": (str(DEMO), "demo")} | ({"muchin_dev": (str(DEV), None)} if DEV.is_file() else {})
    if options.songs:
        places = {Path(options.songs).stem: (options.songs, options.config)}
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for data, (place, config) in places.items():
        songs = read_songs(place, config, columns=COLUMNS).songs
        counted = list(count_rows(data, songs))
        rows += counted
        if data != "demo":
            draw_bars(counted, ["structure"], options.out / f"{data}_structures.svg")
            for group, dimensions in DIMENSIONS.items():
                draw_bars(counted, [f"{group}/{name}" for name in dimensions], options.out / f"{data}_{group}.svg")
    write_csv(options.out / "counts.csv", COUNTS, rows)
    points = draw_sizes(options.out / "sizes.svg")
    page = options.out / "README.md"
    if page.exists():
        sections = {"common": common_table(rows), "claims": claims(points)}
        write_atomically(page, fill(page.read_text(encoding="utf-8"), sections).encode())


def common_table(rows: Sequence[Row]) -> str:
    """Return how many songs have a tag in common, for each dimension and set of songs."""
    data = list(dict.fromkeys(row["data"] for row in rows))
    lines = [["Dimension", *data], ["---", *["---"] * len(data)]]
    for facing in FACING.values():
        cells = {row["data"]: row for row in rows if (row["what"], row["name"]) == ("common", facing.english)}
        lines.append([facing.english, *(f"{cells[one]['songs']} ({100 * cells[one]['share']:.0f} %)" for one in data)])
    return markdown_rows(lines)


if __name__ == "__main__":
    main()
