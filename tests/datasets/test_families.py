"""Settings of one tune are found in any key and under ornaments, and other tunes are left apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.datasets.making import melody, quarter_tokens

from music_evals.datasets import families
from music_evals.datasets.families import (
    ANY_OFFSET,
    BAR_LINES,
    find_families,
    overlap,
    pair_overlaps,
    passages,
    skeleton,
)


def ornamented(pitches: list[int]) -> np.ndarray:
    """Quarters as two eighths each, the second one a neighbour that is not in the tune."""
    steps = [token for pitch in pitches for token in (pitch, 128, 128, pitch + 1, 128, 128)]
    return np.array(steps, dtype=np.uint8)


def test_the_skeleton_is_what_sounds_on_the_beats() -> None:
    half = [60, *[128] * 11, 129, *[128] * 5, 67, *[128] * 5]  # a half note, a rest, a quarter
    assert skeleton(np.array(half, dtype=np.uint8)).tolist() == [[0, 0, 0, 7]]
    late = [129, *[128] * 5, 62, *[128] * 17]
    assert skeleton(np.array(late, dtype=np.uint8)).tolist() == [[-1, 2, 2, 2]]
    assert skeleton(np.array(half * 2, dtype=np.uint8), 6).tolist() == [[7, 0, 0, 0]]


def test_one_tune_in_another_key_overlaps_wholly() -> None:
    tune = passages(skeleton(quarter_tokens(melody(1))))
    other_key = passages(skeleton(quarter_tokens([pitch + 5 for pitch in melody(1)])))
    assert overlap(tune, other_key) == 1
    assert overlap(tune, other_key, shifts=[0]) < 0.3
    assert overlap(tune, tune[:0]) == 0


def test_twelve_beats_of_sixteen_agree_and_eleven_do_not() -> None:
    first = np.arange(16, dtype=np.int8)[None] % 12
    for changed, expected in ((4, 1.0), (5, 0.0)):
        second = first.copy()
        second[0, :changed] = (second[0, :changed] + 6) % 12
        assert overlap(first, second, shifts=[0]) == expected


def test_settings_join_and_other_tunes_do_not() -> None:
    voices = [quarter_tokens(melody(seed)) for seed in range(8)]
    voices += [quarter_tokens([pitch + 3 for pitch in melody(2)]), ornamented(melody(5))]
    assert find_families(voices) == [0, 1, 2, 3, 4, 5, 6, 7, 2, 5]


def test_a_family_is_linked_through_others() -> None:
    first, last = melody(20, 32), melody(21, 32)
    middle = first[:64] + last[:64]  # half of each
    families = find_families([quarter_tokens(first), quarter_tokens(last), quarter_tokens(middle)])
    assert families == [0, 0, 0]
    assert find_families([quarter_tokens(first), quarter_tokens(last)]) == [0, 1]


@pytest.mark.slow
def test_any_number_of_settings_are_one_family_and_a_common_phrase_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "COMMON", 20)  # of 100
    phrase = melody(31, 2)
    settings = []
    for number in range(40):  # each in another key, and with one other note
        pitches = [pitch + number % 12 for pitch in phrase + melody(30, 18)]
        pitches[number % len(pitches)] += 1
        settings.append(quarter_tokens(pitches))
    assert set(find_families(settings)) == {0}
    others = [quarter_tokens(phrase + melody(100 + number, 18)) for number in range(40)]
    assert find_families(others) == list(range(len(others)))
    mixed = [voice for pair in zip(settings, others, strict=True) for voice in pair]  # no two settings side by side
    assert find_families(mixed) == [0 if number % 2 == 0 else number for number in range(len(mixed))]


@pytest.mark.parametrize(("one", "other"), [*itertools.product(range(8), repeat=2)])
def test_a_pickup_hides_no_setting(one: int, other: int) -> None:
    tune = melody(40, 20)
    voices = [behind_rests(tune, one), behind_rests(melody(41, 20), one), behind_rests([p + 4 for p in tune], other)]
    assert find_families(voices) == [0, 1, 0]
    same_quarters_on_the_beats = ((one + 1) // 2 - (other + 1) // 2) % 4 == 0
    assert find_families(voices, offsets=BAR_LINES) == ([0, 1, 0] if same_quarters_on_the_beats else [0, 1, 2])


def behind_rests(pitches: list[int], eighths: int) -> np.ndarray:
    """A tune whose measures begin some eighths before its own, so that they cut it elsewhere."""
    tokens = np.concatenate([np.full(3 * eighths, 129, dtype=np.uint8), quarter_tokens(pitches)])
    return tokens[: len(tokens) // 24 * 24]


def test_any_offset_finds_what_bar_lines_find() -> None:
    voices = [quarter_tokens(melody(seed)) for seed in range(8)]
    voices += [quarter_tokens([pitch + 3 for pitch in melody(2)]), ornamented(melody(5))]
    at_bars, anywhere = pair_overlaps(voices, offsets=BAR_LINES), pair_overlaps(voices, offsets=ANY_OFFSET)
    assert all(anywhere[pair] >= found for pair, found in at_bars.items())
    assert {pair for pair, found in at_bars.items() if found == 1} == {(2, 8), (5, 9)}


@pytest.mark.parametrize("voices", [[], [np.full(24 * 16, 129, dtype=np.uint8)] * 2])
def test_nothing_to_compare_is_no_family(voices: list[np.ndarray]) -> None:
    assert find_families(voices) == list(range(len(voices)))
