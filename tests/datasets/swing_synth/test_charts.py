"""Charts of the grammar."""

from collections import Counter

import numpy as np
import pytest

from music_evals.datasets.swing_synth.charts import FORMS, Chart, draw_chart
from music_evals.datasets.swing_synth.chords import QUALITIES, Chord, pick


def charts(n=400):
    rng = np.random.Generator(np.random.PCG64(5))
    return [draw_chart(rng) for _ in range(n)]


def test_forms_have_their_bars():
    found = charts()
    assert {chart.form for chart in found} == set(FORMS)
    for chart in found:
        assert len(chart.bars) == FORMS[chart.form]
        assert {len(bar) for bar in chart.bars} <= {1, 2}


def test_the_blues_goes_to_the_fourth_degree_in_its_fifth_bar():
    blues = [chart for chart in charts() if chart.form in {"blues", "minor_blues"}]
    assert {chart.bars[4][0].root for chart in blues} == {5}
    assert {chart.minor for chart in blues} == {False, True}


def test_sections_come_back():
    for chart in charts():
        if chart.form == "AABA":
            assert chart.bars[:5] == chart.bars[8:13] == chart.bars[24:29]
        elif chart.form == "ABAC":
            assert chart.bars[:5] == chart.bars[16:21]
        elif chart.form == "sixteen":
            assert chart.bars[:3] == chart.bars[8:11]


def test_songs_end_on_the_tonic():
    songs = [chart for chart in charts() if "blues" not in chart.form]
    assert all(chart.bars[-1][-1] == Chord(0, "tonic_minor" if chart.minor else "major") for chart in songs)


def test_nearly_all_tritone_substitutes_fall_a_semitone():
    falls = Counter()
    for chart in charts():
        line = [chord for bar in chart.bars for chord in bar]
        for chord, following in zip(line, [*line[1:], line[0]], strict=True):
            if chord.quality == "lydian":
                falls[(chord.root - following.root) % 12] += 1
    # the others lead to the ii before their goal, to another substitute, or from a turnaround into another opening
    assert falls.total() > 100
    assert falls[1] > 0.75 * falls.total()


def test_the_family_is_the_progression_whatever_the_key():
    one, two = charts(2)
    assert one.family == Chart(one.form, one.minor, one.bars).family != two.family
    assert one.text(0) != one.text(5)


@pytest.mark.parametrize(
    ("text", "root", "quality", "in_f"),
    [("I7", 0, "dominant", "F7"), ("bII7#11", 1, "lydian", "F#7#11"), ("VIIø", 11, "half_diminished", "Em7b5")],
)
def test_roman_numerals(text, root, quality, in_f):
    chord = Chord.parse(text)
    assert chord == Chord(root, quality)
    assert chord.symbol(5) == in_f


def test_guide_tones_are_in_every_voicing_and_all_tones_in_the_scale():
    for quality in QUALITIES.values():
        assert all(set(quality.guides) <= set(voicing) for voicing in quality.voicings)
        assert set(quality.tones) <= set(quality.scale)


def test_pick_follows_the_weights():
    rng = np.random.Generator(np.random.PCG64(0))
    counts = Counter(pick(rng, {"a": 3, "b": 1}) for _ in range(4000))
    assert 2850 < counts["a"] < 3150
