"""The verb ``corpus``, and what `inpainting` and `train` make of its data set."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.datasets.making import band, chords, melody, score, write_midis

from music_evals.cli import main
from music_evals.symbolic.midi import save_midi


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    write_midis(root / "mine", list(range(10)), n_measures=17)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSIC_EVALS_CACHE", str(root / "cache"))
        assert main(["corpus", "build", str(root / "mine"), "--out", str(root / "data"), "--workers", "1"]) == 0
    return root / "data"


def test_failures_are_listed_and_the_rest_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path / "cache"))
    write_midis(tmp_path / "mine", [1, 2, 3], n_measures=16)
    (tmp_path / "mine/broken.mid").write_bytes(b"no MIDI")
    write_midis(tmp_path / "mine/short", [4], n_measures=4)
    save_midi(score(melody(5), meter=(3, 4)), tmp_path / "mine/waltz.mid")
    (tmp_path / "mine/twice.mid").write_bytes((tmp_path / "mine/tune01.mid").read_bytes())
    command = ["corpus", "build", str(tmp_path / "mine"), "--out", str(tmp_path / "data"), "--workers", "1", "--json"]
    assert main(command) == 1
    out, err = capsys.readouterr()
    content = json.loads(out)
    assert content["counts"]["train"]["songs"] == 1
    assert list(content["failures"]) == ["broken.mid"]
    assert list(content["left_out"]) == ["short/tune04.mid", "waltz.mid"]
    assert "1 failed:\n  broken.mid: UnreadableFileError" in err
    assert main([*command[:-1], "--split", "1:1:1000"]) == 1
    err = capsys.readouterr().err
    few = "measures of four quarters in a row; a window has 16"
    assert f"left out: short/tune04.mid: ContextLengthError: 4 {few}\n" in err
    fixed = "take measures of four quarters from the start, --measures fixed"
    assert f"left out: waltz.mid: ContextLengthError: 0 {few}; {fixed}\n" in err
    assert "removed by unique: twice.mid: same bytes as tune01.mid\n" in err
    assert re.search("note: the split .* is empty: .*; ask for other shares than 1:1:1000 with --split", err)


def test_wrong_use_is_told_in_the_words_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_midis(tmp_path / "mine", [1])
    command = ["corpus", "build", str(tmp_path / "mine"), "--out", str(tmp_path / "data")]
    assert main([*command, "--workers", "0"]) == 2
    assert "--workers must be at least 1" in capsys.readouterr().err
    save_midi(chords(melody(1)), tmp_path / "mine/tune01.mid")
    assert main([*command, "--workers", "1"]) == 2
    assert capsys.readouterr().err.endswith("while another note sounds; take the highest notes, --voices skyline\n")
    assert main([*command, "--workers", "1", "--voices", "each"]) == 2
    assert capsys.readouterr().err.endswith("while another note sounds; take the highest notes, --voices skyline\n")
    assert main([*command, "--split", "80:20"]) == 2
    assert "as in 8:1:1" in capsys.readouterr().err


@pytest.mark.slow
def test_inpainting_reads_it(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["inpainting", "--dataset", str(built), "--baselines", "copy_past,corpus_prior", "--seeds", "1"]
    assert main([*command, "--out", str(tmp_path), "--no-report", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert set(results["systems"]) >= {"copy_past", "corpus_prior"}


@pytest.mark.slow
def test_train_reads_it(built: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    recipe = tmp_path / "train.yaml"
    recipe.write_text(
        "model_type: anticipation_rnn\n"
        "data: {dataset: nowhere, config: none}\n"
        "model: {note_embedding_size: 6, metadata_embedding_size: 1, hidden_size: 8, linear_size: 8}\n"
        "training: {batch_size: 8, cycles: [1], learning_rate: 0.01, threads: 1}\n"
    )
    command = ["train", str(recipe), "--set", f"data.dataset={built}", "--set", "data.config=default"]
    assert main([*command, "--out", str(tmp_path / "model"), "--device", "cpu"]) == 0
    assert (tmp_path / "model/model.safetensors").is_file()
    tuned = [*command, "--set", "training.learning_rate=1e-9", "--start", str(tmp_path / "model"), "--device", "cpu"]
    assert main([*tuned, "--out", str(tmp_path / "tuned")]) == 0
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("model", "tuned")]
    assert files[0] == files[1]  # in half precision


@pytest.fixture(scope="module")
def style(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("style")
    (root / "mine").mkdir()
    for seed in range(10):
        save_midi(band(seed), root / f"mine/piece{seed}.mid")
    command = ["corpus", "build", str(root / "mine"), "--style", "mine", "--role", "piano", "--role", "bass=slap bass"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSIC_EVALS_CACHE", str(root / "cache"))
        assert main([*command, "--out", str(root / "data"), "--workers", "1"]) == 0
    return root / "data"


@pytest.mark.slow
def test_a_style_of_ones_own_trains_a_model_that_writes_in_it(style: Path, tmp_path: Path) -> None:
    """The whole way: a folder of MIDI, a data set, a model by the recipe of the chorales, another piece rewritten."""
    pytest.importorskip("torch")
    small = {
        "data.dataset": style,
        "data.config": "default",
        "data.validation_stride_steps": 97,
        "model.style": "mine",
        "model.window": 8,
        "model.embedding": 8,
        "model.n_layers": 1,
        "model.n_heads": 2,
        "model.inner": 8,
        "training.epoch_contexts": 64,
        "training.cycles": "[1]",
    }
    recipe = Path(__file__).parents[2] / "models" / "bmst" / "train.yaml"
    sets = [word for name, value in small.items() for word in ("--set", f"{name}={value}")]
    assert main(["train", str(recipe), *sets, "--out", str(tmp_path / "model"), "--device", "cpu"]) == 0
    assert json.loads((tmp_path / "model/config.json").read_text())["style"] == "mine"
    save_midi(band(40), tmp_path / "song.mid")
    command = ["style-transfer", str(tmp_path / "song.mid"), "--model", str(tmp_path / "model"), "--sweeps", "1"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    about = json.loads((tmp_path / "out/song/transfer.json").read_text())
    assert (about["melody"], about["model"]["style"]) == ("Lead vocal", "mine")


def test_options_of_windows_and_of_styles_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["corpus", "build", str(tmp_path), "--out", str(tmp_path / "data")]
    for options, said in (
        (["--role", "bass"], "name their --style too"),
        (["--style", "mine", "--voices", "each"], "leave --style out"),
        (["--style", "mine", "--role", "bass", "--role", "bass=Tuba"], "--role bass is given twice"),
        (["--style", "mine", "--role", "banjo"], "banjo"),
        (["--style", "mine", "--ticks-per-quarter", "0"], "--ticks-per-quarter must be at least 1"),
    ):
        assert main([*command, *options]) == 2
        assert said in capsys.readouterr().err
