"""What participants read first: texts of ours for each kind of study, or the leader's own from a file.

A file is YAML with the keys `title`, `consent` and `instructions`, the last two lists of paragraphs. Whoever leads a
study answers for its texts, and for the review of its ethics.
"""

from __future__ import annotations

import os
from pathlib import Path

from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.studies.folders import KINDS, Introduction
from music_evals.yaml_files import load_yaml, packaged_yaml, yaml_text

__all__ = ["default_introduction", "read_introduction"]


def default_introduction(kind: str, title: str, contact: str) -> Introduction:
    """Return texts of ours.

    Parameters
    ----------
    kind
        One of `studies.folders.KINDS`.
    title
        Of the study.
    contact
        Who leads it, and how to reach them.

    Raises
    ------
    InvalidInputError
        There is no such kind, or no contact: participants must know whom to ask.

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

    Raises
    ------
    NoDataError
        There is no such file.
    UnreadableFileError
        It is no YAML, or lacks a key.

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
