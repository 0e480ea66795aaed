"""From runs to records, and what can be shown of their items."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tests.leaderboard.toy_records import A, cell_of, row_of, tables_of

from music_evals.benchmark.load import LoadedResults
from music_evals.benchmark.records import rows_in_memory
from music_evals.benchmark.tasks.songs.lyrics import LYRICS, Settings
from music_evals.benchmark.tasks.songs.songs import load_songs
from music_evals.errors import (
    ChangedResultsError,
    FileTooLargeError,
    InvalidInputError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.leaderboard import add_to_board, build_leaderboard, read_board
from music_evals.leaderboard import details as leaderboard_details
from music_evals.leaderboard.board import DetailReader
from music_evals.leaderboard.details import details_of_run
from music_evals.leaderboard.records import read_run, records_of_run
from music_evals.metrics.catalogue import AUXILIARY, PRESERVATION_METRICS


@pytest.fixture(scope="module")
def lyrics_run(songs_of_all: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems of lyrics, one with the words of the songs and one with half of them; none writes to it."""
    folder = tmp_path_factory.mktemp("lyrics_run")
    files = []
    for name, share in (("words", 1.0), ("half", 0.5)):
        rows = []
        for song in load_songs(str(songs_of_all)):
            lines = song.words_text().splitlines()
            text = "\n".join(lines[: max(2, round(len(lines) * share))])
            rows.append(json.dumps({"id": song.id, "text": text}, ensure_ascii=False))
        (folder / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
        files.append(f"{name}={folder / name}.jsonl")
    options: dict[str, Any] = {"predictions": files, "rhyme": "char", "n_resamples": 50, "report": False, "seed": 1}
    LYRICS.run(Settings(folder / "out", str(songs_of_all), **options))
    return folder / "out"


def test_lyrics_from_end_to_end(lyrics_run: Path, tmp_path: Path) -> None:
    board = tmp_path / "board"
    added = add_to_board(lyrics_run, board, submitter="me", source="https://example.org", date="2026-11-20")
    assert added.n_known == 0
    assert {(row.submitter, row.date, row.source) for row in added.new} == {("me", "2026-11-20", "https://example.org")}
    assert add_to_board(lyrics_run, board).new == ()
    leaderboard = build_leaderboard(board)
    table = next(table for table in leaderboard["tables"] if table["settings"]["dataset"] == "songs.jsonl")
    results = json.loads((lyrics_run / "results.json").read_text())
    assert table["settings"]["option rhyme"] == "char"
    assert "version of jieba" in table["settings"]
    for system, cells in results["scores"].items():
        for metric, cell in cells.items():
            assert cell_of(table, system, metric)["value"] == pytest.approx(cell["value"])
    assert row_of(table, "true lyrics")["why"] == "a control"
    assert table["headline"] == table["columns"][0]["id"] == "lyric_structure_gated"
    assert json.loads(json.dumps(leaderboard)) == leaderboard
    assert len(table["settings"]["references"]) == 16


def test_explanations_are_behind_the_scores(lyrics_run: Path, tmp_path: Path) -> None:
    new = add_to_board(lyrics_run, tmp_path / "board", systems=["half"]).new
    assert {row.system for row in new} == {"half"}
    reader = DetailReader(tmp_path / "board")
    found = reader.content(new[0].run, new[0].items[0], "half", "explanation")
    assert found is not None
    assert found["lines"]
    assert reader.content(new[0].run, new[0].items[0], "words", "explanation") is None
    bare = add_to_board(lyrics_run, tmp_path / "bare", details=False).new
    assert DetailReader(tmp_path / "bare").get(bare[0].run, bare[0].items[0], "half", "explanation") is None


def test_inpainting_from_end_to_end(inpainting_run_of_all: Path, tmp_path: Path) -> None:
    add_to_board(inpainting_run_of_all, tmp_path / "board")
    records = read_board(tmp_path / "board")
    (table,) = tables_of(*records)
    results = json.loads((inpainting_run_of_all / "results.json").read_text())
    for system, cells in results["tables"]["all"]["scores"].items():
        for metric, cell in cells.items():
            assert cell_of(table, system, metric)["value"] == cell["value"]
    # the tests of the run itself are made with the same items, clusters and statistics
    ours = {(test["column"], test["a"], test["b"]): test for test in table["tests"]}
    compared = 0
    for system, cells in results["tables"]["all"]["scores"].items():
        for metric, cell in cells.items():
            test = cell.get("test")
            made = ours.get((metric, system, test["against"])) if test else None
            if made:
                compared += 1
                assert made["difference"] == pytest.approx(test["difference"])
                assert made["n"] == test["n"]
                if not metric.endswith("divergence"):  # these are drawn with another number of resamples
                    assert made["p_value"] == pytest.approx(test["p_value"])
    assert compared > 5
    record_of = {(row.system, row.metric): row for row in records}
    one = record_of["markov", "groove_divergence"]
    assert (one.kind, len(one.values[0]), len(one.reference_values)) == ("divergence", 2, 70)
    # what stands beside the ranking metric is shown and has no rank of its own
    beside = record_of["markov", "interval_divergence"], record_of["markov", "repeated_note_rate"]
    assert [(row.kind, row.direction, len(row.values)) for row in beside] == [
        ("divergence", "lower", 70), ("mean", "none", 70),
    ]  # fmt: skip
    assert beside[0].unranked == "an item has many intervals, which the record does not hold"
    assert beside[1].unranked == "a rate, which is compared with the reference's own"
    assert cell_of(table, "markov", "note_f1")["why"] == ""
    reader = DetailReader(tmp_path / "board")
    assert len(reader.content(one.run, one.items[0], "", "context")["tokens"]) == 384
    assert len(reader.content(one.run, one.items[0], "markov", "middle")["tokens"]) == 96


@pytest.mark.slow
def test_edits_from_end_to_end(write_files: Any, stub_judge: Any, tmp_path: Path) -> None:
    from music_evals.benchmark.tasks.preservation.task import PRESERVATION, Settings

    originals = write_files("r", {f"{name}.wav": str(number) for number, name in enumerate("abcd")})
    good = write_files("good", {f"{name}.wav": f"{number}.25" for number, name in enumerate("abcd")})
    lacking = write_files("lacking", {f"{name}.wav": f"{number}.5" for number, name in enumerate("abc")})
    options: dict[str, Any] = {"companions": "all", "n_resamples": 20, "engine": "serial", "report": False}
    options["backends"] = {"beats": "librosa", "f0": "harmonic_sum", "melody": "from_f0"}
    options |= {"reference": originals, "estimates": (f"good={good}", f"lacking={lacking}")}
    settings = Settings(tmp_path / "out", **options)
    results = PRESERVATION.run(settings, scorer=stub_judge(settings.measures.scores)).results
    new = add_to_board(tmp_path / "out", tmp_path / "board", media=[good]).new
    found = {(row.system, row.metric): row for row in read_board(tmp_path / "board")}
    for system, cells in results["scores"].items():
        for metric, cell in cells.items():
            assert found[system, metric].value == cell["value"]
    one = found["good", "beat_f_measure"]
    assert (one.items, one.unranked) == (("a", "b", "c", "d"), "")
    assert one.extractors["beats"]["backend"] == "librosa"
    assert "chords" not in one.extractors
    assert "definition" not in found["good", "ssm_correlation"].extractors  # 1, as in records older than the number
    assert one.extractors["definition"] == 3
    assert results["definitions"] == {
        name: metric.definition
        for name, metric in {**PRESERVATION_METRICS, **AUXILIARY}.items()
        if metric.definition > 1
    }
    assert found["lacking", "beat_f_measure"].unranked == "1 results failed"
    companions = {row.unranked for row in found.values() if row.system == "good" and row.metric in AUXILIARY}
    assert companions == {"a companion of the metrics"}
    reader = DetailReader(tmp_path / "board")
    pair = reader.content(new[0].run, "a", "good", "pair")
    assert pair is not None
    assert pair["remarks"] == ["short"]  # what the worker says of 0.25
    sound = reader.get(new[0].run, pair["estimate"]["content"], "", "audio")
    assert sound is not None
    assert sound.media == b"0.25"
    assert reader.get(new[0].run, pair["reference"]["content"], "", "audio") is None  # not in the folder that was given
    outline = reader.content(new[0].run, pair["reference"]["content"], "", "outline")
    assert outline is not None
    assert outline["beats"] == [0.5, 1.0, 1.5]


@pytest.fixture(scope="module")
def read_inpainting(inpainting_run_of_all: Path) -> LoadedResults:
    return read_run(inpainting_run_of_all)


@pytest.fixture
def loaded(read_inpainting: LoadedResults) -> LoadedResults:
    """The run of inpainting, read once; its results are the test's own."""
    return dataclasses.replace(read_inpainting, results=copy.deepcopy(read_inpainting.results))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"options": {"limit": 3}}, "only the first 3 items were judged"),
        ({"failures": [{"item": "i", "system": "copy_past", "metric": None, "error": "x"}]}, "1 results failed"),
        ({"failures": [{"item": "i", "system": None, "metric": None, "error": "x"}]}, "1 results failed"),
    ],
)
def test_what_does_not_deserve_a_rank(loaded: LoadedResults, change: dict[str, Any], why: str) -> None:
    run = loaded
    run.results.update(change)
    found = {row.system: row.unranked for row in records_of_run(run)}
    assert found["copy_past"] == why
    assert found["reference"] == "a control"


def test_kinds_of_edit_and_leaking_systems_have_no_rank(loaded: LoadedResults) -> None:
    run = loaded
    run.results["systems"]["copy_past"]["role"] = "leaking"
    found = {row.system: row.unranked for row in records_of_run(run)}
    assert found["copy_past"] == "it has seen the reference"
    run.results["dataset"]["id"] = "/somewhere/known_edits"
    assert {row.unranked for row in records_of_run(run) if row.system == "markov"} == {
        "a kind of edit, by which metrics are judged"
    }


def test_a_run_without_kernels_has_the_ids_that_it_always_had(loaded: LoadedResults) -> None:
    run = loaded
    ids = {}
    for kernels in (None, ["not recorded"], ["SkylakeX"]):
        run.results["kernels"] = kernels
        ids[str(kernels)] = [row.id for row in records_of_run(run)]
    assert ids["None"] == ids["['not recorded']"] != ids["['SkylakeX']"]


def test_no_folder_of_a_machine_goes_to_a_board(loaded: LoadedResults, tmp_path: Path) -> None:
    for row in records_of_run(loaded):
        assert row.dataset == "tiny"
        assert str(tmp_path.parent.parent) not in json.dumps(dataclasses.asdict(row))


def test_wrong_results(preservation_run: Path, tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"results.json is not there"):
        read_run(tmp_path / "nothing")
    run = read_run(preservation_run)
    with pytest.raises(UnknownNameError, match="unknown system of these results"):
        records_of_run(run, systems=["no such one"])
    with pytest.raises(InvalidInputError, match="a date such as"):
        records_of_run(run, date="yesterday")
    run.results["systems"]["x" * 201] = run.results["systems"]["up"]
    with pytest.raises(InvalidInputError, match="1 to 200 characters"):
        records_of_run(run)
    path = preservation_run / "results.json"
    path.write_text(path.read_text().replace('"variant": "corrected"', '"variant": "paper"'))
    with pytest.raises(ChangedResultsError, match=r"variant is 'paper' in results.json and 'corrected' in records"):
        read_run(preservation_run)
    path.write_text("{")
    with pytest.raises(UnreadableFileError, match="no JSON"):
        read_run(preservation_run)


def test_a_changed_score_gets_on_no_board(inpainting_run: Path, tmp_path: Path) -> None:
    path = inpainting_run / "results.json"
    results = json.loads(path.read_text())
    results["tables"]["all"]["scores"]["copy_past"]["note_f1"]["value"] = 0.99
    path.write_text(json.dumps(results))
    with pytest.raises(ChangedResultsError, match=r"tables.all.scores.copy_past.note_f1.value is 0.99 in results.json"):
        add_to_board(inpainting_run, tmp_path / "board")
    assert not (tmp_path / "board").exists()


def test_recordings_go_in_by_their_hash(
    preservation_run_of_all: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from music_evals.locations import hash_file

    folder = tmp_path / "music"
    folder.mkdir()
    (folder / "a.wav").write_bytes(b"RIFF wanted")
    (folder / "b.wav").write_bytes(b"RIFF other")
    (folder / "c.txt").write_bytes(b"RIFF wanted")
    run = read_run(preservation_run_of_all)
    content = hash_file(folder / "a.wav")
    side = {"name": "a.wav", "content": content}
    heard = {"kind": "pair", "item": "x", "system": "up", "modality": "audio", "reference": side, "estimate": side}
    run = dataclasses.replace(run, records=rows_in_memory([*run.records, heard]))
    found = [row for row in details_of_run(run, [A], [folder]) if row.kind == "audio"]
    assert [(row.item, row.media) for row in found] == [(content, b"RIFF wanted")]
    monkeypatch.setattr(leaderboard_details, "MAX_MEDIA_BYTES", 3)
    with pytest.raises(FileTooLargeError):
        details_of_run(run, [A], [folder])
    with pytest.raises(NoDataError):
        details_of_run(run, [A], [tmp_path / "none"])
