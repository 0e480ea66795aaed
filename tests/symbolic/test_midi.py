import struct

import numpy as np
import pretty_midi
import pytest
import symusic
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import DRUMS, KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    InvalidNotesError,
    MusicEvalsError,
    NoDataError,
    OutputError,
    UnreadableFileError,
)
from music_evals.symbolic.limits import Limits
from music_evals.symbolic.midi import from_pretty_midi, read_midi, save_midi, to_pretty_midi, write_midi
from music_evals.symbolic.notes import make_notes

# A MIDI writer of our own, byte by byte after the standard: what the reader is held to.


def quantity(n):
    """A variable-length quantity: seven bits a byte, the high bit says that more follow."""
    out = [n & 0x7F]
    while n := n >> 7:
        out.append((n & 0x7F) | 0x80)
    return bytes(reversed(out))


def track(*events):
    body = b"".join(quantity(delta) + event for delta, event in events) + b"\x00\xff\x2f\x00"
    return b"MTrk" + struct.pack(">I", len(body)) + body


def midi(*tracks, division=480):
    return b"MThd" + struct.pack(">IHHH", 6, 1, len(tracks), division) + b"".join(tracks)


def on(pitch, velocity=64, channel=0):
    return bytes([0x90 | channel, pitch, velocity])


def off(pitch, channel=0):
    return bytes([0x80 | channel, pitch, 0])


def meta(kind, data):
    return bytes([0xFF, kind, len(data)]) + data


def rows(score):
    return [tuple(note) for note in score.notes.tolist()]


NOTE = ((0, on(60)), (480, off(60)))


class TestReading:
    def test_tracks_become_voices_with_names(self):
        score = read_midi(
            midi(
                track((0, meta(0x03, b"conductor"))),
                track((0, meta(0x03, b"Tune")), *NOTE),
                track((0, meta(0x03, b"Bass")), (240, on(40, 100)), (240, off(40))),
            )
        )
        assert score.voices == ("Tune", "Bass")
        assert rows(score) == [(0, 480, 60, 64, 0), (240, 240, 40, 100, 1)]
        assert (score.ticks_per_quarter, score.time_signatures, score.tempos) == (480, (), ())

    def test_two_channels_of_one_track_are_two_voices(self):
        score = read_midi(midi(track((0, on(60)), (0, on(40, channel=1)), (9, off(60)), (0, off(40, channel=1)))))
        assert [note[2:] for note in rows(score)] == [(60, 64, 0), (40, 64, 1)]

    def test_velocity_zero_ends_a_note(self):
        assert rows(read_midi(midi(track((0, on(60)), (7, on(60, 0)))))) == [(0, 7, 60, 64, 0)]

    def test_a_note_of_no_length_lasts_a_tick(self):
        assert rows(read_midi(midi(track((0, on(60)), (0, off(60)))))) == [(0, 1, 60, 64, 0)]

    def test_a_note_that_is_never_ended_is_none(self):
        score = read_midi(midi(track((0, on(60)))))
        assert (len(score.notes), score.voices) == (0, ())

    def test_overlaps_of_one_pitch_end_in_order(self):
        score = read_midi(midi(track((0, on(60)), (10, on(60)), (10, off(60)), (10, off(60)))))
        assert rows(score) == [(0, 20, 60, 64, 0), (10, 20, 60, 64, 0)]

    def test_symusic_reads_the_same_where_a_file_keeps_to_the_standard(self):
        # a second reader: programs and channels in one track, overlaps, drums, hanging notes, changes in any track
        body = (
            (0, meta(0x03, b"Band")),
            (0, meta(0x58, b"\x06\x03\x18\x08")),
            (0, bytes([0xC2, 40])),
            (0, on(60, channel=2)),
            (7, on(60, 80, channel=2)),
            (0, on(36, channel=9)),
            (5, bytes([0xC2, 41])),
            (0, on(62, channel=2)),
            (5, off(60, channel=2)),
            (5, off(60, channel=2)),
            (0, off(60, channel=2)),
            (0, off(36, channel=9)),
            (9, bytes([0xB2, 64, 127])),
            (0, on(62, 0, channel=2)),
            (0, on(90, channel=2)),
            (0, meta(0x51, b"\x07\xa1\x20")),
        )
        content = midi(track((0, meta(0x59, b"\x02\x00")), *NOTE), track(*body), track(*body[1:]))
        score, other = read_midi(content), symusic.Score.from_midi(content)
        parts = [part for part in other.tracks if len(part.notes)]
        assert score.voices == tuple(part.name for part in parts) == ("", "Band", "Band", "Band", "", "", "")
        assert score.programs == tuple(DRUMS if part.is_drum else part.program for part in parts)
        assert [note[:4] for note in sorted(rows(score), key=lambda note: note[4])] == [
            (note.time, note.duration, note.pitch, note.velocity) for part in parts for note in part.notes
        ]
        # both stand in two tracks, and the second says nothing new
        meters = {(change.time, change.numerator, change.denominator) for change in other.time_signatures}
        assert {(change.tick, change.numerator, change.denominator) for change in score.time_signatures} == meters
        assert {(tempo.tick, tempo.bpm) for tempo in score.tempos} == {(t.time, t.qpm) for t in other.tempos}
        assert [(key.tick, key.fifths) for key in score.key_signatures] == [(0, 2)]

    def test_signatures_that_say_nothing_new_are_left_out(self):
        four_four, three_four = meta(0x58, b"\x04\x02\x18\x08"), meta(0x58, b"\x03\x02\x18\x08")
        tempo, key = meta(0x51, b"\x07\xa1\x20"), meta(0x59, b"\xfd\x01")
        score = read_midi(
            midi(
                track((0, three_four), (0, four_four), (0, tempo), (0, key), (1920, four_four), (0, tempo), (0, key)),
                track((0, four_four), (1920 + 480, four_four), (480, three_four)),
                track(*NOTE),
            )
        )
        # the 4/4 at 2400 is kept, for it starts a bar in the middle of one
        assert score.time_signatures == (TimeSignature(0, 4, 4), TimeSignature(2400, 4, 4), TimeSignature(2880, 3, 4))
        assert score.tempos == (Tempo(0, 120.0),)
        assert score.key_signatures == (KeySignature(0, -3, minor=True),)


CORRUPTED = {
    "empty": b"",
    "only the magic": b"MThd",
    "text": b"To be, or not to be, that is the question.",
    "riff": b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(30),
    "truncated header": midi(track(*NOTE))[:11],
    "truncated track": midi(track(*NOTE))[:-6],
    "giant track length": midi(track(*NOTE)).replace(b"MTrk\x00\x00\x00", b"MTrk\x7f\xff\xff"),
    "more tracks than there are": midi(track(*NOTE)).replace(b"\x00\x01\x00\x01\x01\xe0", b"\x00\x01\xff\xff\x01\xe0"),
    "SMPTE time": midi(track(*NOTE), division=0xE728),
    "no ticks in a quarter": midi(track(*NOTE), division=0),
    "pitch 200": midi(track((0, bytes([0x90, 200, 64])), (9, bytes([0x80, 200, 0])))),
    "meter 0/4": midi(track((0, meta(0x58, b"\x00\x02\x18\x08")), *NOTE)),
    "tempo of no length": midi(track((0, meta(0x51, b"\x00\x00\x00")), *NOTE)),
    "key of eleven sharps": midi(track((0, meta(0x59, b"\x0b\x00")), *NOTE)),
    "huge delta times": midi(track(*[(0xFFFFFFF, on(60)), (0xFFFFFFF, off(60))] * 4)),
}


class TestCorrupted:
    @pytest.mark.parametrize("name", CORRUPTED)
    def test_named_error_with_file_and_reason(self, name, tmp_path):
        path = tmp_path / "broken.mid"
        path.write_bytes(CORRUPTED[name])
        with pytest.raises(UnreadableFileError, match=r"broken\.mid"):
            read_midi(path)

    def test_huge_delta_time(self):
        with pytest.raises(FileTooLargeError):
            read_midi(midi(track((0xFFFFFFF, on(60)), (1, off(60)))))

    def test_missing_file_and_folder(self, tmp_path):
        with pytest.raises(NoDataError):
            read_midi(tmp_path / "none.mid")
        with pytest.raises(UnreadableFileError, match="directory"):
            read_midi(tmp_path)

    @pytest.mark.parametrize("limits", [Limits(max_bytes=20), Limits(max_notes=1), Limits(max_quarters=1)])
    def test_bounds(self, limits, tmp_path):
        content = midi(track((0, on(60)), (400, off(60)), (0, on(62)), (400, off(62))))
        path = tmp_path / "a.mid"
        path.write_bytes(content)
        for source in (content, path):
            with pytest.raises(FileTooLargeError, match="Limits"):
                read_midi(source, limits=limits)

    def test_bounds_are_positive(self):
        with pytest.raises(InvalidInputError, match="max_notes"):
            Limits(max_notes=0)

    @given(st.data())
    def test_damage_gives_a_score_or_a_named_error(self, data):
        content = bytearray(midi(track((0, meta(0x58, b"\x04\x02\x18\x08")), *NOTE), track(*NOTE, *NOTE)))
        for _ in range(data.draw(st.integers(1, 6))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        try:
            assert isinstance(read_midi(bytes(content)), Score)
        except MusicEvalsError as error:
            assert isinstance(error, UnreadableFileError)  # noqa: PT017  # either outcome is right


@st.composite
def scores(draw):
    """Voices of notes; notes of one pitch in one voice do not overlap, which a MIDI file cannot say."""
    n_voices = draw(st.integers(1, 3))
    columns = []
    for voice in range(n_voices):
        for pitch in draw(st.lists(st.integers(0, 127), min_size=1, max_size=4, unique=True)):
            tick = 0
            for gap, duration in draw(
                st.lists(st.tuples(st.integers(0, 900), st.integers(1, 2000)), min_size=1, max_size=4)
            ):
                columns.append((tick + gap, duration, pitch, draw(st.integers(1, 127)), voice))
                tick += gap + duration
    key = draw(st.builds(KeySignature, st.just(0), st.integers(-7, 7), st.booleans()))
    meter = draw(st.builds(TimeSignature, st.just(0), st.integers(1, 12), st.sampled_from([2, 4, 8])))
    names = draw(st.lists(st.text("abc äß", max_size=5), min_size=n_voices, max_size=n_voices))
    programs = draw(st.lists(st.integers(0, DRUMS), min_size=n_voices, max_size=n_voices))
    tempo = Tempo(0, 60e6 / draw(st.integers(200_000, 2_000_000)))  # whole microseconds, as a file holds
    return Score(
        make_notes(*zip(*columns, strict=True)),
        draw(st.sampled_from([24, 480, 10080])),
        (meter,),
        (tempo,),
        (key,),
        tuple(names),
        tuple(programs),
    )


class TestWriting:
    @given(scores())
    def test_symusic_reads_what_is_read_here(self, score):
        content = write_midi(score)
        parts = [part for part in symusic.Score.from_midi(content).tracks if len(part.notes)]
        again = read_midi(content)
        assert again.voices == tuple(part.name for part in parts)
        assert sorted((note[4], *note[:4]) for note in rows(again)) == sorted(
            (index, note.time, note.duration, note.pitch, note.velocity)
            for index, part in enumerate(parts)
            for note in part.notes
        )

    @given(scores())
    def test_round_trip(self, score):
        again = read_midi(write_midi(score))
        assert again.to_dict() | {"tempos": None} == score.to_dict() | {"tempos": None}
        assert again.tempos[0].bpm == pytest.approx(score.tempos[0].bpm, rel=1e-9)

    def test_what_is_lost(self):
        # voices without notes; which of two overlapping notes of one pitch ends first
        score = Score(make_notes([0, 5], [20, 5], [60, 60], voice=[1, 1]), 480, voices=("silent", "two"))
        again = read_midi(write_midi(score))
        assert again.voices == ("two",)
        assert rows(again) == [(0, 10, 60, 64, 0), (5, 15, 60, 64, 0)]

    def test_an_empty_score(self):
        assert len(read_midi(write_midi(Score(make_notes([], [], []), 480))).notes) == 0

    @pytest.mark.parametrize(
        "score", [Score(make_notes([0], [1], [60]), 40_000), Score(make_notes([2**31], [1], [60]), 480)]
    )
    def test_what_a_file_cannot_hold_raises(self, score):
        with pytest.raises(InvalidInputError, match="quantize"):
            write_midi(score)

    def test_saving_is_whole_or_not_at_all(self, tmp_path):
        score = Score(make_notes([0], [1], [60]), 480)
        path = save_midi(score, tmp_path / "a.mid")
        assert rows(read_midi(path)) == rows(score)
        with pytest.raises(OutputError, match=r"nowhere.*cannot be written"):
            save_midi(score, tmp_path / "nowhere" / "a.mid")
        (tmp_path / "folder.mid").mkdir()
        with pytest.raises(OutputError):
            save_midi(score, tmp_path / "folder.mid")
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.mid", "folder.mid"]


class TestPrettyMidi:
    def test_from_pretty_midi_by_hand(self):
        performance = pretty_midi.PrettyMIDI(initial_tempo=60, resolution=100)
        tune, silent = pretty_midi.Instrument(0, name="Tune"), pretty_midi.Instrument(1, name="Silent")
        tune.notes = [pretty_midi.Note(70, 64, 1.0, 1.5), pretty_midi.Note(80, 60, 0.0, 0.0)]
        performance.instruments = [silent, tune]
        performance.time_signature_changes = [pretty_midi.TimeSignature(3, 4, 0.0)]
        performance.key_signature_changes = [pretty_midi.KeySignature(21, 0.0)]  # a minor
        score = from_pretty_midi(performance)
        assert rows(score) == [(0, 1, 60, 80, 0), (100, 50, 64, 70, 0)]
        assert score.voices == ("Tune",)
        assert score.time_signatures == (TimeSignature(0, 3, 4),)
        assert score.tempos == (Tempo(0, 60.0),)
        assert score.key_signatures == (KeySignature(0, 0, minor=True),)

    @pytest.mark.parametrize(
        ("number", "fifths"), [(0, 0), (1, -5), (2, 2), (5, -1), (6, 6), (7, 1), (11, 5), (12, -3), (16, 1), (18, 3)]
    )
    def test_keys(self, number, fifths):
        # the circle of fifths by heart: D flat 5 flats, F sharp 6 sharps, c 3 flats, e 1 sharp, f sharp 3 sharps
        performance = pretty_midi.PrettyMIDI()
        performance.key_signature_changes = [pretty_midi.KeySignature(number, 0.0)]
        assert from_pretty_midi(performance).key_signatures == (KeySignature(0, fifths, minor=number > 11),)

    def test_an_empty_object(self):
        assert len(from_pretty_midi(pretty_midi.PrettyMIDI()).notes) == 0

    @pytest.mark.parametrize("note", [(0, 60, 0.0, 1.0), (64, 128, 0.0, 1.0), (64, 60, 1.0, 0.5)])
    def test_impossible_notes_raise(self, note):
        performance = pretty_midi.PrettyMIDI()
        performance.instruments = [pretty_midi.Instrument(0)]
        performance.instruments[0].notes = [pretty_midi.Note(*note[:3], end=5.0)]
        performance.instruments[0].notes[0].end = note[3]  # pretty_midi itself only looks at the start
        with pytest.raises(InvalidNotesError):
            from_pretty_midi(performance)

    def test_bound_on_notes(self):
        performance = pretty_midi.PrettyMIDI()
        performance.instruments = [pretty_midi.Instrument(0)]
        performance.instruments[0].notes = [pretty_midi.Note(64, 60, 0.0, 1.0)] * 3
        with pytest.raises(FileTooLargeError):
            from_pretty_midi(performance, limits=Limits(max_notes=2))

    @given(scores())
    def test_there_and_back(self, score):
        again = from_pretty_midi(to_pretty_midi(score))
        assert np.array_equal(np.sort(again.notes), np.sort(score.notes))
        assert again.time_signatures == score.time_signatures
        assert [(key.fifths % 12, key.minor) for key in again.key_signatures] == [
            (key.fifths % 12, key.minor) for key in score.key_signatures
        ]  # pretty_midi numbers keys by pitch class: C sharp is D flat

    def test_seconds_follow_the_tempi(self):
        # 60 a minute for two quarters, then 120: the third quarter starts at 2 s and lasts half a second
        score = Score(make_notes([0, 960], [480, 480], [60, 62]), 480, tempos=(Tempo(0, 60.0), Tempo(960, 120.0)))
        notes = to_pretty_midi(score).instruments[0].notes
        assert [(note.start, note.end) for note in notes] == [(0.0, 1.0), (2.0, 2.5)]

    def test_too_long_for_pretty_midi(self):
        with pytest.raises(InvalidInputError, match="quantize"):
            to_pretty_midi(Score(make_notes([10**7], [1], [60]), 480))
