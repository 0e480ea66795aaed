"""Editors who need no browser: what the page of an editing test sends."""

from __future__ import annotations

from typing import Any

from music_evals.studies.editing.logs import count_log, replay_log
from music_evals.studies.folders import StudyFolder


def edited(study: StudyFolder, slot: int, place: int, *, grade: int = 4, **changes: Any) -> dict[str, Any]:
    """What the page sends of a sample whose first free note was moved up by a semitone."""
    code = study.plans[slot]["samples"][place]
    sample = study.settings["samples"][code]
    number = next(i for i, note in enumerate(sample["notes"]) if note[4] not in sample["locked"])
    before = sample["notes"][number]
    after = [*before[:2], before[2] + 1, *before[3:]]
    log = [
        [0, "load"], [2000, "click", "other", "mouse"], [3000, "key", "edit"],
        [3000, "edit", "move", [[number, before, after]]], [59_900, "click", "other", "mouse"], [60_000, "submit"],
    ]  # fmt: skip
    notes = [[id_, *note] for id_, note in sorted(replay_log(sample["notes"], log).items())]
    answers = {question["name"]: grade for question in (*study.settings["questions"], *study.settings["before"])}
    content = {"code": code, "events": log, "counts": count_log(log)._asdict(), "notes": notes, "answers": answers}
    return content | changes


def part(study: StudyFolder, slot: int, place: int, **changes: Any) -> dict[str, Any]:
    """The same as a submission."""
    return {
        "format": 1, "study": study.study, "kind": "editing", "slot": slot, "sent": place,
        "part": f"sample-{place + 1}", "content": edited(study, slot, place, **changes),
    }  # fmt: skip
