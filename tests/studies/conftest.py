"""A small editing test, and editors who need no browser."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from music_evals.annotations import Score, Tempo, TimeSignature
from music_evals.studies.editing.study import EditingSettings, build_editing_study
from music_evals.studies.folders import Introduction, StudyFolder
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

PAGE = {"index.html": b'<script type="application/json" id="study"></script>'}
TEXTS = Introduction(title="Ours", consent=("You agree.",), instructions=("Do it.",))


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """The table of four samples: two pieces by two models."""
    folder = tmp_path / "samples"
    folder.mkdir()
    rows = []
    for piece, (role, model) in itertools.product(("ode", "reel"), (("proposed", "ours"), ("baseline", "theirs"))):
        pitches = [72, 74, 76, 77] if piece == "ode" else [67, 69, 71, 72]
        chord = [48, 52, 55] if model == "ours" else [48, 51, 55]
        notes = make_notes(
            [0, 480, 960, 1440, 0, 0, 0], [480] * 4 + [1920] * 3, [*pitches, *chord], 80, [0] * 4 + [1] * 3
        )
        score = Score(notes, 480, (TimeSignature(0, 4, 4),), (Tempo(0, 100.0),), voices=("Melody", f"by {model}"))
        save_midi(score, folder / f"{piece}-{model}.mid")
        rows.append(
            {"sample_id": f"{piece}-{model}", "piece_id": piece, "style": "bach", "model": model, "role": role,
             "midi": f"{piece}-{model}.mid"}
        )  # fmt: skip
    with (folder / "samples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder / "samples.csv"


@pytest.fixture
def build(samples: Path, tmp_path: Path) -> Callable[..., StudyFolder]:
    """Make the study of `samples` for two editors, with other settings where they are given."""

    def make(folder: str = "study", table: Path = samples, **settings: Any) -> StudyFolder:
        return build_editing_study(
            tmp_path / folder, table, study="ours", introduction=TEXTS, page=PAGE,
            settings=EditingSettings(**{"n_editors": 2, "seed": 5, **settings}),
        )  # fmt: skip

    return make
