"""Stands in for `studies.folders` and `studies.answers` until both are here: same names, same files, fewer checks."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.files import write_atomically
from music_evals.studies.storage import SubmissionStore

__all__ = ["Introduction", "Participant", "StudyFolder", "participants_of", "read_study_folder", "write_study_folder"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Introduction:
    """What participants read first."""

    title: str
    consent: tuple[str, ...]
    instructions: tuple[str, ...]


class StudyFolder(NamedTuple):
    """A study that was read."""

    folder: Path
    study: str
    kind: str
    introduction: Introduction
    settings: dict[str, Any]
    plans: tuple[dict[str, Any], ...]

    @property
    def key(self) -> Path:
        """Folder of what its leader alone sees."""
        return self.folder / "key"

    @property
    def submissions(self) -> Path:
        """Folder of the store."""
        return self.folder / "submissions"


class Participant(NamedTuple):
    """All that one participant sent."""

    token: str
    slot: int
    parts: dict[str, Any]


def write_study_folder(
    folder: str | os.PathLike[str],
    *,
    kind: str,
    study: str,
    introduction: Introduction,
    settings: Mapping[str, Any],
    plans: Sequence[Mapping[str, Any]],
    page: Mapping[str, bytes | Path],
    key: Mapping[str, bytes | Path],
) -> StudyFolder:
    """Write the folder of a study."""
    target = Path(folder).resolve()
    if target.exists():
        raise InvalidInputError(f"{folder} is there already; name a new folder, so that no answers are lost")
    about = {
        "format": 1, "study": study, "kind": kind, **dataclasses.asdict(introduction),
        "settings": dict(settings), "plans": [dict(plan) for plan in plans],
    }  # fmt: skip
    for place, files in (("page", page), ("key", key)):
        for name, content in files.items():
            data = content.read_bytes() if isinstance(content, Path) else content
            write_atomically(target / place / name, data, parents=True, sync=False)
    write_atomically(target / "study.json", json.dumps(about, indent=1, allow_nan=False).encode())
    return read_study_folder(target)


def read_study_folder(folder: str | os.PathLike[str]) -> StudyFolder:
    """Read the folder of a study."""
    path = Path(folder) / "study.json"
    if not path.exists():
        raise NoDataError(f"{folder} holds no study.json; name the folder of a study")
    about = json.loads(path.read_bytes())
    told = Introduction(
        title=about["title"], consent=tuple(about["consent"]), instructions=tuple(about["instructions"])
    )
    plans = tuple(about["plans"])
    return StudyFolder(Path(folder).resolve(), about["study"], about["kind"], told, about["settings"], plans)


def participants_of(study: StudyFolder, files: Sequence[str | os.PathLike[str]] = ()) -> tuple[Participant, ...]:
    """Return everybody who sent something."""
    found = []
    if study.submissions.is_dir():
        for submission in SubmissionStore(study.submissions).read():
            content = submission.content
            found.append(Participant(submission.token, content["slot"], {content["part"]: content["content"]}))
    for path in files:
        content = json.loads(Path(path).read_bytes())
        found.append(Participant(content["token"], content["slot"], content["parts"]))
    if not found:
        raise NoDataError(f"nobody sent anything to {study.folder}; name the files that participants got")
    return tuple(found)
