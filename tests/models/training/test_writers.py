"""Language models tuned to write lyrics, and to say what lyrics are about: tiny ones, made here."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.writing import build_model, write_songs

from music_evals.errors import (
    CorruptRecordsError,
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    OutputError,
    UnknownNameError,
)
from music_evals.lyrics.near_copies import NearCopies, long_lines
from music_evals.lyrics.prompts import theme_prompt
from music_evals.models.lyric_writers import TransformersWriter, write_themes
from music_evals.models.training import train_from_file, writers
from music_evals.models.training.recipe import TextData, TextTraining, build_recipe
from music_evals.models.training.run import CHECKPOINT, read_checkpoint, write_checkpoint
from music_evals.models.training.writers import load_text_songs, tokenized, train_text_model

RECIPES = Path(__file__).resolve().parents[3] / "models" / "lyric_writer"
SIGNS = "天地人山水风月花日夜云雨江海春秋心梦路灯"
OLD = ("白云深处有一间屋", "门前小河流过青石", "有人在桥上等天亮", "灯火一盏一盏熄了")


def song(name: str, lines: list[str], theme: str | None = "想家", **more: Any) -> dict[str, Any]:
    """Return a row of caimd's schema."""
    half = len(lines) // 2
    structure = [
        {"label": label, "lines": part, "rhyme": ["c" * (len(line) - 1) + "R" for line in part]}
        for label, part in (("verse1", lines[:half]), ("chorus1", lines[half:]))
    ]
    said: dict[str, Any] = {"dimensions": {"lyric_themes": {"tags": [], "text": theme}}}
    return {"id": name, "title": name, "artist": ["甲"], "structure": structure, "professional": said, **more}


def lines_of(number: int) -> list[str]:
    """Return four lines of nine characters that no other number has."""
    rng = np.random.default_rng(number)
    return ["".join(rng.choice(list(SIGNS), 9)) for _ in range(4)]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_model(tmp_path_factory.mktemp("base"), template=None, room=900))


@pytest.fixture
def values(tmp_path: Path, base: str) -> dict[str, Any]:
    """Sections of a recipe that takes a second."""
    return {
        "model_type": "lyric_writer",
        "model": {"base": base, "tuning": "full"},
        "data": {
            "dataset": write_rows(tmp_path / "train.jsonl", [song(f"t{n}", lines_of(n)) for n in range(6)]),
            "judged": write_rows(tmp_path / "judged.jsonl", [song(f"j{n}", lines_of(20 + n)) for n in range(2)]),
            "validation": 0.3,
        },
        "training": {"batch_size": 2, "epochs": 3, "patience": 3, "learning_rate": 0.01, "checkpoint_every": 1},
    }


def state(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    found: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return found


def test_a_tuned_model_likes_the_answers_better_and_writes(tmp_path: Path, values: dict[str, Any], base: str) -> None:
    result = train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    assert result.validation_loss < result.base_loss
    assert result.songs == 4
    assert result.epochs == 3
    rows = rows_of(tmp_path / "out" / "run" / "judged.csv")
    assert [row["id"] for row in rows] == ["j0", "j1"]
    assert all(float(row["tuned"]) < float(row["base"]) for row in rows)
    # the losses of the judged songs are those of the models themselves, worked out apart
    from transformers import AutoModelForCausalLM

    songs = load_text_songs(TextData(**values["data"]), tmp_path, seed=0)
    for folder, column in ((Path(base), "base"), (result.folder, "tuned")):
        writer = TransformersWriter(folder, max_new_tokens=4)
        (one, _), _ = tokenized(songs.judged, writer._loaded.tokenizer, None)
        model = AutoModelForCausalLM.from_pretrained(folder)
        labels = torch.tensor([[-100] * one.n_asked + list(one.ids[one.n_asked :])])
        with torch.no_grad():
            loss = float(model(input_ids=torch.tensor([one.ids]), labels=labels).loss)
        assert float(rows[0][column]) == pytest.approx(loss, rel=1e-5)
        assert writer.write([songs.judged[0].prompt], seed=0)[0].completion_tokens == 4


@pytest.mark.slow
@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_a_killed_run_ends_with_the_same_weights(
    tmp_path: Path, values: dict[str, Any], tuning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values["model"] |= {"tuning": tuning, "rank": 2, "dropout": 0.5}
    whole = train_text_model(values, tmp_path, tmp_path / "whole", device="cpu")
    backward, steps = torch.autograd.backward, iter(range(99))

    def killed(loss: torch.Tensor) -> None:
        if next(steps) == 6:  # two songs a step
            raise KeyboardInterrupt
        backward(loss)

    monkeypatch.setattr(torch.autograd, "backward", killed)
    with pytest.raises(KeyboardInterrupt):
        train_text_model(values, tmp_path, tmp_path / "killed", device="cpu")
    assert not (tmp_path / "killed" / "model").exists()
    monkeypatch.setattr(torch.autograd, "backward", backward)
    torch.manual_seed(99)  # whatever the caller drew
    resumed = train_text_model(values, tmp_path, tmp_path / "killed", device="cpu")
    ours, theirs = state(whole.folder), state(resumed.folder)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert resumed.base_loss == whole.base_loss
    again = train_text_model(values, tmp_path, tmp_path / "killed", device="cpu")
    assert again.validation_loss == whole.validation_loss


def test_lora_leaves_a_whole_model_and_touches_its_layers_alone(
    tmp_path: Path, values: dict[str, Any], base: str
) -> None:
    values["model"] |= {"tuning": "lora", "rank": 2, "targets": ["q_proj"]}
    values["training"] |= {"epochs": 1}
    result = train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    before, after = state(Path(base)), state(result.folder)
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all("q_proj" in name for name in changed)
    values["model"]["targets"] = ["no_such_layer"]
    with pytest.raises(UnknownNameError, match="q_proj"):
        train_text_model(values, tmp_path, tmp_path / "other", device="cpu")


def test_training_stops_when_it_gets_no_better_and_keeps_the_best(tmp_path: Path, values: dict[str, Any]) -> None:
    values["training"] |= {"epochs": 40, "patience": 1, "learning_rate": 0.5, "max_gradient_norm": 100.0}
    result = train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    assert result.epochs < 40
    held = [float(row["validation_loss"]) for row in rows_of(tmp_path / "out" / "run" / "log.csv")]
    assert held[result.best_epoch - 1] == min(held) == result.validation_loss
    assert result.best_epoch == result.epochs - 1


def test_a_checkpoint_of_other_songs_is_refused(tmp_path: Path, values: dict[str, Any]) -> None:
    values["training"]["epochs"] = 1
    train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    write_rows(tmp_path / "train.jsonl", [song(f"t{n}", lines_of(n + 1)) for n in range(6)])
    with pytest.raises(CorruptRecordsError, match="other songs"):
        train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    train_text_model(values, tmp_path, tmp_path / "out", device="cpu", resume=False)


@pytest.mark.parametrize("epochs", [0, 1])  # that the checkpoint has behind it
def test_a_checkpoint_of_another_version_of_transformers_or_peft_is_refused(
    tmp_path: Path, values: dict[str, Any], epochs: int
) -> None:
    values["training"]["epochs"] = 1
    values["model"] |= {"tuning": "lora", "rank": 2}
    result = train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    before = state(result.folder)
    path = tmp_path / "out" / CHECKPOINT
    run, tensors = read_checkpoint(path, "")
    if epochs == 0:  # as after the first of its steps
        run |= {"history": [], "step": 1, "sums": [1.0, 10, 1.0]}
        tensors = {name: value for name, value in tensors.items() if not name.startswith("best.")}
    assert any(".lora_A." in name for name in tensors)
    others = {name.replace(".lora_A.", ".lora_down."): value for name, value in tensors.items()}
    write_checkpoint(path, others, run)
    with pytest.raises(CorruptRecordsError):
        train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    write_checkpoint(path, {name: value for name, value in tensors.items() if ".lora_A." not in name}, run)
    with pytest.raises(CorruptRecordsError):
        train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    after = state(result.folder)
    assert all(torch.equal(before[name], after[name]) for name in before)
    write_checkpoint(path, tensors, run)  # its own is taken
    assert train_text_model(values, tmp_path, tmp_path / "out", device="cpu").epochs == 1


def test_songs_that_are_judged_on_are_never_trained_on(tmp_path: Path, values: dict[str, Any]) -> None:
    judged = [song("j0", [*lines_of(30), *OLD]), song("j1", lines_of(31))]
    cover = [*OLD, *lines_of(32)[:2]]
    train = [
        *(song(f"t{n}", lines_of(n)) for n in range(3)),
        song("j1", lines_of(3)),  # the id of a judged song
        song("cover", cover),  # four of its six long lines
        song("words", lines_of(31)),
        song("J0", lines_of(4)),  # title and performer, in other case
        song("twice", [line + " 啊" for line in lines_of(2)], title="别的"),  # no near copy: each line is another
        song("twice2", lines_of(1), title="另一个"),
        song("mute", lines_of(5), theme=None),
        song("wordless", []),
    ]
    values["data"] |= {
        "dataset": write_rows(tmp_path / "mixed.jsonl", train),
        "judged": write_rows(tmp_path / "their.jsonl", judged),
    }
    found = load_text_songs(TextData(**values["data"]), tmp_path, seed=0)
    assert found.left_out == {
        "judged or a near copy": ("j1", "cover", "words", "J0"),
        "repeated": ("twice2",),
        "without theme or lyrics": ("mute", "wordless"),
    }
    assert sorted(one.id for one in (*found.train, *found.validation)) == ["t0", "t1", "t2", "twice"]
    assert not {one.id for one in found.train} & {one.id for one in found.validation}
    write_rows(tmp_path / "mixed.jsonl", judged)
    with pytest.raises(NoDataError):
        load_text_songs(TextData(**values["data"]), tmp_path, seed=0)


def test_near_copies_are_found_from_half_of_the_long_lines_on() -> None:
    known = NearCopies([[*OLD, *lines_of(1)]])
    assert len(known) == 1
    assert known.find([*OLD, *lines_of(2)]) == 0
    assert known.find([*OLD[:3], *lines_of(2)]) is None
    assert known.find(OLD[:3]) == 0
    assert known.find(OLD[:2]) is None  # two lines are no song
    assert known.find([f"{line[:3]} {line[3:]}！" for line in OLD]) == 0
    assert known.find(["我爱你"] * 20) is None
    assert long_lines(["我爱你", *OLD]) == frozenset(OLD)


def test_what_is_learnt_is_the_answer_under_the_prompt_of_write_lyrics(tmp_path: Path, base: str) -> None:
    from music_evals.benchmark.tasks.songs.lyric_writing import Settings, _prompts

    songs = write_songs(tmp_path / "songs.jsonl")
    settings = Settings(out=tmp_path / "none", dataset=str(songs))
    asked, _ = _prompts(settings.read_songs(["structure"]), settings, None)
    found = load_text_songs(
        TextData(dataset=str(songs), judged=write_rows(tmp_path / "no.jsonl", [song("x", lines_of(3))])),
        tmp_path,
        seed=0,
    )
    learnt = {one.id: one for one in (*found.train, *found.validation)}
    assert {item: one.prompt for item, one in learnt.items()} == asked
    tokenizer = TransformersWriter(base)._loaded.tokenizer
    (one,), n_long = tokenized([learnt["spring"]], tokenizer, None)
    assert n_long == 0
    assert one.ids[-1] == tokenizer.eos_token_id
    assert list(one.ids[: one.n_asked]) == tokenizer(asked["spring"])["input_ids"]
    assert learnt["spring"].answer.startswith("(verse)\n春眠不觉晓\n处处闻啼鸟\n(chorus)\n")
    assert tokenized([learnt["spring"]], tokenizer, len(one.ids) - 1) == ([], 1)


def test_a_theme_annotator_is_tuned_by_the_same_recipe(tmp_path: Path, values: dict[str, Any]) -> None:
    changes = [f"model.base={values['model']['base']}", "model.tuning=full", "training.epochs=1"]
    changes += [f"data.{name}={value}" for name, value in values["data"].items()]
    result = train_from_file(RECIPES / "train-themes.yaml", changes=changes, out=tmp_path / "out", device="cpu")
    assert isinstance(result, writers.TextTrainingResult)
    data = TextData(**values["data"], task="themes")
    one = load_text_songs(data, tmp_path, seed=0).judged[0]
    lyrics = "(verse)\n" + "\n".join(lines_of(20)[:2]) + "\n(chorus)\n" + "\n".join(lines_of(20)[2:])
    assert one.answer == "想家"
    assert one.prompt == theme_prompt(lyrics)
    (written,) = write_themes(TransformersWriter(result.folder, max_new_tokens=3), [lyrics])
    assert written.completion_tokens


def test_songs_longer_than_the_model_reads_are_counted(tmp_path: Path, values: dict[str, Any], base: str) -> None:
    long = song("long", [sign * 200 for sign in "天地人山"])
    rows = [json.loads(line) for line in Path(values["data"]["dataset"]).read_text(encoding="utf-8").splitlines()]
    write_rows(Path(values["data"]["dataset"]), [*rows, long])
    values["training"]["epochs"] = 1
    found = load_text_songs(TextData(**values["data"]), tmp_path, seed=0)
    result = train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    assert result.left_out == ({"too long": 1} if any(one.id == "long" for one in found.train) else {})
    values["training"]["max_tokens"] = 10
    with pytest.raises(NoDataError, match="10"):
        train_text_model(values, tmp_path, tmp_path / "none", device="cpu")


@pytest.mark.parametrize(
    ("section", "name", "value", "error"),
    [
        ("model", "base", None, InvalidInputError),
        ("model", "tuning", "half", UnknownNameError),
        ("model", "rank", 0, InvalidInputError),
        ("data", "dataset", None, InvalidInputError),
        ("data", "task", "poems", UnknownNameError),
        ("data", "validation", 1.0, InvalidInputError),
        ("training", "at_once", 9, InvalidInputError),
        ("training", "precision", "int4", InvalidInputError),
        ("training", "warmup", 1.0, InvalidInputError),
        ("training", "nothing", 1, UnknownNameError),
    ],
)
def test_settings_out_of_range_are_refused(
    values: dict[str, Any], section: str, name: str, value: Any, error: type[Exception]
) -> None:
    values[section][name] = value
    with pytest.raises(error):
        build_recipe(values)


def test_the_learning_rate_rises_and_falls() -> None:
    shares = [writers._share(step, 100, 0.1) for step in range(100)]
    assert shares[9] == 1.0
    assert shares == sorted(shares[:10]) + sorted(shares[10:], reverse=True)
    assert shares[-1] < 0.01


def test_how_many_are_computed_together_changes_rounding_only(tmp_path: Path, values: dict[str, Any]) -> None:
    values["training"] |= {"epochs": 1}
    alone = train_text_model(values, tmp_path, tmp_path / "alone", device="cpu")
    values["training"] |= {"at_once": 2}
    together = train_text_model(values, tmp_path, tmp_path / "together", device="cpu")
    assert together.validation_loss == pytest.approx(alone.validation_loss, rel=1e-4)


def test_mixed_precision_and_checkpointing_of_gradients(tmp_path: Path, values: dict[str, Any]) -> None:
    values["model"] |= {"tuning": "lora", "rank": 2}
    values["training"] |= {"epochs": 1, "precision": "bfloat16", "gradient_checkpointing": True}
    result = train_text_model(values, tmp_path, tmp_path / "out", device="cpu")
    assert result.validation_loss < result.base_loss
    assert {value.dtype for value in state(result.folder).values()} == {torch.bfloat16}


def test_peft_is_asked_for_by_name(tmp_path: Path, values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    values["model"]["tuning"] = "lora"
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingBackendError, match="tuning"):
        train_text_model(values, tmp_path, tmp_path / "out", device="cpu")


def test_a_folder_that_cannot_be_written_is_an_output_error(tmp_path: Path, values: dict[str, Any]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        train_text_model(values, tmp_path, tmp_path / "file", device="cpu")


def test_the_recipe_of_the_window_is_whole() -> None:
    from music_evals.models.training.recipe import read_sections

    changes = ["model.base=somewhere", "data.dataset=somewhere"]
    recipe = build_recipe(read_sections(RECIPES / "train.yaml", changes))
    assert recipe.training == TextTraining(max_tokens=4096)
    themes = build_recipe(read_sections(RECIPES / "train-themes.yaml", changes))
    assert themes.data.task == "themes"
    with pytest.raises(InvalidInputError, match="`out`"):
        train_from_file(RECIPES / "train.yaml", changes=changes)
