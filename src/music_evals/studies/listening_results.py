"""A listening test that was held: its folder and what listeners sent, held against their plans, as tidy tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, located
from music_evals.studies.answers import participants_of
from music_evals.studies.folders import StudyFolder, read_study_folder
from music_evals.studies.listening import KIND
from music_evals.studies.listening_answers import (
    Answers,
    ListeningKey,
    ListeningTables,
    check_answers,
    listening_tables,
)
from music_evals.studies.listening_build import read_listening_key

__all__ = ["ANSWERS", "ListeningResults", "read_listening_results"]

ANSWERS = "answers"
"""Name of the part that a participant sends."""


class ListeningResults(NamedTuple):
    """What a listening test found.

    Attributes
    ----------
    study
        Its folder.
    key
        Who is who.
    answers
        Of each listener whose answers are possible.
    tables
        The same as tidy tables.
    unfinished
        Listeners who began and sent no answers.
    refused
        Listener -> what was wrong with the answers.

    """

    study: StudyFolder
    key: ListeningKey
    answers: tuple[Answers, ...]
    tables: ListeningTables
    unfinished: tuple[str, ...]
    refused: dict[str, str]


def read_listening_results(
    folder: str | os.PathLike[str], files: Sequence[str | os.PathLike[str]] = (), *, strict: bool = False
) -> ListeningResults:
    """Read a listening test with all that was sent.

    Parameters
    ----------
    folder
        Of the study, with its key.
    files
        What a static page gave to participants, beside what the folder holds.
    strict
        Raise at the first answers that no listener can have sent. Otherwise they are left out, and named.

    Raises
    ------
    NoDataError
        No study, or nobody whose answers count.
    InvalidInputError
        A study of another kind; submissions of another study; or, where `strict`, impossible answers, with their row.
    UnreadableFileError
        A damaged key.
    PairCountError
        Where `strict`: more or fewer pages than a plan has.

    """
    study = read_study_folder(folder)
    if study.kind != KIND:
        raise InvalidInputError(f"{folder} is a study of the kind {study.kind}, and no listening test")
    key = read_listening_key(study.key)
    answered: list[Answers] = []
    unfinished, refused = [], {}
    for participant in participants_of(study, files):
        name = participant.token
        if ANSWERS not in participant.parts:
            unfinished.append(name)
            continue
        content = participant.parts[ANSWERS]
        try:
            answers = check_answers(content, listener=name, plans=study.plans, key=key)
            if answers.slot != participant.slot:
                raise InvalidInputError(f"{name}: answers to plan {answers.slot}, and the plan was {participant.slot}")
        except MusicEvalsError as error:
            if strict:
                raise located(error, str(folder)) from error
            refused[name] = str(error)
        else:
            answered.append(answers)
    if not answered:
        raise NoDataError(f"{folder}: no answers that count; {len(unfinished)} unfinished, {len(refused)} refused")
    return ListeningResults(study, key, tuple(answered), listening_tables(answered, key), tuple(unfinished), refused)
