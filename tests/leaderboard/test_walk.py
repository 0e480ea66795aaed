"""The way that people go: edit, preserve, leaderboard add, leaderboard build."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.leaderboard.toy_records import row_of

from music_evals import cli
from music_evals.annotations import Score
from music_evals.benchmark.tasks.edits.task import EDITS
from music_evals.benchmark.tasks.edits.task import Settings as EditSettings
from music_evals.benchmark.tasks.preservation.task import PRESERVATION, Settings
from music_evals.leaderboard import build_leaderboard
from music_evals.symbolic.files import save_midi
from music_evals.symbolic.notes import make_notes

METRICS = ("chroma_dtw_similarity", "beat_f_measure")


@dataclasses.dataclass
class BytesJudge:
    """Scores the share of bytes that both files have in common."""

    scores: tuple[str, ...] = METRICS

    def __call__(self, pair: Any) -> dict[str, Any]:
        sides = [np.frombuffer(Path(side.path).read_bytes(), np.uint8) for side in (pair.reference, pair.estimate)]
        n = min(map(len, sides))
        share = float(np.mean(sides[0][:n] == sides[1][:n]))
        return {"scores": {name: {"value": share} for name in self.scores}, "notes": []}


def chord(root: int) -> Score:
    pitches = np.array([root, root + 4, root + 7])
    return Score(make_notes(np.arange(3) * 4, np.full(3, 4), pitches, 80, 0), 4, programs=(0,))


def study(out: Path, sources: Path, system: str, **parameters: Any) -> Path:
    """Edit a folder and judge the edits; return the folder of the run, whose data set is called manifest.jsonl."""
    asked = EditSettings(out / "edits", sources=[str(sources)], system=system, parameters=parameters, engine="serial")
    manifest = Path(EDITS.run(asked).files["manifest"])
    rows = [json.loads(line) for line in manifest.read_text(encoding="utf-8").splitlines()]
    for row in rows:  # a system that hands the input back does not say that it is a control
        row.pop("role", None)
    manifest.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    settings = Settings(
        out / "run", manifest=str(manifest), metrics=",".join(METRICS), report=False, n_resamples=20, engine="serial"
    )
    PRESERVATION.run(settings, scorer=BytesJudge())
    return out / "run"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Two folders of three scores each, and the first once more under other names."""
    for folder, first in (("one", 0), ("two", 3)):
        (tmp_path / folder).mkdir()
        for number in range(3):
            save_midi(chord(48 + first + number), tmp_path / folder / f"song_{number}.mid")
    (tmp_path / "renamed").mkdir()
    for number in range(3):
        shutil.copy(tmp_path / "one" / f"song_{number}.mid", tmp_path / "renamed" / f"other {2 - number}.mid")
    return tmp_path


@pytest.mark.slow
def test_two_studies_stand_apart_and_the_same_music_under_other_names_together(
    sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = tmp_path / "board"
    for name, system, parameters in (
        ("one", "transposition", {"semitones": 4}),
        ("two", "transposition", {"semitones": 5}),
        ("renamed", "identity", {}),
    ):
        run = study(tmp_path / f"study_{name}", sources / name, system, **parameters)
        assert cli.main(["leaderboard", "add", str(run), "--board", str(board), "--submitter", name]) == 0
    own = [table for table in build_leaderboard(board)["tables"] if not table["published"]]
    assert [table["settings"]["dataset"] for table in own] == ["manifest.jsonl"] * 2  # as `edit` always calls it
    by_hand = [{row["submitter"] for row in table["rows"] if row["role"] == "system"} for table in own]
    assert sorted(by_hand, key=len) == [{"two"}, {"one", "renamed"}]
    together = max(own, key=lambda table: len(table["rows"]))
    (test,) = [
        test
        for test in together["tests"]
        if test["column"] == METRICS[0] and {test["a"], test["b"]} == {"transposition", "identity"}
    ]
    assert test["n"] == 3  # files of other names are matched by what they hold
    assert abs(test["difference"]) > 0
    copy = row_of(together, "identity")["cells"][METRICS[0]]
    control = row_of(together, "same music")["cells"][METRICS[0]]
    assert copy["value"] == control["value"] == 1.0
    assert copy["rank"][0] > control["rank"][1]  # who hands the input back stands below the control that does
    assert "same music" in copy["mark"]
    capsys.readouterr()
    assert cli.main(["leaderboard", "build", "--board", str(board), "--by", METRICS[1]]) == 0
    out = capsys.readouterr().out
    assert out.index("manifest.jsonl") < out.index("MUSIB, table 3")
    assert cli.main(["leaderboard", "build", "--board", str(board), "--by", "note_f1"]) == 2
    assert METRICS[1] in capsys.readouterr().err
