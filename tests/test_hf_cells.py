"""Modules of piano-roll cells: what users may hand in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pytest

from music_evals.annotations import Score
from music_evals.errors import InvalidInputError, InvalidNotesError, NoDataError, UnsupportedTypeError
from music_evals.symbolic.encodings.piano_rolls import piano_roll
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes

N = 84
CHORD = Score(make_notes([0, 0, 480], [960, 480, 480], [60, 64, 65]), 480)


@pytest.fixture
def metric(in_root: Path, tmp_path: Path) -> Any:
    return evaluate.load("./metrics/piano_roll_error_rate", cache_dir=str(tmp_path / "cache"))


@pytest.mark.slow
def test_every_form_is_the_same_roll(metric: Any, tmp_path: Path) -> None:
    roll = piano_roll(CHORD)
    midi = write_midi(CHORD)
    path = tmp_path / "chord.mid"
    path.write_bytes(midi)
    forms = [CHORD, roll, roll.cells, roll.cells.tolist(), roll.cells.astype(int).tolist(), midi, str(path), path]
    result = metric.compute(predictions=forms, references=[roll.cells] * len(forms), per_item=True)
    assert [row["piano_roll_error_rate"] for row in result["per_item"]] == [0.0] * len(forms)
    assert [row["cell_nll"] for row in result["per_item"]] == [0.0] * len(forms)
    again = metric.compute(predictions=[roll.cells] * len(forms), references=forms)
    assert again["cell_f1"] == 1.0


def test_probabilities_come_through_exactly(metric: Any, rng: np.random.Generator) -> None:
    cells, given = piano_roll(CHORD).cells, rng.uniform(0.01, 0.99, (32, N))
    result = metric.compute(predictions=[given], references=[cells])
    assert result["piano_roll_error_rate"] == ((given >= 0.5) != cells).mean()
    assert result["cell_nll"] == pytest.approx(-np.log(np.where(cells, given, 1 - given)).mean())


def test_silence_follows_music_and_no_array(metric: Any) -> None:
    long = Score(make_notes([0, 1920], [480, 480], [60, 62]), 480)  # two bars
    result = metric.compute(predictions=[CHORD], references=[long])
    # on the first beat the third is too many; on the second two notes are, and on the fifth one is missing
    assert result["piano_roll_error_rate"] == (8 + 16 + 8) / (64 * N)
    for predictions, references in (([piano_roll(CHORD).cells], [long]), ([long], [np.zeros((40, N))])):
        with pytest.raises(InvalidInputError, match=r"item 0: reference and prediction have .* steps"):
            metric.compute(predictions=predictions, references=references)


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (np.zeros((4, 88)), InvalidInputError, r"predictions\[1\].*\(steps, 84\)"),
        (np.full((32, N), 2.0), InvalidInputError, r"predictions\[1\].*from 0 to 1, got 2.0"),
        (np.full((32, N), np.nan), InvalidInputError, r"predictions\[1\].*got nan"),
        ([[0] * N, [0]], InvalidInputError, r"predictions\[1\].*84 numbers"),
        ("notes.txt", UnsupportedTypeError, r"predictions\[1\].*PianoRoll"),
        ({"past": 1}, UnsupportedTypeError, r"predictions\[1\].*PianoRoll"),
        ("missing.mid", NoDataError, r"predictions\[1\]"),
        (Score(make_notes([0], [480], [20]), 480), InvalidNotesError, r"predictions\[1\].*A0..G#7"),
    ],
)
def test_bad_items_are_named(metric: Any, item: Any, error: type[Exception], message: str) -> None:
    cells = piano_roll(CHORD).cells
    with pytest.raises(error, match=message):
        metric.compute(predictions=[cells, item], references=[cells] * 2)
    assert metric.compute(predictions=[cells], references=[cells])["cell_f1"] == 1.0


def test_references_are_no_probabilities(metric: Any) -> None:
    with pytest.raises(InvalidInputError, match="piece 0: reference must hold True and False"):
        metric.compute(predictions=[np.zeros((4, N))], references=[np.full((4, N), 0.5)])
