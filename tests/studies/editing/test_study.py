"""From samples to a study, and from what editors sent to its tables and its report."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.editors import edited, part

from music_evals.errors import InvalidInputError, NoDataError, PairCountError, TamperedLogError, UnreadableFileError
from music_evals.pipelines.editing_test import evaluate_editing_test
from music_evals.pipelines.study_tables import rows_of
from music_evals.studies.answers import Participant
from music_evals.studies.editing.answers import Collected, collect_edits, mark_editor, write_collected
from music_evals.studies.editing.logs import count_log
from music_evals.studies.editing.study import EditingSettings
from music_evals.studies.folders import PAGE as PAGE_FOLDER
from music_evals.studies.folders import StudyFolder
from music_evals.studies.storage import SubmissionStore, new_token
from music_evals.symbolic.midi import read_midi

Build = Callable[..., StudyFolder]


def rewritten(table: Path, row: int, **cells: str) -> Path:
    """A table beside another one, with other cells in a row."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[row] |= cells
    path = table.with_name("other.csv")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def send(study: StudyFolder, *, grade: int = 4, **changes: Any) -> list[str]:
    """Both editors send all of their samples; the first also says something of himself."""
    store, tokens = SubmissionStore(study.submissions), []
    for slot, plan in enumerate(study.plans):
        tokens.append(new_token())
        for place in range(len(plan["samples"])):
            store.submit(tokens[-1], part(study, slot, place, grade=grade, **changes))
    about = {"format": 1, "study": study.study, "kind": "editing", "slot": 0, "sent": 9, "part": "about"}
    store.submit(tokens[0], {**about, "content": {"answers": {"editing_years": "3 to 9"}}})
    return tokens


def test_nothing_of_the_page_says_who_made_a_sample(build: Build) -> None:
    study = build()
    text = b"".join(path.read_bytes() for path in (study.folder / PAGE_FOLDER).rglob("*") if path.is_file()).decode()
    text += (study.folder / "study.json").read_text()
    for word in ("ours-", "theirs", "proposed", "baseline", "by ours", "reel", "bach", ".mid"):
        assert word not in text, word
    names = [row["sample_id"] for row in rows_of(study.key / "samples.csv", table_name="key")]
    assert sorted(names) == ["ode-ours", "ode-theirs", "reel-ours", "reel-theirs"]


def test_other_seeds_have_other_codes_and_the_same_seed_the_same(build: Build) -> None:
    first, again, other = (build(name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert first.plans == again.plans
    assert set(first.settings["samples"]) & set(other.settings["samples"]) == {"training"}


def test_a_sample_is_what_its_file_holds_on_a_grid_for_triplets(build: Build) -> None:
    study = build()
    code = study.plans[0]["samples"][0]
    sample = study.settings["samples"][code]
    assert sample["ticks_per_quarter"] == 480
    assert sample["end_tick"] == 1920
    assert sample["locked"] == [0]
    assert sample["voices"] == ["melody", "accompaniment"]
    assert sample["tempos"] == [[0, 100.0]]
    assert len(sample["notes"]) == 7
    training = study.settings["samples"]["training"]
    assert training["ticks_per_quarter"] % 24 == 0
    assert training["end_tick"] == 8 * training["ticks_per_quarter"]


def test_what_editors_sent_becomes_the_tables_of_the_report(build: Build, tmp_path: Path) -> None:
    study = build()
    tokens = send(study)
    collected = collect_edits(study)
    tables = write_collected(collected, tmp_path / "out")
    assert len(tables.edits["time_s"]) == 4
    assert set(tables.edits["editor_id"]) == set(tokens)
    row = collected.tables["edits"][0]
    assert (row["time_s"], row["active_time_s"], row["key_presses"], row["mouse_clicks"]) == (60, 60, 1, 2)
    assert (row["edit_key_presses"], row["edit_clicks"], row["n_repitched"], row["n_inserted"]) == (1, 0, 1, 0)
    assert (row["cells_inserted"], row["cells_deleted"], row["hit_limit"]) == (32, 32, False)
    assert row["edit_distance"] == pytest.approx(1 / 7)
    assert collected.participants[tokens[0]] == {"editing_years": "3 to 9"}
    found = evaluate_editing_test(tables)
    assert [one["geometric_mean"] for one in found["ratios"]] == pytest.approx([1] * len(found["ratios"]))
    midi = sorted((tmp_path / "out" / "midi").iterdir())
    assert len(midi) == 4
    by_pitch = sorted(read_midi(midi[0]).notes["pitch"].tolist())
    assert 49 in by_pitch or 52 in by_pitch
    write_collected(collected, tmp_path / "out")  # again, over its own
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("x")
    with pytest.raises(InvalidInputError, match="something else"):
        write_collected(collected, tmp_path / "mine")


def test_marked_edits_stay_in_the_tables_unless_they_are_left_out(build: Build, tmp_path: Path) -> None:
    study = build()
    store, hasty, slow = SubmissionStore(study.submissions), new_token(), new_token()
    content = edited(study, 0, 0)
    log = [[at // 20, *rest] for at, *rest in content["events"]]  # opened, changed and ended in 3 s
    counts = count_log(log)._asdict()
    store.submit(hasty, part(study, 0, 0, events=[[at // 2, *rest] for at, *rest in log],
                             counts=count_log([[at // 2, *rest] for at, *rest in log])._asdict()))  # fmt: skip
    store.submit(slow, part(study, 1, 0))
    store.submit(slow, part(study, 1, 1, events=log, counts=counts))
    collected = collect_edits(study)
    marks = {(row["editor_id"], row["order_index"]): row["marks"] for row in collected.tables["edits"]}
    assert marks == {(hasty, 0): "too_short changed_unseen", (slow, 0): "", (slow, 1): "changed_unseen"}
    assert collected.n_left_out == 0
    tables = write_collected(collected, tmp_path / "out")
    assert sorted(tables.edits["marks"]) == sorted(marks.values())
    kept = collect_edits(study, leave_out_marked=True)
    assert [row["editor_id"] for row in kept.tables["edits"]] == [slow]
    assert (kept.n_left_out, len(kept.midi), len(kept.logs)) == (2, 1, 1)
    with pytest.raises(NoDataError, match="marked"):
        collect_edits(study, leave_out=[slow], leave_out_marked=True)


def test_what_the_clock_of_the_server_and_the_answers_of_all_samples_say_is_marked() -> None:
    rows = {f"sample-{n}": {"time_s": 600.0, "EQ1": 4, "EQ2": 4, "marks": ["regular"]} for n in (1, 2, 3)}
    received = {"sample-1": 700.0, "sample-2": 900.0, "sample-3": 2000.0}
    mark_editor(Participant("t", 0, {}, 50.0, received), rows, ["EQ1", "EQ2"])
    assert [row["marks"] for row in rows.values()] == [
        ["regular", "answers_alike"], ["regular", "faster_than_time", "answers_alike"], ["regular", "answers_alike"]
    ]  # fmt: skip
    rows["sample-3"] |= {"EQ2": 3, "marks": []}
    mark_editor(Participant("t", 0, {}), rows, ["EQ1", "EQ2"])
    assert rows["sample-3"]["marks"] == []


def test_what_is_asked_before_is_a_listening_table(build: Build, tmp_path: Path) -> None:
    study = build(ask_before=True)
    send(study, grade=2)
    tables = write_collected(collect_edits(study), tmp_path / "out")
    assert tables.listening is not None
    assert tables.listening["LQ1"].tolist() == [2, 2, 2, 2]


def test_who_is_left_out_and_who_did_not_finish_are_not_in_the_tables(build: Build) -> None:
    study = build()
    store, token, other = SubmissionStore(study.submissions), new_token(), new_token()
    store.submit(token, part(study, 0, 1))
    store.submit(other, part(study, 1, 0))
    collected = collect_edits(study, leave_out=[other])
    assert [(row["editor_id"], row["order_index"]) for row in collected.tables["edits"]] == [(token, 1)]
    with pytest.raises(NoDataError):
        collect_edits(study, leave_out=[token, other])


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"code": "12345"}, InvalidInputError, "not the sample"),
        ({"events": []}, TamperedLogError, "2 events"),
        ({"notes": []}, TamperedLogError, "notes that were sent"),
        ({"counts": {}}, TamperedLogError, "the page counted"),
        ({"counts": None}, TamperedLogError, "the page counted"),
        ({"counts": ["time_ms"]}, TamperedLogError, "the page counted"),
        ({"answers": {"EQ1": 4}}, InvalidInputError, "EQ1, EQ2, EQ3"),
        ({"answers": {"EQ1": 4, "EQ2": True, "EQ3": 4}}, InvalidInputError, "EQ1, EQ2, EQ3"),
        ({"answers": None}, InvalidInputError, "EQ1, EQ2, EQ3"),
    ],
)
def test_what_no_page_sends_is_refused_with_whose_it_is(
    build: Build, changes: dict[str, Any], error: type[Exception], said: str
) -> None:
    study = build()
    tokens = send(study, **changes)
    with pytest.raises(error, match=said) as raised:
        collect_edits(study)
    assert min(tokens) in str(raised.value)
    assert "sample-1" in str(raised.value)


def test_ratings_outside_of_the_scale_are_refused(build: Build, tmp_path: Path) -> None:
    study = build()
    send(study, grade=6)
    with pytest.raises(InvalidInputError, match=r"row 1.*EQ1"):
        write_collected(collect_edits(study), tmp_path / "out")
    assert not (tmp_path / "out" / "report").exists()


def test_a_time_limit_that_was_not_reached_is_refused(build: Build) -> None:
    study = build(limit_sec=1000.0)
    content = edited(study, 0, 0)
    log = [*content["events"][:-1], [60_000, "limit"], [60_000, "submit"]]
    counts = {**content["counts"], "hit_limit": True}
    SubmissionStore(study.submissions).submit(new_token(), part(study, 0, 0, events=log, counts=counts))
    with pytest.raises(TamperedLogError, match="time limit"):
        collect_edits(study)


def test_notes_that_may_not_be_added_are_refused(build: Build) -> None:
    study = build(may_add="no")
    content = edited(study, 0, 0)
    added = [[4000, "key", "edit"], [4000, "edit", "add", [[7, None, [0, 60, 40, 80, 1]]]]]
    log = [*content["events"][:-2], *added, *content["events"][-2:]]
    notes = [*content["notes"], [7, 0, 60, 40, 80, 1]]
    counts = {**content["counts"], "n_edits": 2, "key_presses": 2, "edit_key_presses": 2}
    SubmissionStore(study.submissions).submit(new_token(), part(study, 0, 0, events=log, notes=notes, counts=counts))
    with pytest.raises(TamperedLogError, match="notes were added"):
        collect_edits(study)


@pytest.mark.parametrize(
    ("cells", "error", "said"),
    [
        ({"midi": ""}, InvalidInputError, "row 2: no file"),
        ({"midi": "none.mid"}, NoDataError, "row 2"),
        ({"midi": "other.csv"}, UnreadableFileError, "row 2"),
        ({"role": "proposed"}, PairCountError, "baseline|proposed"),
        ({"role": "best"}, InvalidInputError, "role"),
        ({"sample_id": "ode-ours"}, PairCountError, "ode-ours"),
    ],
)
def test_a_wrong_row_of_samples_is_named(
    build: Build, samples: Path, cells: dict[str, str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        build(table=rewritten(samples, 1, **cells))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_editors": 1}, "too few"),
        ({"per_editor": 3}, "2 pieces"),
        ({"locked": ("Tuba",)}, "'Tuba'"),
        ({"locked": ("Melody", "by ours", "by theirs")}, "by theirs"),
    ],
)
def test_a_design_that_cannot_be_is_refused(build: Build, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        build(**settings)


@pytest.mark.parametrize("wrong", [{"limit_sec": 0}, {"may_add": "maybe"}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        EditingSettings(**wrong)


def test_the_key_and_settings_are_kept(build: Build) -> None:
    study = build(limit_sec=None)
    assert json.loads((study.key / "design.json").read_text())["limit_sec"] is None
    assert study.settings["limit_sec"] is None
    assert isinstance(Collected({}, {}, {}, []).tables, dict)
