"""Edits that can have happened and are hard to believe: short names of reasons, for whoever reads the results.

A mark is no verdict: `collect` and the report say results with and without what is marked. What cannot have happened
is refused (`logs`). ``benchmarks/studies`` has the share of cheats and of honest editors that each limit marks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.studies.answers import Participant
from music_evals.studies.editing.logs import CHANGES, IDLE_MS, INPUTS, EditCounts
from music_evals.studies.plausibility import FASTER_THAN_TIME, is_possible, passed_sec

__all__ = ["copies", "edit_marks", "mark_editor"]

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
