"""Standard MIDI files byte by byte: what the standard (SMF 1.0, RP-001) says, by hand and by a small writer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import DRUMS, KeySignature, Score, TimeSignature
from music_evals.errors import FileTooLargeError, UnreadableFileError
from music_evals.symbolic.limits import Limits
from music_evals.symbolic.midi import read_midi
from music_evals.symbolic.reading.midi_events import MidiFile, decode_names, read_midi_file, track_events

END = b"\x00\xff\x2f\x00"
C4 = bytes.fromhex("00903c40 8360803c40")  # 480 ticks: 83 60 is 3 * 128 + 96
NOTE = (0, 480, 60, 64)
FIRST_BODY = 14 + 8  # the header, and that of the first track


def chunk(body: bytes, kind: bytes = b"MTrk") -> bytes:
    return kind + len(body).to_bytes(4, "big") + body


def midi(*chunks: bytes, kind: int = 1, n_tracks: int | None = None, division: int = 480, extra: bytes = b"") -> bytes:
    count = sum(each[:4] == b"MTrk" for each in chunks) if n_tracks is None else n_tracks
    head = b"".join(value.to_bytes(2, "big") for value in (kind, count, division))
    return chunk(head + extra, b"MThd") + b"".join(chunks)


def rmid(content: bytes, *, before: bytes = b"", after: bytes = b"") -> bytes:
    data = b"data" + len(content).to_bytes(4, "little") + content + bytes(len(content) % 2)
    body = b"RMID" + before + data + after
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def rows(score: Score) -> list[tuple[int, int, int, int]]:
    return [(onset, length, pitch, velocity) for onset, length, pitch, velocity, _ in score.notes.tolist()]


def named(name: bytes) -> bytes:
    return b"\x00\xff\x03" + bytes([len(name)]) + name


class TestEvents:
    def test_events_are_read_as_they_stand(self) -> None:
        # delta 0 program; delta 128 note on; running status: delta 0 the same pitch at velocity 0; a text; the end
        body = bytes([0, 0xC1, 5, 0x81, 0, 0x91, 60, 64, 0, 60, 0, 3, 0xFF, 1, 2, 72, 105, 0, 0xFF, 0x2F, 0, 9])
        events = list(track_events(body))
        assert [(event.tick, event.status, event.data) for event in events] == [
            (0, 0xC1, b"\x05"), (128, 0x91, b"\x3c\x40"), (128, 0x91, b"\x3c\x00"), (131, 0xFF, b"\x01\x02Hi"),
            (131, 0xFF, b"\x2f\x00"),
        ]  # fmt: skip
        assert [event.stored for event in events] == [True, True, False, True, True]
        assert [event.delta for event in events] == [b"\0", b"\x81\0", b"\0", b"\x03", b"\0"]
        assert [event.starts_note for event in events] == [False, True, False, False, False]

    @pytest.mark.parametrize(
        ("stored", "ticks"),
        # the examples of the standard's table of variable-length quantities
        [("00", 0), ("40", 0x40), ("7f", 0x7F), ("8100", 0x80), ("c000", 0x2000), ("ff7f", 0x3FFF), ("818000", 0x4000),
         ("c08000", 0x100000), ("ffff7f", 0x1FFFFF), ("81808000", 0x200000), ("c0808000", 0x8000000),
         ("ffffff7f", 0xFFFFFFF), ("80808000", 0)],
    )  # fmt: skip
    def test_numbers_of_up_to_four_bytes(self, stored: str, ticks: int) -> None:
        [event, _] = track_events(bytes.fromhex(stored + "b00101") + END)
        assert (event.tick, event.delta) == (ticks, bytes.fromhex(stored))

    def test_a_number_of_five_bytes_is_refused(self) -> None:
        body = C4 + bytes.fromhex("8180808000 903e40") + END
        with pytest.raises(UnreadableFileError, match=r"track 1, byte 31: a number of more than four bytes"):
            read_midi(midi(chunk(body)))  # 14 + 8 + 9 = 31

    @pytest.mark.parametrize("n_bytes", [1, 2, 3, 4])
    def test_a_track_that_ends_within_an_event_is_refused(self, n_bytes: int) -> None:
        cut = C4 + bytes.fromhex("10903e40")[:n_bytes]
        if n_bytes < 4:
            with pytest.raises(UnreadableFileError, match=r"track 1, byte 31: the track ends within the event"):
                read_midi(midi(chunk(cut)))
        else:
            assert rows(read_midi(midi(chunk(cut)))) == [NOTE]  # the note-on that nothing ends is no note

    @pytest.mark.parametrize("event", ["00ff0105 41", "00f07f 01", "00ff", "00f0"])
    def test_a_track_that_ends_within_a_message_with_a_length_is_refused(self, event: str) -> None:
        with pytest.raises(UnreadableFileError, match=r"track 2, byte 56: the track ends within the event"):
            # 14 + (8 + 9 + 4) + 8 + 9 = 52, and the four bytes of a text before it
            read_midi(midi(chunk(C4 + END), chunk(C4 + b"\0\xff\1\0" + bytes.fromhex(event))))


class TestSystemExclusive:
    def test_the_example_of_the_standard(self) -> None:
        # a message in three packets: F0 03 43 12 00, after 200 ticks F7 06 43 12 00 43 12 00, after 100 F7 04 ... F7
        packets = bytes.fromhex("00f003431200 8148f706431200431200 64f704431200f7")
        notes = bytes.fromhex("00903c40 8360803c40 00903e40 8360803e40")
        score = read_midi(midi(chunk(packets + notes + END), kind=0))
        assert rows(score) == [(300, 480, 60, 64), (780, 480, 62, 64)]

    def test_an_escape_holds_any_bytes(self) -> None:
        # F7 01 F8 sends a clock, F7 04 ends with what looks like a note
        body = bytes.fromhex("00f701f8 60f704903c40f7") + C4 + END
        assert rows(read_midi(midi(chunk(body)))) == [(96, 480, 60, 64)]

    @pytest.mark.parametrize("status", [*range(0xF1, 0xF7), *range(0xF8, 0xFF)])
    def test_other_system_messages_are_refused(self, status: int) -> None:
        body = C4 + bytes([0, status, 0, 0]) + C4 + END
        with pytest.raises(UnreadableFileError, match=rf"track 1, byte 32: {status:02X} is no event of a MIDI file"):
            read_midi(midi(chunk(body)))


class TestRunningStatus:
    def test_it_goes_on_over_channel_messages_of_its_kind(self) -> None:
        body = bytes.fromhex("00903c40 60 3e40 60 3c00 00 3e00") + END
        assert rows(read_midi(midi(chunk(body)))) == [(0, 192, 60, 64), (96, 96, 62, 64)]

    @pytest.mark.parametrize(
        ("event", "place"),
        # the data byte 3E comes after the note-on and its end (8 bytes), the event and a delta
        [("00f0057e7f0601f7", 22 + 8 + 8 + 1), ("00f701fe", 22 + 8 + 4 + 1), ("00ff010141", 22 + 8 + 5 + 1)],
    )
    def test_it_ends_with_system_exclusive_and_meta_events(self, event: str, place: int) -> None:
        body = bytes.fromhex(f"00903c40 83603c00 {event} 003e40 83603e00") + END
        with pytest.raises(UnreadableFileError, match=rf"track 1, byte {place}: data byte 3E has no status byte"):
            read_midi(midi(chunk(body)))

    def test_a_data_byte_at_first_is_refused(self) -> None:
        with pytest.raises(UnreadableFileError, match=r"track 2, byte 39: data byte 3C has no status byte"):
            read_midi(midi(chunk(b"\0\xb0\1\1" + END), chunk(bytes.fromhex("003c40") + END)))  # 22 + 8 + 8 + 1

    @pytest.mark.parametrize(
        ("event", "place"),  # after C4 the delta is byte 31, and the status 32
        [("90c840", 33), ("903c80", 34), ("80ff40", 33), ("b00190", 34), ("c080", 33), ("d0ff", 33), ("e0ff00", 33)],
    )
    def test_data_bytes_above_127_are_refused(self, event: str, place: int) -> None:
        body = C4 + b"\0" + bytes.fromhex(event)
        wrong = body[place - FIRST_BODY]
        with pytest.raises(UnreadableFileError, match=rf"track 1, byte {place}: {wrong:02X} is no data byte"):
            read_midi(midi(chunk(body + END)))

    def test_a_kind_of_meta_event_above_127_is_refused(self) -> None:
        with pytest.raises(UnreadableFileError, match=r"track 1, byte 33: 90 is no kind of meta event"):
            read_midi(midi(chunk(C4 + bytes.fromhex("00ff903c40") + END)))


class TestChunks:
    def test_other_chunks_are_skipped_and_a_longer_header_is_read(self) -> None:
        alien = chunk(b"MTrk\0\0\0\0", b"XFIH")
        content = midi(alien, chunk(C4 + END), alien, chunk(C4 + END), alien, extra=b"new")
        assert rows(read_midi(content)) == [NOTE, NOTE]

    @pytest.mark.parametrize("tail", [b"\0", b"\0\0\0\0\0\0\0\0", b"junk that is long enough", b"\x1a"])
    def test_what_follows_the_promised_tracks_is_skipped(self, tail: bytes) -> None:
        assert rows(read_midi(midi(chunk(C4 + END)) + tail)) == [NOTE]

    def test_what_follows_the_end_in_a_track_is_skipped(self) -> None:
        assert rows(read_midi(midi(chunk(C4 + END + C4)))) == [NOTE]

    @pytest.mark.parametrize("kind", [0, 1])
    def test_tracks_of_type_2_are_no_piece_and_those_of_type_0_are_one(self, kind: int) -> None:
        tracks = chunk(C4 + END), chunk(C4 + END)
        assert rows(read_midi(midi(*tracks, kind=kind))) == [NOTE, NOTE]
        with pytest.raises(UnreadableFileError):
            read_midi(midi(*tracks, kind=2))
        with pytest.raises(UnreadableFileError, match="type 3, where 0, 1 and 2 are known"):
            read_midi(midi(*tracks, kind=3))

    @pytest.mark.parametrize("promised", [0, 1, 3, 0xFFFF])
    def test_another_number_of_tracks_than_promised_is_refused(self, promised: int) -> None:
        content = midi(chunk(C4 + END), chunk(C4 + END), n_tracks=promised)
        with pytest.raises(UnreadableFileError, match=rf"\(2 tracks where the header promises {promised}\)"):
            read_midi(content)

    def test_a_track_too_many_that_has_no_notes_does_no_harm(self) -> None:
        # some sequencers write one such track, which holds spaces for a name, and do not count it
        content = midi(chunk(C4 + END), chunk(named(b" " * 36) + END), n_tracks=1)
        assert rows(read_midi(content)) == [NOTE]

    def test_an_empty_track_is_refused(self) -> None:
        with pytest.raises(UnreadableFileError, match=r"track 1, byte 14: the track says that it has no bytes"):
            read_midi(midi(b"MTrk\0\0\0\0" + C4 + END, kind=0))
        with pytest.raises(UnreadableFileError, match=r"track 2, byte 35: the track says that it has no bytes"):
            read_midi(midi(chunk(C4 + END), chunk(b"")))

    def test_a_track_without_its_end(self) -> None:
        assert rows(read_midi(midi(chunk(C4), chunk(C4)))) == [NOTE, NOTE]
        # the size is too small, and the rest of the track would be lost: 14 + 8 + 9 = 31
        content = midi(b"MTrk\0\0\0\x09" + C4 + C4 + END)
        with pytest.raises(UnreadableFileError, match=r"track 1, byte 31: the track stops here without its end"):
            read_midi(content)

    def test_a_track_that_is_cut_off_is_refused(self) -> None:
        with pytest.raises(UnreadableFileError, match=r"track 2, byte 35: 3 bytes of the track are missing"):
            read_midi(midi(chunk(C4 + END), chunk(C4 + END))[:-3])

    @pytest.mark.parametrize(
        ("division", "reason"), [(0xE728, "SMPTE time"), (0x8000, "SMPTE time"), (0, "0 ticks in a quarter")]
    )
    def test_divisions_that_are_no_ticks_a_quarter_are_refused(self, division: int, reason: str) -> None:
        with pytest.raises(UnreadableFileError, match=rf"not a readable MIDI file \({reason}"):
            read_midi(midi(chunk(C4 + END), division=division))

    def test_a_riff_file_is_read_as_what_it_holds(self) -> None:
        content = midi(chunk(named(b"Odd") + C4 + END))
        assert len(content) % 2 == 0
        for inner in (content, midi(chunk(named(b"Odd!") + C4 + END))):
            before, after = b"DISP\x05\0\0\0title\0", b"LIST\4\0\0\0INFO"
            for packed in (rmid(inner), rmid(inner, before=before, after=after)):
                assert read_midi(packed).to_dict() == read_midi(inner).to_dict()
        with pytest.raises(UnreadableFileError, match="a RIFF file without a data chunk"):
            read_midi(b"RIFF\4\0\0\0RMID")
        with pytest.raises(UnreadableFileError, match="12"):
            read_midi(rmid(content)[:-5])
        with pytest.raises(UnreadableFileError, match="does not start with MThd"):
            read_midi(rmid(content).replace(b"RMID", b"WAVE"))


class TestVoices:
    def test_a_voice_for_each_track_channel_and_program(self) -> None:
        first = bytes.fromhex("00913c40 00c105 00903d40 00c009 00913e40 00993f40 10913c00 00903d00 00913e00 00993f00")
        second = bytes.fromhex("00c107") + C4
        content = midi(chunk(named(b"one") + first + named(b"two") + END), chunk(second + END))
        score = read_midi(content)
        # channels in order, then programs; the name that comes last; programs are those of their track alone
        assert score.voices == ("two", "two", "two", "two", "")
        assert score.programs == (0, 0, 5, DRUMS, 0)
        assert [tuple(note)[2:] for note in score.notes.tolist()] == [
            (61, 64, 0), (60, 64, 1), (62, 64, 2), (63, 64, 3), (60, 64, 4),
        ]  # fmt: skip

    def test_a_note_belongs_to_the_program_that_it_starts_with(self) -> None:
        body = bytes.fromhex("00c001 00903c40 10c002 10903c50 10803c00 10803c00")
        score = read_midi(midi(chunk(body + END)))
        assert score.programs == (1, 2)
        assert score.notes.tolist() == [(0, 48, 60, 64, 0), (32, 32, 60, 80, 1)]

    def test_pairs_are_those_that_an_edit_is_made_of(self) -> None:
        body = bytes.fromhex("00803c40 00903c40 05903c41 05803c00 05903c00 05903c42")
        file = read_midi_file(midi(chunk(body + END)), "a.mid")
        assert isinstance(file, MidiFile)
        assert [(note.onset, note.end, note.velocity) for note in file.tracks[0].notes] == [(0, 10, 64), (5, 15, 65)]
        assert [(note.start_event, note.end_event) for note in file.tracks[0].notes] == [(1, 3), (2, 4)]
        assert file.events(0)[1].tick == 0


class TestChanges:
    @pytest.mark.parametrize("mode", [2, 127, 255])
    def test_a_key_of_no_mode_is_left_out(self, mode: int) -> None:
        body = bytes.fromhex("00ff5902fd01 10ff590202") + bytes([mode]) + C4 + END
        score = read_midi(midi(chunk(body)))
        assert score.key_signatures == (KeySignature(0, -3, minor=True),)
        assert rows(score) == [(16, 480, 60, 64)]

    @pytest.mark.parametrize(("stored", "reason"), [("0b00", "11 sharps"), ("f801", "8 flats"), ("8000", "128 flats")])
    def test_more_than_seven_accidentals_are_refused(self, stored: str, reason: str) -> None:
        with pytest.raises(
            UnreadableFileError, match=rf"track 1, byte 22: a key signature of {reason}, where there are"
        ):
            read_midi(midi(chunk(bytes.fromhex("00ff5902" + stored) + C4 + END)))

    @pytest.mark.parametrize(
        ("stored", "meter"), [("041e", "4/1073741824"), ("0002", "0/4"), ("01ff", f"1/{2**255}"), ("010b", "1/2048")]
    )
    def test_a_meter_that_is_impossible_is_named_as_it_stands(self, stored: str, meter: str) -> None:
        body = bytes.fromhex("00ff5804" + stored + "1808") + C4 + END
        with pytest.raises(UnreadableFileError, match=rf"track 1, byte 22: a time signature of {meter}, "):
            read_midi(midi(chunk(body)))  # 1/2048 of 480 ticks a quarter is 0.9 ticks

    def test_denominators_are_powers_of_two(self) -> None:
        metas = [bytes.fromhex(f"10ff580403{power:02x}1808") for power in range(9)]
        score = read_midi(midi(chunk(b"".join(metas) + C4 + END)))
        assert score.time_signatures == tuple(TimeSignature(16 + 16 * power, 3, 2**power) for power in range(9))

    @pytest.mark.parametrize(
        ("stored", "reason"),
        [
            ("00ff510207a1", "a tempo of 2 bytes, where 3"),
            ("00ff5103000000", "a tempo of 0 microseconds"),
            ("00ff58020402", "a time signature of 2 bytes, where 4"),
            ("00ff590103", "a key signature of 1 bytes, where 2"),
        ],
    )
    def test_changes_that_are_cut_are_refused(self, stored: str, reason: str) -> None:
        with pytest.raises(UnreadableFileError, match=rf"a\.mid: track 2, byte 43: {reason}"):
            read_midi_file(midi(chunk(C4 + END), chunk(bytes.fromhex(stored) + END)), "a.mid")

    def test_longer_ones_are_read_as_far_as_they_are_known(self) -> None:
        body = bytes.fromhex("00ff510507a1200909 00ff580603021808aabb 00ff590403010203")
        score = read_midi(midi(chunk(body + C4 + END)))
        assert [tempo.bpm for tempo in score.tempos] == [120.0]
        assert score.time_signatures == (TimeSignature(0, 3, 4),)
        assert score.key_signatures == (KeySignature(0, 3, minor=True),)


NAMES = {
    "gb18030": [
        ["钢琴主旋律"], ["主旋律", "Piano", "贝斯", "鼓"], ["音轨1", "音轨2"], ["古筝", "琵琶", "二胡", "笛子"],
        ["弦乐 Strings", "钢琴-左手", "主歌A段"], ["（前奏）", "吉他、贝斯"],
    ],
    "cp932": [
        ["ピアノ"], ["メロディ", "Bass", "ドラム"], ["主旋律", "伴奏"], ["第1バイオリン", "チェロ"],
        ["ｿﾌﾟﾗﾉ アルト テノール"], ["『Xenogears』より「予感」"], ["夜空ノムコウ SMAP / Hikage.T"], ["さくら", "①"],
    ],
    "latin-1": [
        ["Flöte"], ["Violoncelle à"], ["Gitarre für Anfänger"], ["Fagott für", "Piano à 4 mains"], ["Trompête"],
        ["Größe"], ["Céleste", "Créée"], ["Percusión", "Guitarra española"], ["Violão", "Canções", "Coração"],
        ["© 2000", "N° 1"], ["Fløyte", "Blåsere"], ["À", "Ärger", "Übung"],
        ["Bösendorfer", "FLÖTE"], ["Kleine Flöte", "2 große Flöten"],
        ["main droite mélodie"],
    ],
    "cp1252": [  # apostrophes, quotes and dashes of print
        ["Oboe d\u2019amore"], ["Rock \u2019n\u2019 Roll"], ["\u201cLead\u201d", "Chœur"],
        ["Guitar\u2013Lead", "Guitar \u2013 Lead"],
    ],
    "utf-8": [["Flöte", "钢琴", "ピアノ"], ["Gitarre für Anfänger"], ["é"], ["Скрипка", "피아노"]],
    "ascii": [["Tune", "Bass", ""]],
}  # fmt: skip


class TestNames:
    @pytest.mark.parametrize(("codec", "names"), [(codec, names) for codec, sets in NAMES.items() for names in sets])
    def test_names_come_back(self, codec: str, names: list[str]) -> None:
        stored = [name.encode(codec) for name in names]
        assert decode_names(stored) == names
        padded = [name + b"\0" * (12 - len(name) % 12) for name in stored]
        assert decode_names([b"", *padded, b"Bass 2"]) == ["", *names, "Bass 2"]
        score = read_midi(midi(*(chunk(named(name) + C4 + END) for name in padded)))
        assert score.voices == tuple(names)

    def test_all_names_of_a_file_have_one_codec(self) -> None:
        # D7 F3 alone is left in GBK, and two letters in Latin-1; among Chinese names it is Chinese
        assert decode_names(["主旋律".encode("gbk"), b"\xd7\xf3"]) == ["主旋律", "左"]
        # C9 E9 are two accented letters; one name that is no GBK makes all of them Western
        assert decode_names([b"M\xe9lodie \xc9\xe9", b"Fl\xf6te"]) == ["Mélodie Éé", "Flöte"]

    @given(st.lists(st.binary(max_size=12), max_size=4))
    def test_any_bytes_give_a_name_without_nul(self, names: list[bytes]) -> None:
        decoded = decode_names(names)
        assert len(decoded) == len(names)
        assert "\0" not in "".join(decoded)


class TestLimits:
    def test_notes_are_counted_while_they_are_read(self) -> None:
        pairs = bytes.fromhex("00903c40 013c00") + bytes.fromhex("003c40 013c00") * 99
        read = read_midi(midi(chunk(pairs + END)), limits=Limits(max_notes=100))
        assert len(read.notes) == 100
        broken = b"\0\x3c"  # is not reached
        with pytest.raises(FileTooLargeError, match="max_notes"):
            read_midi(midi(chunk(pairs + broken)), limits=Limits(max_notes=50))
        with pytest.raises(FileTooLargeError, match="101"):
            read_midi(midi(chunk(pairs + END), chunk(C4 + END)), limits=Limits(max_notes=100))

    def test_notes_that_nothing_ends_are_none_up_to_the_bound(self) -> None:
        hanging = C4 + bytes.fromhex("00903c40") + bytes.fromhex("003c40") * 9
        assert rows(read_midi(midi(chunk(hanging + END)), limits=Limits(max_notes=10))) == [NOTE]
        with pytest.raises(FileTooLargeError, match=r"Limits\.max_notes"):
            read_midi(midi(chunk(hanging + b"\0\x3c\x40" + END)), limits=Limits(max_notes=10))

    @pytest.mark.slow
    def test_more_voices_than_notes_can_name_are_refused(self) -> None:
        content = midi(*[chunk(C4 + END)] * 2**15)
        with pytest.raises(UnreadableFileError, match="32768"):
            read_midi(content)

    def test_tempi_and_signatures_are_bounded(self) -> None:
        tempi = b"".join(bytes.fromhex(f"01ff510307a1{index:02x}") for index in range(11))
        assert len(read_midi(midi(chunk(tempi + END)), limits=Limits(max_notes=11)).tempos) == 11
        with pytest.raises(FileTooLargeError, match="10"):
            read_midi(midi(chunk(tempi + END)), limits=Limits(max_notes=10))


# --- a writer of our own: events of all kinds, with and without running status


def quantity(value: int) -> bytes:
    out = bytes([value % 128])
    while value := value // 128:
        out = bytes([128 + value % 128]) + out
    return out


def written(events: Sequence[tuple[int, bytes]], leave_out: Sequence[bool]) -> bytes:
    """Write events at ticks as a track; where running status is allowed, `leave_out` says whether it is used."""
    body, last_tick, running = b"", 0, b""
    for (tick, event), may_leave_out in zip(events, leave_out, strict=True):
        body += quantity(tick - last_tick)
        is_channel_message = event[0] < 0xF0
        body += event[1:] if is_channel_message and may_leave_out and running == event[:1] else event
        last_tick, running = tick, event[:1] if is_channel_message else b""
    return chunk(body + END)


@st.composite
def tracks(draw: st.DrawFn) -> tuple[list[tuple[int, int, int, int, int]], bytes]:
    """Notes (onset, duration, pitch, velocity, channel), and a track that holds them among other events."""
    data = st.integers(0, 127)
    notes, events = [], []
    for channel, pitch in draw(st.lists(st.tuples(st.integers(0, 15), data), max_size=5, unique=True)):
        tick = 0
        for gap, duration, velocity in draw(
            st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40_000), st.integers(1, 127)), max_size=4)
        ):
            onset, tick = tick + gap, tick + gap + duration
            notes.append((onset, duration, pitch, velocity, channel))
            events.append((onset, 1, bytes([0x90 | channel, pitch, velocity])))
            off = draw(st.sampled_from([bytes([0x80 | channel, pitch, 64]), bytes([0x90 | channel, pitch, 0])]))
            events.append((tick, 0, off))
    other = st.one_of(
        st.builds(lambda status, a, b: [bytes([status, a, b])], st.sampled_from([0xA1, 0xB0, 0xE2]), data, data),
        st.builds(lambda status, a: [bytes([status, a])], st.sampled_from([0xD0, 0xDF]), data),
        st.builds(lambda text: [b"\xff\x01" + quantity(len(text)) + text], st.binary(max_size=200)),
        # a message in several packets, or an escape
        st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=3).map(
            lambda parts: [
                (b"\xf7" if index else b"\xf0") + quantity(len(part)) + part for index, part in enumerate(parts)
            ]
        ),
        st.binary(max_size=5).map(lambda part: [b"\xf7" + quantity(len(part)) + part]),
    )
    for tick, packets in draw(st.lists(st.tuples(st.integers(0, 70_000), other), max_size=6)):
        events += [(tick + 10 * index, draw(st.sampled_from([0, 1])), packet) for index, packet in enumerate(packets)]
    ordered = [(tick, event) for tick, _, event in sorted(events, key=lambda row: row[:2])]
    leave_out = draw(st.lists(st.booleans(), min_size=len(ordered), max_size=len(ordered)))
    return notes, written(ordered, leave_out)


@pytest.mark.slow
@given(st.lists(tracks(), min_size=1, max_size=3), st.booleans())
def test_what_a_writer_of_our_own_writes_is_read(
    drawn: list[tuple[list[tuple[int, int, int, int, int]], bytes]], is_riff: bool
) -> None:
    content = midi(*(track for _, track in drawn))
    score = read_midi(rmid(content) if is_riff else content)
    channels = [(index, channel) for index, (notes, _) in enumerate(drawn) for channel in sorted({n[4] for n in notes})]
    expected = [
        (*note[:4], channels.index((index, note[4]))) for index, (notes, _) in enumerate(drawn) for note in notes
    ]
    assert sorted(tuple(note) for note in score.notes.tolist()) == sorted(expected)
    assert score.programs == tuple(DRUMS if channel == 9 else 0 for _, channel in channels)
