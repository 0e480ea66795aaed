from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.annotations import Score, TimeSignature
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.predictions import load_pairs, load_predictions
from music_evals.errors import (
    ContextLengthError,
    ContextMismatchWarning,
    InvalidInputError,
    InvalidTokensError,
    NoDataError,
    PairCountError,
    UnreadableFileError,
)
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

MIDDLE = [60, *[128] * 95]


@pytest.fixture
def items(tiny_dataset: Path) -> ItemSet:
    return load_items(str(tiny_dataset), "musib", "validation")


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def complete(items: ItemSet, **more: Any) -> list[dict[str, Any]]:
    return [{"item_id": item, "middle": MIDDLE, **more} for item in items.item_ids]


def test_predictions_come_in_the_order_of_the_items(tmp_path: Path, items: ItemSet) -> None:
    rows = complete(items)
    rows[4]["middle"] = [129] * 96
    (system,) = load_predictions(write_lines(tmp_path / "mine.jsonl", rows[::-1]), items)
    assert system.name == "mine"
    assert system.role == "model"
    assert system.seeds(range(5)) == (0,)
    found = system.inpaint(items.contexts[3:6], [3, 4, 5], seed=0, rng=np.random.default_rng(0))
    assert found[:, 0].tolist() == [60, 129, 60]


SEPARATORS = ["\u2028", "\u0085", "\x0c", "\x1e"]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_only_a_line_feed_ends_a_line(tmp_path: Path, items: ItemSet, separator: str) -> None:
    rows = complete(items, system=f"a{separator}b")
    path = tmp_path / "mine.jsonl"
    lines = [json.dumps(row, ensure_ascii=separator == "\x0c") for row in rows]
    path.write_text("\r\n".join(lines), encoding="utf-8")
    (system,) = load_predictions(path, items)
    assert system.name == f"a{separator}b"


def test_text_that_is_none(tmp_path: Path, items: ItemSet) -> None:
    path = write_lines(tmp_path / "mine.jsonl", complete(items, system="\ud800"))
    with pytest.raises(UnreadableFileError, match=r"line 1 is not JSON.*surrogates"):
        load_predictions(path, items)


def test_names_in_two_unicode_forms_are_one(tmp_path: Path, items: ItemSet) -> None:
    composed, separate = "caf\u00e9", "cafe\u0301"
    names = (composed, *items.item_ids[1:])
    first, *others = complete(items)
    rows = [{**first, "item_id": separate}, *others]
    (system,) = load_predictions(write_lines(tmp_path / "mine.jsonl", rows), dataclasses.replace(items, item_ids=names))
    assert system.failures == {}


def test_a_key_that_comes_twice_is_named(tmp_path: Path, items: ItemSet) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"item_id": "a", "middle": [], "item_id": "b"}\n')
    with pytest.raises(UnreadableFileError, match=r"mine\.jsonl, line 1: the key 'item_id' comes more than once"):
        load_predictions(path, items)


def test_systems_and_seeds(tmp_path: Path, items: ItemSet) -> None:
    rows = complete(items, system="b", seed=3) + complete(items, system="b", seed=1) + complete(items, system="a")
    systems = load_predictions(write_lines(tmp_path / "several.jsonl", rows), items)
    assert [(system.name, system.seeds([0])) for system in systems] == [("b", (1, 3)), ("a", (0,))]
    assert systems[0].content_hash != systems[1].content_hash


def test_ids_must_match(tmp_path: Path, items: ItemSet) -> None:
    rows = complete(items)
    told = r"no prediction for 1 of 12 items, musib/validation/000; .* with `allow_missing=True`"
    with pytest.raises(PairCountError, match=told):
        load_predictions(write_lines(tmp_path / "missing.jsonl", rows[1:]), items)
    with pytest.raises(PairCountError, match="nobody not in"):
        load_predictions(write_lines(tmp_path / "unknown.jsonl", [*rows, {**rows[0], "item_id": "nobody"}]), items)
    with pytest.raises(PairCountError, match=r"line 13: a second prediction for item 'musib/validation/000'"):
        load_predictions(write_lines(tmp_path / "twice.jsonl", [*rows, rows[0]]), items)


def test_items_without_a_prediction_fail_where_that_is_allowed(tmp_path: Path, items: ItemSet) -> None:
    rows = [*complete(items)[2:], *complete(items, seed=1)[1:], *complete(items, system="whole")]
    path = write_lines(tmp_path / "part.jsonl", rows)
    part, whole = load_predictions(path, items, allow_missing=True)
    # the first two have no prediction with seed 0, the first none with seed 1 either
    assert part.failures == dict.fromkeys(items.item_ids[:2], "no prediction was given")
    assert whole.failures == {}
    assert part.stored is not None
    assert part.stored[0].shape == part.stored[1].shape == (12, 96)
    (all_,) = load_predictions(write_lines(tmp_path / "all.jsonl", complete(items, system="part")), items)
    assert part.content_hash != all_.content_hash


@pytest.mark.slow
def test_a_pair_without_its_prediction_fails_where_that_is_allowed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_midi(tmp_path / "reference" / f"{name}.mid")
    write_midi(tmp_path / "prediction" / "a.mid")
    with pytest.raises(PairCountError, match=r"1 have no prediction: .* with `allow_missing=True`"):
        load_pairs(tmp_path)
    judged, system = load_pairs(tmp_path, allow_missing=True)
    assert judged.item_ids == ("a", "b")
    assert system.failures == {"b": "no prediction was given"}
    write_midi(tmp_path / "prediction" / "c.mid")
    with pytest.raises(PairCountError, match=r"do not pair up: c \(no reference\)$"):
        load_pairs(tmp_path, allow_missing=True)
    rows = "reference,prediction\nreference/a.mid,prediction/a.mid\nreference/b.mid,\n"
    (tmp_path / "pairs.csv").write_text(rows)
    with pytest.raises(PairCountError, match=r"row 2: no prediction for reference/b.mid; .*allow_missing"):
        load_pairs(tmp_path / "pairs.csv")
    judged, system = load_pairs(tmp_path / "pairs.csv", allow_missing=True)
    assert judged.item_ids == ("reference/a", "reference/b")
    assert list(system.failures) == ["reference/b"]


def test_items_beyond_the_limit_are_ignored(tmp_path: Path, items: ItemSet) -> None:
    path = write_lines(tmp_path / "all.jsonl", complete(items))
    (system,) = load_predictions(path, items.head(3), known=items.item_ids)
    assert system.stored is not None
    assert system.stored[0].shape == (3, 96)
    with pytest.raises(NoDataError):
        load_predictions(write_lines(tmp_path / "late.jsonl", complete(items)[5:]), items.head(3), known=items.item_ids)


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ({"item_id": "x"}, InvalidInputError, "line 1: expected"),
        ({"item_id": 3, "middle": MIDDLE}, InvalidInputError, "item_id: int"),
        ({"item_id": "x", "middle": "60 128"}, InvalidInputError, "middle: str"),
        ({"item_id": "x", "middle": MIDDLE, "seed": "0"}, InvalidInputError, "seed: str"),
        ({"item_id": "x", "middle": MIDDLE, "seed": True}, InvalidInputError, "seed: bool"),
        ({"item_id": "x", "middle": MIDDLE, "system": " "}, InvalidInputError, "a system name with a letter"),
        ({"item_id": "x", "middle": MIDDLE[:95]}, ContextLengthError, "has 95 tokens, expected 96"),
        ({"item_id": "x", "middle": [60.5, *MIDDLE[1:]]}, InvalidInputError, "whole numbers"),
        ({"item_id": "x", "middle": [130, *MIDDLE[1:]]}, InvalidTokensError, "line 1: .*130"),
        ({"item_id": "x", "middle": [-1, *MIDDLE[1:]]}, InvalidTokensError, "line 1: .*-1"),
        ([1, 2], UnreadableFileError, "holds a list"),
    ],
)
def test_bad_lines(tmp_path: Path, items: ItemSet, row: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_predictions(write_lines(tmp_path / "bad.jsonl", [row]), items)


def test_bad_files(tmp_path: Path, items: ItemSet) -> None:
    with pytest.raises(NoDataError):
        load_predictions(tmp_path / "missing.jsonl", items)
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(NoDataError):
        load_predictions(tmp_path / "empty.jsonl", items)
    (tmp_path / "text.jsonl").write_text("{]\n")
    with pytest.raises(UnreadableFileError, match="line 1 is not JSON"):
        load_predictions(tmp_path / "text.jsonl", items)
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        load_predictions(tmp_path / "binary.jsonl", items)


# -- pairs of score files ---------------------------------------------------------------------------------------------


def write_midi(
    path: Path, *, pitch: int = 60, n_quarters: int = 64, chords: bool = False, meter: tuple[int, int] | None = None
) -> Path:
    """One note a quarter; with chords, two."""
    onsets = np.repeat(np.arange(n_quarters), 1 + chords) * 480
    pitches = np.tile([pitch, pitch + 4][: 1 + chords], n_quarters)
    path.parent.mkdir(parents=True, exist_ok=True)
    meters = () if meter is None else (TimeSignature(0, *meter),)
    save_midi(Score(make_notes(onsets, 480, pitches), 480, meters), path)
    return path


def test_pairs_in_sub_folders(tmp_path: Path) -> None:
    for name in ("b", "a", "deep/c"):
        write_midi(tmp_path / "reference" / f"{name}.mid")
        write_midi(tmp_path / "prediction" / f"{name}.mid", pitch=62)
    with pytest.warns(ContextMismatchWarning, match="3 predictions came with a context that differs .* a, b, deep/c"):
        items, system = load_pairs(tmp_path)
    assert items.item_ids == ("a", "b", "deep/c")
    assert items.songs == items.item_ids
    assert items.contexts[0, :7].tolist() == [60, 128, 128, 128, 128, 128, 60]
    assert system.stored is not None
    assert system.stored[0][2, :7].tolist() == [62, 128, 128, 128, 128, 128, 62]
    assert items.failures == system.failures == {}


def test_pairs_beside_each_other_and_middles_alone(tmp_path: Path) -> None:
    write_midi(tmp_path / "x_reference.mid")
    write_midi(tmp_path / "x_prediction.mid", pitch=65, n_quarters=16)  # four measures: the middle alone
    items, system = load_pairs(tmp_path)
    assert items.item_ids == ("x",)
    assert system.stored is not None
    assert system.stored[0].shape == (1, 96)
    assert (system.stored[0] == 65).sum() == 16


def write_duet(path: Path, upper: int, lower: int) -> None:
    """Two voices, Soprano in chords of a third, Bass one note at a time."""
    onsets, voices = np.tile(np.arange(64) * 480, 3), np.repeat([0, 0, 1], 64)
    notes = make_notes(onsets, 480, np.repeat([upper, upper - 4, lower], 64), voice=voices)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_midi(Score(notes, 480, voices=("Soprano", "Bass")), path)


@pytest.mark.parametrize(
    ("options", "pitches"),
    [
        ({"voice": "Bass"}, (40, 41)),
        ({"voice": "2"}, (40, 41)),
        ({"voice": "Soprano", "highest": True}, (72, 73)),
        ({"highest": True}, (72, 80)),
    ],
)
@pytest.mark.filterwarnings("ignore::music_evals.errors.ContextMismatchWarning")
def test_a_voice_of_pairs_is_chosen_or_the_highest_notes(
    tmp_path: Path, options: dict[str, Any], pitches: tuple[int, int]
) -> None:
    write_duet(tmp_path / "reference" / "a.mid", 72, 40)
    write_duet(tmp_path / "prediction" / "a.mid", 73, 41)
    if "voice" not in options:
        write_duet(tmp_path / "prediction" / "a.mid", 73, 80)  # voices that cross
    items, system = load_pairs(tmp_path, **options)
    assert system.stored is not None
    assert (items.contexts[0, 0], system.stored[0][0, 0]) == pitches
    assert items.failures == system.failures == {}


@pytest.mark.slow
def test_pairs_of_several_voices_say_what_to_do(tmp_path: Path) -> None:
    write_duet(tmp_path / "reference" / "a.mid", 72, 40)
    write_midi(tmp_path / "prediction" / "a.mid")
    assert "as with `voice='1'`, or the highest notes of all" in load_pairs(tmp_path)[0].failures["a"]
    assert "keep the highest notes with `highest=True`" in load_pairs(tmp_path, voice="Soprano")[0].failures["a"]
    assert "unknown voice 'Bas'; did you mean Bass" in load_pairs(tmp_path, voice="Bas")[0].failures["a"]
    # a voice that is asked for is looked for in both files
    assert "unknown voice 'Bass'" in load_pairs(tmp_path, voice="Bass")[1].failures["a"]


def test_pairs_in_manifests(tmp_path: Path) -> None:
    write_midi(tmp_path / "true.mid")
    write_midi(tmp_path / "guess.mid")
    (tmp_path / "pairs.csv").write_text("reference,prediction,item_id,song\ntrue.mid,guess.mid,one,tune\n")
    items, _ = load_pairs(tmp_path / "pairs.csv")
    assert (items.item_ids, items.songs) == (("one",), ("tune",))
    write_lines(tmp_path / "pairs.jsonl", [{"reference": "true.mid", "prediction": "guess.mid"}])
    items, _ = load_pairs(tmp_path / "pairs.jsonl")
    assert items.item_ids == ("true",)
    (tmp_path / "odd.csv").write_text("reference,guess\ntrue.mid,guess.mid\n")
    with pytest.raises(InvalidInputError, match="expected the columns reference and prediction"):
        load_pairs(tmp_path / "odd.csv")


def test_pairs_that_do_not_pair_up(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_midi(tmp_path / "reference" / f"{name}.mid")
    write_midi(tmp_path / "prediction" / "a.mid")
    write_midi(tmp_path / "prediction" / "c.mid")
    with pytest.raises(
        PairCountError, match=r"2 references and 2 predictions .*b \(no prediction\), c \(no reference\)"
    ):
        load_pairs(tmp_path)
    write_midi(tmp_path / "reference" / "a.midi")
    with pytest.raises(PairCountError, match=r"both the reference of 'a'"):
        load_pairs(tmp_path)


def test_no_pairs(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        load_pairs(tmp_path)
    with pytest.raises(NoDataError):
        load_pairs(tmp_path / "missing")


def test_a_bad_file_fails_its_own_item(tmp_path: Path) -> None:
    for name in ("good", "chords", "broken", "no_reference"):
        write_midi(tmp_path / "reference" / f"{name}.mid")
        write_midi(tmp_path / "prediction" / f"{name}.mid", chords=name == "chords")
    (tmp_path / "prediction" / "broken.mid").write_bytes(b"MThd no more")
    write_midi(tmp_path / "reference" / "no_reference.mid", n_quarters=65)
    items, system = load_pairs(tmp_path)
    assert items.item_ids == ("broken", "chords", "good")
    assert items.failures["no_reference"].startswith("ContextLengthError")
    assert system.failures["chords"].startswith("PolyphonyError")
    assert system.failures["broken"].startswith("UnreadableFileError")
    assert set(system.failures) == {"chords", "broken"}


def test_pairs_in_another_meter_fail_by_name(tmp_path: Path) -> None:
    """Without a signature, and in 4/4, they are read; three quarters a measure are not taken for four."""
    for name, meter, n_quarters in (
        ("plain", None, 64),
        ("four", (4, 4), 64),
        ("three", (3, 4), 64),
        ("long", (3, 4), 96),
    ):
        for side in ("reference", "prediction"):
            write_midi(tmp_path / side / f"{name}.mid", meter=meter, n_quarters=n_quarters)
    write_midi(tmp_path / "prediction" / "four.mid", meter=(6, 8), n_quarters=16)
    items, system = load_pairs(tmp_path)
    assert items.item_ids == ("four", "plain")
    assert set(items.failures) == {"three", "long"}
    for failure in items.failures.values():  # the meter is named before the length that follows from it
        assert "measure 1 is in 3/4 and lasts 3 quarters" in failure
        assert "with `measures='fixed'`" in failure
    assert list(system.failures) == ["four"]
    assert "measure 1 is in 6/8" in system.failures["four"]
    items, system = load_pairs(tmp_path, measures="fixed")
    assert items.item_ids == ("four", "plain", "three")
    assert system.failures == {}
