"""Speed of the lyric score, beside the authors' code, and what it gives on true and on foreign lyrics.

    python benchmarks/lyric_structure/run.py                          # about a minute
    python benchmarks/lyric_structure/run.py --authors glrc_obj_eval.py   # theirs in the same run, a few minutes

``--authors`` names ``gen_eval/glrc_obj_eval.py`` of github.com/CarlWangChina/MuChin, which is not part of this
repository. Songs are read from ``--songs``, a file in the form of `caimd`; without one, the lyrics of our golden file
stand in, multiplied by shuffling their lines. Writes results.csv, and the tables of README.md.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import logging
import os
import platform
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = ROOT.parent / "shared" / "data" / "muchin"
GOLDEN = ROOT / "tests" / "golden" / "lyric_official.json"
METHODS = ("char", "line", "official")
GOALS = {"ours, char": 1000, "ours, official": 400}
N_SHUFFLED = 400


class Song(NamedTuple):
    """Lyrics, their pattern, and the marks of the data where there are any."""

    words: str
    pattern: str
    sections: tuple[tuple[tuple[str, ...], tuple[bool, ...]], ...]


class Row(NamedTuple):
    """A row of results.csv."""

    table: str
    quantity: str
    value: float | int | str
    unit: str = ""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--songs", type=Path, default=DATA / "dev.jsonl", help="songs as JSON lines")
    parser.add_argument("--examples", type=Path, default=DATA / "lyric_score_examples.jsonl", help="scored examples")
    parser.add_argument("--authors", type=Path, help="the authors' glrc_obj_eval.py")
    parser.add_argument("--repeats", type=int, default=3, help="passes, of which the fastest counts (default: 3)")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    real = options.songs.is_file()
    songs = read_songs(options.songs) if real else shuffled_songs()
    source = f"songs of {options.songs.name}" if real else "our golden lyrics, lines shuffled"
    rows = [
        *measure_speed(songs, options.authors, options.repeats, source),
        measure_last_words(songs, options.repeats),
        *count_parity(options.examples),
        *measure_levels(songs, source),
        *(measure_rhymes(songs) if real else []),
        *receipt(),
    ]
    write(rows)


def read_songs(path: Path) -> list[Song]:
    """Return the songs of a file in the form of `caimd`."""
    from music_evals.annotations import sections_of_rows, sections_text

    songs = []
    for line in path.read_text(encoding="utf-8").splitlines():
        rows = json.loads(line)["structure"]
        marks = tuple((tuple(row["lines"]), tuple("R" in each for each in row["rhyme"])) for row in rows)
        words, pattern = (sections_text(sections_of_rows(rows, field)) for field in ("lines", "rhyme"))
        songs.append(Song(words, pattern, marks))
    return songs


def shuffled_songs(n: int = N_SHUFFLED, seed: int = 0) -> list[Song]:
    """Return `n` songs of 40 lines each out of the lines of the golden lyrics."""
    from music_evals.lyrics.patterns import mark_lyrics, split_sections

    texts = [case["generated"] for case in json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]]
    lines = sorted(
        {line for text in texts for part in split_sections(text).sections for line in part.body.splitlines()}
    )
    usable = [line for line in lines if re.fullmatch(r"[\u4e00-\u9fff]+( [\u4e00-\u9fff]+)*", line)]
    rng = random.Random(seed)
    songs = []
    for _ in range(n):
        labels = [rng.choice(["verse", "chorus", "bridge"]) for _ in range(10)]
        words = "\n".join(row for label in labels for row in (f"({label})", *rng.sample(usable, 4)))
        songs.append(Song(words, mark_lyrics(words).text, ()))
    return songs


def measure_speed(songs: Sequence[Song], authors: Path | None, repeats: int, source: str) -> list[Row]:
    """Score each song against its own pattern and against the next one's; all ways take turns, on one core."""
    from music_evals.pipelines.lyrics import lyric_structure

    pairs = [(song.words, other.pattern) for shift in (0, 1) for song, other in _shifted(songs, shift)]
    ways: dict[str, Callable[[str, str], float]] = {
        f"ours, {method}": lambda words, pattern, method=method: lyric_structure(pattern, words, rhyme=method).total
        for method in METHODS
    }
    rows = [Row("speed", "lyrics", len(pairs), source)]
    for name, way in ways.items():  # tables are loaded once
        start = time.process_time()
        way(*pairs[0])
        rows.append(
            Row("speed", f"first call, {name.removeprefix('ours, ')}", round(time.process_time() - start, 2), "s")
        )
    if authors is not None:
        ways |= load_authors(authors)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    totals: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, way in ways.items():
            start = time.process_time()  # the machine may be shared
            totals[name] = [way(*pair) for pair in pairs]
            seconds[name].append(time.process_time() - start)
    speeds = {name: len(pairs) / min(each) for name, each in seconds.items()}
    rows += [Row("speed", name, round(speed, 1), "lyrics a processor second") for name, speed in speeds.items()]
    for theirs in [name for name in ways if name.startswith("authors")]:
        rows += [
            Row("speed", f"{ours} / {theirs}", round(speeds[ours] / speeds[theirs], 1), "times")
            for ours in ("ours, char", "ours, official")
        ]
        same = sum(a == b for a, b in zip(totals["ours, official"], totals[theirs], strict=True))
        rows.append(Row("parity", f"totals equal to the last bit, {theirs}", f"{same} of {len(pairs)}", "this run"))
    return rows


def measure_last_words(songs: Sequence[Song], repeats: int) -> Row:
    """Time the cutting off of the last word, which is written anew, beside jieba, which it must agree with."""
    import jieba

    from music_evals.lyrics.last_words import load_last_words
    from music_evals.lyrics.rhyme import last_character

    jieba.setLogLevel(logging.ERROR)
    find = load_last_words().of_text
    lines = [line for song in songs for line in song.words.split("\n") if last_character(line) >= 0]
    ends = [line[: last_character(line) + 1] for line in lines]
    ways: tuple[Callable[[], object], ...] = (
        lambda: [find(end) for end in ends],
        lambda: [jieba.lcut(end)[-1] for end in ends],
    )
    if ways[0]() != ways[1]():
        sys.exit("last words, ours / jieba: they differ")
    ours, theirs = (min(_seconds(way) for _ in range(repeats)) for way in ways)
    return Row("speed", "last words, ours / jieba", round(theirs / ours, 1), "times")


def _seconds(way: Callable[[], object]) -> float:
    start = time.process_time()
    way()
    return time.process_time() - start


def load_authors(path: Path) -> dict[str, Callable[[str, str], float]]:
    """Return the authors' scoring as published, and with its HTML page left out."""
    spec = importlib.util.spec_from_file_location("glrc_obj_eval", path)
    if spec is None or spec.loader is None:
        sys.exit(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    module.jieba.setLogLevel(logging.ERROR)
    published = module.HtmlDiff

    class NoPage:
        def __init__(self, **_: Any) -> None: ...

        def make_file(self, **_: Any) -> str:
            return ""

    def scored(page: type, words: str, pattern: str) -> float:
        module.HtmlDiff = page
        return module.scoring(words, pattern)[0]

    ways = {"authors, no HTML": NoPage, "authors, as published": published}
    made = {name: lambda words, pattern, page=page: scored(page, words, pattern) for name, page in ways.items()}
    made["authors, no HTML"]("(verse)\n天", "(verse)\nc")  # loads jieba's dictionary
    return made


def count_parity(examples: Path) -> list[Row]:
    """Compare every component with the stored values of the authors' code."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
    stored = [(case["generated"], case["reference"], case["accumulate_song"], case.get("scores")) for case in golden]
    rows = [Row("parity", "golden cases, every component to 1e-12", _parity(stored), "tests/golden")]
    if examples.is_file():
        cases = [json.loads(line) for line in examples.read_text(encoding="utf-8").splitlines()]
        stored = [(case["generated"], case["structure"], case["am_p1sr"], _own_names(case["scores"])) for case in cases]
        rows.append(Row("parity", "reference examples, every component to 1e-12", _parity(stored), examples.name))
    return rows


def _own_names(scores: dict[str, Any]) -> dict[str, Any] | None:
    names = {
        "extra": "reward", "p1ws_sr": "song_ratio", "cumulative": "cumulative_ratio", "wcm_amr": "word_ratio",
        "ttrc_sr": "rhyme_ratio", "r_ratio": "rhyme_share", "pll_rc": "parallel_rhymes", "rc_ino": "expected_rhymes",
        "rc_ing": "found_rhymes", "max_equ_slc_sum": "compared_lines", "matched2s_lcsum": "matched_lines",
        "o_snc_s": "expected_codes", "g_snc_s": "found_codes", "g_msstr": "pattern",
    }  # fmt: skip
    return None if "error" in scores else {names.get(name, name): value for name, value in scores.items()}


def _parity(cases: Sequence[tuple[str, str, bool, dict[str, Any] | None]]) -> str:
    """Return how many cases agree; one that the authors' code stops at must raise the named error."""
    from music_evals.errors import InvalidLyricsError
    from music_evals.pipelines.lyrics import lyric_structure

    same = 0
    for words, pattern, accumulate, scores in cases:
        try:
            score = lyric_structure(pattern, words, accumulate_song=accumulate, strict=scores is None)
        except InvalidLyricsError:
            same += scores is None
            continue
        found = {name: getattr(score, name, None) for name in scores or ()} | {"pattern": score.generated.text}
        same += scores is not None and all(_equal(found[name], value) for name, value in scores.items())
    return f"{same} of {len(cases)}"


def _equal(found: Any, value: Any) -> bool:
    return "".join(found) == value if isinstance(value, str) else abs(found - value) <= 1e-12


def measure_levels(songs: Sequence[Song], source: str) -> list[Row]:
    """Score true lyrics, and the next song's, by rhyme method and variant."""
    from music_evals.metrics.catalogue import LYRIC_SCORES
    from music_evals.pipelines.lyrics import lyric_structure, scores_of

    settings: dict[str, dict[str, Any]] = {f"official, rhyme {method}": {"rhyme": method} for method in METHODS}
    settings |= {
        "official, rhyme char, no autojunk": {"rhyme": "char", "autojunk": False},
        "paper, rhyme char": {"rhyme": "char", "variant": "paper"},
    }
    rows = []
    for setting, chosen in settings.items():
        for shift, whose in ((0, "true lyrics"), (1, "next song's")):
            found = [
                list(scores_of(lyric_structure(other.pattern, song.words, **chosen)).values())
                for song, other in _shifted(songs, shift)
            ]
            means = np.mean(found, axis=0)
            rows += [
                Row("levels", f"{whose}; {setting}; {name}", round(float(mean), 2), source)
                for name, mean in zip(LYRIC_SCORES, means, strict=True)
            ]
    return rows


def measure_rhymes(songs: Sequence[Song]) -> list[Row]:
    """Compare found rhymes with the marks of the data, over all lines."""
    from music_evals.lyrics.rhyme import rhyme_class, rhyme_marks
    from music_evals.pipelines.lyrics import rhyme_agreement

    sections = [section for song in songs for section in song.sections]
    wanted = [mark for _, marks in sections for mark in marks]
    classes = {method: [rhyme_class(line, method) for lines, _ in sections for line in lines] for method in METHODS}
    rows = [Row("rhymes", "lines", len(wanted)), Row("rhymes", "lines marked", sum(wanted))]
    for method in METHODS:
        agreement = rhyme_agreement(wanted, [mark for lines, _ in sections for mark in rhyme_marks(lines, method)])
        rows += [Row("rhymes", f"{method}, {name}", f"{value:.4f}") for name, value in agreement._asdict().items()]
        differ = sum(a != b for a, b in zip(classes[method], classes["official"], strict=True))
        rows.append(Row("rhymes", f"{method}, class differs from official", differ, "lines"))
    return rows


def _shifted(songs: Sequence[Song], shift: int) -> list[tuple[Song, Song]]:
    return [(song, songs[(index + shift) % len(songs)]) for index, song in enumerate(songs)]


def receipt() -> list[Row]:
    """Return hardware and versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    packages = ("jieba", "pypinyin", "pypinyin-dict", "numpy", "music_evals")
    return [
        Row("receipt", "cpu", models[0] if models else platform.machine(), "one core"),
        Row("receipt", "load average", f"{os.getloadavg()[0]:.1f}", "processes"),
        Row("receipt", "python", platform.python_version()),
        *(Row("receipt", package, version(package)) for package in packages),
    ]


def write(rows: Sequence[Row]) -> None:
    """Write results.csv and the tables of README.md, and print them."""
    with (HERE / "results.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([Row._fields, *rows])
    page = (HERE / "README.md").read_text(encoding="utf-8")
    tables = {"speed": _speed_table(rows), "levels": _level_table(rows), "rhymes": _rhyme_table(rows)}
    for marker, text in tables.items():
        pattern = rf"(?<=<!-- {marker} -->\n).*?(?=<!-- /{marker} -->)"
        if not re.search(pattern, page, re.DOTALL):
            sys.exit(f"README.md has no place for {marker}")
        page = re.sub(pattern, lambda _, text=text: text, page, flags=re.DOTALL)
    (HERE / "README.md").write_text(page, encoding="utf-8")
    print("\n".join(tables.values()))


def _table(head: Sequence[str], body: Sequence[Sequence[object]]) -> str:
    rows = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def _speed_table(rows: Sequence[Row]) -> str:
    chosen = [row for row in rows if row.table in {"speed", "parity", "receipt"}]
    return _table(
        ("quantity", "value", "unit", "goal"),
        [(row.quantity, row.value, row.unit, GOALS.get(row.quantity, "")) for row in chosen],
    )


def _level_table(rows: Sequence[Row]) -> str:
    found: dict[tuple[str, str], dict[str, object]] = {}
    for row in rows:
        if row.table == "levels":
            whose, setting, name = row.quantity.split("; ")
            found.setdefault((whose, setting), {})[name.removeprefix("lyric_")] = f"{row.value:.2f}"
    names = list(next(iter(found.values())))
    head = ("lyrics", "setting", *("total" if name == "structure" else name for name in names))
    return _table(head, [(*key, *values.values()) for key, values in sorted(found.items(), reverse=True)])


def _rhyme_table(rows: Sequence[Row]) -> str:
    found: dict[str, list[object]] = {}
    for row in rows:
        method, comma, _ = row.quantity.partition(", ")
        if row.table == "rhymes" and comma:
            found.setdefault(method, []).append(row.value)
    if not found:
        return "No songs with marks were at hand.\n"
    lines, marked = (row.value for row in rows if row.table == "rhymes" and ", " not in row.quantity)
    head = ("method", "precision", "recall", "F1", "lines whose class differs from official")
    return _table(head, [(method, *values) for method, values in found.items()]) + (
        f"\n{lines} lines, {marked} of them marked as rhyming.\n"
    )


if __name__ == "__main__":
    main()
