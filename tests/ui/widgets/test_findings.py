"""Sentences on features made by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from music_evals.annotations import Beats, Chords, F0Track, Features, Key, Melody, Segments
from music_evals.ui.widgets.findings import Finding, findings, interval_name, key_name, preserved_sentence


def told(original: Features, edit: Features) -> dict[str, tuple[str, str]]:
    return {finding.facet: (finding.kind, finding.text) for finding in findings(original, edit)}


def features(duration_sec: float = 20.0, **values) -> Features:
    return Features(duration_sec, **values)


def beats(start: float, step: float, n: int, bpm: float | None = None) -> Beats:
    return Beats(start + step * np.arange(n), 60 / step if bpm is None else bpm)


def spans(*edges: float) -> np.ndarray:
    return np.array(list(itertools.pairwise(edges)))


def melody(pitches: list[float], start: float = 0.0) -> Melody:
    return Melody(spans(*(start + 0.5 * np.arange(len(pitches) + 1))), np.array(pitches, dtype=float))


def test_names_of_intervals_and_keys():
    assert [interval_name(steps) for steps in (1, -5, 7, 12)] == ["a semitone", "a fourth", "a fifth", "an octave"]
    assert [key_name(Key(0, "major")), key_name(Key(10, "minor"))] == ["C major", "Bb minor"]


@pytest.mark.parametrize(
    ("first", "second", "kind", "text"),
    [
        ((0, "major"), (0, "major"), "same", "key unchanged (C major)"),
        ((0, "major"), (7, "major"), "changed", "key moved up a fifth (C major to G major)"),
        ((7, "major"), (0, "major"), "changed", "key moved up a fourth (G major to C major)"),
        ((0, "major"), (10, "major"), "changed", "key moved down a whole tone (C major to Bb major)"),
        ((9, "minor"), (3, "minor"), "changed", "key moved by a tritone (A minor to Eb minor)"),
        ((0, "major"), (0, "minor"), "changed", "mode changed from major to minor (C major to C minor)"),
        ((0, "major"), (9, "minor"), "changed", "key moved to the relative minor (C major to A minor; the same scale)"),
        ((9, "minor"), (0, "major"), "changed", "key moved to the relative major (A minor to C major; the same scale)"),
        ((0, "major"), (4, "minor"), "changed", "key changed from C major to E minor"),
    ],
)
def test_keys(first, second, kind, text):
    assert told(features(key=Key(*first)), features(key=Key(*second)))["key"] == (kind, text)


@pytest.mark.parametrize(
    ("first", "second", "kind", "text"),
    [
        (120.0, 120.3, "same", "tempo unchanged (120 BPM)"),
        (120.0, 116.0, "changed", "tempo 4 BPM slower (120 to 116 BPM)"),
        (120.0, 121.2, "changed", "tempo 1.2 BPM faster (120 to 121 BPM)"),
        (
            60.0,
            120.0,
            "changed",
            "beats counted about 2 times as fast (60 to 120 BPM; a beat tracker may count halves or doubles)",
        ),
        (
            160.0,
            40.0,
            "changed",
            "beats counted about 4 times as slow (160 to 40 BPM; a beat tracker may count halves or doubles)",
        ),
        (100.0, 150.0, "changed", "tempo 50 BPM faster (100 to 150 BPM)"),
        (168.0, 120.0, "changed", "tempo 48 BPM slower (168 to 120 BPM)"),
        (
            60.0,
            112.5,
            "changed",
            "beats counted about 2 times as fast (60 to 112 BPM; a beat tracker may count halves or doubles)",
        ),
        (60.0, 110.0, "changed", "tempo 50 BPM faster (60 to 110 BPM)"),
        (120.0, float("nan"), "undefined", "tempo cannot be compared (edit without a tempo)"),
    ],
)
def test_tempi(first, second, kind, text):
    pair = (features(beats=beats(0, 0.5, 10, bpm)) for bpm in (first, second))
    assert told(*pair)["tempo"] == (kind, text)


def test_beats_found_again_are_counted_within_the_originals_span():
    original = features(beats=beats(0, 0.5, 40))
    same = features(25.0, beats=beats(0.05, 0.5, 50))  # ten of them after the original's end
    assert told(original, same)["beats"] == ("same", "40 of 40 beats found again within 70 ms")
    first_twelve = np.concatenate([0.5 * np.arange(12), 6.2 + 0.7 * np.arange(3)])
    assert told(original, features(beats=Beats(first_twelve)))["beats"][1].startswith("12 of 40 beats found again")


def test_beats_that_come_late_are_told_as_late():
    late = told(features(beats=beats(0, 1.0, 18)), features(beats=beats(0.2, 1.0, 18)))["beats"]
    assert late == (
        "changed",
        "0 of 18 beats found again within 70 ms; 18 once the edit is moved by 0.20 s, it comes late",
    )


def test_beats_more_than_there_were_and_none():
    more = told(features(beats=beats(0, 1.0, 18)), features(beats=beats(0, 0.5, 36)))["beats"]
    assert more == ("changed", "18 of 18 beats found again within 70 ms; the edit has 18 more")
    none = told(features(beats=beats(0, 1.0, 18)), features(beats=Beats(np.zeros(0))))["beats"]
    assert none == ("undefined", "beats cannot be compared (edit: no beats)")


def test_chords():
    first = Chords(spans(0, 4, 8, 12), ("C:maj", "F:maj", "N"))
    second = Chords(spans(0, 4, 7, 12), ("C:maj", "D:min", "N"))
    agreed = told(features(chords=first), features(chords=first))["chords"]
    assert agreed == ("same", "chords agree for 12.0 of 12.0 s")
    # 4 s of C and 4 s of none agree; F became Dm for 3 s and nothing for 1 s
    assert told(features(chords=first), features(chords=second))["chords"] == (
        "changed",
        "chords agree for 8.0 of 12.0 s; most often F major became D minor (3.0 s)",
    )
    silent = Chords(spans(0, 12), ("N",))
    assert told(features(chords=Chords(spans(0, 12), ("C:maj",))), features(chords=silent))["chords"] == (
        "changed",
        "chords agree for 0.0 of 12.0 s; most often C major became no chord (12.0 s)",
    )
    apart = told(features(chords=Chords(spans(0, 2), ("N",))), features(chords=Chords(spans(3, 4), ("N",))))["chords"]
    assert apart[0] == "undefined"


def test_sections():
    first = Segments(spans(0, 5, 10, 20), ("verse", "chorus", "verse"))
    renamed = Segments(spans(0, 5.4, 10, 20), ("1", "2", "1"))
    assert told(features(segments=first), features(segments=renamed))["sections"] == (
        "same",
        "2 of 2 section boundaries found again within 0.5 s; form A B A in both",
    )
    second = Segments(spans(0, 5, 12, 20), ("x", "x", "y"))
    assert told(features(segments=first), features(segments=second))["sections"] == (
        "changed",
        "1 of 2 section boundaries found again within 0.5 s; form A B A became A A B",
    )
    whole = Segments(spans(0, 20), ("x",))
    assert told(features(segments=whole), features(segments=first))["sections"][1].startswith(
        "the original has no section boundary; form A became"
    )
    many = Segments(spans(*range(21)), tuple("ab" * 10))
    assert told(features(segments=many), features(segments=whole))["sections"][1] == (
        "0 of 19 section boundaries found again within 0.5 s; 20 sections in the original, 1 in the edit"
    )


def test_melodies():
    tune = [60.0, 62.0, 64.0, 65.0, 67.0, 64.0]
    original = features(melody=melody(tune))
    assert told(original, features(melody=melody(tune)))["melody"] == (
        "same",
        "6 of 6 melody notes found again, pitch and place",
    )
    up = features(melody=melody([pitch + 7 for pitch in tune]))
    assert told(original, up)["melody"] == ("changed", "melody moved up a fifth: 6 of 6 notes found again there")
    down = features(melody=melody([pitch - 12 for pitch in tune]))
    assert told(original, down)["melody"][1] == "melody moved down an octave: 6 of 6 notes found again there"
    slow = Melody(1.2 * melody(tune * 3).intervals_sec, np.array(tune * 3) + 7)
    both = told(
        features(melody=melody(tune * 3), beats=beats(0, 0.5, 20)), features(melody=slow, beats=beats(0, 0.6, 20))
    )
    assert both["melody"][1] == "melody moved up a fifth, at the edit's tempo: 18 of 18 notes found again there"
    altered = features(melody=melody([60.0, 62.0, 63.0, 65.0, 68.0, 64.0]))
    assert told(original, altered)["melody"][1] == "4 of 6 melody notes found again, pitch and place"
    longer = features(melody=melody([*tune, 72.0]))
    assert told(original, longer)["melody"] == (
        "changed",
        "6 of 6 melody notes found again, pitch and place; the edit has 1 more",
    )
    none = features(melody=Melody(np.zeros((0, 2)), np.zeros(0)))
    assert told(none, original)["melody"] == ("undefined", "melody cannot be compared (original: no notes)")
    assert told(original, none)["melody"][1].startswith("0 of 6")


def test_voicing():
    times = np.arange(10) / 10
    first, second = (F0Track(times, np.where(times < share, 440.0, 0.0)) for share in (0.75, 0.35))
    assert told(features(f0=first), features(f0=second))["voicing"] == (
        "changed",
        "a melody sounds for 80 % of the original and 40 % of the edit",
    )
    assert told(features(f0=first), features(f0=first))["voicing"][0] == "same"


def test_length():
    assert told(features(30.0), features(30.01))["length"] == ("same", "both last 30.0 s")
    assert told(features(30.0), features(32.5))["length"] == ("changed", "2.5 s longer (30.0 to 32.5 s)")
    assert told(features(30.0), features(10.0))["length"] == ("changed", "20.0 s shorter (30.0 to 10.0 s)")


def test_what_is_undefined_is_told_with_its_reason_and_what_was_not_asked_for_is_not():
    original = features(key=Key(0, "major"))
    edit = features(undefined={"key": "silent: the peak lies below -60 dBFS"})
    found = told(original, edit)
    assert found["key"] == ("undefined", "key cannot be compared (edit: silent: the peak lies below -60 dBFS)")
    assert list(found) == ["length", "key"]


def test_one_sentence_says_how_much_was_preserved():
    original = features(key=Key(0, "major"), beats=beats(0.25, 0.5, 40), melody=melody([60.0, 62.0, 64.0, 65.0]))
    edit = features(key=Key(2, "major"), beats=beats(0.25, 0.5, 40), melody=melody([60.0, 62.0, 64.0, 70.0]))
    said = preserved_sentence(findings(original, edit))
    assert said == "Preserved in full: length, tempo, beats; in part: melody (75 %); not preserved: key."
    more = features(beats=beats(0.25, 0.25, 80, bpm=120.0))
    said = preserved_sentence(findings(features(beats=beats(0.25, 0.5, 40)), more))
    assert "in part: beats (all found again, with changes)" in said  # never 100 % of what is not the same


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.004, "Not preserved: chords."), (0.996, "Preserved in part: chords (all found again, with changes).")],
)
def test_no_part_is_told_as_nothing_or_all(share, said):
    assert preserved_sentence([Finding("chords", "changed", "", share)]) == said


def test_what_cannot_be_compared_is_not_told_as_lost():
    assert preserved_sentence([Finding("chords", "undefined", "")]) == "Not comparable: chords."
