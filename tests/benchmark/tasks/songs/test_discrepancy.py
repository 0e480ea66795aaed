from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from music_evals.benchmark.records import read_records
from music_evals.benchmark.tasks.songs import discrepancy
from music_evals.benchmark.tasks.songs.discrepancy import DISCREPANCY, Settings, text_study
from music_evals.errors import (
    CorruptRecordsError,
    InvalidInputError,
    ModelUnavailableError,
    NoDataError,
    PairCountError,
    UnknownNameError,
)

pytest.importorskip("matplotlib")

GENRES = ["流行", "摇滚", "民谣"]


def row(number: int) -> dict[str, Any]:
    def dimensions(**tags: list[str]) -> dict[str, Any]:
        return {"overall_text": "", "dimensions": {name: {"tags": own, "text": None} for name, own in tags.items()}}

    return {
        "id": f"s{number:02}",
        "title": f"歌{number // 2}",  # two songs of one title: one cluster
        "artist": ["无名"],
        "professional": dimensions(
            musical_genres=[GENRES[number % 3]],
            tempo_rhythm=["慢速"] if number != 5 else [],
            emotional_impact_lyrics_melody=["悲伤"],
        ),
        "amateur": dimensions(perception_of_tempo=["慢速" if number % 3 else "快速"], emotional_impact_lyrics=["伤感"]),
    }


@pytest.fixture
def songs(tmp_path: Path) -> Path:
    path = tmp_path / "songs.jsonl"
    path.write_text("".join(json.dumps(row(n), ensure_ascii=False) + "\n" for n in range(12)), encoding="utf-8")
    return path


def settings(songs: Path, **options: Any) -> Settings:
    chosen = {"encoder": "char-ngrams", "by": "genre,emotion", "dimensions": "tempo,emotional_impact"}
    return Settings(out=songs.parent / "out", dataset=str(songs), **{**chosen, "n_permutations": 200, **options})


def test_files(songs: Path) -> None:
    outcome = DISCREPANCY.run(settings(songs))
    assert sorted(path.name for path in (songs.parent / "out").iterdir()) == [
        "cells.csv", "discrepancy.svg", "records", "report.html", "results.json", "table.md",
    ]  # fmt: skip
    results = json.loads(outcome.files["results"].read_text(encoding="utf-8"))
    assert results == outcome.results
    assert results["dataset"]["id"] == "songs.jsonl"
    assert (results["n_songs"], results["n_clusters"]) == (12, 6)
    assert results["settings"]["encoder"] == {"name": "char-ngrams", "revision": "1"}
    with outcome.files["cells"].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(results["cells"]) == 2 * (1 + 10 + 9)
    for written, cell in zip(rows, results["cells"], strict=True):
        assert {name: value or None for name, value in written.items()} == {
            name: None if value is None else str(value) for name, value in cell.items()
        }
    first = results["cells"][0]
    assert (first["group"], first["dimension"], first["n"], first["n_defined"]) == ("all", "tempo", 12, 11)
    # songs 0, 3, 6, 9 say fast against slow: one letter of two in common
    assert first["low"] < first["similarity"] < first["high"]


def test_what_a_reader_is_told(songs: Path) -> None:
    outcome = DISCREPANCY.run(settings(songs))
    notes = " ".join(outcome.results["notes"])
    assert "char-ngrams compares spelling and knows no meaning" in notes
    assert "left out: tempo 1" in notes
    assert "emotion: fewer than 10 songs in happy" in notes
    table = outcome.files["table"].read_text(encoding="utf-8")
    assert "| Rock |" in table
    assert "encoder char-ngrams at 1" in table
    assert all(note in table for note in outcome.results["notes"])
    text = text_study(outcome.scores)
    assert "by genre" in text
    assert "Rock" in text


@pytest.mark.slow
def test_the_picture_is_a_document_of_its_own_and_stable(songs: Path) -> None:
    first = DISCREPANCY.run(settings(songs)).files["plot"].read_text(encoding="utf-8")
    root = ET.fromstring(first)  # noqa: S314 (our own file)
    assert root.tag.endswith("svg")
    for text in ("By genre", "By emotion", "Tempo", "Emotional impact", "All songs", "n = 12", "char-ngrams"):
        assert text in first, text
    assert DISCREPANCY.run(settings(songs)).files["plot"].read_text(encoding="utf-8") == first
    one = DISCREPANCY.run(settings(songs, by="purpose", dimensions="audio_effects", overwrite=True)).files["plot"]
    assert "Audio effects" in one.read_text(encoding="utf-8")


def test_dots_are_not_joined_and_means_of_few_songs_are_hidden() -> None:
    from matplotlib.figure import Figure

    from music_evals.benchmark.tasks.songs.discrepancy_report import LEAST_SONGS, _draw_dimension
    from music_evals.pipelines.discrepancy import Cell

    axes = Figure().subplots()
    made = {"grouping": "genre", "group": "rock", "dimension": "tempo", "similarity": 0.5, "low": 0.4, "high": 0.6}
    known: dict[str, Any] = dict.fromkeys(Cell._fields, 0.01) | made
    cells = [Cell(**known | {"n": n, "n_defined": n}) for n in (12, LEAST_SONGS, LEAST_SONGS - 1, 0)]
    _draw_dimension(axes, cells, 0.25, "Tempo", {"color": "#332288", "marker": "o"})
    drawn = [(list(line.get_xdata()), line.get_linestyle()) for line in axes.lines]
    assert [0.25, 1.25] in [x for x, _ in drawn]
    assert all(style == "None" for _, style in drawn)
    assert max(max(x) for x, _ in drawn) == 1.25


@pytest.mark.slow
def test_the_picture_shows_all_dimensions(songs: Path) -> None:
    shown = DISCREPANCY.run(settings(songs, dimensions="tempo,audio_effects")).files["plot"].read_text(encoding="utf-8")
    assert "By genre, audio effects" in shown
    assert ", hidden" in shown


@pytest.mark.slow
def test_records_hold_every_similarity_and_are_taken_up(songs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = DISCREPANCY.run(settings(songs))
    header, *rows = read_records(first.files["records"])
    assert header["task"] == "discrepancy"
    scores = [row for row in rows if row["kind"] == "score"]
    assert len(scores) == 12 * 2
    assert [row["item"] for row in scores if row["value"] is None] == ["s05"]
    tempo = [row["value"] for row in scores if row["metric"] == "tempo" and row["value"] is not None]
    assert sum(tempo) / 11 == pytest.approx(first.results["cells"][0]["similarity"])
    monkeypatch.setattr(discrepancy, "facing_similarities", lambda *_: 1 / 0)  # nothing is compared again
    assert DISCREPANCY.run(settings(songs)).results == first.results
    other = DISCREPANCY.run(settings(songs, by="purpose")).results  # groupings may be others
    assert other["cells"][0]["similarity"] == first.results["cells"][0]["similarity"]
    with pytest.raises(CorruptRecordsError, match=r"options\.dimensions was"):
        DISCREPANCY.run(settings(songs, dimensions="tempo"))


@pytest.mark.slow
def test_the_page(songs: Path, read_page: Any) -> None:
    outcome = DISCREPANCY.run(settings(songs))
    page = outcome.files["report"].read_text(encoding="utf-8")
    parsed = read_page(page)
    text = " ".join(parsed.text)
    assert "http" not in page
    for shown in (
        "Professionals against amateurs: songs.jsonl",
        "By genre",
        "Rock",
        "char-ngrams",
        "Receipt",
        "n = 12",
    ):
        assert shown in text, shown
    assert all(note in text for note in outcome.results["notes"])
    without = DISCREPANCY.run(settings(songs, plot=False))
    assert "plot" not in without.files
    assert "<svg" not in without.files["report"].read_text(encoding="utf-8")
    assert "report" not in DISCREPANCY.run(settings(songs, report=False)).files


def test_no_picture_joined_texts_and_a_cache(songs: Path) -> None:
    outcome = DISCREPANCY.run(settings(songs, plot=False, level="joined", cache=songs.parent / "cache", limit=4))
    assert "plot" not in outcome.files
    assert outcome.results["n_songs"] == 4
    assert outcome.results["settings"]["level"] == "joined"
    assert {path.suffix for path in (songs.parent / "cache").glob("??/*")} == {".entry"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": "genre,emotions"}, UnknownNameError, "did you mean emotion"),
        ({"by": " , "}, InvalidInputError, "`by` is empty"),
        ({"dimensions": "tempos"}, UnknownNameError, "did you mean tempo"),
        ({"level": "tagz"}, UnknownNameError, "did you mean tags"),
        ({"n_permutations": 0}, InvalidInputError, "`n_permutations`"),
        ({"limit": 0}, InvalidInputError, "`limit`"),
        # said before the encoder is looked for, which is not there
        ({"aggregation": "best", "encoder": "./nothing"}, UnknownNameError, "did you mean best_match"),
        ({"aggregation": "f1", "normalize_by_self": True, "encoder": "./nothing"}, InvalidInputError, "goes with"),
        ({"level": "joined", "aggregation": "f1", "encoder": "./nothing"}, InvalidInputError, "leave aggregation"),
        ({"seed": -1}, InvalidInputError, "`seed`"),
        ({"confidence": 95}, InvalidInputError, "`confidence`"),
        ({"encoder": "./nothing"}, ModelUnavailableError, "no such folder"),
        ({"config": "demo"}, InvalidInputError, "file"),
        ({"dataset": "nothing.jsonl"}, NoDataError, "nothing.jsonl"),
        ({"dataset": "caimdd"}, UnknownNameError, "unknown dataset"),
    ],
)
def test_settings_that_are_wrong(songs: Path, options: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"out": songs.parent / "out", "dataset": str(songs), "encoder": "char-ngrams", **options}
    with pytest.raises(error, match=message):
        DISCREPANCY.run(Settings(**given))


def test_rows_that_are_wrong(songs: Path, tmp_path: Path) -> None:
    lines = songs.read_text(encoding="utf-8").splitlines()
    twice = tmp_path / "twice.jsonl"
    twice.write_text("\n".join([lines[0], lines[0]]), encoding="utf-8")
    with pytest.raises(PairCountError, match="s00"):
        DISCREPANCY.run(settings(twice))
    lonely = tmp_path / "lonely.jsonl"
    lonely.write_text(json.dumps({"id": "a", "professional": row(0)["professional"]}), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="amateur"):
        DISCREPANCY.run(settings(lonely))
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="`out`"):
        DISCREPANCY.run(Settings(out=tmp_path / "file" / "out", dataset=str(songs), encoder="char-ngrams", plot=False))
