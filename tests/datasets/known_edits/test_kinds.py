"""Edits of pieces and recordings, worked by hand on a piece of two bars and on tones and clicks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from music_evals.annotations import Beats, Chords, Features, Key, Melody, Segments
from music_evals.datasets.known_edits import audio_edits
from music_evals.datasets.known_edits.build import compose_piece
from music_evals.datasets.known_edits.chorales import chord_of
from music_evals.datasets.known_edits.harmony import chord_pitch_classes, from_roman, relabel, scale_of, transpose_label
from music_evals.datasets.known_edits.kinds import EDITS, _silenced, _substitutes, apply_edit
from music_evals.datasets.known_edits.labels import holds, kinds
from music_evals.datasets.known_edits.pieces import Note, Part, Piece, Span, articulate, splice, tidy
from music_evals.datasets.known_edits.truth import features_of, moved
from music_evals.errors import UnknownNameError

Q = 480  # ticks a quarter
RATE = 22050


@pytest.fixture
def piece():
    """Two bars of 4/4 at 120 a minute in C major: C4 D4 E4 F4 | G4 (half) rest C5 over C | G, sections A and B."""
    melody = [(0, Q, 60), (Q, Q, 62), (2 * Q, Q, 64), (3 * Q, Q, 65), (4 * Q, 2 * Q, 67), (7 * Q, Q, 72)]
    held = [(0, 4 * Q, p) for p in (48, 52, 55)] + [(4 * Q, 4 * Q, p) for p in (47, 50, 55)]
    return Piece(
        "two_bars",
        (
            Part("melody", "melody", 40, tuple(Note(*note, 90) for note in melody)),
            Part("chords", "chords", 0, tuple(Note(*note, 60) for note in held)),
            Part("bass", "bass", 32, (Note(0, 4 * Q, 36, 80), Note(4 * Q, 4 * Q, 43, 80))),
        ),
        (0, 4 * Q),
        8 * Q,
        (4, 4),
        500_000,
        Key(0, "major"),
        (Span(0, 4 * Q, "C:maj"), Span(4 * Q, 8 * Q, "G:maj")),
        (Span(0, 4 * Q, "A"), Span(4 * Q, 8 * Q, "B")),
    )


def pitches(piece, role="melody"):
    return [note.pitch for part in piece.parts if part.role == role for note in part.notes]


def test_every_kind_of_edits_yaml_has_a_function():
    assert list(EDITS) == list(kinds())


def test_truth_of_two_bars(piece):
    truth = features_of(piece)
    assert truth.duration_sec == 5.0  # 4 s of music, 1 s of release
    assert truth.beats.times_sec.tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]
    assert truth.beats.bpm == 120
    assert truth.chords.intervals_sec.tolist() == [[0, 2], [2, 4]]
    assert truth.segments.intervals_sec.tolist() == [[0, 2], [2, 5]]
    assert truth.melody.intervals_sec[-2:].tolist() == [[2, 3], [3.5, 4]]
    at = dict(zip(np.round(truth.f0.times_sec, 2), truth.f0.frequencies_hz, strict=True))
    assert at[2.51] == pytest.approx(391.995, abs=1e-3)  # G4
    assert at[3.25] == 0  # the rest


def test_splice_cuts_what_sounds_out_and_carries_on_what_sounds_through(piece):
    held = dataclasses.replace(piece, parts=(Part("melody", "melody", 40, (Note(0, 8 * Q, 60, 90),)),))
    # out with the last beat of each bar: the note goes on over the gap
    assert splice(held, [(0, 3 * Q), (4 * Q, 7 * Q)]).melody.notes == (Note(0, 6 * Q, 60, 90),)
    # the second bar alone: the note began before it
    assert splice(held, [(4 * Q, 8 * Q)]).melody.notes == ()
    # the first bar twice: cut at the seam, then anew
    assert splice(held, [(0, 4 * Q)] * 2).melody.notes == (Note(0, 4 * Q, 60, 90), Note(4 * Q, 4 * Q, 60, 90))


def test_splice_keeps_sections_of_one_label_apart(piece):
    twice = splice(piece, [(0, 4 * Q), (0, 4 * Q), (4 * Q, 8 * Q)])
    assert twice.sections == (Span(0, 4 * Q, "A"), Span(4 * Q, 8 * Q, "A"), Span(8 * Q, 12 * Q, "B"))
    assert twice.chords == (Span(0, 8 * Q, "C:maj"), Span(8 * Q, 12 * Q, "G:maj"))
    assert twice.bars == (0, 4 * Q, 8 * Q)


def test_meter(piece):
    result = apply_edit(piece, "meter", 1).piece
    assert (result.meter, result.bars, result.end) == ((3, 4), (0, 3 * Q), 6 * Q)
    assert pitches(result) == [60, 62, 64, 67]
    assert result.sections == (Span(0, 3 * Q, "A"), Span(3 * Q, 6 * Q, "B"))


def test_sections(piece):
    assert [s.label for s in apply_edit(piece, "sections_reordered", 1).piece.sections] == ["B", "A"]
    assert pitches(apply_edit(piece, "sections_reordered", 1).piece) == [67, 72, 60, 62, 64, 65]
    assert [s.label for s in apply_edit(piece, "section_repeated", 1).piece.sections] == ["A", "A", "B"]
    assert [s.label for s in apply_edit(piece, "section_dropped", 1).piece.sections] == ["A"]


def test_transpose_leaves_the_drums(piece):
    drums = Part("drums", "drums", 128, (Note(0, 120, 36, 80),))
    result = apply_edit(dataclasses.replace(piece, parts=(*piece.parts, drums)), "transpose", 7).piece
    assert pitches(result) == [67, 69, 71, 72, 74, 79]
    assert pitches(result, "drums") == [36]
    assert (result.key, [c.label for c in result.chords]) == (Key(7, "major"), ["G:maj", "D:maj"])


def test_mode_moves_third_sixth_and_seventh(piece):
    result = apply_edit(piece, "mode", 1).piece
    assert pitches(result) == [60, 62, 63, 65, 67, 72]
    assert pitches(result, "chords") == [48, 51, 55, 46, 50, 55]
    assert (result.key, [c.label for c in result.chords]) == (Key(0, "minor"), ["C:min", "G:min"])
    assert pitches(apply_edit(result, "mode", 1).piece) == pitches(piece)


def test_texture_breaks_what_is_held_and_holds_what_is_broken(piece):
    broken = apply_edit(piece, "texture", 2).piece
    notes = next(part for part in broken.parts if part.role == "chords").notes
    assert [note.pitch for note in notes[:8]] == [48, 52, 55, 52, 48, 52, 55, 52]
    assert {note.duration for note in notes} == {Q // 2}
    assert apply_edit(broken, "texture", 2).piece.parts == piece.parts
    half = apply_edit(piece, "texture", 1).piece
    assert len(next(part for part in half.parts if part.role == "chords").notes) == 3 + 8


def test_reharmonised_keeps_melody_and_key(piece):
    result = apply_edit(piece, "reharmonised", 1.0).piece
    assert result.melody == piece.melody
    assert result.key == piece.key
    diatonic = {"C:maj", "D:min", "E:min", "F:maj", "G:maj", "A:min"}
    for old, new in zip(piece.chords, result.chords, strict=True):
        assert new.label in diatonic - {old.label}
        tones = chord_pitch_classes(new.label)
        for part in result.parts[1:]:
            assert all(n.pitch % 12 in tones for n in part.notes if old.start <= n.onset < old.end)
    assert (
        next(p for p in result.parts if p.role == "bass").notes[0].pitch % 12
        == chord_pitch_classes(result.chords[0].label)[0]
    )


def test_substitutes_hold_the_melody(piece):
    """Over C: C D E F, a quarter each. D minor and F major hold two of them (D F, F C), A minor two (C E)."""
    best = _substitutes(piece, piece.chords[0])
    assert set(best[:3]) == {"D:min", "F:maj", "A:min"}
    assert set(best[3:]) == {"E:min", "G:maj"}


def test_tempo_and_rubato(piece):
    assert apply_edit(piece, "tempo", 1.25).piece.bpm == 150
    long = splice(piece, [(0, 8 * Q)] * 4)  # eight bars: 16 s
    swung = apply_edit(long, "rubato", 0.15).piece
    assert swung.bpm == long.bpm
    assert float(swung.seconds(swung.end)) == pytest.approx(16, abs=1e-4)
    slowness = [mspq / 500_000 for _, mspq in swung.tempos]
    assert max(slowness) == pytest.approx(1 / 0.85, rel=0.03)
    assert min(slowness) == pytest.approx(1 / 1.15, rel=0.03)


def test_melody_edits(piece):
    assert pitches(apply_edit(piece, "melody_octave", -1).piece) == [48, 50, 52, 53, 55, 60]
    assert pitches(apply_edit(piece, "melody_removed", 1.0).piece) == []
    other = apply_edit(piece, "melody_replaced", 1.0).piece.melody.notes
    assert [(n.onset, n.duration) for n in other] == [(n.onset, n.duration) for n in piece.melody.notes]
    assert all(a.pitch != b.pitch for a, b in zip(other, piece.melody.notes, strict=True))


def test_half_of_the_bars_are_silent(piece):
    held = Part("melody", "melody", 40, (Note(0, 6 * Q, 60, 90), Note(6 * Q, 2 * Q, 62, 90)))
    assert _silenced(held, [(4 * Q, 8 * Q)]).notes == (Note(0, 4 * Q, 60, 90),)


def test_ornaments_fill_the_time_of_their_notes(piece):
    result = apply_edit(piece, "melody_ornamented", 0.75).piece.melody.notes
    assert len(result) == 6 + 4 * 3  # four of six notes become four each
    assert sum(note.duration for note in result) == sum(note.duration for note in piece.melody.notes)
    assert {note.onset for note in piece.melody.notes} <= {note.onset for note in result}
    assert all(note.pitch % 12 in scale_of(Key(0, "major")) for note in result)


def test_timbre_takes_other_families(piece):
    melody, rest = apply_edit(piece, "timbre", 1).piece, apply_edit(piece, "timbre", 2).piece
    assert melody.parts[0].program not in range(40, 48)
    assert melody.parts[1:] == piece.parts[1:]
    assert rest.parts[0] == piece.parts[0]
    assert rest.parts[1].program not in range(8)
    assert rest.parts[2].program in set(range(32, 40)) - {32}


def test_drums_come_and_go(piece):
    added = apply_edit(piece, "drums_added", 1).piece
    assert "drums" in added.offers
    assert apply_edit(added, "drums_removed", 1).piece.offers == piece.offers


def test_microtiming_and_velocity(piece):
    loose = apply_edit(piece, "microtiming", 15).piece
    moves = [a.onset - b.onset for a, b in zip(loose.melody.notes, piece.melody.notes, strict=True)]
    assert 0 < max(map(abs, moves)) <= 0.045 * 2 * Q  # at 120 a minute 1 s is two quarters
    loud = apply_edit(piece, "velocity", 0.4).piece
    assert all(54 <= note.velocity <= 126 for note in loud.melody.notes)
    assert len({note.velocity for note in loud.melody.notes}) > 1


def test_edits_are_the_same_at_every_call():
    piece = compose_piece("song_bossa")
    for kind in ("melody_replaced", "timbre", "reharmonised", "noise"):
        strength = kinds()[kind].strengths[0]
        assert apply_edit(piece, kind, strength) == apply_edit(piece, kind, strength)


def test_moved_by_hand(piece):
    truth = features_of(piece)
    late = moved(truth, [{"op": "offset", "seconds": 0.25}])
    assert late.beats.times_sec[:2].tolist() == [0.25, 0.75]
    assert late.segments.intervals_sec.tolist() == [[0, 2.25], [2.25, 5.25]]
    fast = moved(truth, [{"op": "stretch", "factor": 1.25}])
    assert (fast.duration_sec, fast.beats.bpm, fast.beats.times_sec[1]) == (4.0, 150, 0.4)
    short = moved(truth, [{"op": "cut", "share": 0.5}])
    assert short.chords.intervals_sec.tolist() == [[0, 2], [2, 2.5]]
    assert short.beats.times_sec.tolist() == [0, 0.5, 1, 1.5, 2]
    assert short.melody.intervals_sec[-1].tolist() == [2, 2.5]
    octave = moved(truth, [{"op": "varispeed", "semitones": 12}])
    assert (octave.duration_sec, octave.key, octave.melody.pitches[0]) == (2.5, Key(0, "major"), 72)
    assert moved(truth, [{"op": "gain", "db": -6.0}, {"op": "lowpass", "hz": 2000.0}]) == truth


# What `holds` says of one change at a time; a label that holds always would pass the test of the rows unseen.


def truth_of(**changes):
    base = {
        "duration_sec": 9.0,
        "beats": Beats(np.arange(8.0), 60.0),
        "key": Key(0, "major"),
        "chords": Chords(np.array([[0.0, 4.0], [4.0, 8.0]]), ("C:maj", "G:maj")),
        "melody": Melody(
            np.array([[0.0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]]), np.array([60.0, 64, 62, 67, 65, 72])
        ),
        "segments": Segments(np.array([[0.0, 4.0], [4.0, 9.0]]), ("A", "B")),
    }
    return Features(**{**base, **changes})


def labels_of(field, **changes):
    return {
        label
        for label in ("same", "shifted", "scaled", "changed")
        if holds(field, label, truth_of(), truth_of(**changes))
    }


@pytest.mark.parametrize(
    ("field", "changes", "label"),
    [
        ("key", {"key": Key(1, "major")}, "shifted"),
        ("key", {"key": Key(0, "minor")}, "changed"),
        ("chords", {"chords": Chords(np.array([[0.0, 4], [4, 8]]), ("D:maj", "A:maj"))}, "shifted"),
        ("chords", {"chords": Chords(np.array([[0.3, 4.3], [4.3, 8.3]]), ("C:maj", "G:maj"))}, "shifted"),
        ("chords", {"chords": Chords(np.array([[0.0, 4], [4, 8]]), ("C:maj", "A:min"))}, "changed"),
        ("chords", {"chords": Chords(np.array([[0.0, 5], [5, 8]]), ("C:maj", "G:maj"))}, "changed"),
        ("harmony", {"chords": Chords(np.array([[0.0, 5], [5, 8]]), ("C:maj", "G:maj"))}, "same"),
        ("harmony", {"chords": Chords(np.array([[0.0, 4], [4, 8]]), ("D:maj", "A:maj"))}, "shifted"),
        ("harmony", {"chords": Chords(np.array([[0.0, 8]]), ("C:maj",))}, "changed"),
        ("beats", {"beats": Beats(np.arange(8) + 0.2, 60.0)}, "shifted"),
        ("beats", {"beats": Beats(np.arange(12.0), 60.0)}, "same"),
        ("beats", {"beats": Beats(np.arange(6.0), 60.0)}, "changed"),
        ("sections", {"segments": Segments(np.array([[0.0, 6], [6, 9]]), ("A", "B"))}, "changed"),
        ("sections", {"segments": Segments(np.array([[0.0, 4], [4, 9]]), ("X", "Y"))}, "same"),
        ("sections", {"segments": Segments(np.array([[0.0, 4], [4, 9]]), ("A", "A"))}, "changed"),
        ("intervals", {"melody": Melody(truth_of().melody.intervals_sec, truth_of().melody.pitches + 5)}, "same"),
        ("intervals", {"melody": Melody(truth_of().melody.intervals_sec, truth_of().melody.pitches[::-1])}, "changed"),
        ("melody", {"melody": Melody(truth_of().melody.intervals_sec, truth_of().melody.pitches + 5)}, "shifted"),
        ("melody", {"melody": Melody(truth_of().melody.intervals_sec + 0.2, truth_of().melody.pitches)}, "shifted"),
        ("melody", {"melody": Melody(truth_of().melody.intervals_sec, truth_of().melody.pitches[::-1])}, "changed"),
        ("voicing", {"melody": Melody(truth_of().melody.intervals_sec, truth_of().melody.pitches[::-1])}, "same"),
        ("voicing", {"melody": Melody(truth_of().melody.intervals_sec[:4], truth_of().melody.pitches[:4])}, "changed"),
    ],
)
def test_holds(field, changes, label):
    assert labels_of(field, **changes) == {label}
    assert labels_of(field) == {"same"}


def test_scaled_times_hold_as_such():
    slower = truth_of(
        beats=Beats(np.arange(8) * 1.1, 60 / 1.1),
        chords=Chords(np.array([[0.0, 4.4], [4.4, 8.8]]), ("C:maj", "G:maj")),
        segments=Segments(np.array([[0.0, 4.4], [4.4, 9.8]]), ("A", "B")),
    )
    for field in ("beats", "tempo", "chords", "sections"):
        assert holds(field, "scaled", truth_of(), slower), field
        assert not holds(field, "same", truth_of(), slower), field


# Harmony


def test_roman_numerals_and_labels():
    assert [from_roman(n, 0) for n in ("I", "ii7", "V7", "bVII", "iiø", "bVImaj7", "viio")] == [
        "C:maj", "D:min7", "G:7", "Bb:maj", "D:hdim7", "Ab:maj7", "B:dim",
    ]  # fmt: skip
    assert transpose_label("B:min7", 2) == "C#:min7"
    assert relabel("G:7", {11: 10}) == "G:min7"
    assert relabel("E:min", {4: 3, 11: 10}) == "Eb:maj"
    assert relabel("D:maj", {9: 8}) == "X"  # D F# Ab


@pytest.mark.parametrize(
    ("shares", "bass", "label"),
    [
        ({0: 2, 4: 1, 7: 1}, 0, "C:maj"),
        ({0: 2, 4: 2}, 0, "C:maj"),  # no fifth
        ({2: 1, 5: 1, 7: 1, 11: 1}, 7, "G:7"),
        ({11: 1, 2: 1, 5: 2}, 2, "B:dim"),
        ({0: 1, 4: 1, 9: 2}, 9, "A:min"),
        ({0: 1, 4: 1, 7: 1.5, 5: 0.5}, 0, "C:maj"),  # a passing eighth
        ({0: 1, 1: 1, 2: 1, 3: 1}, 0, "X"),
    ],
)
def test_chord_of_a_beat(shares, bass, label):
    assert chord_of(shares, bass) == label


def test_scale_bends_to_the_chord():
    assert 11 in scale_of(Key(0, "minor"), chord_pitch_classes("G:7"))
    assert 10 in scale_of(Key(0, "minor"))


def test_tidy_and_articulate():
    assert tidy([Note(0, 480, 60, 80), Note(240, 480, 60, 80)]) == (Note(0, 240, 60, 80), Note(240, 480, 60, 80))
    assert tidy([Note(0, 240, 60, 80), Note(0, 480, 60, 70)]) == (Note(0, 480, 60, 70),)
    first, second = articulate([Note(0, 480, 60, 80), Note(480, 480, 60, 80)], 500_000)
    assert (first.duration, second.duration) == (480 - 77, 480)  # 0.08 s at 960 ticks a second


# Recordings


def tone(hz, seconds=2.0):
    return np.sin(2 * np.pi * hz * np.arange(int(seconds * RATE)) / RATE).astype(np.float32)


def loudest_hz(samples):
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return np.argmax(spectrum) * RATE / len(samples)


def power_db(samples):
    return 10 * np.log10(np.mean(samples.astype(np.float64) ** 2))


def test_noise_is_pink_and_at_its_ratio():
    samples = tone(440, 10)
    added = audio_edits.noise(samples, RATE, snr_db=10, seed=1) - samples
    assert power_db(samples) - power_db(added) == pytest.approx(10, abs=0.01)
    power = np.abs(np.fft.rfft(added)) ** 2
    hz = np.fft.rfftfreq(len(added), 1 / RATE)
    octaves = [power[(hz >= low) & (hz < 2 * low)].sum() for low in (125, 500, 2000)]
    assert max(octaves) / min(octaves) < 1.2  # equal power in every octave
    assert np.array_equal(added, audio_edits.noise(samples, RATE, snr_db=10, seed=1) - samples)
    assert not np.array_equal(added, audio_edits.noise(samples, RATE, snr_db=10, seed=2) - samples)


def test_lowpass_takes_what_is_above_and_does_not_delay():
    low, high = tone(500), tone(6000)
    middle = slice(RATE // 4, -RATE // 4)
    assert power_db(audio_edits.lowpass(high, RATE, hz=2000)[middle]) < -80
    assert np.abs(audio_edits.lowpass(low, RATE, hz=2000) - low)[middle].max() < 1e-3


def test_offset_cut_and_gain():
    samples = tone(440, 1.0)
    late = audio_edits.offset(samples, RATE, seconds=0.1)
    assert not late[:2205].any()
    assert np.array_equal(late[2205:], samples)
    assert np.array_equal(audio_edits.cut(samples, RATE, share=0.25), samples[:16538])
    assert np.abs(audio_edits.gain(samples, RATE, db=-20)).max() == pytest.approx(0.1, abs=1e-6)


def test_varispeed_moves_pitch_and_length():
    fast = audio_edits.varispeed(tone(440), RATE, semitones=3)
    assert loudest_hz(fast) == pytest.approx(440 * 2**0.25, abs=1)
    assert len(fast) == pytest.approx(2 * RATE / 2**0.25, abs=2)


@pytest.mark.parametrize("factor", [0.95, 1.15])
def test_stretch_keeps_pitch_and_puts_clicks_where_they_belong(factor):
    times = np.arange(0.5, 9.5, 0.5)
    samples = 0.2 * tone(220, 10.0)
    samples[(times * RATE).astype(int)] += 1.0
    result = audio_edits.stretch(samples, RATE, factor=factor)
    assert len(result) == round(len(samples) / factor)
    assert loudest_hz(result) == pytest.approx(220, abs=1)
    for time in times / factor:
        near = result[int((time - 0.03) * RATE) : int((time + 0.03) * RATE)]
        assert near.max() > 0.3  # the tone alone reaches 0.2


def test_apply_runs_in_order_and_knows_its_names():
    samples = tone(440, 1.0)
    both = [{"op": "cut", "share": 0.5}, {"op": "offset", "seconds": 0.5}]
    assert len(audio_edits.apply(samples, RATE, both)) == RATE
    assert len(audio_edits.apply(samples, RATE, both[::-1])) == round(1.5 * RATE / 2)
    with pytest.raises(UnknownNameError, match="did you mean stretch"):
        audio_edits.apply(samples, RATE, [{"op": "stretching", "factor": 2.0}])
