from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from music_evals.annotations import sections_of_rows, sections_text, theme_of_row
from music_evals.benchmark.tasks.songs.nonsense import random_characters
from music_evals.benchmark.tasks.songs.text_controls import on_one_character
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.errors import (
    InvalidInputError,
    ModelUnavailableError,
    NoDataError,
    PairCountError,
    UndefinedMetricWarning,
    UnsupportedTypeError,
)
from music_evals.lyrics.embeddings import as_encoder
from music_evals.metrics.lyric_content import WORDS_OF_PEOPLE
from music_evals.pipelines.lyric_content import evaluate_diversity, evaluate_themes, evaluate_wordlikeness, lines_of
from music_evals.pipelines.lyrics import evaluate_lyrics

ROWS = demo_rows()
WORDS, PATTERNS = (
    [sections_text(sections_of_rows(row["structure"], field)) for row in ROWS] for field in ("lines", "rhyme")
)
THEMES = [theme_of_row(row) or "" for row in ROWS]
POEM, LOOP = "(verse)\n春眠不觉晓\n夜来风雨声", "(verse)\n春眠不觉晓\n春眠不觉晓"


def test_lyrics_of_people_lie_in_their_own_range_and_one_character_does_not() -> None:
    true = evaluate_diversity(WORDS, WORDS)
    assert true["lyric_diversity"] == true["lyric_diversity_reference"]
    assert true["lyric_diversity_in_range"] >= 0.9
    assert true["lyric_line_repetition"] == true["lyric_line_repetition_reference"]
    same = evaluate_diversity(WORDS, [on_one_character(pattern) for pattern in PATTERNS])
    assert same["lyric_diversity"] < 0.15
    assert true["lyric_diversity"] > 0.7
    assert same["lyric_diversity_in_range"] == 0.0
    assert same["lyric_diversity_range"] == true["lyric_diversity_range"]


def test_numbers_by_hand() -> None:
    result = evaluate_diversity([POEM, LOOP, POEM], [LOOP, "(verse)\n春", POEM], per_item=True, groups=[0, 1, 2])
    assert result["lyric_diversity"] == pytest.approx((0.5 + 1.0) / 2)
    assert (result["lyric_diversity_n"], result["lyric_diversity_n_defined"]) == (3, 2)
    assert result["lyric_diversity_reference"] == pytest.approx(2.5 / 3)
    assert result["lyric_diversity_range"] == pytest.approx((0.55, 1.0))
    assert result["lyric_diversity_in_range"] == 0.5
    assert result["lyric_line_repetition"] == pytest.approx(0.5 / 3)
    assert [row["lyric_line_repetition"] for row in result["per_item"]] == [0.5, 0.0, 0.0]
    assert math.isnan(result["per_item"][1]["lyric_diversity"])


def test_undefined_sets_warn() -> None:
    with pytest.warns(UndefinedMetricWarning, match="none of the 1 items"):
        result = evaluate_diversity([""], ["(verse)\n春"])
    assert math.isnan(result["lyric_diversity"])
    assert math.isnan(result["lyric_diversity_reference"])
    assert math.isnan(result["lyric_diversity_in_range"])


def test_people_write_as_many_words_as_people_and_characters_at_random_do_not() -> None:
    rng = random.Random(0)
    nonsense = [random_characters(pattern, rng) for pattern in PATTERNS]
    true = evaluate_wordlikeness(WORDS, WORDS)
    assert true["lyric_wordlikeness"] == true["lyric_wordlikeness_reference"] < 0.01
    assert true["lyric_wordlikeness_in_range"] >= 0.9
    made = evaluate_wordlikeness(WORDS, nonsense, per_item=True)
    assert made["lyric_wordlikeness"] > 0.3
    assert (made["lyric_wordlikeness_in_range"], made["lyric_wordlikeness_range"]) == (0.0, WORDS_OF_PEOPLE)
    assert made["lyric_word_share_reference"] == true["lyric_word_share"]
    assert {type(row["lyric_word_share"]) for row in made["per_item"]} == {float}
    beside = evaluate_lyrics(PATTERNS, nonsense, rhyme="char")
    assert beside["lyric_wordlikeness"] == pytest.approx(made["lyric_wordlikeness"])
    with pytest.warns(UndefinedMetricWarning, match="none of the 2 items"):
        nothing = evaluate_wordlikeness(["春天"] * 2, ["", "(verse)\nbaby"])
    assert math.isnan(nothing["lyric_wordlikeness"])
    assert nothing["lyric_wordlikeness_n_defined"] == 0


def test_own_themes_are_nearer_than_those_of_other_songs() -> None:
    result = evaluate_themes(THEMES, WORDS, encoder="char-ngrams")
    assert result["lyric_theme_similarity"] > result["lyric_theme_similarity_other"] + 0.03
    swapped = evaluate_themes([*THEMES[1:], THEMES[0]], WORDS, encoder="char-ngrams")
    assert swapped["lyric_theme_similarity"] < result["lyric_theme_similarity"] - 0.03
    assert result["encoder"]["name"] == "char-ngrams"


AXES = {"spring": (1.0, 0.0, 0.0), "night": (0.0, 1.0, 0.0), "sea": (0.0, 0.0, 1.0)}


def by_axis(texts: Any) -> np.ndarray:
    return np.array([np.sum([AXES[word] for word in text.split("，")], axis=0) for text in texts])


def test_the_other_themes_are_those_of_other_groups() -> None:
    """Vectors by hand: two lyrics of one theme are no strangers to each other."""
    encoder = as_encoder(by_axis, "axes")
    lyrics = ["(verse)\nspring\n(chorus)\nnight", "spring", "night"]
    themes = ["spring", "spring", "night"]
    result = evaluate_themes(themes, lyrics, encoder=encoder, groups=["s", "s", "n"], per_item=True)
    # sections of 6 and 5 letters: (6, 5) / sqrt(61)
    assert [row["lyric_theme_similarity"] for row in result["per_item"]] == pytest.approx([6 / math.sqrt(61), 1, 1])
    assert result["lyric_theme_similarity_other"] == pytest.approx((5 / math.sqrt(61) + 0 + 0) / 3)
    alone = evaluate_themes(themes[:2], lyrics[:2], encoder=encoder, groups=[0, 0])
    assert math.isnan(alone["lyric_theme_similarity_other"])


def test_texts_without_words_are_in_no_mean() -> None:
    encoder = as_encoder(by_axis, "axes")
    result = evaluate_themes(["sea", "sea", " "], ["sea", "(verse)\n", "sea"], encoder=encoder)
    assert (result["lyric_theme_similarity"], result["lyric_theme_similarity_n_defined"]) == (pytest.approx(1.0), 1)


def test_nothing_is_computed_without_weights(tmp_path: Any) -> None:
    with pytest.raises(ModelUnavailableError, match="no-such-model"):
        evaluate_themes(["春"], ["春天"], encoder=str(tmp_path / "no-such-model"))


def test_texts_are_cut_at_their_headers() -> None:
    assert lines_of("好的：\n(verse)\n春\n夏\n(chorus)\n") == [["春", "夏"], []]
    assert lines_of("春\n夏") == [["春", "夏"]]


@pytest.mark.parametrize("evaluate", [evaluate_diversity, evaluate_themes, evaluate_wordlikeness])
@pytest.mark.parametrize(
    ("references", "generated", "options", "error"),
    [
        (["春"], [], {}, PairCountError),
        ([], [], {}, NoDataError),
        ("春", ["春"], {}, UnsupportedTypeError),
        (["春"], [3], {}, UnsupportedTypeError),
        (["春"], ["春"], {"groups": [1, 2]}, PairCountError),
        (["春"], ["春"], {"confidence": 2}, InvalidInputError),
    ],
)
def test_bad_inputs(evaluate: Any, references: Any, generated: Any, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        evaluate(references, generated, **options)
