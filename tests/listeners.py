"""Listeners who need no browser: what their page would send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from music_evals.studies.folders import StudyFolder
from music_evals.studies.listening.answers import ListeningKey
from music_evals.studies.listening.results import ANSWERS
from music_evals.studies.storage import SlotBook, SubmissionStore, new_token

QUALITY = {"reference": 5, "x": 4, "y": 2, "anchor": 1}
"""What they think of each system, 1 to 5."""


def sent(
    plans: Sequence[Mapping[str, Any]], key: ListeningKey, slot: int = 0, *, tones: int | None = None
) -> dict[str, Any]:
    """What an honest listener sends; `tones` is counted in every attention check where it is given."""

    def quality(file: str) -> int:
        return QUALITY[key.pairs[PurePosixPath(file).name].system]

    def value(file: str, trial: Mapping[str, Any]) -> int:
        if trial["type"] == "check":
            return tones or key.checks[PurePosixPath(file).name]
        if trial["type"] == "ab":
            return int(quality(file) == max(map(quality, trial["stimuli"])))
        return quality(file) * (20 if trial["type"] == "mushra" else 1)

    trials = []
    for trial in plans[slot]["trials"]:
        played = [*trial["stimuli"], *filter(None, [trial["reference"]])]
        lengths = {file: key.seconds[PurePosixPath(file).name] for file in played}
        answers = {name: {file: value(file, trial) for file in trial["stimuli"]} for name in trial["questions"]}
        trials.append({"answers": answers, "heard_sec": lengths, "seconds": sum(lengths.values()) + 2})
    return {"slot": slot, "trials": trials}


def submit(study: StudyFolder, content: Any, slot: int, *, part: str = ANSWERS) -> str:
    """Store what a listener sent, and return its token."""
    token = new_token()
    head = {"format": 1, "study": study.study, "kind": study.kind, "slot": slot, "sent": 0}
    SubmissionStore(study.submissions).submit(token, {**head, "part": part, "content": content})
    return token


def attend(
    study: StudyFolder, answers: Callable[[int], Any], passed_sec: float, *, code: str = "", at: float = 1_000_000.0
) -> str:
    """Join and send as through a server whose clock moves `passed_sec` in between, and return the token.

    `answers` are those to a plan, by its number.
    """
    token, slot = SlotBook(study.submissions, len(study.plans), clock=lambda: at).join(code)
    head = {"format": 1, "study": study.study, "kind": study.kind, "slot": slot, "sent": 0, "part": ANSWERS}
    store = SubmissionStore(study.submissions, clock=lambda: at + passed_sec)
    store.submit(token, {**head, "content": answers(slot)})
    return token


def claimed_sec(content: Mapping[str, Any]) -> float:
    """What the page of a listener claims to have been open."""
    return float(sum(trial["seconds"] for trial in content["trials"]))
