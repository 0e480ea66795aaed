"""Words of a page in several languages.

A page is written with keys; `Words` holds what each key says in each language. What a language lacks is shown in
English, and `Words.missing` lists it, so that a test can demand that nothing is lacking.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from music_evals.errors import InvalidInputError, UnknownNameError

__all__ = ["ENGLISH", "LANGUAGES", "Words"]

ENGLISH = "en"
LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}
"""Languages that a page may speak, each in its own name."""


@dataclasses.dataclass(frozen=True)
class Words:
    """Language -> key -> text.

    Parameters
    ----------
    texts
        One mapping a language, English (``"en"``) among them. A text may hold fields in braces, ``{n}``.

    Raises
    ------
    InvalidInputError
        No English, a language that is not in `LANGUAGES`, or a key that English does not have.

    Examples
    --------
    >>> words = Words({"en": {"judge": "Judge", "lines": "{n} lines"}, "zh": {"judge": "评分"}})
    >>> t = words("zh")
    >>> t("judge"), t("lines", n=4)
    ('评分', '4 lines')
    >>> words.missing()
    {'zh': ['lines']}
    """

    texts: Mapping[str, Mapping[str, str]]

    def __post_init__(self) -> None:
        if ENGLISH not in self.texts or not set(self.texts) <= set(LANGUAGES):
            raise InvalidInputError(
                f"expected texts in 'en' and in other languages of {sorted(LANGUAGES)}, got {sorted(self.texts)}"
            )
        for language, texts in self.texts.items():
            if unknown := sorted(set(texts) - set(self.texts[ENGLISH])):
                raise InvalidInputError(
                    f"{language}: keys that English does not have: {', '.join(unknown)}; add or rename them"
                )

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of these words, English first."""
        return (ENGLISH, *(language for language in self.texts if language != ENGLISH))

    @property
    def choices(self) -> list[tuple[str, str]]:
        """What a language switch offers: (name in its own language, code)."""
        return [(LANGUAGES[language], language) for language in self.languages]

    def __call__(self, language: str = ENGLISH) -> Callable[..., str]:
        """Return the function that says a key in a language; its named arguments fill the fields of the text."""
        if language not in self.texts:
            raise UnknownNameError("language", language, self.texts)
        spoken, english = self.texts[language], self.texts[ENGLISH]

        def say(key: str, **values: object) -> str:
            if key not in english:
                raise UnknownNameError("text of the page", key, english)
            text = spoken.get(key, english[key])
            return text.format(**values) if values else text

        return say

    def missing(self) -> dict[str, list[str]]:
        """Return, for each language that lacks any, the keys that it shows in English."""
        english = self.texts[ENGLISH]
        lacking = {language: [key for key in english if key not in texts] for language, texts in self.texts.items()}
        return {language: keys for language, keys in lacking.items() if keys}
