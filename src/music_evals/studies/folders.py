"""A study as a folder: what participants see, what its leader alone sees, and what was sent in.

``study.json``
    What kind of study it is and which version of this package made it, what participants read first, its settings, and
    its plans: what each participant does.
``page/``
    The page with everything that it plays. It may be put on any web server as it is, and names nobody who made
    anything: who did stands in ``key/``.
``key/``
    Which code is whose. It stays with the leader of the study.
``submissions/``
    See `studies.storage`; made with the first one.

A study is data: its texts are shown as text, never as HTML. What participants read first are texts of ours for each
kind of study, or the leader's own from a YAML file with the keys `title`, `consent` and `instructions`, the last two
lists of paragraphs. Whoever leads a study answers for its texts, and for the review of its ethics.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from music_evals import __version__
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.files import folder_written_whole, parse_json, private_folder, reading, write_atomically
from music_evals.yaml_files import load_yaml, packaged_yaml, yaml_text

__all__ = [
    "ABOUT",
    "KEY",
    "KINDS",
    "PAGE",
    "SUBMISSIONS",
    "Introduction",
    "StudyFolder",
    "default_introduction",
    "read_introduction",
    "read_study_folder",
    "write_study_folder",
]

ABOUT = "study.json"
"""File of a study's folder that says what it is."""
PAGE = "page"
"""Folder of what participants see."""
KEY = "key"
"""Folder of what the leader alone sees."""
SUBMISSIONS = "submissions"
"""Folder of what was sent."""
KINDS = ("editing", "listening")
"""What participants do."""
FORMAT = 1
"""Of ``study.json``; another one is refused."""

_STUDY_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_DATA = '<script type="application/json" id="study">'
"""Where the page holds the study; a browser runs nothing of that type."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Introduction:
    """What participants read before anything is played; raises `InvalidInputError` where a text is missing."""

    title: str
    consent: tuple[str, ...]
    """Paragraphs: what it is for, what is stored for how long, how to withdraw, who leads it; who goes on agrees."""
    instructions: tuple[str, ...]  # paragraphs: what is to be done

    def __post_init__(self) -> None:
        texts = {"title": (self.title,), "consent": self.consent, "instructions": self.instructions}
        for name, paragraphs in texts.items():
            if not paragraphs or not all(isinstance(text, str) and text.strip() for text in paragraphs):
                raise InvalidInputError(f"{name} of the study is empty; inform participants before they start")


class StudyFolder(NamedTuple):
    """A study that was read."""

    folder: Path
    study: str  # its name, which submissions name too
    kind: str  # one of `KINDS`
    introduction: Introduction
    settings: dict[str, Any]  # what all plans share
    plans: tuple[dict[str, Any], ...]  # what each participant does

    @property
    def page(self) -> Path:
        """Folder of the page."""
        return self.folder / PAGE

    @property
    def key(self) -> Path:
        """Folder of what its leader alone sees."""
        return self.folder / KEY

    @property
    def submissions(self) -> Path:
        """Folder of `studies.storage.SubmissionStore`."""
        return self.folder / SUBMISSIONS


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
    """Write the folder of a study, whole or not at all, and read it.

    Nothing stands at `folder` yet: a study that collects answers is never replaced. `kind` is one of `KINDS`, `study`
    its name: lower-case letters, digits, ``_`` and ``-``, at most 64. `settings` and `plans` are plain values, without
    a word on who made what; one plan a participant, and who comes after the last begins again at the first. `page` is
    path below ``page/`` -> content or file to copy, `key` the same below ``key/``; the study is written into the
    ``index.html``.

    Raises `InvalidInputError` where something stands in that place, for another kind, name or path, without plans, or
    for values that are no JSON, and `OutputError` where the folder cannot be written; nothing is left behind.
    """
    target = Path(folder).resolve()
    if target.exists():
        raise InvalidInputError(f"{folder} is there already; name a new folder, so that no answers are lost")
    if kind not in KINDS:
        raise InvalidInputError(f"a study is one of {', '.join(KINDS)}, got {kind!r}")
    if not _STUDY_ID.fullmatch(study):
        raise InvalidInputError(f"the name {study!r} of a study needs lower-case letters, digits, - and _, at most 64")
    if not plans:
        raise InvalidInputError("a study needs a plan for at least one participant")
    about = {
        "format": FORMAT, "version": __version__, "study": study, "kind": kind, **dataclasses.asdict(introduction),
        "settings": dict(settings), "plans": [dict(plan) for plan in plans],
    }  # fmt: skip
    try:
        text = json.dumps(about, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"settings and plans of a study must be plain values ({error})") from error
    with folder_written_whole(target) as part:
        if key:
            private_folder(part / KEY)  # says who made what
        write_atomically(part / ABOUT, f"{text}\n".encode())
        for place, files in ((PAGE, page), (KEY, key)):
            for name, content in files.items():
                pure = PurePosixPath(name)
                if pure.is_absolute() or ".." in pure.parts or not pure.parts:
                    raise InvalidInputError(f"{name!r} must lie inside of the study")
                data = content.read_bytes() if isinstance(content, Path) else content
                write_atomically(part / place / pure, data, parents=True, sync=False)
        index = part / PAGE / "index.html"
        write_atomically(index, with_study(index.read_bytes(), about))
    return read_study_folder(target)


def with_study(page: bytes, about: Mapping[str, Any]) -> bytes:
    """Put a study into the HTML of its page, as data that a browser does not run."""
    place = _DATA.encode()
    if page.count(place) != 1:
        raise InvalidInputError(f"the page of a study must hold {_DATA}</script> once")
    # a closing tag inside of a text would end the data
    data = json.dumps(about, allow_nan=False).replace("<", "\\u003c")
    return page.replace(place, place + data.encode())


def read_study_folder(folder: str | os.PathLike[str]) -> StudyFolder:
    """Read the folder of a study.

    Raises `NoDataError`: there is no study in it; `UnreadableFileError`: ``study.json`` is damaged, or of another
    version.
    """
    path = Path(folder) / ABOUT
    with reading(path):
        if not path.exists():
            raise NoDataError(f"{folder} holds no {ABOUT}; name the folder of a study")
        about = parse_json(path.read_bytes(), str(path))
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise UnreadableFileError(f"{path}: not a study of format {FORMAT}; read it with the version that wrote it")
    try:
        introduction = Introduction(
            title=about["title"], consent=tuple(about["consent"]), instructions=tuple(about["instructions"])
        )
        return StudyFolder(
            Path(folder).resolve(), str(about["study"]), str(about["kind"]), introduction, dict(about["settings"]),
            tuple(dict(plan) for plan in about["plans"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, InvalidInputError) as error:
        raise UnreadableFileError(f"{path}: not a study ({error})") from error


def default_introduction(kind: str, title: str, contact: str) -> Introduction:
    """Return texts of ours for one of `KINDS`, with who leads the study and how to reach them.

    Raises `InvalidInputError`: there is no such kind, or no contact: participants must know whom to ask.
    """
    if kind not in KINDS:
        raise InvalidInputError(f"a study is one of {', '.join(KINDS)}, got {kind!r}")
    if not contact.strip():
        raise InvalidInputError("name who leads the study and how to reach them, with `contact`")
    values = packaged_yaml("music_evals.studies", f"{kind}.yaml")
    consent = tuple(paragraph.replace("{contact}", contact) for paragraph in values["consent"])
    return Introduction(title=title, consent=consent, instructions=tuple(values["instructions"]))


def read_introduction(path: str | os.PathLike[str]) -> Introduction:
    """Read the texts of a study from a YAML file.

    Raises `NoDataError` where it is missing, `UnreadableFileError` where it is no YAML or lacks a key.
    """
    try:
        values = load_yaml(yaml_text(Path(path).read_bytes(), path), path)
        return Introduction(
            title=values["title"], consent=tuple(values["consent"]), instructions=tuple(values["instructions"])
        )
    except FileNotFoundError as error:
        raise NoDataError(f"{path}: there is no such file") from error
    except (OSError, LookupError, TypeError, ValueError) as error:  # ours are among them
        raise UnreadableFileError(
            f"{path}: expected YAML with title, consent and instructions, the last two lists of paragraphs ({error})"
        ) from error
