"""Refined alignments: made of hand-made pitch and level, whose answer is known, and properties that hold for any."""

from __future__ import annotations

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from music_evals.annotations import F0Track
from music_evals.errors import InvalidAnnotationError, InvalidAudioError, InvalidInputError
from music_evals.preparation.evidence import Levels, find_events, follow_voice, measure_levels
from music_evals.preparation.lyrics import Character
from music_evals.preparation.refinement import MIXTURE, VOICE_ALONE, refine

FRAME = 512 / 22050  # seconds, as our extractors have it
CONSONANT_SEC = 0.08
LOUD, CLOSED, SILENT = -12.0, -40.0, -70.0  # dB


class Sung(NamedTuple):
    """A syllable: begins with a consonant without voice, then its pitches, as (length, MIDI pitch)."""

    start: float
    notes: tuple[tuple[float, float], ...]
    line: int = 0

    @property
    def end(self) -> float:
        return self.start + CONSONANT_SEC + sum(length for length, _ in self.notes)


def _voice(
    song: list[Sung], breaths: tuple[tuple[float, float], ...] = (), start: float = 0.0
) -> tuple[F0Track, Levels]:
    """Return what an extractor without faults would find."""
    n = int((song[-1].end + 0.5) / FRAME)
    times, fine = np.arange(n) * FRAME, np.arange(int(n * FRAME / 0.01)) * 0.01
    hertz, decibels = np.zeros(n), np.full(len(fine), SILENT)
    for one in song:
        decibels[(fine >= one.start) & (fine < one.start + CONSONANT_SEC)] = CLOSED
        now = one.start + CONSONANT_SEC
        for length, pitch in one.notes:
            hertz[(times >= now) & (times < now + length)] = 440 * 2 ** ((pitch - 69) / 12)
            decibels[(fine >= now) & (fine < now + length)] = LOUD
            now += length
    for first, last in breaths:
        inside = (fine >= first) & (fine < last)
        decibels[inside] = SILENT + 30 * np.sin(np.pi * (fine[inside] - first) / (last - first))
    return F0Track(start + times, hertz), Levels(start + fine, decibels)


def _characters(song: list[Sung], start: float = 0.0) -> list[Character]:
    return [Character("天", start + one.start, start + one.end, one.line) for one in song]


def _in_a_row(lengths: list[float], pitches: list[float]) -> list[Sung]:
    song, now = [], 0.5
    for length, pitch in zip(lengths, pitches, strict=True):
        song.append(Sung(now, ((length, pitch),)))
        now = song[-1].end
    return song


def test_the_notes_of_a_melisma_stay_one_character() -> None:
    # the aligner took the second and third note of the second character for the third and fourth character
    song = [
        Sung(0.5, ((0.4, 60),)),
        Sung(0.98, ((0.4, 62), (0.4, 65), (0.5, 64))),
        Sung(2.36, ((0.5, 60),)),
        Sung(2.94, ((0.5, 62),)),
        Sung(3.52, ((0.5, 64),)),
    ]
    first = _characters(song)
    first[1:4] = [
        Character("天", 0.98, 1.46), Character("天", 1.46, 2.9), Character("天", 2.94, 3.5),
    ]  # fmt: skip
    found = refine(first, *_voice(song))
    np.testing.assert_allclose([one.start_sec for one in found.characters], [one.start for one in song], atol=0.03)
    np.testing.assert_allclose([one.end_sec for one in found.characters], [one.end for one in song], atol=0.04)
    assert [len(one.notes) for one in found.characters] == [1, 3, 1, 1, 1]
    np.testing.assert_allclose([note.pitch for note in found.characters[1].notes], [62, 65, 64], atol=0.01)
    assert [note.end_sec for note in found.characters[1].notes[:2]] == pytest.approx([1.46, 1.86], abs=0.03)
    assert not found.rests


@pytest.mark.parametrize(("breath", "kind"), [(((1.95, 2.3),), "breath"), ((), "pause")])
@pytest.mark.parametrize("swallowed_by", ["before", "after"])
def test_rests_are_taken_out_of_characters(
    breath: tuple[tuple[float, float], ...], kind: str, swallowed_by: str
) -> None:
    song = [Sung(0.5, ((0.5, 60),)), Sung(1.08, ((0.6, 62),)), Sung(2.4, ((0.5, 62),)), Sung(2.98, ((0.5, 60),))]
    first = _characters(song)
    if swallowed_by == "before":
        first[1] = dataclasses.replace(first[1], end_sec=2.4)
    else:
        first[2] = dataclasses.replace(first[2], start_sec=1.8)
    found = refine(first, *_voice(song, breath))
    assert found.characters[1].end_sec == pytest.approx(1.76, abs=0.04)
    assert found.characters[2].start_sec == pytest.approx(2.4, abs=0.04)
    (rest,) = found.rests
    assert (rest.start_sec, rest.end_sec) == (found.characters[1].end_sec, found.characters[2].start_sec)
    assert rest.kind == kind


def test_what_sounds_long_after_a_character_is_not_of_it() -> None:
    song = _in_a_row([0.5, 0.6, 0.5], [60, 62, 64])
    stray = [*song, Sung(12.0, ((0.2, 67),)), Sung(20.0, ((0.5, 60),))]  # somebody hums in the interlude
    voice = _voice(stray)
    found = refine(_characters([*song, stray[-1]]), *voice)
    assert found.characters[2].end_sec == pytest.approx(song[2].end, abs=0.05)
    assert [round(note.pitch) for note in found.characters[2].notes] == [64]
    assert found.characters[3].start_sec == pytest.approx(20.0, abs=0.05)
    alone = refine(_characters(song), *_voice([*song, Sung(12.0, ((0.2, 67),))]))
    assert alone.characters[2].end_sec == pytest.approx(song[2].end, abs=0.05)


def test_a_song_that_is_late_as_a_whole_is_moved_back() -> None:
    song = _in_a_row([0.3, 0.5, 0.4, 0.7, 0.3, 0.45, 0.6, 0.35], [60, 62, 60, 65, 64, 62, 60, 67])
    first = [dataclasses.replace(one, start_sec=one.start_sec + 0.2, end_sec=one.end_sec + 0.2) for one in
             _characters(song)]  # fmt: skip
    found = refine(first, *_voice(song))
    np.testing.assert_allclose([one.start_sec for one in found.characters], [one.start for one in song], atol=0.03)
    assert found.shift_sec == pytest.approx(-0.2, abs=0.03)
    assert found.spread_sec < 0.05


SONGS = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0.15, 1.0), min_size=n, max_size=n),
        st.lists(st.integers(50, 72).map(float), min_size=n, max_size=n),
    )
)


@settings(max_examples=20, deadline=None)
@given(SONGS)
def test_a_perfect_alignment_moves_by_no_more_than_a_frame(song: tuple[list[float], list[float]]) -> None:
    sung = _in_a_row(*song)
    found = refine(_characters(sung), *_voice(sung))
    for one, truth in zip(found.characters, sung, strict=True):
        assert abs(one.start_sec - truth.start) <= FRAME + 0.01  # our grid adds a hundredth
        assert abs(one.end_sec - truth.end) <= FRAME + 0.01
        assert len(one.notes) == 1


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(SONGS, st.floats(0.0, 100.0))
def test_a_song_that_begins_later_is_answered_later(song: tuple[list[float], list[float]], shift: float) -> None:
    sung = _in_a_row(*song)
    rng = np.random.default_rng(len(sung))
    noise = rng.uniform(-0.05, 0.05, len(sung))
    answers = []
    for start in (0.0, shift):
        first = [dataclasses.replace(one, start_sec=one.start_sec + by) for one, by in
                 zip(_characters(sung, start), noise, strict=True)]  # fmt: skip
        answers.append(refine(first, *_voice(sung, start=start)))
    for one, two in zip(answers[0].characters, answers[1].characters, strict=True):
        assert two.start_sec - one.start_sec == pytest.approx(shift, abs=1e-6)
        assert two.end_sec - one.end_sec == pytest.approx(shift, abs=1e-6)
        assert two.confidence == pytest.approx(one.confidence, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(1, 4), st.sampled_from([VOICE_ALONE, MIXTURE]))
def test_whatever_is_heard_characters_stay_in_order_and_near_their_lines(
    seed: int, n: int, n_lines: int, model: object
) -> None:
    rng = np.random.default_rng(seed)
    times = np.arange(600) * FRAME
    voiced = np.repeat(rng.random(60) < 0.7, 10)
    voiced[:10] = True
    f0 = F0Track(times, np.where(voiced, 220 * 2 ** np.repeat(rng.uniform(-1, 1, 60), 10), 0.0))
    levels = Levels(times, rng.normal(-30, 10, 600))
    starts = np.sort(rng.uniform(0.0, 12.0, n)) + 0.001 * np.arange(n)
    lines = np.sort(rng.integers(0, n_lines, n))
    first = [Character("天", float(start), float(start) + 0.3, int(line)) for start, line in
             zip(starts, lines, strict=True)]  # fmt: skip
    found = refine(first, f0, levels, model=model, slack_sec=2.0)  # type: ignore[arg-type]
    assert found == refine(first, f0, levels, model=model, slack_sec=2.0)  # type: ignore[arg-type]
    for before, after in itertools.pairwise(found.characters):
        assert before.start_sec < before.end_sec <= after.start_sec
    for one, given_ in zip(found.characters, first, strict=True):
        mine = [other for other in first if other.line == given_.line]
        # within reach, and within the line's time and its slack
        assert abs(one.start_sec - given_.start_sec) <= 2.0 + 1e-6
        assert mine[0].start_sec - 2.0 - 1e-6 <= one.start_sec <= max(each.end_sec for each in mine) + 2.0 + 1e-6
        assert (one.text, one.line) == (given_.text, given_.line)
        assert 0 <= one.confidence <= 1
        edges = [edge for note in one.notes for edge in note[:2]]
        assert edges == sorted(edges)
        assert not edges or (edges[0], edges[-1]) == (one.start_sec, one.end_sec)
    assert all(rest.kind in {"pause", "breath"} and rest.start_sec < rest.end_sec for rest in found.rests)


def test_what_cannot_be_refined_is_refused_by_name() -> None:
    song = _in_a_row([0.5, 0.5], [60, 62])
    f0, levels = _voice(song)
    first = _characters(song)
    with pytest.raises(InvalidAnnotationError, match="no frame is voiced"):
        refine(first, F0Track(f0.times_sec, -np.abs(f0.frequencies_hz)), levels)
    once = np.zeros(len(f0.times_sec))
    once[20] = 200.0
    with pytest.raises(InvalidAnnotationError, match="never sounds for longer"):
        refine(first, F0Track(f0.times_sec, once), levels)
    crowd = [Character("天", 0.5 + 0.001 * i, 1.5) for i in range(100)]
    with pytest.raises(InvalidAnnotationError, match="no room for character"):
        refine(crowd, f0, levels)
    with pytest.raises(InvalidAnnotationError, match="no room for character"):
        refine([Character("天", 50.0, 51.0)], f0, levels)  # long after the end
    with pytest.raises(InvalidAnnotationError, match="no character"):
        refine([], f0, levels)
    with pytest.raises(InvalidAnnotationError, match="in order"):
        refine(first[::-1], f0, levels)
    with pytest.raises(InvalidInputError, match="reach_sec"):
        refine(first, f0, levels, reach_sec=0.0)
    with pytest.raises(InvalidInputError, match="slack_sec"):
        refine(first, f0, levels, slack_sec=-0.1)


def test_a_character_that_nobody_sings_has_no_note() -> None:
    song = [Sung(0.5, ((0.5, 60),)), Sung(4.0, ((0.5, 60),))]
    first = [*_characters(song)[:1], Character("地", 2.3, 2.6), *_characters(song)[1:]]
    found = refine(first, *_voice(song), reach_sec=0.5)
    assert [len(one.notes) for one in found.characters] == [1, 0, 1]
    assert found.characters[1].confidence < min(found.characters[0].confidence, found.characters[2].confidence)


def test_a_vibrato_is_one_note_and_an_octave_error_is_none() -> None:
    times = np.arange(200) * 0.01
    pitch = 60 + np.sin(2 * np.pi * 5.5 * times)  # a semitone either way
    pitch[50:55] += 12  # a tracker that slips for 50 ms
    voice = follow_voice(F0Track(times, 440 * 2 ** ((pitch - 69) / 12)), Levels(times, np.full(200, -20.0)))
    assert set(voice.note) == {60.0}
    pitch[100:] += 2
    voice = follow_voice(F0Track(times, 440 * 2 ** ((pitch - 69) / 12)), Levels(times, np.full(200, -20.0)))
    assert sorted(set(voice.note)) == [60.0, 62.0]
    assert np.flatnonzero(np.diff(voice.note)) == pytest.approx([99], abs=4)


def test_events_are_where_they_were_put() -> None:
    # a consonant at 1.0 s, a step of pitch without one at 1.6 s, a dip of 8 dB at 2.2 s, the end at 2.8 s
    times = np.arange(400) * 0.01
    voiced = (times >= 0.4) & (times < 2.8) & ~((times >= 1.0) & (times < 1.08))
    pitch = np.where(times < 1.6, 60.0, 63.0)
    decibels = np.where(voiced, LOUD, SILENT)
    decibels[(times >= 2.2) & (times < 2.26)] = LOUD - 8
    events = find_events(
        follow_voice(F0Track(times, np.where(voiced, 440 * 2 ** ((pitch - 69) / 12), 0.0)), Levels(times, decibels))
    )
    np.testing.assert_allclose(events.frames * 0.01, [0.4, 1.0, 1.6, 2.2], atol=0.03)
    np.testing.assert_array_equal(events.features[:, [0, 1, 3]], [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_allclose(events.features[:, 2], [3.0, 3.0, 0.0, 0.8], atol=0.2)


def test_levels_are_those_of_the_samples() -> None:
    sine = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(22050) / 22050)
    levels = measure_levels(np.concatenate([sine, np.zeros(22050)]), 22050)
    assert levels.times_sec[[0, 100]] == pytest.approx([0.0, 1.0])
    assert levels.decibels[50] == pytest.approx(20 * np.log10(0.5) - 3.01, abs=0.01)  # a sine lies 3 dB below its peak
    assert levels.decibels[150] == -120.0
    for wrong in (np.zeros((2, 5)), np.zeros(0), np.array([np.nan])):
        with pytest.raises(InvalidAudioError, match="finite samples"):
            measure_levels(wrong, 22050)
    with pytest.raises(InvalidAnnotationError, match="one level a frame"):
        Levels(np.arange(3.0), np.zeros(2))
    with pytest.raises(InvalidAnnotationError, match="increase"):
        Levels(np.zeros(2), np.zeros(2))
