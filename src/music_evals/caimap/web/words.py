"""The texts of the pages in Chinese and English, from one catalogue, and which of the two a browser is shown."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.domain.assurance import PARTS
from music_evals.errors import MusicEvalsError, UnknownNameError
from music_evals.yaml_files import packaged_yaml

if TYPE_CHECKING:
    from starlette.requests import Request

LANGUAGES: Final = ("zh", "en")
"""Of the pages, in the order of the catalogue."""

DEFAULT_LANGUAGE: Final = "en"
"""Of browsers that ask for none of `LANGUAGES`."""

LANGUAGE_COOKIE: Final = "caimap_language"
"""Holds the language that was last chosen in this browser, or that an account keeps which signed in there."""


@functools.cache
def catalogue() -> Mapping[str, tuple[str, str]]:
    """Return name -> (Chinese, English)."""
    words = packaged_yaml("music_evals.caimap.web", "words.yaml")
    return {name: (texts[0], texts[1]) for name, texts in words.items()}


def translator(language: str) -> Callable[[str], str]:
    """Return what gives the text of a name."""
    if language not in LANGUAGES:
        raise UnknownNameError("language", language, LANGUAGES)
    place = LANGUAGES.index(language)

    def text(name: str) -> str:
        if name not in catalogue():
            raise UnknownNameError("text", name, catalogue())
        return catalogue()[name][place]

    return text


def language_of(request: Request, account_language: str = "") -> str:
    """Return the language of a response: by the query, cookie, account or ``Accept-Language``, in this order."""
    chosen = request.query_params.get("language"), request.cookies.get(LANGUAGE_COOKIE), account_language
    accepted = ",".join(request.headers.getlist("accept-language"))
    return next((name for name in chosen if name in LANGUAGES), None) or preferred(accepted)


def preferred(accepted: str) -> str:
    """Return the one of `LANGUAGES` that a header ``Accept-Language`` ranks highest (RFC 9110, section 12.5.4)."""
    weights: dict[str, float] = {}
    for part in accepted.split(","):
        name, _, parameter = part.partition(";")
        key, _, number = parameter.partition("=")
        try:
            weight = float(number) if parameter.strip() else 1.0
        except ValueError:
            continue
        language = name.strip().replace("_", "-").partition("-")[0].lower()
        if key.strip().lower() in {"", "q"} and 0 <= weight <= 1:  # no NaN either
            weights[language] = max(weight, weights.get(language, 0.0))
    others = weights.get("*", 0.0)
    # of equal weights the one that stands first, then the default
    candidates = [*(name for name in weights if name in LANGUAGES), DEFAULT_LANGUAGE, *LANGUAGES]
    best = max(candidates, key=lambda name: weights.get(name, others))
    return best if weights.get(best, others) > 0 else DEFAULT_LANGUAGE


_PREFIX: Final = "refused."

_NAMED: Final = frozenset({
    "role", "roles", "state", "dimension", "dimensions", "row", "part", "reasons", "problems", "kinds", "entry",
    "field",
})  # fmt: skip
"""Facts that hold names of ours, which have words; what somebody wrote, and numbers, stand as they are."""


def refusal(error: MusicEvalsError, language: str) -> str:
    """Put an error into words."""
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
    """Put an amount into words, in its currency where the study names one."""
    if not currency:
        return f"{cents} {translator(language)('in_cents')}"
    whole, part = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{whole}.{part:02d} {currency}"


_OF_WORK: Final = re.compile(
    r"(?:(inspection|discarded|returned): )?(structure|professional|amateur) of (.+)", re.DOTALL
)
_OF_GRADE: Final = re.compile(r"grade (I{1,3}|IV), week of (\S+)")


def reason_words(reason: str, language: str) -> str:
    """Put the reason of an entry into words; what an administrator wrote stands as it is."""
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
