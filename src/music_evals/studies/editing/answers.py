"""What editors sent, played again from the first note on: the tables that the report reads, and the edited samples.

Edits that can have happened and are hard to believe are marked by short names of reasons, for whoever reads the
results. A mark is no verdict: `collect` and the report say results with and without what is marked. What cannot have
happened is refused (`logs`). ``benchmarks/studies`` has the share of cheats and of honest editors that each limit
marks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_evals.annotations import Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError, NoDataError, TamperedLogError
from music_evals.files import folder_written_whole, write_atomically
from music_evals.pipelines.study_tables import StudyTables, located_at, read_study, rows_of, table_text
from music_evals.studies.answers import FASTER_THAN_TIME, Participant, is_possible, participants_of, passed_sec
from music_evals.studies.editing.logs import CHANGES, IDLE_MS, INPUTS, EditCounts, check_counts, check_log, replay_log
from music_evals.studies.folders import StudyFolder
from music_evals.studies.storage import SubmissionStore
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.note_changes import note_changes
from music_evals.symbolic.notes import make_notes

__all__ = ["TOOL", "Collected", "collect_edits", "copies", "edit_marks", "mark_editor", "write_collected"]

TOOL = "music_evals piano roll"
"""What the column `tool` of the edits says."""
_LATE_MS = 2_000
"""A page looks at its clock at least so often while it is in front."""


class Collected(NamedTuple):
    """What editors sent, as tables."""

    tables: dict[str, list[dict[str, Any]]]  # samples, edits; listening where editors were asked before
    midi: dict[str, bytes]  # name of a file -> the edited sample
    participants: dict[str, dict[str, Any]]  # token -> what an editor said of themselves
    logs: list[list[list[Any]]]  # events, one list a row of ``edits``
    n_left_out: int = 0  # edits that were marked and are not here


def collect_edits(
    study: StudyFolder,
    files: Sequence[str | os.PathLike[str]] = (),
    *,
    store: SubmissionStore | None = None,
    leave_out: Sequence[str] = (),
    leave_out_marked: bool = False,
) -> Collected:
    """Play every log again, count it, and return the tables that the report of an editing test reads.

    `files` are what static pages gave to editors, beside the store, by default that of the study; editors whose tokens
    are in `leave_out` are left out, and with `leave_out_marked` the edits that are marked as hard to believe
    (`edit_marks`).

    Raises `InvalidInputError` where the study is no editing test, or an answer is invalid (the message says whose),
    `TamperedLogError` for a log that is impossible, or whose notes or counts differ from those that the page sent, and
    `NoDataError` where nobody finished a sample.
    """
    if study.kind != "editing":
        raise InvalidInputError(f"{study.folder} is a study of the kind {study.kind}; name an editing test")
    key = {row["code"]: dict(row) for row in rows_of(study.key / "samples.csv", table_name="key/samples.csv")}
    edits: list[_Edited] = []
    participants: dict[str, dict[str, Any]] = {}
    questions = [question["name"] for question in study.settings["questions"]]
    for editor in participants_of(study, files, store=store):
        if editor.token in leave_out:
            continue
        about = editor.parts.get("about")
        answers = about.get("answers") if isinstance(about, dict) else None
        participants[editor.token] = answers if isinstance(answers, dict) else {}
        own = {}
        for order, code in enumerate(study.plans[editor.slot]["samples"]):
            name = f"sample-{order + 1}"
            if name in editor.parts:
                with located_at(f"{editor.token}, {name}"):
                    edit = _edit(study, editor, name, code)
                whose = {"sample_id": key[code]["sample_id"], "editor_id": editor.token}
                own[name] = edit._replace(row={**whose, "order_index": order, "tool": TOOL, **edit.row})
        mark_editor(editor, {name: edit.row for name, edit in own.items()}, questions)
        edits += own.values()
    for place in copies([edit.log for edit in edits], [edit.received_at for edit in edits]):
        edits[place].row["marks"].append("same_as_another")
    left = [edit for edit in edits if not (leave_out_marked and edit.row["marks"])]
    if not left:
        raise NoDataError(f"nobody finished a sample of {study.folder}{', but for marked ones' if edits else ''}")
    for edit in left:
        edit.row["marks"] = " ".join(edit.row["marks"])
    tables = {
        "samples": [{name: value for name, value in row.items() if name != "code"} for row in key.values()],
        "edits": [edit.row for edit in left],
        "listening": [
            {"sample_id": edit.row["sample_id"], "listener_id": edit.row["editor_id"],
             "order_index": edit.row["order_index"], **edit.before}
            for edit in left if edit.before
        ],
    }  # fmt: skip
    tables = {name: rows for name, rows in tables.items() if rows}
    midi = {f"{edit.row['sample_id']}-{edit.row['editor_id'][:8]}.mid": edit.midi for edit in left}
    return Collected(tables, midi, participants, [edit.log for edit in left], len(edits) - len(left))


class _Edited(NamedTuple):
    row: dict[str, Any]
    before: dict[str, Any]
    midi: bytes
    log: list[list[Any]]
    received_at: float


def _edit(study: StudyFolder, editor: Participant, name: str, code: str) -> _Edited:
    """Return what an editor did with a sample."""
    part, sample = editor.parts[name], study.settings["samples"][code]
    if not isinstance(part, dict) or part.get("code") != code:
        raise InvalidInputError(f"this is not the sample {code} of plan {editor.slot + 1}")
    log = check_log(part.get("events"))
    notes = replay_log(sample["notes"], log, locked=sample["locked"])
    if part.get("notes") != [[id_, *note] for id_, note in sorted(notes.items())]:
        raise TamperedLogError("the notes that were sent are not those of the log")
    counted = part.get("counts")
    counts = check_counts(log, counted if isinstance(counted, dict) else {})
    limit = study.settings["limit_sec"]
    if counts.hit_limit and (limit is None or counts.time_ms < 1000 * limit - _LATE_MS):
        raise TamperedLogError(f"it ends at a time limit after {counts.time_ms} ms, which the study does not have")
    edited = _score(sample, notes)
    changes = note_changes(_score(sample, dict(enumerate(sample["notes"]))), edited)
    adds = any(event[1:3] in (["edit", "add"], ["edit", "duplicate"]) for event in log)
    if adds and study.settings["may_add"] == "no":
        raise TamperedLogError("notes were added, which this study does not allow")
    answers = part.get("answers")
    questions = [question["name"] for question in study.settings["questions"]]
    before = [question["name"] for question in study.settings["before"]]
    if not isinstance(answers, dict) or not all(type(answers.get(key)) is int for key in (*questions, *before)):
        raise InvalidInputError(f"expected answers to {', '.join((*before, *questions))}, got {answers!r}")
    row = {
        "time_s": counts.time_ms / 1000, "key_presses": counts.key_presses, "mouse_clicks": counts.mouse_clicks,
        "hit_limit": counts.hit_limit, **{name: answers[name] for name in questions},
        "active_time_s": counts.active_ms / 1000, "edit_key_presses": counts.edit_key_presses,
        "edit_clicks": counts.edit_clicks, "n_inserted": changes.n_inserted, "n_deleted": changes.n_deleted,
        "n_moved": changes.n_moved, "n_resized": changes.n_resized, "n_repitched": changes.n_repitched,
        "cells_inserted": changes.cells_inserted, "cells_deleted": changes.cells_deleted,
        "edit_distance": changes.distance, "playback_s": counts.playback_ms / 1000,
        "n_edits": counts.n_edits, "n_undone": counts.n_undone, "n_midi": counts.n_midi,
        "marks": edit_marks(log, counts, is_changed=sorted(notes.values()) != sorted(map(tuple, sample["notes"]))),
    }  # fmt: skip
    received_at = editor.received_at.get(name, math.inf)
    return _Edited(row, {key: answers[key] for key in before}, write_midi(edited), log, received_at)


def _score(sample: Mapping[str, Any], notes: Mapping[int, Sequence[int]]) -> Score:
    """Return the notes of a sample as a score."""
    values = np.array(list(notes.values()), dtype=np.int64).reshape(-1, 5)
    score_notes = make_notes(*(values[:, column] for column in range(5)))
    return Score(
        score_notes,
        sample["ticks_per_quarter"],
        tuple(TimeSignature(*fields) for fields in sample["time_signatures"]),
        tuple(Tempo(*fields) for fields in sample["tempos"]),
        voices=tuple(sample["voices"]),
    )


def write_collected(collected: Collected, folder: str | os.PathLike[str]) -> StudyTables:
    """Write the tables as CSV, the edited samples as ``midi/`` and what editors said, and read the tables.

    Raises `InvalidInputError`: the folder holds something else than this function wrote; or a table is wrong;
    `OutputError`: it cannot be written.
    """
    target = Path(folder)
    if target.exists() and not (target / "edits.csv").is_file() and any(target.iterdir()):
        raise InvalidInputError(f"{target} holds something else; name a new folder")
    with folder_written_whole(target) as part:
        for name, rows in collected.tables.items():
            write_atomically(part / f"{name}.csv", table_text(rows).encode())
        for name, content in collected.midi.items():
            write_atomically(part / "midi" / name, content, parents=True, sync=False)
        rows = [{"editor_id": ""} | answers | {"editor_id": token} for token, answers in collected.participants.items()]
        write_atomically(part / "editors.csv", table_text(rows).encode())
    return read_study(target)


SEEN_MS = 3000  # in less nobody looks through a sample and ends it
FIRST_MS = 700  # in less nobody sees a note and chooses what to do with it: a choice alone takes half a second
HANDS_PER_SEC = 25  # keys and clicks: typing 300 words a minute
REPEATS_PER_SEC = 100  # changes of a key that is held: systems offer 67 repeats
MANY, REGULAR = 20, 2.0  # of so many gaps between inputs the 90th percentile is more times the 10th: hands have pauses
OPEN_MS = 300_000  # who does less than one thing a minute for longer, and does not listen, was not there
HEARD_MS = 2000  # who changes nothing and has heard less cannot say how it sounds
ALIKE = 3  # who answers all questions on so many samples alike did not rate them
BATCH_SEC = 60.0  # parts that come so soon after another may have waited for a connection together


def edit_marks(log: Sequence[Sequence[Any]], counts: EditCounts, *, is_changed: bool) -> list[str]:
    """Return why an edit is hard to believe, of its checked log and whether its notes are other ones at the end."""
    inputs, changes = (np.array([at for at, kind, *_ in log if kind in kinds]) for kinds in (INPUTS, CHANGES))
    low, high = np.quantile(np.diff(inputs), [0.1, 0.9]) if len(inputs) > MANY else (0, math.inf)
    pace = ((inputs, HANDS_PER_SEC), (changes, REPEATS_PER_SEC))  # so many and one more within a second
    is_fast = any((times[most:] - times[:-most] < 1000).any() for times, most in pace)
    open_ms = counts.time_ms - counts.playback_ms
    closed_ms = sum(min(event[2], IDLE_MS) for event in log if event[1] == "absent")
    visible_ms = counts.active_ms - closed_ms + sum(event[2] for event in log if event[1] == "idle")
    reasons = {
        "too_short": visible_ms < SEEN_MS,
        "changed_unseen": len(changes) > 0 and changes[0] < FIRST_MS,
        "faster_than_hands": is_fast,
        "regular": high <= REGULAR * low,
        "left_open": open_ms > OPEN_MS and 60_000 * len(inputs) < open_ms,
        "unheard": not counts.n_edits and counts.playback_ms < HEARD_MS,
        "nothing_kept": counts.n_edits > 1 and not is_changed,
    }
    return [name for name, is_so in reasons.items() if is_so]


def mark_editor(editor: Participant, rows: Mapping[str, dict[str, Any]], questions: Sequence[str]) -> None:
    """Add to the ``marks`` of the rows of an editor, by part, what only all of them and the server's clock say."""
    start, last, claimed = editor.joined_at, editor.joined_at, 0.0
    for name in sorted(rows.keys() & editor.received_at, key=editor.received_at.__getitem__):
        now = editor.received_at[name]
        if last is None or now - last > BATCH_SEC:
            start, claimed = last, 0.0
        last, claimed = now, claimed + rows[name]["time_s"]
        if not is_possible(claimed, passed_sec(start, now)):
            rows[name]["marks"].append(FASTER_THAN_TIME)
    if len(rows) >= ALIKE and len({row[question] for row in rows.values() for question in questions}) == 1:
        for row in rows.values():
            row["marks"].append("answers_alike")


def copies(logs: Sequence[Sequence[Sequence[Any]]], arrived: Sequence[float]) -> set[int]:
    """Return the places of logs that repeat the events or the times of one that arrived earlier."""
    places_by_key: dict[Any, list[int]] = {}
    for place in sorted(range(len(logs)), key=arrived.__getitem__):
        times = tuple(at for at, kind, *_ in logs[place] if kind in INPUTS)
        done = repr([rest for _, *rest in logs[place] if rest[0] in INPUTS | CHANGES])
        for key in (times, done) if len(times) > MANY else ():
            places_by_key.setdefault(key, []).append(place)
    alike = [places for places in places_by_key.values() if len(places) > 1]
    return {place for places in alike for place in places[math.isfinite(arrived[places[0]]) :]}
