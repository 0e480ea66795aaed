"""What the platform itself says, in the language of who reads it: refusals, and reasons of entries of the ledger.

An error has a kind, which names its text in the catalogue, and facts, which stand in it.
"""

from __future__ import annotations

import re
from typing import Final

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.assurance import PARTS
from music_evals.caimap.web.words import LANGUAGES, catalogue, translator
from music_evals.errors import MusicEvalsError

__all__ = ["amount_words", "dimension_names", "reason_words", "refusal"]

_PREFIX: Final = "refused."

_NAMED: Final = frozenset({
    "role", "roles", "state", "dimension", "dimensions", "row", "part", "reasons", "problems", "kinds", "entry",
    "field",
})  # fmt: skip
"""Facts that hold names of ours, which have words; what somebody wrote, and numbers, stand as they are."""


def refusal(error: MusicEvalsError, language: str) -> str:
    """Put an error into words.

    Parameters
    ----------
    error
        With its kind and facts; without a kind the name of its class counts. One that has no text is of no rule of the
        platform: in English its message is shown, in Chinese that a rule was broken.
    language
        ``"zh"`` or ``"en"``.

    """
    text, name = translator(language), f"{_PREFIX}{error.kind or type(error).__name__}"
    if name not in catalogue():
        return str(error) if language == "en" else text(f"{_PREFIX}any")
    facts = {name: _shown(name, value, language) for name, value in error.facts.items()}
    return text(name).format(**facts)


def dimension_names(language: str) -> dict[str, str]:
    """Return the name of each dimension, and of the whole text, in a language."""
    dimensions = {name: row for rows in DIMENSIONS.values() for name, row in rows.items()}
    names = {name: row.chinese if language == "zh" else row.english for name, row in dimensions.items()}
    return {**names, "overall_text": translator(language)("overall_text")}


def amount_words(cents: int, currency: str, language: str) -> str:
    """Put an amount into words, in its currency where the study names one.

    Examples
    --------
    >>> amount_words(-1250, "CNY", "en"), amount_words(5, "CNY", "zh"), amount_words(1250, "", "en")
    ('-12.50 CNY', '0.05 CNY', '1250 cents')

    """
    if not currency:
        return f"{cents} {translator(language)('in_cents')}"
    whole, part = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{whole}.{part:02d} {currency}"


_OF_WORK: Final = re.compile(
    r"(?:(inspection|discarded|returned): )?(structure|professional|amateur) of (.+)", re.DOTALL
)
_OF_GRADE: Final = re.compile(r"grade (I{1,3}|IV), week of (\S+)")


def reason_words(reason: str, language: str) -> str:
    """Put the reason of an entry into words; what an administrator wrote stands as it is.

    Examples
    --------
    >>> reason_words("inspection: structure of s1", "en")
    'Inspection, Structure: s1'

    """
    text = translator(language)
    work, grade = _OF_WORK.fullmatch(reason), _OF_GRADE.fullmatch(reason)
    if grade:
        return text("reason_grade").format(grade=grade[1], week=grade[2])
    if not work:
        return reason
    parts = [text(f"reason_{work[1]}")] if work[1] else []
    comma, colon = ("，", "：") if language == "zh" else (", ", ": ")
    return f"{comma.join([*parts, text(work[2])])}{colon}{work[3]}"


def _shown(name: str, value: object, language: str) -> str:
    if isinstance(value, (tuple, list)):
        return ("、" if language == "zh" else ", ").join(_shown(name, part, language) for part in value)
    return _word(str(value), language) if name in _NAMED else str(value)


def _word(name: str, language: str) -> str:
    """Return the word of a name of ours; names of data, such as ``verse``, are their own."""
    if name in PARTS:
        return PARTS[name][1 - LANGUAGES.index(language)]
    if name in dimension_names(language):
        return dimension_names(language)[name]
    known = (f"{name}_role", f"task_{name}", f"song_{name}", f"{name}_of", name)
    return next((translator(language)(key) for key in known if key in catalogue()), name)
