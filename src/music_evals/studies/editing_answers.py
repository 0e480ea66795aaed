"""What editors sent, played again from the first note on: the tables that the report reads, and the edited samples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_evals.annotations import Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, TamperedLogError, located
from music_evals.files import folder_written_whole, write_atomically
from music_evals.studies.answers import Participant, participants_of
from music_evals.studies.edit_logs import check_counts, check_log, replay_log
from music_evals.studies.folders import StudyFolder
from music_evals.studies.storage import SubmissionStore
from music_evals.studies.tables import StudyTables, read_study, rows_of, table_text
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.note_changes import note_changes
from music_evals.symbolic.notes import make_notes

__all__ = ["TOOL", "Collected", "collect_edits", "write_collected"]

TOOL = "music_evals piano roll"
"""What the column `tool` of the edits says."""
_LATE_MS = 2_000
"""A page looks at its clock at least so often while it is in front."""


class Collected(NamedTuple):
    """What editors sent, as tables.

    Attributes
    ----------
    tables
        Rows of ``samples``, ``edits`` and, where editors were asked before, ``listening``.
    midi
        Name of a file -> the edited sample.
    participants
        Token -> what an editor said of themselves.

    """

    tables: dict[str, list[dict[str, Any]]]
    midi: dict[str, bytes]
    participants: dict[str, dict[str, Any]]


def collect_edits(
    study: StudyFolder,
    files: Sequence[str | os.PathLike[str]] = (),
    *,
    store: SubmissionStore | None = None,
    leave_out: Sequence[str] = (),
) -> Collected:
    """Play every log again, count it, and return the tables that the report of an editing test reads.

    Parameters
    ----------
    study
        From `studies.folders.read_study_folder`.
    files, store
        As of `studies.answers.participants_of`.
    leave_out
        Tokens of editors who are left out.

    Returns
    -------
    Collected
        Tables, edited samples and what editors said of themselves.

    Raises
    ------
    InvalidInputError
        The study is no editing test, or an answer is none; the message says whose.
    TamperedLogError
        A log that cannot have happened, or whose notes or counts are other ones than the page sent.
    NoDataError
        Nobody finished a sample.

    """
    if study.kind != "editing":
        raise InvalidInputError(f"{study.folder} is a study of the kind {study.kind}; name an editing test")
    key = {row["code"]: dict(row) for row in rows_of(study.key / "samples.csv", what="key/samples.csv")}
    edits: list[dict[str, Any]] = []
    listening: list[dict[str, Any]] = []
    midi: dict[str, bytes] = {}
    said: dict[str, dict[str, Any]] = {}
    for editor in participants_of(study, files, store=store):
        if editor.token in leave_out:
            continue
        said[editor.token] = dict(editor.parts.get("about", {}).get("answers", {}))
        for order, code in enumerate(study.plans[editor.slot]["samples"]):
            name = f"sample-{order + 1}"
            if name not in editor.parts:
                continue
            try:
                row, before, edited = _edit(study, editor, name, code)
            except MusicEvalsError as error:
                raise located(error, f"{editor.token}, {name}") from error
            sample = key[code]["sample_id"]
            edits.append({"sample_id": sample, "editor_id": editor.token, "order_index": order, "tool": TOOL, **row})
            midi[f"{sample}-{editor.token[:8]}.mid"] = edited
            if before:
                listening.append({"sample_id": sample, "listener_id": editor.token, "order_index": order, **before})
    if not edits:
        raise NoDataError(f"nobody finished a sample of {study.folder}")
    samples = [{name: value for name, value in row.items() if name != "code"} for row in key.values()]
    tables = {"samples": samples, "edits": edits, **({"listening": listening} if listening else {})}
    return Collected(tables, midi, said)


def _edit(
    study: StudyFolder, editor: Participant, name: str, code: str
) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return the row of an edit, what was answered before it, and the edited sample as MIDI."""
    part, sample = editor.parts[name], study.settings["samples"][code]
    if not isinstance(part, dict) or part.get("code") != code:
        raise InvalidInputError(f"this is not the sample {code} of plan {editor.slot + 1}")
    log = check_log(part.get("events"))
    notes = replay_log(sample["notes"], log, locked=sample["locked"])
    if part.get("notes") != [[id_, *note] for id_, note in sorted(notes.items())]:
        raise TamperedLogError("the notes that were sent are not those of the log")
    counts = check_counts(log, part.get("counts") or {})
    limit = study.settings["limit_sec"]
    if counts.hit_limit and (limit is None or counts.time_ms < 1000 * limit - _LATE_MS):
        raise TamperedLogError(f"it ends at a time limit after {counts.time_ms} ms, which the study does not have")
    original = _score(sample, dict(enumerate(sample["notes"])))
    edited = _score(sample, notes)
    changes = note_changes(original, edited)
    if study.settings["may_add"] == "no" and any(
        event[1:3] in (["edit", "add"], ["edit", "duplicate"]) for event in log
    ):
        raise TamperedLogError("notes were added, which this study does not allow")
    answers = part.get("answers")
    questions = [question["name"] for question in study.settings["questions"]]
    asked = [question["name"] for question in study.settings["before"]]
    if not isinstance(answers, dict) or not all(type(answers.get(one)) is int for one in (*questions, *asked)):
        raise InvalidInputError(f"expected answers to {', '.join((*asked, *questions))}, got {answers!r}")
    row = {
        "time_s": counts.time_ms / 1000, "key_presses": counts.key_presses, "mouse_clicks": counts.mouse_clicks,
        "hit_limit": counts.hit_limit, **{name: answers[name] for name in questions},
        "active_time_s": counts.active_ms / 1000, "edit_key_presses": counts.edit_key_presses,
        "edit_clicks": counts.edit_clicks, "n_inserted": changes.n_inserted, "n_deleted": changes.n_deleted,
        "n_moved": changes.n_moved, "n_resized": changes.n_resized, "n_repitched": changes.n_repitched,
        "cells_inserted": changes.cells_inserted, "cells_deleted": changes.cells_deleted,
        "edit_distance": changes.distance, "playback_s": counts.playback_ms / 1000,
        "n_edits": counts.n_edits, "n_undone": counts.n_undone,
    }  # fmt: skip
    return row, {name: answers[name] for name in asked}, write_midi(edited)


def _score(sample: Mapping[str, Any], notes: Mapping[int, Sequence[int]]) -> Score:
    """Return the notes of a sample as a score."""
    values = np.array(list(notes.values()), dtype=np.int64).reshape(-1, 5)
    made = make_notes(*(values[:, column] for column in range(5)))
    return Score(
        made,
        sample["ticks_per_quarter"],
        tuple(TimeSignature(*one) for one in sample["time_signatures"]),
        tuple(Tempo(*one) for one in sample["tempos"]),
        voices=tuple(sample["voices"]),
    )


def write_collected(collected: Collected, folder: str | os.PathLike[str]) -> StudyTables:
    """Write the tables as CSV, the edited samples as ``midi/`` and what editors said, whole or not at all.

    Parameters
    ----------
    collected
        From `collect_edits`.
    folder
        Replaced where it holds what this function wrote.

    Returns
    -------
    StudyTables
        As the report reads them.

    Raises
    ------
    InvalidInputError
        The folder holds something else; or a table is wrong.
    OutputError
        It cannot be written.

    """
    target = Path(folder)
    if target.exists() and not (target / "edits.csv").is_file() and any(target.iterdir()):
        raise InvalidInputError(f"{target} holds something else; name a new folder")
    with folder_written_whole(target) as part:
        for name, rows in collected.tables.items():
            write_atomically(part / f"{name}.csv", table_text(rows).encode())
        for name, content in collected.midi.items():
            write_atomically(part / "midi" / name, content, parents=True, sync=False)
        rows = [{"editor_id": token, **answers} for token, answers in collected.participants.items()]
        write_atomically(part / "editors.csv", table_text(rows).encode())
    return read_study(target)
