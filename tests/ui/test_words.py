"""Words of a page in several languages."""

from __future__ import annotations

import pytest

from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.ui.words import Words

TEXTS = {"zh": {"judge": "评分"}, "en": {"judge": "Judge", "lines": "{n} lines", "braces": "{verse}"}}


def test_a_key_is_said_in_a_language() -> None:
    words = Words(TEXTS)
    assert words.languages == ("en", "zh")
    assert words.choices == [("English", "en"), ("中文", "zh")]
    assert words()("judge") == "Judge"
    assert words("zh")("judge") == "评分"


def test_what_a_language_lacks_is_english_and_is_listed() -> None:
    words = Words(TEXTS)
    assert words("zh")("lines", n=3) == "3 lines"
    assert words("zh")("braces") == "{verse}"
    assert words.missing() == {"zh": ["lines", "braces"]}
    assert Words({"en": TEXTS["en"]}).missing() == {}


def test_names_that_do_not_exist() -> None:
    words = Words(TEXTS)
    with pytest.raises(UnknownNameError, match="'judgement'; did you mean judge"):
        words("zh")("judgement")
    with pytest.raises(UnknownNameError, match="unknown language 'de'"):
        words("de")


@pytest.mark.parametrize("texts", [{}, {"zh": {}}, {"en": {}, "xx": {}}, {"en": {}, "zh": {"a": "b"}}])
def test_words_need_english_and_its_keys(texts: dict[str, dict[str, str]]) -> None:
    with pytest.raises(InvalidInputError):
        Words(texts)
