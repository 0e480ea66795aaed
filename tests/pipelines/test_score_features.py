"""Features of a score, against what a musician reads off the page."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from music_evals.annotations import DRUMS, FEATURES, KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import UnknownNameError
from music_evals.pipelines.score_features import melody_voice, score_features, score_remarks
from music_evals.symbolic.notes import make_notes

BAR = 1920  # ticks of 4/4 at 480 a quarter: 2 s at 120 quarters a minute
CADENCE = ((48, 60, 64, 67), (53, 60, 65, 69), (55, 62, 67, 71), (48, 60, 64, 67))


def score(rows: list[tuple[int, int, int, int]], **about: object) -> Score:
    """Rows of onset, duration, pitch, voice, 480 ticks a quarter."""
    onsets, durations, pitches, voices = (list(column) for column in zip(*rows, strict=True))
    names = about.pop("voices", ("",) * (max(voices) + 1))
    return Score(make_notes(onsets, durations, pitches, voice=voices), 480, voices=names, **about)  # type: ignore[arg-type]


def tune(*pitches: int, **about: object) -> Score:
    return score([(480 * i, 480, pitch, 0) for i, pitch in enumerate(pitches)], **about)


def block_chords(*chords: tuple[int, ...], **about: object) -> Score:
    return score([(BAR * i, BAR, pitch, 0) for i, chord in enumerate(chords) for pitch in chord], **about)


# Beats and tempo


@pytest.mark.parametrize(
    ("signature", "n_beats", "beat_sec"),
    [((4, 4), 4, 0.5), ((3, 4), 4, 0.5), ((2, 2), 2, 1.0), ((6, 8), 3, 0.75), ((12, 8), 3, 0.75), ((3, 8), 3, 0.75),
     ((5, 8), 8, 0.25), ((7, 8), 8, 0.25)],
)  # fmt: skip
def test_the_tactus_follows_the_meter(signature: tuple[int, int], n_beats: int, beat_sec: float) -> None:
    """Four quarters at 120 a minute last 2 s; in 6/8 they hold two dotted quarters and a part of a third."""
    beats = score_features(tune(60, 62, 64, 65, time_signatures=(TimeSignature(0, *signature),)), ["beats"]).beats
    assert beats is not None
    np.testing.assert_allclose(beats.times_sec, np.arange(n_beats) * beat_sec)
    assert beats.bpm == pytest.approx(60 / beat_sec)


def test_beats_follow_the_tempo_map() -> None:
    """Two quarters at 60, two at 120: beats at 0, 1, 2 and 2.5 s; four beats in 3 s are 80 a minute."""
    beats = score_features(tune(60, 62, 64, 65, tempos=(Tempo(0, 60.0), Tempo(960, 120.0))), ["beats"]).beats
    assert beats is not None
    np.testing.assert_allclose(beats.times_sec, [0.0, 1.0, 2.0, 2.5])
    assert beats.bpm == pytest.approx(80.0)


def test_beats_of_a_pickup_are_counted_from_its_end() -> None:
    """An eighth before 4/4: the first beat is the bar line at 0.25 s."""
    signatures = (TimeSignature(0, 1, 8), TimeSignature(240, 4, 4))
    beats = score_features(score([(0, 240, 60, 0), (240, 960, 62, 0)], time_signatures=signatures), ["beats"]).beats
    assert beats is not None
    np.testing.assert_allclose(beats.times_sec, [0.25, 0.75])


def test_drums_have_beats_and_nothing_else() -> None:
    found = score_features(tune(*[36] * 40, programs=(DRUMS,)))
    assert found.beats is not None
    assert len(found.beats.times_sec) == 40
    assert dict(found.undefined) == dict.fromkeys(set(FEATURES) - {"beats"}, "no notes but drums")


# Key and chords


@pytest.mark.parametrize("up", range(12))
def test_key_and_chords_of_a_cadence_move_with_it(up: int) -> None:
    found = score_features(block_chords(*(tuple(pitch + up for pitch in chord) for chord in CADENCE)))
    assert found.key is not None
    assert found.chords is not None
    assert (found.key.tonic, found.key.mode) == (up, "major")
    names = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]
    assert found.chords.labels == tuple(f"{names[(step + up) % 12]}:maj" for step in (0, 5, 7, 0))
    np.testing.assert_allclose(found.chords.intervals_sec, [[0, 2], [2, 4], [4, 6], [6, 8]])


def test_a_minor_cadence_is_minor() -> None:
    found = score_features(block_chords((57, 60, 64), (50, 57, 62, 65), (52, 56, 59, 64), (45, 57, 60, 64)))
    assert found.key is not None
    assert found.chords is not None
    assert (found.key.tonic, found.key.mode) == (9, "minor")
    assert found.chords.labels == ("A:min", "D:min", "E:maj", "A:min")


def test_the_key_signature_is_not_read() -> None:
    """Most MIDI files say C major, whatever they hold."""
    said = (KeySignature(0, 6),)
    assert score_features(block_chords(*CADENCE, key_signatures=said)).key == score_features(block_chords(*CADENCE)).key


def test_a_cluster_of_all_pitch_classes_has_no_key() -> None:
    found = score_features(block_chords(tuple(range(60, 72))), ["key"])
    assert found.key is None
    assert found.undefined == {"key": "the notes fit all keys alike"}


def test_a_bar_of_rest_has_no_chord() -> None:
    found = score_features(score([(0, BAR, pitch, 0) for pitch in (48, 64, 67)] + [(2 * BAR, BAR, 60, 0)]), ["chords"])
    assert found.chords is not None
    assert found.chords.labels[1] == "N"
    np.testing.assert_allclose(found.chords.intervals_sec[1], [2.0, 4.0])


def test_a_passing_note_changes_no_chord() -> None:
    rows = [(0, BAR, pitch, 0) for pitch in (48, 60, 64, 67)] + [
        (480 * i, 480, p, 1) for i, p in enumerate((72, 74, 76, 77))
    ]
    found = score_features(score(rows), ["chords"])
    assert found.chords is not None
    assert found.chords.labels == ("C:maj",)


# Chroma and f0


def test_chroma_counts_the_notes_that_sound() -> None:
    """C4 and C5 together for 0.5 s, then E4: frames at t * 512 / 22050 s, so that the first 22 lie before 0.5 s."""
    chroma = score_features(score([(0, 480, 60, 0), (0, 480, 72, 0), (480, 480, 64, 0)]), ["chroma"]).chroma
    assert chroma is not None
    assert chroma.hop_sec == pytest.approx(512 / 22050)
    assert chroma.frames.shape == (12, 44)  # 1 s
    assert chroma.frames[0].tolist() == [2.0] * 22 + [0.0] * 22
    assert chroma.frames[4].tolist() == [0.0] * 22 + [1.0] * 22
    assert chroma.frames.sum() == 66


def test_f0_is_the_melody_on_the_same_grid() -> None:
    found = score_features(score([(0, 480, 69, 0), (960, 480, 81, 0)]), ["f0"])
    assert found.f0 is not None
    np.testing.assert_allclose(found.f0.times_sec, np.arange(65) * 512 / 22050)
    np.testing.assert_allclose(found.f0.frequencies_hz, [440.0] * 22 + [0.0] * 22 + [880.0] * 21)


# Melody


@pytest.mark.parametrize(
    ("voices", "expected"),
    [
        (("Piano", "Lead guitar"), 1),
        (("Soprano", "Melody"), 1),
        (("MELODY (flute)", "melody 2"), 0),
        (("Backing vocals", "bass"), 0),
        (("Tuned percussion", "Bass"), None),
        (("TUNER", "Single"), None),
        (("Singing bowl", "Sing"), 1),
        (("Singing bowls", "Synth single"), None),
        (("Strings", "Singers"), 1),
        (("Klavier", "Singstimme"), 1),
        (("Violin 2", "Tune_1"), 1),
        (("Melodica", "Melodic Tom"), None),
        (("Melodica", "Melodia"), 1),
        (("Band leader", "Leads"), 1),
        (("Voxman", "Vox 2"), 1),
        (("Overtune", "Misleading"), None),
        (("Piano", ""), None),
    ],
)
def test_the_voice_that_says_it_is_the_melody(voices: tuple[str, str], expected: int | None) -> None:
    assert melody_voice(score([(0, 480, 60, 0), (0, 480, 64, 1)], voices=voices)) == expected


def test_a_voice_of_drums_or_without_notes_is_no_melody() -> None:
    assert melody_voice(score([(0, 480, 60, 0), (0, 480, 64, 1)], voices=("Lead", "x"), programs=(DRUMS, 0))) is None
    assert melody_voice(score([(0, 480, 60, 1)], voices=("Lead", "x"))) is None


def test_a_named_melody_may_lie_below() -> None:
    rows = [(0, BAR, 84, 0)] + [(480 * i, 480, 50 + i, 1) for i in range(4)]
    found = score_features(score(rows, voices=("Strings", "Lead vocals")), ["melody"])
    assert found.melody is not None
    assert found.melody.pitches.tolist() == [50, 51, 52, 53]


def skyline(*rows: tuple[int, int, int]) -> list[tuple[float, float, float]]:
    """Rows of onset and duration in quarters, and pitch; so are the notes that come back, in quarters."""
    found = score_features(score([(480 * onset, 480 * length, pitch, 0) for onset, length, pitch in rows]), ["melody"])
    assert found.melody is not None
    starts, ends = np.round(2 * found.melody.intervals_sec.T, 6)
    return list(zip(starts.tolist(), ends.tolist(), found.melody.pitches.tolist(), strict=True))


def test_the_skyline_takes_the_highest_that_starts() -> None:
    assert skyline((0, 1, 60), (0, 1, 67), (1, 1, 64)) == [(0, 1, 67), (1, 2, 64)]


def test_a_lower_note_does_not_cut_a_held_one() -> None:
    assert skyline((0, 4, 72), (1, 1, 65), (2, 1, 67)) == [(0, 4, 72)]


def test_a_higher_note_ends_the_one_before() -> None:
    assert skyline((0, 4, 72), (2, 1, 76)) == [(0, 2, 72), (2, 3, 76)]


def test_a_repeated_note_is_a_note() -> None:
    assert skyline((0, 2, 72), (1, 1, 72)) == [(0, 1, 72), (1, 2, 72)]


def test_a_bass_note_in_a_rest_is_no_melody() -> None:
    """C5 to E5 over C3, then a rest with C3 alone, then on: 24 semitones below its surroundings it is left out."""
    bass = ((0, 1, 48), (2, 1, 48))
    assert skyline((0, 1, 72), (1, 1, 76), *bass, (3, 1, 74)) == [(0, 1, 72), (1, 2, 76), (3, 4, 74)]


def test_one_voice_alone_is_melody_however_far_it_leaps() -> None:
    assert len(skyline((0, 1, 72), (1, 1, 76), (2, 1, 48), (3, 1, 74))) == 4


def test_a_low_passage_of_its_own_is_melody() -> None:
    low = tuple((20 + i, 1, 48 + i % 3) for i in range(20))
    assert len(skyline(*((i, 1, 72 + i % 3) for i in range(20)), *low)) == 40


# Sections


def sections(*parts: tuple[int, ...]) -> Score:
    return tune(*[pitch for part in parts for pitch in part * 8])


LOW, HIGH = (36, 40, 43, 48), (73, 78, 82, 85)


def test_sections_that_return_have_one_label() -> None:
    """Four passages of 16 s: there is a boundary at each, and no label is shared by both kinds of passage."""
    found = score_features(sections(LOW, HIGH, LOW, HIGH), ["segments"]).segments
    assert found is not None
    starts, ends = found.intervals_sec.T
    assert all(np.abs(starts - bound).min() < 0.3 for bound in (0, 16, 32, 48))
    assert ends[-1] == pytest.approx(64.0)
    middles = ((starts + ends) / 2) // 16 % 2
    labels = [{label for label, part in zip(found.labels, middles, strict=True) if part == kind} for kind in (0, 1)]
    assert len(labels[0]) == len(labels[1]) == 1
    assert labels[0] != labels[1]


def test_structure_shows_what_returns() -> None:
    """The first and the third quarter of the piece are the same notes, the second are others."""
    structure = score_features(sections(LOW, HIGH, LOW, HIGH), ["structure"]).structure
    assert structure is not None
    assert structure.hop_sec == 0.25
    unit = structure.frames / np.linalg.norm(structure.frames, axis=0)
    first, second, third = (unit[:, 4 * start + 8 : 4 * start + 56] for start in (0, 16, 32))
    assert (first * third).sum(axis=0).mean() > 0.9
    assert (first * second).sum(axis=0).mean() < 0.0


# Borders


def test_short_pieces_have_no_form() -> None:
    found = score_features(block_chords(*CADENCE))
    short = "shorter than 10 s"
    heard = dict.fromkeys(("contour", "timbre", "bands"), "of recordings only")
    assert dict(found.undefined) == {"segments": short, "structure": short, **heard}
    assert found.duration_sec == pytest.approx(8.0)


def test_no_notes_no_features() -> None:
    found = score_features(Score(make_notes([], [], np.zeros(0, int)), 480))
    assert dict(found.undefined) == dict.fromkeys(FEATURES, "no notes")
    assert found.duration_sec == 0.0


def test_a_piece_of_days_is_refused_feature_by_feature() -> None:
    found = score_features(score([(0, 480, 60, 0), (480 * 20_000, 480, 62, 0)]))
    assert set(found.undefined.values()) == {"longer than 2 h"}


def test_bars_of_a_tick_are_not_counted_one_by_one() -> None:
    """An hour in 1/1024: a signature that only a damaged file has."""
    found = score_features(
        score([(0, 480 * 7000, 60, 0)], time_signatures=(TimeSignature(0, 1, 1024),)), ["beats", "key"]
    )
    assert dict(found.undefined) == {"beats": "more than 200000 beats"}
    assert found.key is not None


def test_long_notes_in_large_numbers_take_no_longer() -> None:
    """20,000 notes that all sound for an hour: every beat holds all of them, and C is the lowest."""
    pitches = np.tile([48, 60, 64, 67], 5000)
    held = Score(make_notes(np.arange(20_000), 480 * 7000, pitches), 480)
    found = score_features(held, ["chords"])
    assert found.chords is not None
    assert found.chords.labels == ("C:maj",)


def test_only_what_is_asked_for() -> None:
    found = score_features(tune(60, 62), ["key"])
    assert found.beats is None
    assert not found.undefined
    with pytest.raises(UnknownNameError, match="did you mean chords"):
        score_features(tune(60, 62), ["chord"])


def test_assumptions_are_told() -> None:
    bare = score_remarks(tune(60, 62))
    assert bare == (
        "no tempo at the start of the file: 120 quarters a minute assumed",
        "no time signature at the start of the file: 4/4 assumed",
        "melody: the skyline of all voices",
    )
    full = tune(60, 62, tempos=(Tempo(0, 90.0),), time_signatures=(TimeSignature(0, 3, 4),), voices=("Tune",))
    assert score_remarks(full) == ("melody: the voice 'Tune'",)


rows = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 8), st.integers(40, 80), st.integers(0, 2)), min_size=1, max_size=40
)


@given(rows, st.permutations([0, 1, 2]), st.integers(1, 127))
@example([(0, 1, 40, 0), (0, 2, 40, 1)], [1, 0, 2], 1)
def test_order_of_voices_and_velocity_change_nothing(
    notes: list[tuple[int, int, int, int]], order: list[int], velocity: int
) -> None:
    one = score([(120 * on, 120 * length, pitch, voice) for on, length, pitch, voice in notes], voices=("", "", ""))
    other = score(
        [(120 * on, 120 * length, pitch, order[voice]) for on, length, pitch, voice in notes], voices=("", "", "")
    )
    loud = other.notes.copy()
    loud["velocity"] = velocity
    first, second = score_features(one), score_features(dataclasses.replace(other, notes=loud))
    assert first.undefined == second.undefined
    for name in set(FEATURES) - set(first.undefined):
        arrays = getattr(first, name).to_arrays(), getattr(second, name).to_arrays()
        for key in arrays[0]:
            np.testing.assert_array_equal(arrays[0][key], arrays[1][key])


@given(rows, st.integers(-12, 12))
def test_a_transposition_moves_pitches_and_nothing_else(notes: list[tuple[int, int, int, int]], up: int) -> None:
    one, other = (
        score_features(score([(120 * on, 120 * length, pitch + by, 0) for on, length, pitch, _ in notes]))
        for by in (0, up)
    )
    assert one.melody is not None
    assert other.melody is not None
    np.testing.assert_array_equal(one.melody.pitches + up, other.melody.pitches)
    np.testing.assert_array_equal(one.melody.intervals_sec, other.melody.intervals_sec)
    assert one.chroma is not None
    assert other.chroma is not None
    np.testing.assert_array_equal(np.roll(one.chroma.frames, up, axis=0), other.chroma.frames)
    # A tritone or a diminished chord moved by its own interval is itself: several keys fit it equally well.
    profile = one.chroma.frames.sum(axis=1)
    alike = any(np.allclose(np.roll(profile, by), profile) for by in range(1, 12))
    if one.key is not None and other.key is not None and not alike:
        assert (one.key.tonic + up) % 12 == other.key.tonic
