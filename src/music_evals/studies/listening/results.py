"""A listening test that was held: its folder and what listeners sent, held against their plans, as tidy tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import NamedTuple

from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, located
from music_evals.studies.answers import participants_of, passed_sec
from music_evals.studies.folders import StudyFolder, read_study_folder
from music_evals.studies.listening.answers import (
    Answers,
    ListeningKey,
    ListeningTables,
    check_answers,
    listening_tables,
)
from music_evals.studies.listening.build import read_listening_key
from music_evals.studies.listening.settings import KIND
from music_evals.studies.storage import SlotBook

__all__ = ["ANSWERS", "ListeningResults", "read_listening_results"]

ANSWERS = "answers"
"""Name of the part that a participant sends."""


class ListeningResults(NamedTuple):
    """A listening test with what was sent."""

    study: StudyFolder
    key: ListeningKey  # who is who
    answers: tuple[Answers, ...]  # of each listener whose answers are possible
    tables: ListeningTables  # the same as tidy tables
    unfinished: tuple[str, ...]  # listeners who began and sent no answers
    refused: dict[str, str]  # listener -> what was wrong with the answers
    is_by_invitation: bool  # all of them were invited: otherwise one person may be several


def read_listening_results(
    folder: str | os.PathLike[str],
    files: Sequence[str | os.PathLike[str]] = (),
    *,
    leave_out: Collection[str] = (),
    strict: bool = False,
) -> ListeningResults:
    """Read a listening test with all that was sent to its folder, and files that a static page gave to participants.

    Listeners whose numbers are in `leave_out` are left out, such as who withdrew. `strict` raises at the first answers
    that no listener can have sent; otherwise they are left out, and named.

    Raises `NoDataError` without a study, or anybody whose answers count; `InvalidInputError` for a study of another
    kind, a number to leave out that nobody has, submissions of another study or, where `strict`, impossible answers,
    with their row; `UnreadableFileError` for a damaged key; where `strict`, `PairCountError` for more or fewer pages
    than a plan has.
    """
    study = read_study_folder(folder)
    if study.kind != KIND:
        raise InvalidInputError(f"{folder} is a study of the kind {study.kind}, and no listening test")
    key = read_listening_key(study.key)
    participants = participants_of(study, files)
    unknown = sorted(set(leave_out) - {participant.token for participant in participants})
    if unknown:
        raise InvalidInputError(f"nobody has the number {', '.join(unknown)}; copy it as the page showed it")
    counted = [participant for participant in participants if participant.token not in leave_out]
    finished = [participant for participant in counted if ANSWERS in participant.parts]
    answered: list[Answers] = []
    refused: dict[str, str] = {}
    for participant in finished:
        try:
            name, slot = participant.token, participant.slot
            answers = check_answers(participant.parts[ANSWERS], listener=name, plans=study.plans, key=key)
            if answers.slot != slot:
                raise InvalidInputError(f"{name}: answers to plan {answers.slot}, and the plan was {slot}")
            at = participant.received_at.get(ANSWERS)
            answered.append(answers._replace(server_sec=passed_sec(participant.joined_at, at), received_at=at))
        except MusicEvalsError as error:
            if strict:
                raise located(error, str(folder)) from error
            refused[participant.token] = str(error)
    unfinished = tuple(participant.token for participant in counted if participant not in finished)
    if not answered:
        raise NoDataError(f"{folder}: no answers that count; {len(unfinished)} unfinished, {len(refused)} refused")
    invited = SlotBook(study.submissions, len(study.plans)).invited()
    is_by_invitation = all(answers.listener in invited for answers in answered)
    tables = listening_tables(answered, key)
    return ListeningResults(study, key, tuple(answered), tables, unfinished, refused, is_by_invitation)
