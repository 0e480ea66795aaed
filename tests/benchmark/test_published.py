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
PRINTED = [name for name in LYRIC_SCORES if name != "lyric_structure_corrected"]
DESCRIPTIONS = read_published("muchin_table2")


def test_every_file_names_its_source() -> None:
    folder = resources.files("music_evals.benchmark").joinpath("published")
    names = sorted(file.name.removesuffix(".csv") for file in folder.iterdir())
    assert names == [
        "muchin_table1", "muchin_table2", "musecpbench_table2",
        "musib_starred", "musib_table2", "musib_table3", "musib_table4",
    ]  # fmt: skip
    assert all(read_published(name).source for name in names)


@pytest.mark.parametrize("system", LYRICS.means)
def test_the_parts_of_table_1_add_up(system: str) -> None:
    total, *parts = (LYRICS.means[system][name] for name in PRINTED)
    if system == "Qwen 14B base":  # the known misprint
        assert (math.fsum(parts), total) == (pytest.approx(50.06), 48.31)
    else:
        assert math.fsum(parts) == pytest.approx(total, abs=0.0201)


def test_table_1_holds_what_is_printed() -> None:
    assert list(LYRICS.means) == ["GPT-4", "GLM-4 130B", "Baichuan-2 53B", "Qwen 14B base", "Qwen 14B fine-tuned"]
    assert all(list(row) == PRINTED for table in (LYRICS.means, LYRICS.spread) for row in table.values())
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


MUSIB = {
    "musib_table2": """
        Anticipation-RNN 0.453 0.930 0.657 0.860 0.017 0.060 0.007
        InpaintNet       0.487 0.860 0.517 0.750 0.013 0.174 0.024
        SketchNet        0.539 0.914 0.560 0.868 0.005 0.134 0.009
        VLI (paper)      0.061 0.940 0.861 0.952 0.022 0.020 0.007
        VLI (thesis)     0.059 0.968 0.911 0.965 0.015 0.010 0.006
        """,
    "musib_table3": """
        Anticipation-RNN 0.459 0.832 0.243 0.682 0.240 0.525 0.232
        InpaintNet       0.327 0.852 0.505 0.788 0.059 0.411 0.153
        SketchNet        0.605 0.833 0.272 0.708 0.079 0.529 0.228
        VLI (paper)      0.935 0.643 0.163 0.639 0.197 0.585 0.225
        VLI (thesis)     1.053 0.827 0.283 0.747 0.087 0.286 0.306
        """,
    "musib_table4": """
        Anticipation-RNN 0.808 0.879 0.295 0.744 0.071 0.485 0.163
        InpaintNet       0.655 0.864 0.419 0.690 0.055 0.489 0.392
        SketchNet        0.779 0.937 0.386 0.888 0.562 0.527 0.176
        VLI (paper)      0.415 0.851 0.371 0.880 0.102 0.474 0.307
        """,
}
"""Tables 2 to 4 as they are printed: NLL, position, pitch, rhythm, silence, pitch classes, groove."""


@pytest.mark.parametrize("name", MUSIB)
def test_the_tables_of_musib_hold_what_is_printed(name: str) -> None:
    printed = [line.rsplit(maxsplit=7) for line in MUSIB[name].strip().splitlines()]
    means = read_published(name).means
    assert list(means) == [system.strip() for system, *_ in printed]
    metrics = ["inpainting_nll", "position_score", "pitch_accuracy", "rhythm_accuracy"]
    metrics += ["silence_divergence", "pitch_class_divergence", "groove_divergence"]
    for system, *values in printed:
        assert means[system.strip()] == dict(zip(metrics, map(float, values), strict=True))


def test_the_published_gaps_follow_from_the_starred_values() -> None:
    table, starred = read_published("musib_table2").means, read_published("musib_starred").means
    gaps = {
        system: round(100 * (row["inpainting_nll"] - table[system]["inpainting_nll"]) / row["inpainting_nll"])
        for system, row in starred.items()
    }
    assert gaps == {"Anticipation-RNN": 32, "InpaintNet": 26, "SketchNet": -4}
