"""The sentence on what was preserved: where scores stand between unrelated music and the same music."""

from __future__ import annotations

from typing import Any

from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED
from music_evals.benchmark.tasks.preservation.screen import WORDS, preserved_sentence
from music_evals.metrics.catalogue import PRESERVATION_METRICS

NAMES = ("major_minor_score", "delta_bpm", "beat_f_measure", "segment_ari", "motif_recall")
SAME, OTHER = (1.0, 0.0, 1.0, 0.9, 0.8), (0.0, 20.0, 0.2, 0.1, 0.8)


def results(own: tuple[float | None, ...], **controls: tuple[float, ...]) -> dict[str, Any]:
    systems = {"mine": own, **{name.replace("_", " "): values for name, values in controls.items()}}
    return {
        "scales": {name: {"direction": PRESERVATION_METRICS[name].direction} for name in NAMES},
        "scores": {
            system: {name: {"value": value} for name, value in zip(NAMES, values, strict=True)}
            for system, values in systems.items()
        },
    }


def test_each_of_the_eleven_has_a_word() -> None:
    assert list(WORDS) == list(PRESERVATION_METRICS)
    assert len(set(WORDS.values())) == len(WORDS)


def test_scores_are_placed_between_the_controls() -> None:
    """Chords 0.25 of the way; tempo (20 - 5) / 20; beats below chance; sections undefined; no room for motifs."""
    found = results((0.25, 5.0, 0.1, None, 0.5), same_music=SAME, unrelated_music=OTHER)
    assert {CEILING, UNRELATED} <= found["scores"].keys()
    assert preserved_sentence(found, "mine") == (
        "mine preserved in part: chords 25 %, tempo 75 %; not: beats; not comparable: sections, motifs kept "
        "(0 % is unrelated music)."
    )


def test_what_is_better_than_the_same_music_is_whole() -> None:
    found = results((0.996, 0.0, 0.994, 0.95, 0.8), same_music=SAME, unrelated_music=OTHER)
    assert preserved_sentence(found, "mine").startswith(
        "mine preserved in full: chords, tempo, sections; in part: beats 99 %;"
    )


def test_one_original_is_compared_with_itself_alone() -> None:
    """Nothing says what chance is: a score is as good as that of the same music, in three decimals, or it is not."""
    found = results((0.9996, 0.1, 1.0, None, 0.7), same_music=SAME)
    assert preserved_sentence(found, "mine") == (
        "mine is as near as the same music in chords, beats; less near in tempo, motifs kept; not comparable: sections."
    )


def test_without_controls_nothing_is_said() -> None:
    assert preserved_sentence(results(SAME), "mine") == ""


def test_of_scores_without_a_word_nothing_is_said() -> None:
    for controls in ({"same_music": SAME}, {"same_music": SAME, "unrelated_music": OTHER}):
        found = results(OTHER, **controls)
        found["scales"] = {"interval_lcs": {"direction": "higher"}}
        assert preserved_sentence(found, "mine") == ""
