"""Tables of an editing test: what is taken, in which forms, and which row is named where something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pytest

from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UnreadableFileError, UnsupportedTypeError
from music_evals.pipelines.study_tables import EDITS, LISTENING, SAMPLES, read_study, read_table, study_tables


def sample(number: int, role: str, **cells: Any) -> dict[str, Any]:
    return {"sample_id": f"s{number}", "piece_id": "p", "style": "bach", "model": f"m-{role}", "role": role} | cells


def edit(number: int, editor: str = "e", **cells: Any) -> dict[str, Any]:
    done = {"time_s": 600.5, "key_presses": 40, "mouse_clicks": 90, "hit_limit": False, "EQ1": 4, "EQ2": 3, "EQ3": 5}
    return {"sample_id": f"s{number}", "editor_id": editor} | done | cells


SAMPLE_ROWS = [sample(1, "proposed"), sample(2, "baseline")]
EDIT_ROWS = [edit(1), edit(2, hit_limit=True, time_s=1800)]
LISTENING_ROWS = [
    {"sample_id": "s1", "listener_id": "a", "LQ1": 4, "sim_bach": 5},
    {"sample_id": "s1", "listener_id": "b", "LQ1": 2, "sim_bach": None},
]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("form", ["rows", "columns", "frame", "dataset", ".csv", ".jsonl", ".parquet"])
def test_each_form_of_a_table_reads_the_same(form: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(EDIT_ROWS)
    source: Any = {"rows": EDIT_ROWS, "columns": frame.to_dict("list"), "frame": frame}.get(form, tmp_path / f"t{form}")
    if form == "dataset":
        source = datasets.Dataset.from_list(EDIT_ROWS)
    elif form == ".csv":
        write_csv(source, EDIT_ROWS)
    elif form == ".jsonl":
        source.write_text("\n".join(map(json.dumps, EDIT_ROWS)))
    elif form == ".parquet":
        frame.to_parquet(source)
    table = read_table(source, EDITS, table_name="edits")
    assert table["sample_id"].tolist() == ["s1", "s2"]
    assert table["time_s"].tolist() == [600.5, 1800.0]
    assert table["hit_limit"].tolist() == [False, True]
    assert "n_moved" not in table


def test_a_folder_of_a_study(tmp_path: Path) -> None:
    write_csv(tmp_path / "samples.csv", SAMPLE_ROWS)
    write_csv(tmp_path / "edits.csv", EDIT_ROWS)
    assert read_study(tmp_path).listening is None
    write_csv(tmp_path / "listening.csv", LISTENING_ROWS)
    listening = read_study(tmp_path).listening
    assert listening is not None
    np.testing.assert_array_equal(listening["sim_bach"], [5, np.nan])
    pd.DataFrame(EDIT_ROWS).to_parquet(tmp_path / "edits.parquet")
    with pytest.raises(UnreadableFileError, match=r"edits\.csv and edits\.parquet both hold edits"):
        read_study(tmp_path)
    (tmp_path / "edits.csv").unlink()
    (tmp_path / "edits.parquet").unlink()
    with pytest.raises(NoDataError, match=r"no edits\.csv"):
        read_study(tmp_path)
    with pytest.raises(NoDataError):
        read_study(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"EQ2": 6}, "edits, row 2: EQ2 must be a whole number from 1 to 5, got 6"),
        ({"EQ1": 0}, "row 2: EQ1"),
        ({"EQ3": 3.5}, "row 2: EQ3 must be a whole number"),
        ({"EQ3": True}, "row 2: EQ3"),
        ({"EQ3": None}, "row 2: EQ3 is empty"),
        ({"time_s": -1}, "row 2: time_s must be a number from 0 on"),
        ({"time_s": float("inf")}, "row 2: time_s"),
        ({"time_s": 0}, "row 2: time_s is 0"),
        ({"key_presses": "many"}, "row 2: key_presses"),
        ({"hit_limit": "maybe"}, "row 2: hit_limit must be true or false"),
        ({"sample_id": "s3"}, "row 2: no sample 's3'"),
        ({"editor_id": " "}, "row 2: editor_id is empty"),
    ],
)
def test_a_wrong_cell_names_its_row(cells: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        study_tables(SAMPLE_ROWS, [edit(1), edit(2, **cells)])


@pytest.mark.parametrize("rating", [0, 6, 2.5, "good"])
@pytest.mark.parametrize("name", ["LQ1", "sim_bach"])
def test_ratings_of_listeners_lie_on_their_scale(name: str, rating: Any) -> None:
    rows = [LISTENING_ROWS[0], LISTENING_ROWS[1] | {name: rating}]
    with pytest.raises(InvalidInputError, match=f"listening, row 2: {name} must be a whole number from 1 to 5"):
        study_tables(SAMPLE_ROWS, EDIT_ROWS, rows)


def test_rows_that_do_not_go_together() -> None:
    with pytest.raises(PairCountError, match=r"edits, row 3: sample_id 's1', editor_id 'e' stands in row 1"):
        study_tables(SAMPLE_ROWS, [*EDIT_ROWS, edit(1)])
    with pytest.raises(PairCountError, match=r"samples, row 3: piece 'q' in style 'bach' has no baseline sample"):
        study_tables([*SAMPLE_ROWS, sample(3, "proposed", piece_id="q")], EDIT_ROWS)
    with pytest.raises(PairCountError, match=r"samples, row 3: .* stands in row 1"):
        study_tables([*SAMPLE_ROWS, sample(3, "proposed")], EDIT_ROWS)
    with pytest.raises(InvalidInputError, match="samples, row 3: role must be proposed or baseline, got 'judge'"):
        study_tables([*SAMPLE_ROWS, sample(3, "judge")], EDIT_ROWS)
    with pytest.raises(InvalidInputError, match="listening, row 1: no sample 's9'"):
        study_tables(SAMPLE_ROWS, EDIT_ROWS, [LISTENING_ROWS[0] | {"sample_id": "s9"}])


@pytest.mark.parametrize(("columns", "what"), [(SAMPLES, "samples"), (EDITS, "edits"), (LISTENING, "listening")])
def test_no_rows_no_columns_and_no_table(columns: Any, what: str) -> None:
    with pytest.raises(NoDataError, match=f"{what}: the table has no rows"):
        read_table([], columns, table_name=what)
    with pytest.raises(InvalidInputError, match=f"{what}: no column sample_id"):
        read_table([{"other": 1}], columns, table_name=what)
    with pytest.raises(UnsupportedTypeError, match=f"{what}: expected a path"):
        read_table(3, columns, table_name=what)
    with pytest.raises(InvalidInputError, match="different lengths"):
        read_table({"sample_id": ["a"], "LQ1": [1, 2]}, columns, table_name=what)
