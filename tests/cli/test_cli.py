from __future__ import annotations

import ast
import errno
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmark.record_files import damage
from tests.conformance.rules import text_of, tree_of

from music_evals import cli
from music_evals.annotations import Score, TimeSignature
from music_evals.cli.verbs import build_parser
from music_evals.protocols import INPAINTERS, load_plugin
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

VERBS = ("inpainting", "train", "frame")


def write_midi(path: Path, *, chords: bool = False, meter: tuple[int, int] | None = None) -> None:
    meters = () if meter is None else (TimeSignature(0, *meter),)
    onsets = np.repeat(np.arange(64), 1 + chords) * 480
    path.parent.mkdir(parents=True, exist_ok=True)
    save_midi(Score(make_notes(onsets, 480, np.tile([60, 64][: 1 + chords], 64)), 480, meters), path)


@pytest.fixture
def small(tiny_dataset: Path, tmp_path: Path) -> list[str]:
    """Arguments of a small run."""
    return [
        "inpainting", "--dataset", str(tiny_dataset), "--config", "musib", "--baselines", "copy_past",
        "--limit", "4", "--resamples", "20", "--no-report", "--out", str(tmp_path / "out"),
    ]  # fmt: skip


def test_a_run_ends_with_the_table_and_where_things_are(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.remove("--no-report")
    assert cli.main(small) == 0
    out, err = capsys.readouterr()
    assert "copy_past" in out
    assert "note F1 ↑" in out
    assert out.splitlines()[-1].startswith(f"{tmp_path / 'out'}: records, results.json, table.md, report.html")
    assert "chunk" in err  # the progress bar
    assert "chunk" not in out


def test_json_is_all_that_stdout_gets(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*small, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads((tmp_path / "out" / "results.json").read_text())
    assert "results: " in err


@pytest.mark.slow
def test_the_installed_command(small: list[str]) -> None:
    command = [str(Path(sys.executable).parent / "music-evals"), *small, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["tables"]["all"]["n_items"] == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--config", "musbi"], "did you mean musib"),
        (["--split", "tset"], "did you mean test"),
        (["--dataset", "jsb_choral"], "unknown dataset"),
        (["--model", "anticipation_rn"], "did you mean anticipation_rnn"),
        (["--baselines", "copy_pats"], "did you mean copy_past"),
        (["--variant", "corrected_"], "did you mean corrected"),
        (["--protocol", "0fficial"], "did you mean official"),
        (["--predictions", "missing.jsonl"], "no such file"),
        (["--pairs", "folder"], "one of --dataset and --pairs"),
        (["--voice", "Soprano"], "--voice goes with --pairs; give that too, or leave it out"),
        (["--measures", "fixed"], "--measures goes with --pairs; give that too, or leave it out"),
        (["--seeds", "0"], "--seeds must be at least 1"),
    ],
)
def test_wrong_names_and_options_are_usage_errors(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    assert cli.main([*small, *change]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("music-evals: error: ")
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_argparse_errors_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["inpaint"], ["inpainting"], ["inpainting", "--out", "x", "--seeds", "many"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 2
    assert "usage: music-evals" in capsys.readouterr().err


@pytest.mark.slow
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


def test_a_full_disk(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert cli.main(small) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["records"]


@pytest.mark.slow
def test_failed_items_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("fine", "chords"):
        write_midi(tmp_path / "pairs" / "reference" / f"{name}.mid")
        write_midi(tmp_path / "pairs" / "prediction" / f"{name}.mid", chords=name == "chords")
    arguments = ["inpainting", "--pairs", str(tmp_path / "pairs"), "--out", str(tmp_path / "out"), "--resamples", "20"]
    assert cli.main(arguments) == 1
    out, err = capsys.readouterr()
    assert "1 failed:" in err
    assert "chords (prediction, seed 0): PolyphonyError" in err
    assert "note: no train split to fit on" in err
    assert "prediction" in out
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_a_voice_or_the_highest_notes_of_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side in ("reference", "prediction"):
        write_midi(tmp_path / "pairs" / side / "a.mid", chords=True)
    arguments = ["inpainting", "--pairs", str(tmp_path / "pairs"), "--baselines", "none", "--no-report", "--resamples"]
    arguments += ["20", "--out", str(tmp_path / "out"), "--json"]
    assert cli.main(arguments) == 1
    assert "split the voices, or keep the highest notes with --highest" in capsys.readouterr().err
    assert cli.main([*arguments, "--overwrite", "--highest", "--voice", "1"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert (results["options"]["voice"], results["options"]["highest"]) == ("1", True)
    onsets = np.tile(np.arange(64) * 480, 2)
    duet = Score(make_notes(onsets, 480, np.repeat([60, 64], 64), voice=np.repeat([0, 1], 64)), 480, voices=("A", "B"))
    save_midi(duet, tmp_path / "pairs" / "reference" / "a.mid")
    assert cli.main([*arguments, "--overwrite"]) == 1
    assert (
        "(1 'A', 2 'B'); choose one by name or number, as with --voice 1, or the highest notes of all with --highest"
        in (capsys.readouterr().err)
    )


@pytest.mark.slow
def test_pairs_in_another_meter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side in ("reference", "prediction"):
        write_midi(tmp_path / "pairs" / side / "a.mid", meter=(3, 4))
    arguments = ["inpainting", "--pairs", str(tmp_path / "pairs"), "--baselines", "none", "--no-report", "--resamples"]
    arguments += ["20", "--out", str(tmp_path / "out"), "--json"]
    assert cli.main(arguments) == 1
    err = capsys.readouterr().err
    assert "a (input): ContextLengthError: a.mid: measures of four quarters are needed" in err
    assert "wherever its bar lines are, with --measures fixed" in err
    assert cli.main([*arguments, "--overwrite", "--measures", "fixed"]) == 0
    assert json.loads(capsys.readouterr().out)["options"]["measures"] == "fixed"


def test_pairs_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    (tmp_path / "empty").mkdir()
    assert cli.main(["inpainting", "--pairs", str(tmp_path / "empty"), "--out", out]) == 2
    assert "holds no pairs" in capsys.readouterr().err
    write_midi(tmp_path / "odd" / "reference" / "a.mid")
    (tmp_path / "odd" / "prediction").mkdir()
    assert cli.main(["inpainting", "--pairs", str(tmp_path / "odd"), "--out", out]) == 2
    err = capsys.readouterr().err
    assert "a (no prediction); 1 have no prediction: give it, or count" in err
    assert "as failed, with --allow-missing" in err


@pytest.mark.filterwarnings("default::music_evals.errors.ContextMismatchWarning")
def test_warnings_are_told_without_a_path_of_our_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_midi(tmp_path / "pairs" / "reference" / "a.mid")
    write_midi(tmp_path / "pairs" / "prediction" / "a.mid")
    score = Score(make_notes(480 * np.arange(64), 480, np.tile([61, 65], 32)), 480)
    save_midi(score, tmp_path / "pairs" / "prediction" / "a.mid")
    arguments = ["inpainting", "--pairs", str(tmp_path / "pairs"), "--out", str(tmp_path / "out"), "--resamples", "20"]
    assert cli.main([*arguments, "--baselines", "none", "--no-report", "--extensions", "all"]) == 0
    out, err = capsys.readouterr()
    assert "music-evals: warning: 1 predictions came with a context that differs from the reference's" in err
    assert "Warning:" not in err
    assert ".py:" not in err
    assert "consonance ↑" in out
    assert "self-replication ≈" in out


@pytest.mark.slow
def test_cards(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="models need the extra `models`")
    from music_evals.models.anticipation_rnn import AnticipationRNN, AnticipationRNNConfig

    torch.manual_seed(0)
    folder = tmp_path / "models" / "tiny_rnn"
    AnticipationRNN(AnticipationRNNConfig(hidden_size=8, linear_size=8)).save_pretrained(folder)
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Tiny\n")
    monkeypatch.chdir(tmp_path)
    arguments = [*small, "--model", "tiny_rnn", "--seeds", "1"]
    # a part of the test set is not what a card should show; said before anything runs
    assert cli.main([*arguments, "--update-card"]) == 2
    assert "--update-card" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    at = arguments.index("--limit")
    del arguments[at : at + 2]
    arguments[arguments.index("musib")] = "musib_official"
    assert cli.main(arguments) == 0
    card = (tmp_path / "out" / "model_card.md").read_text()
    assert "model-index" in card
    assert "# Tiny" in card
    assert "model-index" not in (folder / "README.md").read_text()  # the source is not touched
    assert cli.main([*arguments, "--update-card"]) == 0
    assert (folder / "README.md").read_text() == card
    out = capsys.readouterr().out
    assert "model_card.md" in out
    assert "models/tiny_rnn: README.md" in out


@pytest.mark.slow
def test_failures_are_on_no_card(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fake:
        name, deterministic, sees_reference = "fake", True, False

        @classmethod
        def from_pretrained(cls, folder: str) -> Fake:  # noqa: ARG003
            return cls()

        def inpaint(self, contexts: Any, *, rng: Any) -> Any:  # noqa: ARG002
            return np.full((len(contexts), 96), 129, dtype=np.uint8)

        def nll(self, contexts: Any) -> Any:  # noqa: ARG002
            raise ValueError("no density")

    monkeypatch.setattr("music_evals.benchmark.inputs.load_plugin", lambda registry, *name: (
        Fake if "anticipation_rnn" in registry else load_plugin(registry, *name)
    ))  # fmt: skip
    folder = tmp_path / "fake_model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "fake"}')
    (folder / "model.safetensors").write_bytes(b"weights")
    readme = folder / "README.md"
    readme.write_text("# Fake\n")
    at = small.index("--limit")
    del small[at : at + 2]
    assert cli.main([*small, "--model", str(folder), "--seeds", "1", "--update-card"]) == 1
    out, err = capsys.readouterr()
    assert readme.read_text() == "# Fake\n"
    assert "error: 70 results failed; cards of models are left as they were" in err
    assert "(fake, seed 0, inpainting_nll): ValueError: no density" in err
    assert "copy_past" in out  # the tables are shown all the same


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([verb, "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "example" in text
    assert f"music-evals {verb} " in text


def test_help_on_decodings_names_none_of_those_that_leak_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    kinds = [load_plugin(INPAINTERS, name, "model") for name in INPAINTERS]
    leaking = {decoding for kind in kinds for decoding in getattr(kind, "leaking", ())}
    assert len(leaking) > 1
    with pytest.raises(SystemExit):
        cli.main(["inpainting", "--help"])
    told = re.search(r"\n +--decoding DECODING (.*?)\n +--temperature", capsys.readouterr().out, re.DOTALL)
    assert told is not None
    assert "reads the true middle" in " ".join(told[1].split())
    assert {decoding for decoding in leaking if decoding in told[1]} in (set(), leaking)


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert all(verb in text for verb in VERBS)
    assert "Exit codes" in text


@pytest.mark.slow
def test_frame_as_csv_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_midi(tmp_path / "midi" / "tune.mid")
    write_midi(tmp_path / "midi" / "chords.mid", chords=True)
    folder = str(tmp_path / "midi")
    assert cli.main(["frame", folder]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("filename,n_instruments,")
    assert [line.partition(",")[0] for line in lines[1:]] == ["chords.mid", "tune.mid"]
    assert cli.main(["frame", folder, "--filters", "unique,monophonic"]) == 0
    out, err = capsys.readouterr()
    assert [line.partition(",")[0] for line in out.splitlines()[1:]] == ["tune.mid"]
    assert "monophonic" in err
    assert cli.main(["frame", folder, "--filters", "monophonic", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["frame"]["filename"] == ["tune.mid"]
    assert [step["n_removed"] for step in found["filters"]["steps"]] == [0, 1]


def test_frame_lists_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_midi(tmp_path / "midi" / "tune.mid")
    (tmp_path / "midi" / "broken.mid").write_bytes(b"MThd")
    assert cli.main(["frame", str(tmp_path / "midi"), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["frame"]["filename"] == ["broken.mid", "tune.mid"]
    assert "broken.mid: UnreadableFileError" in err
    assert "records" not in err
    assert cli.main(["frame", str(tmp_path / "nowhere")]) == 2
    assert cli.main(["frame", str(tmp_path / "midi"), "--filters", "monophonc"]) == 2
    assert "did you mean monophonic" in capsys.readouterr().err


def test_train_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="models need the extra `models`")
    assert cli.main(["train", str(tmp_path / "train.yaml")]) == 2
    assert "train.yaml" in capsys.readouterr().err


def test_the_exit_code_of_an_interrupt(
    small: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("music_evals.benchmark.tasks.inpainting.task.Inpainting.run", interrupt)
    assert cli.main(small) == 130
    assert "go on" in capsys.readouterr().err


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_crash(small: list[str]) -> None:
    command = f"{sys.executable} -m music_evals.cli {' '.join(small)} | head -c 1"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in run.stderr


def is_option(node: ast.AST) -> bool:
    """Tell whether a node makes an option of a setting, or names the groups and texts of options."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") == "option"
    return isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") in {"GROUPS", "TEXTS"}


@pytest.mark.slow
def test_the_library_names_no_option_of_the_command() -> None:
    """It names settings, which the command says in its options and pages in words; pages show commands to copy.

    But for the place where an option is written, at its setting.
    """
    verbs = next(each for each in build_parser()._actions if isinstance(each.choices, dict)).choices
    for verb in verbs.values():
        verb.complete()
    ours = {option for verb in verbs.values() for option in verb._option_string_actions if option.startswith("--")}
    assert {"--set", "--no-controls"} <= ours
    source = Path(cli.__file__).parents[1]
    rooms = [path for path in source.iterdir() if path.name not in {"cli", "ui"}]
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
    modules = [module for room in rooms for module in ([room] if room.suffix == ".py" else room.rglob("*.py"))]
    for module in (module for module in modules if option.search(text_of(module))):
        tree = tree_of(module)
        written = {id(inner) for node in ast.walk(tree) if is_option(node) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in written:
                named = ours & set(option.findall(node.value))
                assert not named, f"{module.relative_to(source)}, line {node.lineno}: {named}"


ENGINES = {
    "preserve": ["--reference", "r", "--estimate", "e"],
    "inpainting": ["--dataset", "d"],
    "lyrics": ["--dataset", "d"],
    "describe": ["--dataset", "d"],
    "discrepancy": ["--dataset", "d"],
    "write-lyrics": ["--dataset", "d"],
}


@pytest.mark.parametrize(("verb", "what"), ENGINES.items())
def test_every_verb_that_judges_takes_an_engine(
    verb: str, what: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [verb, *what, "--out", str(tmp_path / "out")]
    for options, message in (
        (["--engine", "rai"], "unknown engine 'rai'; did you mean ray"),
        (["--engine", "local", "--ray-address", "auto"], "--ray-address goes with --engine ray"),
        (["--ray-address", "auto"], "--ray-address goes with --engine ray"),
        (["--workers", "0"], "--workers must be at least 1"),
    ):
        assert cli.main([*given, *options]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_folder_of_other_settings_is_wrong_usage(small: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(small) == 0
    capsys.readouterr()
    assert cli.main([*small, "--variant", "official"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "variant was 'corrected' and is now 'official'" in err
    assert "more" not in err  # what follows from a setting is not listed beside it
    assert cli.main(small) == 0


def test_a_verb_is_parsed_without_the_others() -> None:
    def verbs(name: str = "") -> list[str]:
        return list(next(each for each in build_parser(name)._actions if isinstance(each.choices, dict)).choices)

    for name in verbs():
        assert verbs(name) == (verbs() if name in {"completion", "list"} else [name])
    assert verbs("no verb") == verbs()
