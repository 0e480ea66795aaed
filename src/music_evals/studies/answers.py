"""What participants sent: their parts, from the store of a server or from the files that a static page gave them.

A part is what is sent at once, such as one edited sample or all ratings; it has a name, and the one that was sent last
under a name counts. A static page gives its participant one file with all parts. `slot` is the plan that was followed.

    {"format": 1, "study": ..., "kind": ..., "slot": 3, "sent": 0, "part": "sample-1", "content": {...}}
    {"format": 1, "study": ..., "kind": ..., "slot": 3, "token": ..., "parts": {"sample-1": {...}, ...}}
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.files import reading
from music_evals.pipelines.study_tables import located_at
from music_evals.studies.folders import StudyFolder
from music_evals.studies.storage import MAX_BYTES, SlotBook, SubmissionStore, is_token

FORMAT = 1
"""Of a submission; another one is refused."""
MAX_PARTS = 64
"""Most parts of one participant."""
FASTER_THAN_TIME = "faster_than_time"
"""Mark of who claims more seconds than passed at the server."""

_OVER_SHARE, _OVER_SEC = 1.02, 1.0
"""By so much may a page count more than the server: clocks differ. Who pauses or sends later had more time."""


class Participant(NamedTuple):
    """All that one participant sent."""

    token: str  # random; says nothing of who it is
    slot: int  # which plan was followed
    parts: dict[str, Any]  # name -> content, as plain values
    joined_at: float | None = None  # Unix seconds of the server's clock; None for static pages and earlier versions
    received_at: Mapping[str, float] = MappingProxyType({})  # name of a part -> when it was stored, where that is known


class Part(NamedTuple):
    """What was sent at once."""

    slot: int  # which plan is followed
    sent: int  # how many parts this participant had sent before
    name: str
    content: Any


def check_part(study: StudyFolder, content: Any) -> Part:
    """Return a part that was sent, or refuse one that is invalid in this study."""
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise InvalidInputError(f"expected a submission of format {FORMAT}")
    if (content.get("study"), content.get("kind")) != (study.study, study.kind):
        raise InvalidInputError(f"the submission is of the study {content.get('study')!r}, not of {study.study!r}")
    slot, sent, name = content.get("slot"), content.get("sent"), content.get("part")
    if type(slot) is not int or not 0 <= slot < len(study.plans):
        raise InvalidInputError(f"slot must be 0..{len(study.plans) - 1}, got {slot!r}")
    if type(sent) is not int or sent < 0:
        raise InvalidInputError(f"sent counts what was sent before, got {sent!r}")
    if not isinstance(name, str) or not 0 < len(name) <= 64 or "content" not in content:
        raise InvalidInputError("a submission names its part, in at most 64 characters, and has a content")
    return Part(slot, sent, name, content["content"])


def read_export(study: StudyFolder, path: str | os.PathLike[str]) -> Participant:
    """Read the file that a static page gave a participant; its errors name the file."""
    with reading(path):
        stored = Path(path).read_bytes()
    with located_at(path):
        if len(stored) > MAX_BYTES * MAX_PARTS:
            raise InvalidInputError(f"{len(stored)} bytes are more than a participant can send")
        try:
            content = json.loads(stored)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"not a file of a study's page ({error})") from error
        content = content if isinstance(content, dict) else {}
        parts, token = content.get("parts"), content.get("token", "")
        if not isinstance(parts, dict) or not 0 < len(parts) <= MAX_PARTS or not is_token(token):
            raise InvalidInputError("not a file of a study's page: it has no parts, or no token")
        about = {**{name: value for name, value in content.items() if name not in {"parts", "token"}}, "sent": 0}
        checked = [check_part(study, {**about, "part": name, "content": part}) for name, part in parts.items()]
    return Participant(token, checked[0].slot, {part.name: part.content for part in checked})


def participants_of(
    study: StudyFolder, files: Sequence[str | os.PathLike[str]] = (), *, store: SubmissionStore | None = None
) -> tuple[Participant, ...]:
    """Return everybody who sent something, by token: to the store (by default that of the study), or in files."""
    store = store if store is not None else SubmissionStore(study.submissions)
    participants: dict[str, Participant] = {}
    joined = SlotBook(store.folder, len(study.plans)).joined()
    sent: dict[str, list[tuple[Part, float | None]]] = {}
    for submission in store.read(or_none=True):
        with located_at(f"submission {submission.receipt[:12]} of {submission.token}"):
            part = check_part(study, submission.content)
        sent.setdefault(submission.token, []).append((part, submission.received_at))
    for token, parts in sent.items():
        parts.sort(key=lambda entry: (entry[0].sent, entry[1] or 0.0))
        slots = {part.slot for part, _ in parts}
        if len(slots) > 1:
            raise InvalidInputError(f"{token} followed the plans {sorted(slots)}; a participant has one")
        contents = {part.name: part.content for part, _ in parts}
        received = {part.name: at for part, at in parts if at is not None}
        participants[token] = Participant(token, slots.pop(), contents, joined.get(token, (0, None))[1], received)
    for participant in (read_export(study, path) for path in files):
        if participant.token in participants:
            raise InvalidInputError(f"{participant.token} was sent to the server and is in a file too; name one")
        participants[participant.token] = participant
    if not participants:
        raise NoDataError(f"nobody sent anything to {study.folder}; name the files that participants got")
    return tuple(participants[token] for token in sorted(participants))


def passed_sec(start: float | None, end: float | None) -> float:
    """Return the seconds between two times of the server; NaN where one is not known, or the clock was set back."""
    return math.nan if start is None or end is None or end < start else end - start


def is_possible(claimed_sec: float, passed: float) -> bool:
    """Tell whether a page can have spent so much where `passed` seconds passed; True if unknown (NaN)."""
    return not claimed_sec > _OVER_SHARE * passed + _OVER_SEC
