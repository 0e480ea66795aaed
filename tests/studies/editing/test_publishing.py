"""The logs of an editing test as a data set: of those who agreed, of samples that may be shown, and of nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from tests.editors import part
from tests.studies.editing.test_study import rewritten

from music_evals.csv_files import csv_rows
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.hub.heads import read_head
from music_evals.studies.editing.answers import collect_edits, write_collected
from music_evals.studies.editing.logs import check_log
from music_evals.studies.editing.publishing import write_logs
from music_evals.studies.editing.study import CONSENT
from music_evals.studies.folders import StudyFolder
from music_evals.studies.storage import SubmissionStore, new_token

Build = Callable[..., StudyFolder]


def answer(study: StudyFolder, slot: int, **about: Any) -> str:
    """An editor who does all samples and says something of themselves."""
    store, token = SubmissionStore(study.submissions), new_token()
    for place in range(len(study.plans[slot]["samples"])):
        store.submit(token, part(study, slot, place))
    head = {"format": 1, "study": study.study, "kind": "editing", "slot": slot, "sent": 9, "part": "about"}
    store.submit(token, {**head, "content": {"answers": {"editing_years": "Ada of Paris", **about}}})
    return token


@pytest.fixture
def study(build: Build, samples: Path) -> StudyFolder:
    """A study with four editors, of which the notes of one sample may be published."""
    table = rewritten(samples, 0, licence="CC-BY-4.0")
    return build(table=table, n_editors=4)


def test_the_page_asks_unticked_whether_the_log_may_be_published(study: StudyFolder) -> None:
    asked = next(question for question in study.settings["about"] if question["name"] == CONSENT)
    assert asked["tick"] is True
    assert "options" not in asked


def test_only_those_who_agreed_are_in_the_data_set(study: StudyFolder, tmp_path: Path) -> None:
    agreed, silent, refused, loud = (
        answer(study, slot, **about)
        for slot, about in enumerate(({CONSENT: True}, {}, {CONSENT: False}, {CONSENT: "true"}))
    )
    n_agreed = write_logs(study, collect_edits(study), tmp_path / "logs", licence="cc-by-4.0")
    assert n_agreed == 1
    rows = parquet.read_table(tmp_path / "logs" / "data" / "edits.parquet").to_pylist()
    assert len(rows) == len(study.plans[0]["samples"])
    assert {row["editor_id"] for row in rows} == {"editor-01"}
    assert all(isinstance(row["marks"], str) and row["time_s"] == 60 for row in rows)
    everything = b"".join(path.read_bytes() for path in (tmp_path / "logs").rglob("*") if path.is_file())
    for secret in (agreed, silent, refused, loud, agreed[:8], "Ada", "Paris"):
        assert secret.encode() not in everything
    card = (tmp_path / "logs" / "README.md").read_text()
    head = read_head(card)
    assert head["license"] == "cc-by-4.0"
    assert {config["config_name"] for config in head["configs"]} == {"edits", "samples"}
    assert f"1 of 4 editors agreed: {len(rows)} of {4 * len(rows)} edits" in card
    assert "| `time_s` | number |" in card


def test_notes_are_there_where_their_licence_allows_it(study: StudyFolder, tmp_path: Path) -> None:
    for slot in range(4):
        answer(study, slot, **{CONSENT: True})
    collected = collect_edits(study)
    write_logs(study, collected, tmp_path / "logs", licence="cc-by-4.0")
    samples = parquet.read_table(tmp_path / "logs" / "data" / "samples.parquet").to_pylist()
    assert len(samples) == 4
    free = {row["sample_id"]: json.loads(row["notes"]) for row in samples if row["notes"]}
    assert list(free) == [row["sample_id"] for row in samples if row["licence"]] == ["ode-ours"]
    assert len(free["ode-ours"]) == 7
    rows = parquet.read_table(tmp_path / "logs" / "data" / "edits.parquet").to_pylist()
    assert {row["sample_id"] for row in rows} > set(free)
    for row in rows:
        events = json.loads(row["events"])
        change = next(event for event in events if event[1] == "edit")
        if row["sample_id"] in free:
            assert check_log(events)
        else:
            assert change[2:] == ["move", 1]  # how many notes, and none of them


def test_who_withdraws_is_gone_the_next_time(study: StudyFolder, tmp_path: Path) -> None:
    first, second = (answer(study, slot, **{CONSENT: True}) for slot in range(2))
    assert write_logs(study, collect_edits(study), tmp_path / "logs", licence="cc0-1.0") == 2
    SubmissionStore(study.submissions).withdraw(first)
    assert write_logs(study, collect_edits(study), tmp_path / "logs", licence="cc0-1.0") == 1  # over its own
    SubmissionStore(study.submissions).withdraw(second)
    answer(study, 2)
    with pytest.raises(NoDataError, match="agreed"):
        write_logs(study, collect_edits(study), tmp_path / "logs", licence="cc0-1.0")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("x")
    answer(study, 3, **{CONSENT: True})
    with pytest.raises(InvalidInputError, match="something else"):
        write_logs(study, collect_edits(study), tmp_path / "mine", licence="cc0-1.0")
    with pytest.raises(InvalidInputError, match="licence"):
        write_logs(study, collect_edits(study), tmp_path / "other", licence="mine: yes\n")


def test_what_participants_send_of_themselves_may_be_anything(build: Build) -> None:
    study = build()
    store, token = SubmissionStore(study.submissions), new_token()
    store.submit(token, part(study, 0, 0))
    head = {"format": 1, "study": study.study, "kind": "editing", "slot": 0, "sent": 9, "part": "about"}
    store.submit(token, {**head, "content": ["no answers"]})
    assert collect_edits(study).participants == {token: {}}


@pytest.mark.parametrize(
    ("licence", "expected"),
    [("CC-BY-4.0", True), ("cc0-1.0", True), ("CC BY-NC 4.0", True), ("Public Domain", True), (" mit", True),
     ("", False), ("all rights reserved", False), ("CC-BY-ND-4.0", False), ("CC-BY-NC-ND-4.0", False),
     ("CC BY-NoDerivatives 4.0", False), ("cc-by-noderivs", False), ("mitten", False)],
)  # fmt: skip
def test_licences_that_let_changed_notes_be_published(
    build: Build, samples: Path, tmp_path: Path, licence: str, expected: bool
) -> None:
    study = build(table=rewritten(samples, 0, licence=licence))
    answer(study, 0, **{CONSENT: True})
    write_logs(study, collect_edits(study), tmp_path / "logs", licence="cc0-1.0")
    rows = parquet.read_table(tmp_path / "logs" / "data" / "samples.parquet").to_pylist()
    assert any(row["notes"] for row in rows) is expected


def test_what_editors_say_of_themselves_names_nobody_else(study: StudyFolder, tmp_path: Path) -> None:
    token = answer(study, 0, editor_id="somebody else")
    write_collected(collect_edits(study), tmp_path / "collected")
    (row,) = csv_rows((tmp_path / "collected" / "editors.csv").read_text(encoding="utf-8"), "editors.csv")
    assert row["editor_id"] == token
