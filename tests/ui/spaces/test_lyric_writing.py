"""The lyrics page writes: which model it may ask, what is asked, and what becomes of the answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.writing import build_model

from music_evals.errors import InvalidInputError, InvalidLyricsError, InvalidPatternError, ModelUnavailableError
from music_evals.protocols import Written
from music_evals.ui.spaces import lyrics as page
from music_evals.ui.spaces import lyrics as writing
from music_evals.ui.spaces.lyric_scoring import score_text

PATTERN = "(verse)\nccccR\nccccR\nccccc\nccccR"
POEM = "(verse)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡"


class Poet:
    """Answers with a text, and keeps what it was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int]] = []

    def write(self, prompts: list[str], *, seed: int) -> list[Written]:
        self.asked += [(prompt, seed) for prompt in prompts]
        return [Written(self.answer) for _ in prompts]


@pytest.fixture
def poet(monkeypatch: pytest.MonkeyPatch) -> Poet:
    made = Poet(POEM)
    monkeypatch.setenv(writing.VARIABLE, "lab/poet@abc")
    monkeypatch.setattr(writing, "_writer", lambda *_: made)
    return made


def test_the_owner_names_the_model(tmp_path: Path) -> None:
    assert writing.writer_place({}) is None
    assert writing.writer_place({writing.VARIABLE: "lab/poet@abc"}) == ("lab/poet", "abc")
    assert writing.writer_place({writing.VARIABLE: str(tmp_path)}) == (str(tmp_path), None)
    with pytest.raises(InvalidInputError, match="ID@COMMIT"):
        writing.writer_place({writing.VARIABLE: "lab/poet"})


def test_without_a_model_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(writing.VARIABLE, raising=False)
    with pytest.raises(ModelUnavailableError, match=writing.VARIABLE):
        writing.written_lyrics("月光", PATTERN)
    with pytest.raises(ModelUnavailableError, match="页面所有者"):
        writing.written_lyrics("月光", PATTERN, 0, "zh")


def test_theme_and_pattern_are_asked_for(poet: Poet) -> None:
    assert writing.written_lyrics(" 月光下想家 ", PATTERN, 7) == POEM
    ((prompt, seed),) = poet.asked
    assert "月光下想家" in prompt
    assert "ccccR" in prompt
    assert seed == 7
    for theme in (" ", "月" * (writing.MAX_THEME + 1)):
        with pytest.raises(InvalidLyricsError, match="at most 300"):
            writing.written_lyrics(theme, PATTERN)
    with pytest.raises(InvalidPatternError):
        writing.written_lyrics("月光", "(verse)\nxyz")


def test_what_was_written_is_scored(poet: Poet) -> None:
    pytest.importorskip("gradio")
    lyrics, judged, *views = page.write_and_score("月光", PATTERN)
    assert lyrics == POEM
    assert judged.score.total == score_text(POEM, PATTERN).score.total > 50
    poet.answer = "I cannot do that."
    with pytest.warns(UserWarning, match="no section header"):  # outside of a page, what it would say there
        lyrics, judged, *others = page.write_and_score("月光", PATTERN)
    assert (lyrics, judged) == ("I cannot do that.", None)
    assert len(others) == len(views)


def test_a_model_of_transformers_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setenv(writing.VARIABLE, str(build_model(tmp_path / "tiny", room=4096)))
    monkeypatch.setattr(writing, "MAX_TOKENS", 12)
    writing._writer.cache_clear()
    first = writing.written_lyrics("月光", PATTERN)
    assert first == writing.written_lyrics("月光", PATTERN)
    assert len(first) <= 12 * 4
