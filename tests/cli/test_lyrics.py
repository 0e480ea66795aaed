from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from tests.benchmark.record_files import damage

from music_evals import cli

POEM = "(verse)\n床前明月光\n疑是地上霜"


@pytest.fixture
def small(songs_file: Path, tmp_path: Path) -> list[str]:
    """Arguments of a small run."""
    return [
        "lyrics", "--dataset", str(songs_file), "--rhyme", "char", "--resamples", "20", "--no-report",
        "--out", str(tmp_path / "out"),
    ]  # fmt: skip


def write(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run what must be refused as wrong usage, and return the message."""
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("music-evals: error: ")
    assert "Traceback" not in err
    return err


def test_the_controls_alone_end_with_the_tables(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.remove("--no-report")
    assert cli.main([*small, "--published"]) == 0
    out, err = capsys.readouterr()
    for words in (
        "(true lyrics)",
        "(another song)",
        "(shuffled structure)",
        "(echo)",
        "(one character)",
        "Lyrics, published",
        "50.06",
    ):
        assert words in out, words
    assert out.splitlines()[-1].startswith(f"{tmp_path / 'out'}: records, results.json, table.md, report.html")
    assert "text" in err  # the progress bar


def test_json_is_all_that_stdout_gets(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = write(tmp_path / "mine.jsonl", *({"id": f"s{number}", "text": POEM} for number in range(1, 5)))
    options = ["--predictions", f"x={mine}", "--no-controls", "--limit", "2", "--no-normalise", "--json"]
    assert cli.main([*small, *options]) == 0
    out, err = capsys.readouterr()
    results = json.loads(out)
    assert results == json.loads((tmp_path / "out" / "results.json").read_text())
    assert "text" in err  # the progress bar
    assert list(results["systems"]) == ["x"]
    assert results["options"]["normalise"] is False
    assert results["scores"]["x"]["lyric_structure"]["n"] == 2


def test_failed_texts_are_listed(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": "s1", "text": POEM}, {"id": "s2", "text": "no header"}]
    mine = write(tmp_path / "mine.jsonl", *rows)
    assert cli.main([*small, "--predictions", mine, "--limit", "2", "--strict"]) == 1
    out, err = capsys.readouterr()
    assert "1 failed:" in err
    assert "s2 (mine): InvalidLyricsError" in err
    assert "n 1/2, 1 failed" in out
    assert "without --strict" in err
    assert cli.main([*small, "--predictions", mine, "--limit", "2", "--overwrite"]) == 0  # it scores 0
    assert "mine: 1 text scored 0: no section header was found; with --strict" in capsys.readouterr().out


def test_failures_come_before_the_tables(small: list[str], tmp_path: Path) -> None:
    mine = write(tmp_path / "mine.jsonl", {"id": "s1", "text": POEM})
    with (tmp_path / "both").open("w") as both, contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        assert cli.main([*small, "--predictions", mine]) == 1
    told = (tmp_path / "both").read_text()
    assert told.index("3 failed:") < told.index("\nLyrics\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no predictions"),
        ("[1]", "line 1 holds a list"),
        ("{", "line 1 is not JSON"),
        ("[" * 100_000, "line 1 is not JSON"),
        ('{"id": "s1"}', "got NoneType in place of the text"),
        ('{"id": "s1", "text": 3}', "got int in place of the text"),
        ('{"id": 1, "text": "x"}', "expected {"),
        ('{"id": "s1", "text": "x", "seed": 1.5}', "expected {"),
        ('{"id": "s1", "text": "x", "seed": 99999999999999999999}', "a seed must be"),
        ('{"id": "s1", "text": "x", "system": " "}', "systems need different names"),
        ('{"id": "s1", "text": "x", "system": "true lyrics"}', "none of them true lyrics"),
        ('{"id": "sx", "text": "x"}', "1 ids are not songs of songs.jsonl: sx; its ids are like s1, s2"),
        ('{"id": "s1", "text": "\\ud800"}', "line 1 is not JSON"),
        ('{"id": "s1", "text": "x"}\n{"id": "s1", "text": "y"}', "line 2: a second prediction for 's1'"),
    ],
)
def test_predictions_that_are_none(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(content, encoding="utf-8")
    assert message in refused([*small, "--predictions", str(path)], capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--dataset", "nowhere"], "looked up in ./datasets_scripts"),
        (["--dataset", "nowhere.jsonl"], "no such file"),
        (["--config", "demo"], "neither configs nor revisions"),
        (["--predictions", "/nowhere.jsonl"], "no such file"),
        (["--predictions", "=x"], "--predictions takes PATH or NAME=PATH"),
        (["--manifest", "list.csv"], "give one of --dataset"),
        (["--generated", "x"], "--reference and --generated go together"),
        (["--variant", "paperr"], "did you mean paper"),
        (["--rhyme", "lines"], "did you mean line"),
        (["--section-match", "x"], "way to match sections"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--limit", "0"], "--limit must be at least 1"),
        (["--out", ""], "--out is empty"),
        (["--no-controls"], "nothing to score"),
    ],
)
def test_wrong_names_and_options_are_usage_errors(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    assert message in refused([*small, *change], capsys)
    assert not (tmp_path / "out").exists()


def test_lyrics_without_a_header_in_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, text in (("r", "(verse)\nccccc\ncccc"), ("g", "床前明月光")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(text, encoding="utf-8")
    (tmp_path / "g" / "b.txt").write_bytes(b"\xff\xfe")
    arguments = [
        "lyrics", "--reference", str(tmp_path / "r"), "--generated", str(tmp_path / "g"), "--rhyme", "char",
        "--no-report", "--resamples", "20", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    assert cli.main(arguments) == 1
    out, err = capsys.readouterr()
    assert "b (g): PairCountError: no pattern for 'b'" in err
    assert "the lyrics have no section header" in out
    assert "0.000" in out


def test_an_unwritable_folder_and_damaged_records(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "records").touch()
    assert cli.main(small) == 1
    assert "cannot write" in capsys.readouterr().err
    (tmp_path / "out" / "records").unlink()
    assert cli.main(small) == 0
    damage(tmp_path / "out" / "records")
    assert cli.main(small) == 1
    assert "is damaged" in capsys.readouterr().err
    assert cli.main([*small, "--overwrite"]) == 0


def test_the_format_of_the_texts_is_found_or_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("opencc", reason="the normaliser turns traditional characters with opencc")
    (tmp_path / "pattern.txt").write_text("(verse)\nccccR\nccccR", encoding="utf-8")
    (tmp_path / "song.txt").write_text("[verse]\n[00:01.00]床前明月光\n[00:05.00]疑是地上霜", encoding="utf-8")
    files = ["--reference", str(tmp_path / "pattern.txt"), "--generated", str(tmp_path / "song.txt"), "--rhyme", "char"]
    for name in ("auto", "lrc"):
        out = tmp_path / name
        assert cli.main(["lyrics", *files, "--format", name, "--out", str(out), "--json"]) == 0
        results = json.loads(capsys.readouterr().out)
        assert results["scores"]["song"]["lyric_structure_corrected"]["value"] == 100.0
        assert "song: read in the formats lrc (1 text)" in results["wording"]["on_remarks"]
    assert cli.main(["lyrics", *files, "--format", "suno", "--out", str(tmp_path / "suno")]) == 1
    assert "expected lyrics in the format 'suno', these are 'lrc'" in capsys.readouterr().err
    assert cli.main(["lyrics", *files, "--format", "sunno", "--out", str(tmp_path / "wrong")]) == 2
    assert cli.main(["lyrics", *files, "--format", "lrc", "--no-normalise", "--out", str(tmp_path / "raw")]) == 2
