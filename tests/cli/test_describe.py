from __future__ import annotations

import json
from pathlib import Path

import datasets
import pytest

from music_evals import cli
from music_evals.pipelines.description_input import description_of_row


@pytest.fixture
def small(songs_file: Path, tmp_path: Path) -> list[str]:
    """Arguments of a small run."""
    return [
        "describe", "--dataset", str(songs_file), "--encoder", "char-ngrams", "--resamples", "20", "--no-report",
        "--out", str(tmp_path / "out"),
    ]  # fmt: skip


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
    for words in ("(own tags)", "(another song)", "encoder char-ngrams", "Average, published", "not confirmed"):
        assert words in out, words
    assert out.splitlines()[-1].startswith(f"{tmp_path / 'out'}: records, results.json, table.md, report.html")
    assert "song" in err  # the progress bar


def test_json_and_failures(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"id": "s1", "amateur": {"song_purpose": ["sleep"]}}) + "\n")
    options = ["--predictions", f"x={path}", "--aggregation", "f1", "--json"]
    assert cli.main([*small, *options]) == 1
    out, err = capsys.readouterr()
    results = json.loads(out)
    assert results["variant"] == "f1"
    assert [row["item"] for row in results["failures"]] == ["s2", "s3", "s4"]
    assert "s2 (x): PairCountError: no prediction for 's2'" in err
    assert results["scores"]["x"]["amateur/song_purpose"]["n_defined"] == 1


def test_a_system_without_a_score_is_a_failure_that_says_why(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mute.jsonl"
    rows = [{"id": f"s{number}", "amateur": {"song_purpose": []}} for number in range(1, 5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert cli.main([*small, "--predictions", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "nothing at all is defined for mute; the notes tell why" in err
    assert "mute has no Amateur (nothing at all is defined): no generated tags in 10 of 10 dimensions" in out
    assert "--empty zero counts them as 0 (4 songs)" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no predictions"),
        ("{", "line 1 is not JSON"),
        ('{"id": "s1"}', "line 1: neither professional nor amateur"),
        ('{"id": "s1", "amateur": 3}', "amateur must be"),
        ('{"id": "s1", "amateur": {"song_purpose": "sleep"}}', "tags must be a list of strings"),
        ('{"id": "s1", "amateur": {"song_purpose": [null]}}', "tags must be strings"),
        ('{"id": "s1", "amateur": {"musical_genres": []}}', "unknown amateur dimension 'musical_genres'"),
        ('{"id": "s0", "amateur": {}}', "1 ids are not songs of songs.jsonl: s0"),
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
        (["--encoder", "char-ngram/none"], "char-ngram/none"),
        (["--encoder-revision", "main"], "no revisions"),
        (["--aggregation", "best"], "did you mean best_match"),
        (["--empty", "zeros"], "did you mean zero"),
        (["--model", "x"], "--model and --audio go together"),
        (["--dataset", "nowhere"], "looked up in ./datasets_scripts"),
        (["--limit", "0"], "--limit must be at least 1"),
    ],
)
def test_wrong_names_and_options_are_usage_errors(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    assert message in refused([*small, *change], capsys)
    assert not (tmp_path / "out").exists()


def test_songs_without_descriptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "songs.jsonl"
    path.write_text('{"id": "s1", "structure": []}\n')
    arguments = ["describe", "--dataset", str(path), "--encoder", "char-ngrams", "--out", str(tmp_path / "out")]
    assert "line 1: nothing in professional, amateur" in refused(arguments, capsys)


@pytest.mark.slow
def test_free_text_is_described_by_the_tags_that_are_found_in_it(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    songs = datasets.load_dataset(str(root / "datasets_scripts" / "caimd"), "demo", split="test")
    lines = []
    for song in songs:
        tags = [tag for names in description_of_row(song)["amateur"].values() for tag in names]
        lines.append(json.dumps({"id": song["id"], "text": "、".join(tags)}))
    (tmp_path / "captions.jsonl").write_text("\n".join(lines))
    command = ["describe", "--dataset", "caimd", "--config", "demo", "--encoder", "char-ngrams", "--no-report"]
    asked = [*command, "--predictions", f"captioner={tmp_path / 'captions.jsonl'}"]
    assert cli.main([*asked, "--out", str(tmp_path / "a")]) == 2
    assert "say how tags are found in it (--text-tags)" in capsys.readouterr().err
    assert cli.main([*asked, "--text-tags", "vocabulary", "--out", str(tmp_path / "b")]) == 0
    results = json.loads((tmp_path / "b" / "results.json").read_text())
    assert results["options"]["text_tags"] == "vocabulary"
    scores = results["scores"]
    assert scores["captioner"]["amateur_average"]["value"] > scores["another song"]["amateur_average"]["value"]
    assert cli.main([*asked, "--text-tags", "words", "--out", str(tmp_path / "c")]) == 2
    capsys.readouterr()
