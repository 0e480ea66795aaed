"""Success in reaching targets, of recordings and scores: known edits, lazy systems, and what cannot be measured."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from music_evals.annotations import DRUMS, Score, Tempo, TimeSignature
from music_evals.audio.io import Audio, load_audio
from music_evals.audio.rendering import render_additive
from music_evals.errors import (
    InvalidInputError,
    NoDataError,
    PairCountError,
    UndefinedMetricWarning,
    UnknownNameError,
    UnsupportedTypeError,
)
from music_evals.pipelines.edit_success import evaluate_edit_success
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

TUNE = (60, 64, 67, 72, 69, 67, 65, 64, 62, 65, 67, 71, 72, 67, 64, 60)


def tune(bpm: float = 120.0, up: int = 0, beats: int = 4, programs: tuple[int, ...] = (0, 40)) -> Score:
    """Three times a tune of quarters above its roots, one a bar, by two instruments."""
    pitches = [pitch + up for pitch in TUNE * 3]
    onsets = [480 * place for place in range(len(pitches))]
    low = [pitch - 24 for pitch in pitches[::beats]]
    notes = make_notes(
        [*onsets, *onsets[::beats]], [480] * len(pitches) + [480 * beats] * len(low), [*pitches, *low],
        voice=[0] * len(pitches) + [1] * len(low),
    )  # fmt: skip
    signatures = (TimeSignature(0, beats, 4),)
    voices = ("tune", "bass")
    return Score(notes, 480, tempos=(Tempo(0, bpm),), time_signatures=signatures, voices=voices, programs=programs)


def of_one(reference: Any, prediction: Any, targets: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        result = evaluate_edit_success([reference], [prediction], [targets], per_item=True)
    targets_of_item: dict[str, Any] = result["per_item"][0]["targets"]
    return targets_of_item


def test_all_targets_of_a_score() -> None:
    edit = tune(150.0, up=2, beats=3, programs=(73, 40))
    asked = {"tempo": "1.25x", "transpose": "+2", "key": "D major", "metre": "3/4", "instrument_added": "flute",
             "instrument_removed": "piano", "length": "0.8x"}  # fmt: skip
    done = of_one(tune(), edit, asked)
    assert {kind: target["verdict"] for kind, target in done.items()} == dict.fromkeys(asked, "done")
    assert [target["success"] for target in done.values()] == pytest.approx([1.0] * len(asked))
    unchanged = of_one(tune(), tune(), asked)
    assert {target["success"] for target in unchanged.values()} == {0.0}
    assert "done" not in {target["verdict"] for target in unchanged.values()}


def test_a_score_cannot_tell_loudness_and_one_without_programs_no_instruments() -> None:
    bare = Score(tune().notes, 480, voices=("tune", "bass"))
    told = of_one(bare, bare, {"loudness": "+3 dB", "instrument_added": "drums"})
    assert [target["verdict"] for target in told.values()] == ["cannot be told"] * 2
    assert all(math.isnan(target["success"]) and target["reason"] for target in told.values())


def test_drums_are_an_instrument() -> None:
    told = of_one(tune(), tune(programs=(0, DRUMS)), {"instrument_added": "drums"})
    assert told["instrument_added"]["success"] == 1.0


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tune as recordings: as it is, edited, and softer."""
    folder = tmp_path_factory.mktemp("recordings")
    made = {}
    for name, score, gain in (
        ("original", tune(), 1.0), ("faster", tune(144.0), 1.0), ("higher", tune(up=2), 1.0), ("softer", tune(), 0.5),
    ):  # fmt: skip
        samples, rate = render_additive(score), 22_050
        made[name] = folder / f"{name}.wav"
        soundfile.write(made[name], 0.5 * gain * samples / np.abs(samples).max(), rate)
    return made


@pytest.mark.parametrize(
    ("edit", "asked"),
    [
        ("faster", {"tempo": "1.2x", "length": f"{1 / 1.2}x"}),
        ("higher", {"transpose": "+2"}),
        ("softer", {"loudness": -6.02}),
    ],
)
def test_targets_of_recordings(edit: str, asked: dict[str, Any], recordings: dict[str, Path]) -> None:
    done = of_one(recordings["original"], recordings[edit], asked)
    assert {target["verdict"] for target in done.values()} == {"done"}
    assert min(target["success"] for target in done.values()) > 0.9
    for other in recordings.keys() - {edit}:
        missed = of_one(recordings["original"], recordings[other], asked)
        assert max(target["success"] for target in missed.values()) < 0.2


def test_what_a_recording_cannot_tell(recordings: dict[str, Path]) -> None:
    told = of_one(recordings["original"], recordings["faster"], {"instrument_added": "flute", "transpose": 12})
    assert [target["verdict"] for target in told.values()] == ["cannot be told"] * 2
    assert all(math.isnan(target["success"]) and target["reason"] for target in told.values())


def test_loudness_needs_the_level_of_the_file(recordings: dict[str, Path]) -> None:
    loaded = load_audio(recordings["softer"])
    assert of_one(recordings["original"], loaded, {"loudness": -6.02})["loudness"]["verdict"] == "done"
    scaled = Audio(loaded.samples)
    told = of_one(recordings["original"], scaled, {"loudness": -6.02})["loudness"]
    assert told["verdict"] == "cannot be told"
    assert told["reason"]


def test_silence_reaches_nothing_that_is_heard(recordings: dict[str, Path], tmp_path: Path) -> None:
    silence = tmp_path / "silence.wav"
    soundfile.write(silence, np.zeros(22_050 * 20), 22_050)
    asked = {"tempo": "1.2x", "key": "A minor", "transpose": 2, "loudness": -12, "length": "20 s", "metre": "3/4"}
    told = of_one(recordings["original"], silence, asked)
    assert {(target["verdict"], target["success"]) for target in told.values()} == {("not done", 0.0)}
    back = of_one(silence, recordings["original"], {"tempo": "1.2x", "key": "A minor", "loudness": -12})
    assert {target["verdict"] for target in back.values()} == {"cannot be told"}


def test_a_score_without_notes_reaches_nothing_either() -> None:
    """Not even the tempo that it is written in, nor that an instrument went."""
    empty = Score(tune().notes[:0], 480, tempos=(Tempo(0, 150.0),), programs=(0, 40), voices=("tune", "bass"))
    asked = {"tempo": "1.25x", "length": "10 s", "instrument_removed": "piano", "metre": "3/4", "transpose": 2}
    told = of_one(tune(), empty, asked)
    assert {(target["verdict"], target["success"]) for target in told.values()} == {("not done", 0.0)}
    nameless = Score(tune().notes, 480, voices=("tune", "bass"))
    assert of_one(tune(), nameless, {"instrument_removed": "piano"})["instrument_removed"]["success"] == 0


def test_means_chance_and_kinds_of_a_corpus(tmp_path: Path) -> None:
    """Edits of other music are tried on each target; half of what was asked is done."""
    originals = [save_midi(tune(bpm), tmp_path / f"{bpm:g}.mid") for bpm in (100.0, 110.0, 120.0)]
    edits = [
        save_midi(tune(bpm, up=up), tmp_path / f"{bpm:g}_{up}.mid") for bpm, up in ((100.0, 2), (110.0, 0), (120.0, 2))
    ]
    targets: list[Any] = [{"transpose": "+2"}, "transpose=+2", {"transpose": 2, "tempo": "2x"}]
    result = evaluate_edit_success(originals, edits, targets, per_item=True, groups=["a", "b", "c"])
    assert [item["edit_success"] for item in result["per_item"]] == [1.0, 0.0, 0.5]
    assert (result["edit_success"], result["edit_success_n"]) == (0.5, 3)
    assert result["edit_done"] == pytest.approx((1 + 0 + 0.5) / 3)
    kinds = result["by_kind"]
    assert kinds["transpose"]["edit_success"] == pytest.approx(2 / 3)
    assert [kinds["transpose"][name] for name in ("done", "not_done", "cannot_be_told")] == [2, 1, 0]
    assert kinds["transpose"]["chance"] == pytest.approx(
        4 / 6
    )  # all of them are one tune: two others of three are moved
    assert result["edit_success_chance"] == pytest.approx(np.mean([1 / 2, 1, 1 / 4]), abs=0.06)
    alone = evaluate_edit_success(originals, edits, targets, groups=["a"] * 3)
    assert math.isnan(alone["edit_success_chance"])


def test_a_corpus_of_which_nothing_can_be_told_warns() -> None:
    with pytest.warns(UndefinedMetricWarning):
        result = evaluate_edit_success([tune()], [tune()], ["loudness=+3 dB"])
    assert math.isnan(result["edit_success"])
    assert result["by_kind"]["loudness"]["cannot_be_told"] == 1


def test_what_does_not_fit_together_is_refused(recordings: dict[str, Path]) -> None:
    score, recording = tune(), recordings["original"]
    for error, sides in (
        (InvalidInputError, ([score], [recording], [{"tempo": 2}])),
        (InvalidInputError, ([score], [score], [{}])),
        (UnknownNameError, ([score], [score], [{"mood": "sad"}])),
        (UnsupportedTypeError, ([5], [score], [{"tempo": 2}])),
        (PairCountError, ([score], [score], [])),
        (PairCountError, ([score], [], [])),
        (NoDataError, ([], [], [])),
        (NoDataError, ([recording], [Path("nowhere.wav")], [{"tempo": 2}])),
    ):
        with pytest.raises(error):
            evaluate_edit_success(*sides)
