"""The verb ``edit``, and its manifest in the hands of ``preserve --intended``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.editing.house import triads
from tests.writing import Server, completion

from music_evals.benchmark.records import read_records
from music_evals.benchmark.tasks.edits.work import read_parameters
from music_evals.cli import main
from music_evals.errors import InvalidInputError
from music_evals.symbolic.files import save_midi


@pytest.mark.slow
def test_edits_are_judged_without_the_facets_that_were_meant(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Transposed scores: harmony and melody move, all else stays, and the mean over the rest says so."""
    edited = tmp_path / "edited"
    midi = [str(root / "examples" / "midi" / f"song_{name}.mid") for name in ("rock", "waltz")]
    asked = ["--instruction", "Up a third.", "--intended", "harmony,melody"]
    assert main(["edit", *midi, "--system", "transposition", "--set", "semitones=4", *asked, "--out", str(edited)]) == 0
    assert "2 of 2 edited by transposition" in capsys.readouterr().out
    judge = ["preserve", "--manifest", str(edited / "manifest.jsonl"), "--no-report", "--engine", "serial"]
    assert main([*judge, "--intended", "melody, harmony", "--out", str(tmp_path / "a")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "over all but harmony and melody, which the edits were meant to change" in said
    facets = json.loads((tmp_path / "a" / "results.json").read_text())["facets"]
    cells, others = facets["scores"]["transposition"], facets["others"]
    assert others["intended"] == ["harmony", "melody"]
    assert others["facets"] == ["rhythm", "structure"]
    mean = (cells["rhythm"]["value"] + cells["structure"]["value"]) / 2
    assert others["scores"]["transposition"]["value"] == pytest.approx(mean)
    assert others["scores"]["transposition"]["value"] > cells["harmony"]["value"] + 0.2
    assert "All but harmony and melody" in (tmp_path / "a" / "table.md").read_text()
    assert main([*judge, "--out", str(tmp_path / "a")]) == 0  # nothing is judged again
    plain = json.loads((tmp_path / "a" / "results.json").read_text())["facets"]
    assert plain == {key: value for key, value in facets.items() if key != "others"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--intended", "tune"], "unknown facet 'tune'"),
        (["--intended", "harmony,rhythm,structure,melody"], "names all facets"),
        (["--intended", "melody", "--no-controls"], "needs the two controls"),
    ],
)
def test_facets_that_cannot_be_left_out(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preserve", "--manifest", "x.csv", "--out", str(tmp_path), *options]) == 2
    assert words in capsys.readouterr().err


def test_failures_are_listed_and_json_is_json(tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    song = str(root / "examples" / "originals" / "song_rock.ogg")
    assert main(["edit", song, "--system", "reorchestration", "--out", str(tmp_path / "a"), "--json"]) == 1
    shown = capsys.readouterr()
    assert "edits a score, and the source is a recording" in shown.err
    assert json.loads(shown.out)[0]["error"].startswith("UnsupportedEditError")


def test_wrong_use_ends_with_2(tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    songs = str(root / "examples" / "originals")
    for wrong in ([songs, "--system", "equalizer"], ["--system", "identity", "--bars", "x"], ["--system", "identity"]):
        assert main(["edit", *wrong, "--out", str(tmp_path / "out")]) == 2
    assert "equaliser" in capsys.readouterr().err


def test_parameters_are_numbers_truths_or_texts() -> None:
    assert read_parameters(["a=3", "b=0.5", "c=true", "d=cpu"]) == {"a": 3, "b": 0.5, "c": True, "d": "cpu"}
    for wrong in (["a"], ["=3"], ["a="], [" = "], ["a=[1]"], ["a=1", "a=2"]):
        with pytest.raises(InvalidInputError, match=r"NAME=VALUE|a number, true|twice"):
            read_parameters(wrong)


@pytest.mark.parametrize("value", ["abc", "nan", "NaN", "Infinity", "-1e999", "true", "null", '"3"', "25"])
def test_a_value_of_another_type_or_out_of_range_is_one_line_and_code_2(
    value: str, tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    song = str(root / "examples" / "originals" / "song_rock.ogg")
    command = ["edit", song, "--system", "transposition", "--set", f"semitones={value}", "--out", str(tmp_path / "a")]
    assert main(command) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert "semitones" in line
    assert not any(word in line for word in ("TypeError", "'<='"))
    assert not (tmp_path / "a").exists()


def test_a_language_model_writes_instructions(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"before": "rock", "after": "jazz", "instruction": "Turn the rock into jazz."}
    server = Server()
    server.answers((200, completion(json.dumps(answer))))
    monkeypatch.setenv("KEY_OF_A_TEST", "abc123")
    song = str(root / "examples" / "originals" / "song_rock.ogg")
    command = ["edit", song, "--system", "identity", "--source-prompt", "a rock song", "--generate", "genre"]
    asked = ["--instruction-model", "lab/poet", "--instruction-endpoint", server.url]
    try:
        assert main([*command, *asked, "--api-key-env", "KEY_OF_A_TEST", "--out", str(tmp_path / "a")]) == 0
    finally:
        server.close()
    assert [request["key"] for request in server.requests] == ["Bearer abc123"]
    row = json.loads((tmp_path / "a" / "manifest.jsonl").read_text())
    assert (row["id"], row["instruction"]) == ("song_rock-genre", "Turn the rock into jazz.")
    assert not any(b"abc123" in path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file())
    capsys.readouterr()
    assert main([*command, *asked[2:], "--out", str(tmp_path / "b")]) == 2
    assert "go with --instruction-model" in capsys.readouterr().err


def test_options_may_have_the_name_of_the_system_in_front(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line of ``benchmark musecpbench`` may be copied; what it says of weights is what --weights says."""
    song = tmp_path / "a.mid"
    save_midi(triads(), song)
    command = ["edit", str(song), "--system", "transposition", "--out", str(tmp_path / "a")]
    assert main([*command, "--set", "transposition.semitones=3"]) == 0
    assert read_records(tmp_path / "a" / "edit_records")[0]["system"]["parameters"]["semitones"] == 3
    for wrong, words in {
        "effects.semitones=3": "unknown editing system 'effects'",
        "transposition.weights=x": "needs no weights",
        "transposition.tones=3": "did you mean semitones",
    }.items():
        assert main([*command, "--set", wrong]) == 2
        assert words in capsys.readouterr().err
    command = ["edit", str(song), "--system", "zeta", "--out", str(tmp_path / "b")]
    assert main([*command, "--set", "weights=x", "--weights", "y"]) == 2
    assert "given twice" in capsys.readouterr().err
    assert main([*command, "--device", "cpu"]) == 2
    assert "go with --weights" in capsys.readouterr().err
