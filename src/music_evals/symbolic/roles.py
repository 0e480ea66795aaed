"""What the voices of a score do: melody, piano, bass and others, derived from their names and General MIDI programs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from music_evals.annotations import DRUMS, Score
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.symbolic.notes import sort_notes

__all__ = ["MELODY", "ROLES", "Role", "name_words", "take_roles"]

MELODY: Final = "melody"
"""The role of the line that a transfer keeps; derived from names alone, because no program is a melody's."""


class Role(NamedTuple):
    """What tells a role."""

    words: frozenset[str]  # of the names of voices, in lower case
    programs: range  # of General MIDI, from 0


ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {
        MELODY: Role(
            frozenset(
                {"melody", "melodie", "melodia", "soprano", "sopran", "cantus", "discant", "vocal", "vocals"}
                | {"vocalist", "voice", "singer", "gesang", "lead"}
            ),
            range(0),
        ),
        "piano": Role(frozenset({"piano", "pianoforte", "klavier", "keys", "keyboard", "rhodes"}), range(8)),
        "organ": Role(frozenset({"organ", "orgel", "orgue"}), range(16, 24)),
        "guitar": Role(frozenset({"guitar", "gitarre", "guitare"}), range(24, 32)),
        "bass": Role(frozenset({"bass", "basso", "contrabass", "kontrabass", "contrebasse"}), range(32, 40)),
        "strings": Role(frozenset({"strings", "streicher", "cordes"}), range(40, 52)),
    }
)
"""Role -> what tells it; programs are of a family of General MIDI, for strings the ensembles too."""


def name_words(name: str) -> frozenset[str]:
    """Return the words of the name of a voice, in lower case, without numbers."""
    return frozenset(re.findall(r"[^\W\d_]+", name.casefold()))


def take_roles(score: Score, roles: Mapping[str, Sequence[str]]) -> Score:
    """Return the voices that have a role, those of one role together.

    Parameters
    ----------
    score
        Any score. Drums have no role.
    roles
        Role -> names of the voices that have it, in any case. Where none is given, a voice has the role that its name
        says, or, if the name says none or several, that of its program (`ROLES`).

    Returns
    -------
    Score
        A voice for each role, named like it, in the order of `roles`; other voices are left out. Each has the program
        of the first that was taken.

    Raises
    ------
    UnknownNameError, InvalidInputError
        A role that is not in `ROLES`, or none at all.
    NoDataError
        No voice with notes has a role that is asked for.

    Examples
    --------
    >>> from music_evals.symbolic.notes import make_notes
    >>> notes = make_notes([0, 0, 0], [4, 4, 4], [72, 60, 36], voice=[0, 1, 2])
    >>> score = Score(notes, 4, voices=("Flute", "Grand Piano", "Tuba"), programs=(73, 0, 58))
    >>> take_roles(score, {"piano": (), "bass": ["tuba"]}).notes["pitch"].tolist()
    [60, 36]
    """
    if not roles:
        raise InvalidInputError(f"name one role or more, out of {', '.join(ROLES)}")
    for role in roles:
        if role not in ROLES:
            raise UnknownNameError("role", role, ROLES)
    counts = np.bincount(score.notes["voice"], minlength=len(score.voices))
    taken: dict[str, list[int]] = {role: [] for role in roles}
    for voice in np.flatnonzero(counts).tolist():
        voice_role = _role(score, voice, roles)
        if voice_role is not None:
            taken[voice_role].append(voice)
    for role, voices in taken.items():
        if not voices:
            listed = ", ".join(repr(score.voices[voice]) for voice in np.flatnonzero(counts))
            raise NoDataError(f"no voice is a {role}; the voices are {listed}: name one that is, or leave the role out")
    number = {voice: index for index, voices in enumerate(taken.values()) for voice in voices}
    notes = score.notes[np.isin(score.notes["voice"], list(number))].copy()
    notes["voice"] = [number[voice] for voice in notes["voice"].tolist()]
    programs = tuple(score.programs[voices[0]] for voices in taken.values()) if score.programs else ()
    return dataclasses.replace(score, notes=sort_notes(notes), voices=tuple(taken), programs=programs)


def _role(score: Score, voice: int, roles: Mapping[str, Sequence[str]]) -> str | None:
    """Return the role of a voice out of those that are asked for."""
    program = score.programs[voice] if score.programs else None
    if program == DRUMS:
        return None
    name = score.voices[voice].casefold()
    named = [role for role, names in roles.items() if name in {known.casefold() for known in names}]
    if named:
        return named[0]
    called = [role for role, about in ROLES.items() if about.words & name_words(name)]
    if len(called) != 1:  # the program decides, between those that the name says if it says several
        called = [role for role in called or ROLES if program is not None and program in ROLES[role].programs]
    return next((role for role in called if role in roles and not roles[role]), None)
