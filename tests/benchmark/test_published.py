"""What stands in the files of published tables agrees with what the papers print of them."""

from __future__ import annotations

import math
from importlib import resources

import pytest

from music_evals.annotations import SCORED
from music_evals.benchmark.published import (
    JSB_TABLE,
    published_descriptions,
    published_lyrics,
    read_published,
)
from music_evals.metrics.catalogue import DESCRIPTION_SCORES, LYRIC_SCORES

LYRICS = read_published("muchin_table1")
DESCRIPTIONS = read_published("muchin_table2")


def test_every_file_names_its_source() -> None:
    folder = resources.files("music_evals.benchmark").joinpath("published")
    names = sorted(file.name.removesuffix(".csv") for file in folder.iterdir())
    assert names == ["muchin_table1", "muchin_table2", "musecpbench_table2", "musib_table3"]
    assert all(read_published(name).source for name in names)


@pytest.mark.parametrize("system", LYRICS.means)
def test_the_parts_of_table_1_add_up(system: str) -> None:
    total, *parts = (LYRICS.means[system][name] for name in LYRIC_SCORES)
    if system == "Qwen 14B base":  # the known misprint
        assert (math.fsum(parts), total) == (pytest.approx(50.06), 48.31)
    else:
        assert math.fsum(parts) == pytest.approx(total, abs=0.0201)


def test_table_1_holds_what_is_printed() -> None:
    assert list(LYRICS.means) == ["GPT-4", "GLM-4 130B", "Baichuan-2 53B", "Qwen 14B base", "Qwen 14B fine-tuned"]
    assert all(list(row) == list(LYRIC_SCORES) for table in (LYRICS.means, LYRICS.spread) for row in table.values())
    assert LYRICS.means["GPT-4"]["lyric_structure"] == 67.08
    assert LYRICS.spread["GLM-4 130B"]["lyric_structure"] == 16.46
    assert LYRICS.means["Qwen 14B fine-tuned"]["lyric_word"] == 9.12
    assert all(0 <= value <= LYRIC_SCORES[name].high for row in LYRICS.means.values() for name, value in row.items())


ODD_SPREADS = {("MERT 330M", "amateur"): 0.13366, ("Music2Vec 95M", "professional"): 0.14677}
"""Averages whose printed deviation is another one than the mean of their rows'; the file says so."""


@pytest.mark.parametrize("system", DESCRIPTIONS.means)
@pytest.mark.parametrize("group", SCORED)
def test_the_averages_of_table_2_are_the_means_of_its_rows(system: str, group: str) -> None:
    means, spreads = (
        math.fsum(table[system][f"{group}/{name}"] for name in SCORED[group]) / 10
        for table in (DESCRIPTIONS.means, DESCRIPTIONS.spread)
    )
    assert means == pytest.approx(DESCRIPTIONS.means[system][f"{group}_average"], abs=0.00025)
    expected = ODD_SPREADS.get((system, group), DESCRIPTIONS.spread[system][f"{group}_average"])
    assert spreads == pytest.approx(expected, abs=0.0001)


def test_table_2_holds_what_is_printed() -> None:
    assert list(DESCRIPTIONS.means) == ["Jukebox 5B", "MERT 330M", "MERT 95M", "Music2Vec 95M", "EnCodec 56M"]
    assert all(set(row) == set(DESCRIPTION_SCORES) - {"tag_semantic_similarity"} for row in DESCRIPTIONS.means.values())
    assert DESCRIPTIONS.means["MERT 95M"]["professional_average"] == 0.564
    assert DESCRIPTIONS.spread["EnCodec 56M"]["amateur/audio_effects"] == 0.1725
    assert DESCRIPTIONS.means["Jukebox 5B"]["professional/expressive_impact_singer_accompaniment"] == 0.9146


def test_what_is_told_beside_them() -> None:
    lyrics = published_lyrics(["lyric_song"])
    assert lyrics["table"]["GPT-4"] == {"lyric_song": 2.5}
    assert lyrics["spread"]["GPT-4"] == {"lyric_song": 1.16}
    assert "50.06" in lyrics["differences"]["misprint"]
    descriptions = published_descriptions(DESCRIPTION_SCORES)
    assert all(set(row) == {"professional_average", "amateur_average"} for row in descriptions["table"].values())
    assert "not confirmed" in descriptions["differences"]["rows"]


def test_the_older_tables_are_read_too() -> None:
    assert JSB_TABLE["Anticipation-RNN"]["inpainting_nll"] == 0.459
    assert read_published("musecpbench_table2").means["RefinPaint"]["motif_recall"] == 0.568
    assert read_published("musib_table3").spread == {}
