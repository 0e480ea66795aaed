"""The tables of a run: from a small data set and a model to rows, pages and pictures."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from benchmarks.musib.hypotheses import Scores  # noqa: E402
from benchmarks.musib.likelihood import bits_a_note, own_loss, published_table  # noqa: E402
from benchmarks.musib.systems import DATA, DESIGNS, Data, n_parameters, size_of, weights_of  # noqa: E402

from benchmarks.musib import hypotheses, judging, relations, run, systems, tables  # noqa: E402 - after the checks
from music_evals.benchmark.tasks.inpainting.runner import EXTENSIONS  # noqa: E402
from music_evals.benchmark.tasks.inpainting.task import HEADINGS  # noqa: E402
from music_evals.models.anticipation_rnn import AnticipationRNN, AnticipationRNNConfig  # noqa: E402
from music_evals.models.training import fit  # noqa: E402
from music_evals.models.training.recipe import DataConfig, Recipe, TrainingConfig  # noqa: E402
from music_evals.protocols import INPAINTERS, load_plugin  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = AnticipationRNNConfig(note_embedding_size=4, metadata_embedding_size=1, hidden_size=8, linear_size=8)


def contexts(n: int, seed: int = 0) -> np.ndarray:
    """Quarter notes of random pitches."""
    found = np.full((n, 384), 128, dtype=np.uint8)
    found[:, ::6] = np.random.default_rng(seed).integers(60, 72, (n, 64))
    return found


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder of models with one tiny network, by its recipe of the chorales."""
    folder = tmp_path / "models" / "anticipation_rnn"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AnticipationRNN(TINY).save_pretrained(folder)
    (folder / "train.yaml").write_text("data: {dataset: ../../datasets_scripts/jsb_chorales, config: musib}\n")
    return tmp_path / "models"


# --- weights and data


def test_weights_are_found_by_what_they_were_trained_on(models: Path, tmp_path: Path) -> None:
    design, (jsb, folk, *_) = DESIGNS[0], DATA
    home = models / design.name
    assert weights_of(design, jsb, models) == home
    assert weights_of(design, folk, models) is None
    (home / "folk").mkdir()
    (home / "folk" / "model.safetensors").write_bytes((home / "model.safetensors").read_bytes())
    assert weights_of(design, folk, models) == home / "folk"
    assert weights_of(design, jsb, models) == home
    assert judging.untrained(jsb, models) == ["inpaintnet", "sketchnet", "vli"]


def test_parameters_are_counted_from_the_header(models: Path) -> None:
    folder = models / "anticipation_rnn"
    model = AnticipationRNN.from_pretrained(str(folder))
    assert n_parameters(folder) == sum(parameter.numel() for parameter in model.parameters())
    assert n_parameters(systems.ROOT / "models" / "anticipation_rnn") == 1_992_413
    assert size_of(systems.ROOT / "models" / "anticipation_rnn") == "paper, 1.99 M"


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_a_published_decoding_has_the_settings_of_the_authors_and_the_same_weights(
    design: systems.Design, tmp_path: Path
) -> None:
    folder = systems.ROOT / "models" / design.name
    copy = systems.as_published(design, folder, tmp_path)
    assert (copy == folder) == (not design.settings)
    model = load_plugin(INPAINTERS, design.name, "model").from_pretrained(str(copy), decoding=design.decoding)
    assert {name: getattr(model.config, name) for name, _ in design.settings} == dict(design.settings)
    assert model.sees_reference == design.leaks
    assert (copy / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert size_of(copy) == size_of(folder)
    assert systems.as_published(design, folder, tmp_path) == copy


def test_a_data_set_is_here_or_says_why_not() -> None:
    assert not systems.absent(DATA[0])
    assert "known: musib" in systems.absent(dataclasses.replace(DATA[0], config="nothing"))


def test_what_is_missing_is_named(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = dataclasses.replace(DATA[1], dataset="nowhere", title="Tunes")
    monkeypatch.setattr(run, "DATA", (DATA[0], gone))
    text = run.missing(["jsb", "folk"], models)
    assert "**Tunes** (`nowhere`, config `music21_folk`) cannot be read on this machine" in text
    assert "**JSB Chorales**: untrained, and in no table: `inpaintnet`, `sketchnet`, `vli`" in text


# --- from end to end


@pytest.fixture
def options(models: Path, tmp_path: Path):
    arguments = [
        "--data",
        "jsb",
        "--items",
        "5",
        "--seeds",
        "1",
        "--models",
        str(models),
        "--out",
        str(tmp_path / "out"),
    ]
    return run.read_options(arguments)


@pytest.mark.slow
def test_all_tables_from_one_model(options, monkeypatch: pytest.MonkeyPatch) -> None:
    # one rule and short bootstraps are enough here
    small = {"baselines": "copy_past", "n_resamples": 20}
    judge = judging.music_evals.run
    monkeypatch.setattr(judging.music_evals, "run", lambda *args, **settings: judge(*args, **{**small, **settings}))
    runs = run.judge_all(options)
    assert [(one.plan.protocol, one.plan.decoding) for one in runs] == [
        ("honest", "own"), ("official", "own"), ("official", "published"),
    ]  # fmt: skip
    folder = options.out / "tables"
    sections = run.write_tables(runs, options, folder)
    assert "untrained, and in no table: `inpaintnet`, `sketchnet`, `vli`" in sections["missing"]
    assert "| `anticipation_rnn` | paper, 0.00 M |" in sections["honest"]
    assert "anticipation_rnn:teacher_forced (leaks)" in sections["published"]
    assert {path.suffix for path in folder.iterdir()} == {".csv", ".svg"}

    scores = tables.read_csv(folder / "results.csv")
    check_page("\n".join(sections.values()), folder)
    sized = {row["system"]: row["size"] for row in scores}
    assert sized["anticipation_rnn"] == "paper, 0.00 M"
    assert sized["copy_past"] == ""
    compared = tables.read_csv(folder / "published.csv")
    # tables 3, with both rows of VLI
    assert len(compared) == 5 * 7
    judged = [row for row in compared if row["system"] != "not judged"]
    assert {row["published_system"] for row in judged} == {"Anticipation-RNN"}
    assert all(row["because"] and row["because_of_protocol"] for row in judged)
    assert all(not row["because"] and not row["ours"] for row in compared if row not in judged)

    # the same again takes up what is there and finds the same
    monkeypatch.setattr(judging, "judge", lambda *_: pytest.fail("not reached"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run.write_tables(run.judge_all(options), options, folder) == sections
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_write_is_for_whole_tables(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--items", "5"], ["--data", "jsb"], ["--protocol", "honest"], ["--seeds", "2"]):
        with pytest.raises(SystemExit):
            run.read_options(["--write", *arguments])
    assert "--write is for the whole tables" in capsys.readouterr().err
    assert run.read_options(["--write"]).write


def test_other_weights_are_another_run(options, models: Path) -> None:
    first = next(judging.plans(DATA[0], ["honest"], options.out, models=models)).name
    config = models / "anticipation_rnn" / "config.json"
    config.write_text(config.read_text() + "\n")
    assert next(judging.plans(DATA[0], ["honest"], options.out, models=models)).name != first


def test_first_windows_of_each_song(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import Dataset, load_dataset

    (tmp_path / "tunes").mkdir()
    songs = ["b", "b", "a", "a", "a"]
    for split in ("train", "validation", "test"):
        rows = {"item_id": [f"{song}{n}" for n, song in enumerate(songs)], "song": songs}
        Dataset.from_dict({**rows, "tokens": contexts(5).tolist()}).to_parquet(tmp_path / "tunes" / f"{split}.parquet")
    data = Data("tunes", "Tunes", "tunes", "default", (), "musib_table2")
    monkeypatch.setattr(Data, "place", str(tmp_path / "tunes"))
    folder = judging.first_windows(data, tmp_path / "out")
    assert load_dataset(str(folder), split="test")["item_id"][:] == ["b0", "a2"]
    assert len(load_dataset(str(folder), split="train")) == 5


# --- the page


def check_page(page: str, folder: Path) -> None:
    """Hold the note F1 and the verdicts of a page to the files beside it."""
    rows = [row for row in tables.read_csv(folder / "results.csv") if row["metric"] == "note_f1"]
    rows = [row for row in rows if (row["protocol"], row["subset"]) == ("honest", "all")]
    assert rows
    for row in rows:
        shown = re.escape(f"`{row['system']}`") + r"\*? \| " + re.escape(row["size"])
        assert re.search(rf"{shown} \| {float(row['value']):.3f}", page), row
    differences = tables.read_csv(folder / "differences.csv")
    if (folder / run.STUDIES).is_file():
        differences += tables.read_csv(folder / run.STUDIES)
    assert hypotheses.verdict_table(differences) in page


@pytest.mark.skipif(not (systems.HERE / "results.csv").is_file(), reason="the tables have not been written yet")
def test_the_page_is_what_the_files_say() -> None:
    check_page((systems.HERE / "README.md").read_text(encoding="utf-8"), systems.HERE)


# --- pieces


def test_a_page_is_filled_between_its_markers() -> None:
    page = "head\n<!-- one:start -->\nold\n<!-- one:end -->\nfoot\n"
    assert tables.fill(page, {"one": "new"}) == "head\n<!-- one:start -->\nnew\n<!-- one:end -->\nfoot\n"
    with pytest.raises(ValueError, match="no markers <!-- two:start -->"):
        tables.fill(page, {"two": "new"})


def test_the_page_has_a_place_for_every_section() -> None:
    page = (systems.HERE / "README.md").read_text(encoding="utf-8")
    names = (
        "honest",
        "missing",
        "published",
        "reasons",
        "nll",
        "hypotheses",
        "correlations",
        "pictures",
        "equal_budget",
        "published_size",
    )
    assert all(f"<!-- {name}:start -->" in page and f"<!-- {name}:end -->" in page for name in names)


def test_bits_a_note() -> None:
    """8 ln 2 nats for 4 notes and 2 ln 2 for 1 are 10 bits for 5 notes, whatever the middles are by themselves."""
    found = bits_a_note(np.array([8, 2]) * np.log(2), np.array([4, 1]))
    assert found.mean() == pytest.approx(2)
    uneven = bits_a_note(np.array([8, 7]) * np.log(2), np.array([4, 1]))
    assert uneven.mean() == pytest.approx(3)
    assert np.isnan(bits_a_note(np.array([1.0]), np.array([0]))).all()


def test_the_own_loss_is_what_validation_measures(tmp_path: Path) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AnticipationRNN(TINY)
        recipe = Recipe("anticipation_rnn", DataConfig("", ""), {}, TrainingConfig(cycles=(1,), batch_size=4))
        trained = fit(model, contexts(8), contexts(40, seed=1), recipe, tmp_path)
    assert own_loss(model, contexts(40, seed=1)).mean() == pytest.approx(trained.validation_loss, abs=1e-6)


def test_the_published_gaps_stand_beside_the_starred_values() -> None:
    ours = {"data": "folk", "model": "vli", "split": "validation", "definition": "own loss"}
    table = published_table([{**ours, "value": 0.3, "low": 0.2, "high": 0.4}, {**ours, "split": "test", "value": 9.0}])
    assert "| Anticipation-RNN | 0.453 | 0.662 | +32 % |" in table
    assert "| SketchNet | 0.539 | 0.516 | -4 % |" in table
    assert "| VLI (paper) | 0.061 |  |  | 0.300 (0.200 to 0.400) |" in table
    assert "9.0" not in table


def test_correlations_by_item_turn_losses_round_and_leave_out_what_is_undefined() -> None:
    n = 30
    rng = np.random.default_rng(0)
    score = rng.uniform(size=n)
    loss = -(score**3)
    score[0] = np.nan
    one = Scores([f"{row}" for row in range(n)], [], {"note_f1": score, "inpainting_nll": loss, "flat": np.ones(n)})
    codes = np.arange(n) // 3
    drawn = rng.integers(0, 10, size=(20, 10))
    (row,) = relations.by_item([one, one], codes, drawn)
    assert (row["a"], row["b"], row["n"]) == ("note_f1", "inpainting_nll", n - 1)
    assert row["rho"] == pytest.approx(1)
    assert row["low"] == pytest.approx(1)


def test_correlations_by_system_are_of_means() -> None:
    """Four systems: ranks 1 2 3 4 against 1 3 2 4 are correlated by 1 - 6 * 2 / (4 * 15) = .8; the resample by -1."""
    values = {
        "note_f1": np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]]),
        "groove_divergence": np.array([[-0.9, -0.5, -0.7, -0.1], [-0.1, -0.2, -0.3, -0.4]]),
    }
    (row,) = relations.by_system(values)
    assert row["rho"] == pytest.approx(0.8)
    assert row["low"] == row["high"] == pytest.approx(-1)


def test_a_rate_stands_as_it_is_and_what_has_no_score_of_a_window_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("note_f1", "interval_divergence", "repeated_note_rate", "silence_divergence", "inpainting_nll")
    found = SimpleNamespace(
        metrics=names, item_rows=["a", "b"], at=lambda *_: SimpleNamespace(values=lambda _: np.array([[0.25], [0.75]]))
    )
    monkeypatch.setattr(relations, "_divergences", lambda *_: np.array([0.1]))
    made = relations.system_scores(SimpleNamespace(found=found), ["model"], np.array([0, 1]), np.ones((1, 2)))
    assert {name: column.tolist() for name, column in made.items()} == {
        "note_f1": [[0.5]], "repeated_note_rate": [[0.5]], "silence_divergence": [[-0.1]],
    }  # fmt: skip


def test_the_correlations_are_of_the_scores_that_the_page_names() -> None:
    rows = tables.read_csv(systems.HERE / "correlations.csv")
    held = {row[side] for row in rows for side in "ab"}
    page = " ".join((systems.HERE / "README.md").read_text(encoding="utf-8").split())
    assert "repeated_note_rate" in held
    assert "turned so that more is better, but for `repeated_note_rate`, which has no better end" in page
    assert HEADINGS.keys() - held - set(EXTENSIONS) == {"interval_divergence", "inpainting_nll"}
    assert "`interval_divergence` is not there, since" in page
    assert "nor `inpainting_nll`, which" in page


def test_csv_files_keep_what_is_undefined_empty(tmp_path: Path) -> None:
    tables.write_csv(tmp_path / "one.csv", ("a", "b"), [{"a": 0.1234567, "b": None, "c": 1}])
    with (tmp_path / "one.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], ["0.123457", ""]]
