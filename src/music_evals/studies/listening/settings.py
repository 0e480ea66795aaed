"""Settings of a listening test: its type, what is asked, who is heard, and by how many people.

Types
    ``rating``: one sound, each question from 1 to 5. ``ab``: two sounds, one of which is chosen. ``mushra``: all
    systems of an item, the hidden reference and an anchor among them, each from 0 to 100 beside the open
    reference.
Anchor
    The reference without what lies above 3.5 kHz, the low-range anchor of ITU-R BS.1534-3, unless the study brings a
    system of the name `screening.ANCHOR`. It sounds worse and has the same notes, so that it is no anchor for questions
    about harmony, rhythm, structure or melody. 7 kHz makes the mid-range anchor, which the rule of screening names.
Attention checks
    Some short tones, to be counted. Their number stands in the key alone.

What a participant is given says nothing of systems, items or seeds: `page_settings`.

References
----------
ITU-R BS.1534-3: "Method for the subjective assessment of intermediate quality level of audio systems", 2015; Lu, Wu,
Chiu, Su: "Actions speak louder than listening", ACM MM 2021, section 5.

"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UnknownNameError
from music_evals.options import option
from music_evals.pipelines.study_tables import SIMILARITY
from music_evals.studies.listening.screening import ANCHOR
from music_evals.studies.pairs import REFERENCE, StudyPair
from music_evals.studies.ratings import OVERALL

__all__ = [
    "CHECK", "FACETS", "KIND", "LQ1", "SCALES", "TYPES", "ListeningSettings", "Question", "check_pairs_of_test",
    "named_questions", "page_settings", "played_systems", "style_questions",
]  # fmt: skip

KIND = "listening"
"""What the page of studies calls listening tests."""

TYPES = ("rating", "ab", "mushra")
"""Types of listening tests; see the module."""
SCALES = {"rating": (1, 5), "ab": (0, 1), "mushra": (0, 100)}
"""Type -> the ends of its scale; of two sounds the chosen one has 1."""

LENGTHS = ("refuse", "cut")
"""What becomes of sounds of an item that are not equally long."""
LEAST_HEARD = {"rating": 0.9, "ab": 0.5, "mushra": 0.25}
"""Type -> the share of each sound that must have been heard before an answer counts, unless a test says otherwise."""

LQ1 = "LQ1"
"""Question of the paper's listening test, a column of ``listening``: does it sound good?"""
PREFERENCE = "preference"
FACETS = ("harmony", "rhythm", "structure", "melody")
"""Questions on what is kept of the original."""

CHECK = "tones"
"""Question of the attention checks."""

LONGEST_TRIAL = 12
"""Sounds that one page of MUSHRA should hold by BS.1534-3."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,39}")


@dataclasses.dataclass(frozen=True)
class Question:
    """What is asked of each sound.

    Raises `InvalidInputError`: a name of another form, or no text.
    """

    name: str  # in tables: a letter, then letters, digits, blanks, ``_`` and ``-``
    text: str  # as listeners read it
    low: str = "not at all"  # what the ends of the scale mean; not shown where one of two sounds is chosen
    high: str = "very much"
    is_of_original: bool = False  # it asks about the original, which then is open beside the sound

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == CHECK:
            raise InvalidInputError(
                f"a question is named by letters, digits, blanks, _ and -, and not {CHECK}; got {self.name!r}"
            )
        if not self.text.strip():
            raise InvalidInputError(f"question {self.name!r} has no text; say what listeners are asked")


_TEXTS = {
    "rating": {LQ1: "Does it sound good?", OVERALL: "How good is it, all in all?"},
    "ab": {LQ1: "Which one sounds better?", OVERALL: "Which one is better, all in all?",
           PREFERENCE: "Which one do you prefer?"},
    "mushra": {LQ1: "How good does it sound?", OVERALL: "How near is it to the reference in quality?"},
}  # fmt: skip
_PRESERVED = {
    "rating": "How well is the {} of the original kept?",
    "ab": "Which one keeps the {} of the original better?",
    "mushra": "How well is the {} of the reference kept?",
}
_USUAL = {"rating": LQ1, "ab": PREFERENCE, "mushra": OVERALL}
_ENDS = {"rating": ("not at all", "very much"), "ab": ("", ""), "mushra": ("bad", "excellent")}


def named_questions(test: str, names: Sequence[str] = ()) -> tuple[Question, ...]:
    """Return questions that have a name of their own here (LQ1, overall, preference and the four facets), or a text.

    Without names it is the usual one of the type; ``NAME=TEXT`` is one's own.

    Raises `UnknownNameError`: no such type, or no such question in it; `InvalidInputError`: as `Question`.
    """
    if test not in TYPES:
        raise UnknownNameError("type of listening test", test, TYPES)
    texts = _TEXTS[test] | {facet: _PRESERVED[test].format(facet) for facet in FACETS}
    questions = []
    for entry in names or (_USUAL[test],):
        name, is_own, text = map(str.strip, entry.partition("="))
        if not is_own and name not in texts:
            raise UnknownNameError("question", name, tuple(texts))
        questions.append(Question(name, text if is_own else texts[name], *_ENDS[test], is_of_original=name in FACETS))
    return tuple(questions)


def style_questions(styles: Sequence[str]) -> tuple[Question, ...]:
    """Return one question a style, named as the columns of ``listening``: how near a sound is to it."""
    return tuple(Question(SIMILARITY + style, f"How near is it to the style “{style}”?") for style in styles)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListeningSettings:
    """What a listening test is; what is not said here its options say.

    `questions` are at least one, none for the usual one of the type; those of ``rating`` and ``ab`` are asked together,
    each of ``mushra`` on a page of its own. `listeners` are planned, one plan each: a multiple of `blocks`. `systems`
    are heard, by their names in the table of pairs, none for all; the reference and the anchor of ``mushra`` need not
    be named. `with_hidden_reference` has the original rated as well, unlabelled; in ``mushra`` it always is.
    `anchor_hz` is what the anchor keeps, in Hz. `least_heard` is the share of each sound, 0 to 1, that must be heard
    before an answer counts, None for that of the type. `lengths` says what becomes of an item whose sounds are not
    equally long: ``refuse`` it, or ``cut`` all to the shortest. Who agrees less than the share `least_agreement`, 0 to
    1, of what the middle listener does is left out (`screening`).

    Raises `InvalidInputError` for a value out of its range, or two questions of one name, and `UnknownNameError` for a
    type that is none of `TYPES`.
    """

    type: str = option("rating", "rating (default), ab or mushra", group="type")
    questions: tuple[Question, ...] = option(
        (),
        "with commas: LQ1 (sounds good), overall, preference (ab), harmony, rhythm, structure, melody (default: LQ1; "
        "preference for ab; overall for mushra)",
        group="asked",
        metavar="NAMES",
    )
    listeners: int = option(12, "plans (default: %(default)s)", group="who")
    blocks: int = option(
        1, "questionnaires that the items are dealt to; each listener has one (default: %(default)s)", group="who"
    )
    systems: tuple[str, ...] = option((), "with commas (default: all)", group="who", metavar="NAMES")
    with_hidden_reference: bool = option(
        False, "rate the original too, unnamed", flag="--hidden-reference", group="who"
    )
    with_open_reference: bool | None = option(
        None,
        "let the original be heard beside (default: in mushra, and where a question asks about it)",
        flag="--open-reference",
        group="who",
    )
    against: str = option("", "ab: only pairs with this system (default: all)", group="who", metavar="NAME")
    checks: int = option(3, "attention checks (default: %(default)s)")
    anchor_hz: float = option(3500.0, "mushra (default: %(default)g)", metavar="HZ")
    least_heard: float | None = option(
        None, "of each sound, before it can be answered (default: 0.9; ab 0.5; mushra 0.25)", metavar="SHARE"
    )
    seed: int = option(0, "of names and plans; one that nobody knows")
    lengths: str = option(
        "refuse", "sounds of an item that are not equally long: refuse (default), or cut to the shortest"
    )
    allowed_failures: int = option(
        1, "attention checks that may be failed (default: %(default)s)", flag="--allow-failures", group="left_out"
    )
    least_agreement: float = option(
        0.4,
        "of the middle listener's agreement with the others; 0: no such rule (default: %(default)g)",
        group="left_out",
        metavar="SHARE",
    )

    GROUPS: ClassVar = {
        "type": "",
        "asked": "what is asked",
        "who": "who is heard, by how many",
        "how": "how it is held",
        "left_out": "who is left out afterwards (stated now, kept in the study)",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", tuple(self.questions) or named_questions(self.type))
        if self.type not in TYPES:
            raise UnknownNameError("type of listening test", self.type, TYPES)
        names = [question.name for question in self.questions]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"each question is asked once, got {', '.join(names)}")
        bounds = {"listeners": (1, 10_000), "blocks": (1, 1000), "checks": (0, 20), "seed": (0, 2**63 - 1)}
        bounds |= {"allowed_failures": (0, 20), "least_agreement": (0, 1)}
        for name, (least, most) in bounds.items():
            if not least <= getattr(self, name) <= most:
                raise InvalidInputError(f"`{name}` must be {least:,} to {most:,}, got {getattr(self, name)}")
        if self.listeners % self.blocks:
            more = math.ceil(self.listeners / self.blocks) * self.blocks
            raise InvalidInputError(
                f"{self.listeners} listeners cannot have {self.blocks} blocks equally often; plan {more} `listeners`"
            )
        if not 1000 <= self.anchor_hz <= 20_000:
            raise InvalidInputError(f"`anchor_hz` must be 1,000 to 20,000, got {self.anchor_hz:g}")
        if self.least_heard is not None and not 0 < self.least_heard <= 1:
            raise InvalidInputError(f"`least_heard` must lie above 0 and at most at 1, got {self.least_heard}")
        if self.lengths not in LENGTHS:
            raise UnknownNameError("way with unequal lengths", self.lengths, LENGTHS)
        if self.against and self.type != "ab":
            raise InvalidInputError("`against` is for the type ab, where systems are compared in pairs")

    @property
    def heard_share(self) -> float:
        """Share of each sound that must be heard before an answer counts."""
        return LEAST_HEARD[self.type] if self.least_heard is None else self.least_heard

    @property
    def is_reference_open(self) -> bool:
        """Whether the original can be heard beside what is rated."""
        if self.with_open_reference is None:
            return self.type == "mushra" or any(question.is_of_original for question in self.questions)
        return self.with_open_reference or self.type == "mushra"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return dataclasses.asdict(self) | {"questions": [dataclasses.asdict(question) for question in self.questions]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ListeningSettings:
        """Return the settings that `to_dict` wrote; `InvalidInputError` where it did not."""
        try:
            questions = tuple(Question(**question) for question in content["questions"])
            return cls(**{**content, "questions": questions, "systems": tuple(content["systems"])})
        except (TypeError, KeyError) as error:
            raise InvalidInputError(f"no settings of a listening test ({error}); build the study again") from error


def page_settings(settings: ListeningSettings) -> dict[str, Any]:
    """Return what the page of a participant has to know; nothing of it says who is heard."""
    return {
        "type": settings.type,
        "questions": [
            {name: getattr(question, name) for name in ("name", "text", "low", "high")}
            for question in settings.questions
        ],
        "scale": list(SCALES[settings.type]),
        "least_heard": settings.heard_share,
    }


def played_systems(settings: ListeningSettings, systems: Sequence[str]) -> tuple[str, ...]:
    """Return who is rated, out of the systems of a table: reference first, anchor last, where they are heard.

    Raises `UnknownNameError`: a system that the table does not have; `NoDataError`: nobody is left; `PairCountError`:
    fewer than two of them in the type ``ab``, or more than a page of ``mushra`` can hold.
    """
    controls = {REFERENCE, *([ANCHOR] if settings.type == "mushra" else [])}
    there = [name for name in dict.fromkeys(systems) if name not in controls]
    for name in (*settings.systems, *filter(None, [settings.against])):
        if name not in {*there, *controls}:
            raise UnknownNameError("system", name, tuple(there))
    own = [name for name in there if not settings.systems or name in {*settings.systems, settings.against}]
    has_reference = settings.with_hidden_reference or settings.type == "mushra"
    has_reference = has_reference or REFERENCE in {*settings.systems, settings.against}
    chosen = [*([REFERENCE] if has_reference else []), *own, *([ANCHOR] if settings.type == "mushra" else [])]
    if not own:
        raise NoDataError("no system to be rated: the table has the reference alone, or `systems` names no other")
    if settings.type == "ab" and len(chosen) < 2:
        raise PairCountError(
            f"the type ab compares systems, and there is only {chosen[0]!r}; add another, or `with_hidden_reference`"
        )
    if settings.type == "mushra" and len(chosen) > LONGEST_TRIAL:
        raise PairCountError(
            f"{len(chosen)} sounds do not fit on a page of mushra, which may hold {LONGEST_TRIAL}; choose `systems`"
        )
    return tuple(chosen)


def check_pairs_of_test(pairs: Sequence[StudyPair], settings: ListeningSettings, *, makes_anchor: bool = True) -> None:
    """Check that a table of pairs can carry the design of a test; with `makes_anchor` a missing anchor will be made.

    Raises `NoDataError`: no rows, or nobody to be rated; `PairCountError`: fewer than two systems in ``ab``; an item
    without one of the systems (the message names its row); fewer items than the design has blocks; `InvalidInputError`:
    ``mushra`` without an anchor, or with one that has all of what a question asks about; `UnknownNameError`: a system
    that is not there.
    """
    if not pairs:
        raise NoDataError("no pairs; a listening test needs some")
    played = played_systems(settings, [pair.system for pair in pairs])
    rows: dict[str, dict[str, int]] = {}
    for number, pair in enumerate(pairs, start=1):
        rows.setdefault(pair.item_id, {})[pair.system] = number
    has_anchor = any(ANCHOR in held for held in rows.values())
    if settings.type == "mushra" and not has_anchor:
        about = [question.name for question in settings.questions if question.name in FACETS]
        if about:
            raise InvalidInputError(
                f"the anchor of mushra has the notes of the reference, so that it cannot anchor {', '.join(about)}; "
                f"give each item a system {ANCHOR!r} that is bad at it, or ask with the type rating"
            )
        if not makes_anchor:
            raise InvalidInputError(f"mushra needs an anchor; give each item a system {ANCHOR!r}")
    added = {REFERENCE, *([] if has_anchor else [ANCHOR])}
    for item, held in rows.items():
        missing = [system for system in played if system not in held and system not in added]
        if missing:
            raise PairCountError(
                f"row {next(iter(held.values()))}: item {item!r} has no {', '.join(missing)}; each item needs all "
                "systems: add the sound, take the item out, or choose `systems`"
            )
    if len(rows) < settings.blocks:
        raise PairCountError(
            f"{len(rows)} items do not fill {settings.blocks} blocks; add items, or take fewer `blocks`"
        )
