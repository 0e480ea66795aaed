"""The texts of the pages in Chinese and English, from one catalogue, and which of the two a browser is shown."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from music_evals.errors import UnknownNameError
from music_evals.yaml_files import packaged_yaml

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["DEFAULT_LANGUAGE", "LANGUAGES", "LANGUAGE_COOKIE", "catalogue", "language_of", "preferred", "translator"]

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
    """Return what gives the text of a name.

    Raises
    ------
    UnknownNameError
        No such language; and, from what is returned, no such name.

    """
    if language not in LANGUAGES:
        raise UnknownNameError("language", language, LANGUAGES)
    place = LANGUAGES.index(language)

    def text(name: str) -> str:
        if name not in catalogue():
            raise UnknownNameError("text", name, catalogue())
        return catalogue()[name][place]

    return text


def language_of(request: Request, account_language: str = "") -> str:
    """Return the language of a response: of the query, the cookie, the account or ``Accept-Language``, in this order.

    Parameters
    ----------
    request
        Of a browser.
    account_language
        Language that the account has chosen; empty if none.

    """
    chosen = request.query_params.get("language"), request.cookies.get(LANGUAGE_COOKIE), account_language
    accepted = ",".join(request.headers.getlist("accept-language"))
    return next((name for name in chosen if name in LANGUAGES), None) or preferred(accepted)


def preferred(accepted: str) -> str:
    """Return the one of `LANGUAGES` that a header ``Accept-Language`` ranks highest (RFC 9110, section 12.5.4).

    Parameters
    ----------
    accepted
        Ranges with weights 0..1; of a language all regions and scripts count, ``*`` stands for those that are not
        named, weight 0 refuses. What cannot be read is passed over.

    Examples
    --------
    >>> preferred("de, zh-Hant;q=.5, en-GB;q=0.4"), preferred("de")
    ('zh', 'en')

    """
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
