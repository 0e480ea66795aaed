"""Measures of a tune replaced in its file: what is put in can be read, and everything outside stays as it was."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import symusic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import filling

from music_evals.annotations import NoteArray, Score
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    MusicEvalsError,
    NoDataError,
    PolyphonyError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.symbolic.files import read_score
from music_evals.symbolic.limits import Limits
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.reading.midi_events import track_events
from music_evals.symbolic.tunes import Tune, open_tune


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tunes")
    filling.write_tunes(place)
    return place


def rows(notes: NoteArray, start: int = 0, stop: int = 2**60) -> list[tuple[int, int, int]]:
    inside = (notes["onset_tick"] >= start) & (notes["onset_tick"] < stop)
    return sorted(zip(*(notes[inside][key].tolist() for key in ("onset_tick", "duration_tick", "pitch")), strict=True))


def in_steps(tune: Tune, first: int, notes: list[tuple[int, int, int]]) -> NoteArray:
    """Return notes of (onset step, steps, pitch) from the start of a measure as notes of the tune."""
    ticks = tune.bars.ticks_per_quarter
    start = int(tune.bars.starts[first])
    onsets = [start + (2 * onset * ticks + 6) // 12 for onset, _, _ in notes]
    ends = [start + (2 * (onset + steps) * ticks + 6) // 12 for onset, steps, _ in notes]
    return make_notes(onsets, np.array(ends, int) - np.array(onsets, int), [pitch for _, _, pitch in notes], 90)


def chunks(content: bytes) -> list[bytes]:
    found, position = [], 14
    while position < len(content):
        stop = position + 8 + int.from_bytes(content[position + 4 : position + 8], "big")
        found.append(content[position:stop])
        position = stop
    return found


# --- MIDI


@pytest.mark.parametrize(("name", "track"), [("type0.mid", 0), ("odd_running.mid", 1), ("waltz.midi", 0)])
def test_midi_outside_of_the_gap_is_equal(folder: Path, name: str, track: int) -> None:
    tune = open_tune(folder / name)
    voice = tune.voice(filling.TUNES[name][0])
    start, stop = tune.bars.span(2, 3)
    new = in_steps(tune, 2, [(0, 2, 70), (2, 4, 71), (9, 7, 40), (36, 18, 99)])
    content = tune.replaced(voice, 2, 3, new)
    before, after = chunks((folder / name).read_bytes()), chunks(content)
    assert content[:14] == (folder / name).read_bytes()[:14]
    assert [one for index, one in enumerate(after) if index != track] == [
        one for index, one in enumerate(before) if index != track
    ]
    channel = tune.places[voice].channel  # type: ignore[attr-defined]
    old, edited = (list(track_events(one[track][8:])) for one in (before, after))

    def others(events: list) -> list:
        mine = {0x80 | channel, 0x90 | channel}
        return [(event.tick, event.status, event.data) for event in events if event.status not in mine]

    def notes(events: list, low: int, high: int) -> list:
        kinds = {0x80 | channel, 0x90 | channel}
        return [(e.tick, e.status, e.data) for e in events if e.status in kinds and low <= e.tick < high]

    assert others(edited) == others(old)
    assert notes(edited, 0, start) == notes(old, 0, start)
    assert notes(edited, stop + 1, 2**40) == notes(old, stop + 1, 2**40)
    # an independent reader finds the new notes
    read = [
        (note.time, note.duration, note.pitch)
        for part in symusic.Score.from_midi(content).tracks
        for note in part.notes
    ]
    assert set(rows(new)) <= {row for row in read if start <= row[0] < stop}
    assert sorted(read) == rows(read_score(content).notes)


def test_notes_over_an_edge_are_cut_there(tmp_path: Path) -> None:
    path = tmp_path / "held.mid"
    held = [(0, 6, 60), (6, 5, 62), (13, 1, 64)]  # into measure 2, and out of it
    path.write_bytes(filling.midi([filling.chunk([filling.meter(4, 2), *filling.line(held, 24)])], 24))
    tune = open_tune(path)
    read = read_score(tune.replaced(0, 1, 1, in_steps(tune, 1, [(6, 6, 72)])))
    assert rows(read.notes) == [(0, 96, 60), (96 + 24, 24, 72), (192, 72, 62), (13 * 24, 24, 64)]
    empty = read_score(tune.replaced(0, 1, 1, tune.score.notes[:0]))
    assert rows(empty.notes) == [(0, 96, 60), (192, 72, 62), (13 * 24, 24, 64)]


def test_the_track_grows_where_new_notes_outlast_it(tmp_path: Path) -> None:
    path = tmp_path / "short.mid"
    path.write_bytes(filling.midi([filling.chunk([filling.meter(4, 2), *filling.line([(0, 5, 60)], 24)])], 24))
    tune = open_tune(path)
    content = tune.replaced(0, 1, 1, in_steps(tune, 1, [(0, 24, 50)]))
    assert rows(read_score(content).notes) == [(0, 96, 60), (96, 96, 50)]
    assert list(track_events(chunks(content)[0][8:]))[-1].tick == 192


@given(
    st.lists(st.tuples(st.integers(0, 47), st.integers(1, 9), st.integers(0, 127)), max_size=12),
    st.sampled_from(["type0.mid", "odd_running.mid", "waltz.midi", "pickup.mid"]),
    st.integers(1, 5),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_put_into_midi_is_read_back(
    folder: Path, drawn: list[tuple[int, int, int]], name: str, first: int
) -> None:
    tune = open_tune(folder / name)
    voice = tune.voice(filling.TUNES[name][0])
    start, stop = tune.bars.span(first, 2)
    steps = (stop - start) * 6 // tune.bars.ticks_per_quarter
    melody = [(on, min(length, after - on), pitch) for (on, length, pitch), after in one_at_a_time(drawn, steps)]
    new = in_steps(tune, first, melody)
    (folder / "again.mid").write_bytes(tune.replaced(voice, first, 2, new))
    again = open_tune(folder / "again.mid")
    found = again.score.voice(voice)
    assert rows(found, start, stop) == rows(new)
    old = tune.score.voice(voice)
    assert rows(found, stop) == rows(old, stop)
    assert [row for row in rows(found) if row[0] + row[1] <= start] == [
        (on, min(length, start - on), pitch) for on, length, pitch in rows(old, 0, start)
    ]


def one_at_a_time(drawn: list[tuple[int, int, int]], steps: int) -> list[tuple[tuple[int, int, int], int]]:
    first = sorted({row[0]: row for row in drawn if row[0] < steps}.values())
    return list(zip(first, [*(row[0] for row in first[1:]), steps][: len(first)], strict=True))


def test_running_status_ends_with_an_event_of_another_kind(tmp_path: Path) -> None:
    # a note in measure 1, a text, and a note in measure 2: with that taken away, the next one follows on the text
    events = bytes([0, 0xFF, 0x58, 4, 4, 2, 24, 8, 0, 0x90, 60, 64, 24, 60, 0, 0, 0xFF, 1, 1, 65])
    events += bytes([72, 0x90, 62, 64, 24, 62, 0, 72, 64, 64, 24, 64, 0, 0, 0xFF, 0x2F, 0])
    path = tmp_path / "running.mid"
    path.write_bytes(filling.midi([b"MTrk" + len(events).to_bytes(4, "big") + events], 24))
    tune = open_tune(path)
    [track] = chunks(tune.replaced(0, 1, 1, tune.score.notes[:0]))
    assert bytes([0xFF, 1, 1, 65, 0x81, 0x28, 0x90, 64, 64]) in track


def test_a_note_that_never_ends_is_refused_and_an_end_of_none_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "hanging.mid"
    head = [filling.meter(4, 2), *filling.line(filling.quarters(16), 24)]
    path.write_bytes(filling.midi([filling.chunk([*head, (150, bytes([0x90, 90, 64]))])], 24))
    tune = open_tune(path)
    for first in (1, 2):
        with pytest.raises(UnreadableFileError, match="90"):
            tune.replaced(0, first, 1, tune.score.notes[:0])
    before = tune.replaced(0, 0, 1, tune.score.notes[:0])  # it starts later
    assert bytes([90, 64]) in before
    path.write_bytes(filling.midi([filling.chunk([*head, (150, bytes([0x80, 72, 64]))])], 24))
    tune = open_tune(path)
    content = tune.replaced(0, 1, 1, in_steps(tune, 1, [(0, 24, 72)]))
    assert rows(read_score(content).notes, 96, 192) == [(96, 96, 72)]


@pytest.mark.parametrize("length", [7, 8])  # of the name, so that the MIDI file has an odd and an even size
def test_a_riff_file_stays_one(tmp_path: Path, length: int) -> None:
    name = ("Waltz" * 2)[:length]
    bare = filling.midi(
        [filling.chunk([filling.named(name), filling.meter(4, 2), *filling.line(filling.quarters(16), 24)])], 24
    )
    info = b"LIST\x10\0\0\0INFOINAM\x04\0\0\0song"
    data = b"data" + len(bare).to_bytes(4, "little") + bare + bytes(len(bare) % 2)
    packed = b"RIFF" + (4 + 2 * len(info) + len(data)).to_bytes(4, "little") + b"RMID" + info + data + info
    (tmp_path / "bare.mid").write_bytes(bare)
    (tmp_path / "packed.mid").write_bytes(packed)
    plain, tune = open_tune(tmp_path / "bare.mid"), open_tune(tmp_path / "packed.mid")
    assert rows(tune.score.notes) == rows(plain.score.notes)
    for notes in ([], [(0, 12, 70)], [(0, 1, 70), (1, 23, 71)]):
        new = in_steps(tune, 1, notes) if notes else tune.score.notes[:0]
        content = tune.replaced(0, 1, 1, new)
        edited = plain.replaced(0, 1, 1, new)
        # by hand from the rules of RIFF: sizes are little-endian, and chunks start at even bytes
        assert content[:4] + content[8:12] == b"RIFFRMID"
        assert int.from_bytes(content[4:8], "little") == len(content) - 8
        assert len(content) % 2 == 0
        start = 12 + len(info) + 8
        assert content[12:start] == info + b"data" + len(edited).to_bytes(4, "little")
        assert content[start : start + len(edited)] == edited
        assert content[start + len(edited) :] == bytes(len(edited) % 2) + info
        assert rows(read_score(content).notes) == rows(read_score(edited).notes)


def test_a_voice_is_named_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "named.mid"
    names = ["\u4e3b\u65cb\u5f8b", "\u94a2\u7434"]  # main melody, piano
    tracks = [
        filling.chunk([
            (0, b"\xff\x03\x08" + name.encode("gbk").ljust(8, b"\0")),
            filling.meter(4, 2),
            *filling.line(filling.quarters(8), 24, channel),
        ])
        for channel, name in enumerate(names)
    ]  # fmt: skip
    path.write_bytes(filling.midi(tracks, 24))
    tune = open_tune(path)
    assert tune.score.voices == tuple(names)
    assert [tune.voice(name) for name in names] == [0, 1]


def test_what_is_edited_is_what_is_judged(folder: Path, tmp_path: Path) -> None:
    split = b"\0\xf0\x03\x43\x12\0" + b"\x18\xf7\x03\x43\x12\xf7"  # a message in two packets, a quarter apart
    late = filling.chunk([filling.meter(4, 2), *filling.line(filling.quarters(16), 24)])
    body = split + late[8:]
    (tmp_path / "split.mid").write_bytes(filling.midi([b"MTrk" + len(body).to_bytes(4, "big") + body], 24))
    for path in (folder / "type0.mid", folder / "odd_running.mid", folder / "waltz.midi", tmp_path / "split.mid"):
        assert rows(open_tune(path).score.notes) == rows(read_score(path).notes)
    tune = open_tune(tmp_path / "split.mid")
    assert rows(tune.score.notes)[0] == (24, 24, 60)
    assert body[:8] in tune.replaced(0, 1, 1, tune.score.notes[:0])


def test_a_meter_is_refused_where_the_file_states_one(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="`meter`"):
        open_tune(folder / "waltz.midi", meter="4/4")
    for name in ("reel.abc", "choir.musicxml"):
        with pytest.raises(
            InvalidInputError, match=f"`meter` is for MIDI files that state none, and .*{name} is a score"
        ):
            open_tune(folder / name, meter="4/4")


@pytest.mark.parametrize("name", ["odd_running.mid", "choir.musicxml"])
def test_an_edit_that_damages_something_else_is_not_returned(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune = open_tune(folder / name)
    damaged = {
        "odd_running.mid": (
            "rewriting.midi._encoded",
            lambda _: iter([b"\0\x90\x3c\x40", b"\x60\x80\x3c\x40", b"\0\xff\x2f\0"]),
        ),
        "choir.musicxml": ("rewriting.musicxml.rewritten_measure", lambda *_: iter([])),
    }
    where, broken = damaged[name]
    monkeypatch.setattr(f"music_evals.symbolic.{where}", broken)
    with pytest.raises(UnreadableFileError, match=r"cannot be replaced safely: something else would change \d"):
        tune.replaced(0, 6, 1, in_steps(tune, 6, [(0, 6, 61)]))


# --- MusicXML


def parse(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314  # our own files


def measures_of(document: str) -> list[str]:
    return re.findall(r"<measure .*?</measure>", document, re.DOTALL)


def without_notes(measure: str, voice: str) -> list[str]:
    root = parse(measure)
    return [
        ET.tostring(element).decode().strip()
        for element in root
        if element.tag not in {"backup", "forward"}
        and not (element.tag == "attributes" and len(element) == 1 and element[0].tag == "divisions")
        and not (element.tag == "note" and element.findtext("voice") == voice)
    ]


def timed(measure: str) -> list[tuple[float, str]]:
    """Return when every element but notes of voice 1 happens, in quarters, by the rules of the format."""
    cursor, divisions, found = 0.0, 2.0, []
    for element in parse(measure):
        duration = float(element.findtext("duration") or 0)
        if element.tag == "backup":
            cursor -= duration / divisions
        elif element.tag == "forward":
            cursor += duration / divisions
        elif element.tag == "attributes":
            divisions = float(element.findtext("divisions") or divisions)
        else:
            if element.findtext("voice") != "1":
                found.append((round(cursor, 6), element.tag))
            cursor += duration / divisions if element.tag == "note" else 0
    return sorted(found)


def test_musicxml_outside_of_the_gap_is_equal(folder: Path) -> None:
    tune = open_tune(folder / "choir.musicxml")
    assert tune.score.voices == ("Ch\u0153ur voice 1", "Ch\u0153ur voice 2", "Bass")
    voice = tune.voice("Ch\u0153ur voice 1")
    new = in_steps(tune, 6, [(0, 9, 73), (9, 3, 74), (12, 2, 76), (14, 2, 78), (16, 2, 79), (22, 12, 81), (90, 6, 85)])
    before = (folder / "choir.musicxml").read_text(encoding="utf-8")
    after = tune.replaced(voice, 6, 4, new).decode()
    old, edited = measures_of(before), measures_of(after)
    changed = [index for index, pair in enumerate(zip(old, edited, strict=True)) if pair[0] != pair[1]]
    assert changed == [6, 7, 8, 9]
    for index in changed:
        assert without_notes(edited[index], "1") == without_notes(old[index], "1")
        assert timed(edited[index]) == timed(old[index])
    assert re.split(r"<measure .*?</measure>", after, flags=re.DOTALL) == re.split(
        r"<measure .*?</measure>", before, flags=re.DOTALL
    )
    (folder / "edited.musicxml").write_text(after, encoding="utf-8")
    read = open_tune(folder / "edited.musicxml")
    start, stop = tune.bars.span(6, 4)
    assert rows(read.score.voice(voice), start, stop) == rows(new)
    for other in (1, 2):
        assert rows(read.score.voice(other)) == rows(tune.score.voice(other))
    note = parse(edited[6]).find("note")
    assert note is not None
    # C sharp stands in the key of D: it needs no sign
    assert [note.findtext(path) for path in ("pitch/step", "pitch/alter", "type", "accidental")] == [
        "C", "1", "quarter", None,
    ]  # fmt: skip


def test_ties_into_the_gap_and_out_of_it_are_taken_away(folder: Path) -> None:
    tune = open_tune(folder / "jig.xml")
    ticks = tune.bars.ticks_per_quarter
    held = [row for row in rows(tune.score.notes) if row[1] == 3 * ticks]
    assert [row[0] / ticks for row in held] == [16.5, 22.5]
    new = in_steps(tune, 6, [(0, 9, 61), (9, 18, 62), (27, 9, 63)])
    content = tune.replaced(0, 6, 2, new)
    assert content.startswith(b"\xff\xfe")
    old, edited = (measures_of(one.decode("utf-16")) for one in ((folder / "jig.xml").read_bytes(), content))
    assert [index for index, pair in enumerate(zip(old, edited, strict=True)) if pair[0] != pair[1]] == [5, 6, 7, 8]
    assert edited[5] == old[5].replace('<tie type="start"/>', "")
    assert edited[8] == old[8].replace('<tie type="stop"/>', "")
    (folder / "edited.xml").write_bytes(content)
    found = open_tune(folder / "edited.xml").score.notes
    start, stop = tune.bars.span(6, 2)
    assert rows(found, start, stop) == rows(new)
    assert [row for row in rows(found) if row[0] in {start - 3 * ticks // 2, stop}] == [
        (start - 3 * ticks // 2, 3 * ticks // 2, 62), (stop, 3 * ticks // 2, 67),
    ]  # fmt: skip
    # the clarinet in B flat is written a tone higher: sounding C sharp is E flat on its page, in C major
    note = parse(edited[6]).find("note")
    assert note is not None
    assert [note.findtext(path) for path in ("pitch/step", "pitch/alter", "accidental")] == ["E", "-1", "flat"]


def test_an_archive_keeps_its_other_entries(folder: Path) -> None:
    tune = open_tune(folder / "choir.mxl")
    content = tune.replaced(2, 3, 1, in_steps(tune, 3, [(0, 24, 45)]))
    with zipfile.ZipFile(folder / "choir.mxl") as old, zipfile.ZipFile(io.BytesIO(content)) as new:
        assert new.namelist() == old.namelist()
        assert [new.read(name) for name in ("META-INF/container.xml", "cover.png")] == [
            old.read(name) for name in ("META-INF/container.xml", "cover.png")
        ]
        assert measures_of(new.read("score.xml").decode())[:19] == measures_of(old.read("score.xml").decode())[:19]


@pytest.mark.parametrize("name", ["choir.musicxml", "jig.xml", "reel.abc", "two.abc"])
@given(st.lists(st.tuples(st.integers(0, 47), st.integers(1, 30), st.integers(40, 90)), max_size=12))
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_put_into_a_score_is_read_back(folder: Path, name: str, drawn: list[tuple[int, int, int]]) -> None:
    number = 2 if name == "two.abc" else None
    tune = open_tune(folder / name, tune=number)
    start, stop = tune.bars.span(5, 2)
    steps = (stop - start) * 6 // tune.bars.ticks_per_quarter
    melody = [(on, min(length, after - on), pitch) for (on, length, pitch), after in one_at_a_time(drawn, steps)]
    new = in_steps(tune, 5, melody)
    again = folder / f"again{tune.suffix}"
    again.write_bytes(tune.replaced(0, 5, 2, new))
    found = open_tune(again, tune=number).score.voice(0)
    assert rows(found, start, stop) == rows(new)
    assert rows(found, stop + 1) == rows(tune.score.voice(0), stop + 1)
    assert [row for row in rows(found) if row[0] + row[1] < start] == [
        row for row in rows(tune.score.voice(0)) if row[0] + row[1] < start
    ]


def piano(voices: str) -> str:
    """Return a piano part of four measures; a measure of "5" has voice 5 on staff 2 besides voice 1 on staff 1."""
    back = "<backup><duration>8</duration></backup>"
    upper, lower = (
        filling.xml_note("C", 5, 8, voice, extra=f'<instrument id="P-I{staff}"/>').replace(
            "</note>", f"<staff>{staff}</staff></note>"
        )
        for voice, staff in (("1", 1), ("5", 2))
    )
    measures = [upper + (back + lower if voice == "5" else "") for voice in voices]
    return filling.xml({"P": filling.xml_part("P", measures, divisions=2, time=(4, 4))}, {"P": "Piano"})


def test_a_voice_that_was_silent_stays_on_its_staff_and_instrument(tmp_path: Path) -> None:
    path = tmp_path / "piano.musicxml"
    path.write_text(piano("5151"))
    tune = open_tune(path)
    after = tune.replaced(1, 1, 1, in_steps(tune, 1, [(0, 12, 48)])).decode()
    notes = [note for note in parse(measures_of(after)[1]).iter("note") if note.findtext("voice") == "5"]
    assert [note.findtext("staff") for note in notes] == ["2", "2"]
    named = [note.find("instrument") for note in notes]
    assert [None if one is None else one.get("id") for one in named] == ["P-I2", None]  # a rest has none


def test_slurs_to_what_is_rests_now_are_taken_away(tmp_path: Path) -> None:
    def slurred(*slurs: str) -> str:
        notes = "".join(f'<slur placement="above" {slur}/>' for slur in slurs)
        return filling.xml_note("C", 5, 8).replace("</note>", f"<notations>{notes}<fermata/></notations></note>")

    one, two = 'type="{}"', 'type="{}" number="2"'
    measures = [
        slurred(one.format("start"), two.format("start")),
        slurred(one.format("stop")),
        slurred(one.format("start")),
        slurred(two.format("stop"), one.format("stop")),
    ]
    path = tmp_path / "slurs.musicxml"
    path.write_text(filling.xml({"P": filling.xml_part("P", measures, divisions=2, time=(4, 4))}, {"P": "Tune"}))
    tune = open_tune(path)
    old = measures_of(path.read_text())
    edited = measures_of(tune.replaced(0, 1, 2, tune.score.notes[:0]).decode())
    gone = '<slur placement="above" type="{}"/>'
    assert edited[0] == old[0].replace(gone.format("start"), "")
    assert edited[3] == old[3].replace(gone.format("stop"), "")
    assert "slur" not in edited[1] + edited[2]
    # with notes they lead to the first and the last of these
    filled = measures_of(tune.replaced(0, 1, 2, in_steps(tune, 1, [(0, 24, 60), (24, 24, 62)])).decode())
    assert [filled[0], filled[3]] == [old[0], old[3]]


def test_an_empty_measure_is_called_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "empty.musicxml"
    parts = [
        filling.xml_part(name, measures, divisions=2, time=(4, 4))
        for name, measures in (
            ("P", [filling.xml_note("C", 5, length) for length in (2, 8, 8)]),
            ("Q", [filling.xml_note("C", 3, 2), "", filling.xml_note("C", 3, 8)]),
        )
    ]
    text = filling.xml(dict(zip("PQ", parts, strict=True)), {"P": "Flute", "Q": "Lute"})
    for number in (1, 2, 3):
        text = text.replace(f'number="{number}"', f'number="{number - 1}"')
    path.write_text(text)
    tune = open_tune(path)
    with pytest.raises(UnreadableFileError, match="'Lute'"):
        tune.replaced(1, *tune.measures("1"), tune.score.notes[:0])


# --- ABC


def test_abc_outside_of_the_gap_is_equal(folder: Path) -> None:
    tune = open_tune(folder / "reel.abc")
    assert tune.numbers[:3] == ("0", "1", "2")
    first, n = tune.measures("6-7")
    new = in_steps(tune, first, [(0, 6, 65), (6, 2, 66), (8, 2, 67), (10, 2, 69), (20, 8, 63), (36, 12, 60)])
    after = tune.replaced(0, first, n, new).decode()
    # the tie into the measures and the notes between their bar lines, and nothing else
    old = "(e2 f2) g2 fe-|e2 d2 [M:4/4] B>A G2|"
    head, tail = filling.REEL.split(old)
    assert after.startswith(head)
    assert after.endswith(tail)
    inside = after[len(head) : -len(tail)]
    assert inside == "=F2 (3^FGA z2 (3:2:2z^D2-|(3:2:2^D2z z2 [M:4/4]=C4|"


def test_slurs_ties_and_encoding_of_abc(tmp_path: Path) -> None:
    path = tmp_path / "caf\u00e9.abc"
    text = "X:1\nT:caf\xe9\nM:4/4\nL:1/8\nK:C\nC4 (E4-|E4 G4|A4) c4-|c8|]\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    tune = open_tune(path)
    after = tune.replaced(0, 1, 2, in_steps(tune, 1, [(0, 24, 67), (24, 24, 65)]))
    assert after[:3] == b"\xef\xbb\xbf"
    # the slur that began before ends at the first new note
    assert after[3:].decode() == "X:1\nT:caf\xe9\nM:4/4\nL:1/8\nK:C\nC4 (E4|G8)|F8|c8|]\n"
    two = open_tune(tmp_path / "caf\u00e9.abc").replaced(0, 0, 1, in_steps(tune, 0, [(0, 24, 60)]))
    assert two[3:].decode() == "X:1\nT:caf\xe9\nM:4/4\nL:1/8\nK:C\n(C8|E4 G4|A4) c4-|c8|]\n"


def test_one_of_several_tunes_and_one_of_several_voices(folder: Path) -> None:
    tune = open_tune(folder / "two.abc", tune=2)
    after = tune.replaced(0, 1, 1, in_steps(tune, 1, [(0, 18, 71)])).decode("latin-1")
    assert after == filling.TWO_TUNES.replace("FGA|B2c|FGA", "FGA|=B3|FGA", 1)
    duet = open_tune(folder / "duet.abc")
    assert duet.score.voices == ("High voice", "Low")
    low = duet.replaced(1, 2, 1, in_steps(duet, 2, [(0, 24, 50)])).decode()
    place = [match.start() for match in re.finditer(r"D2A,2", filling.DUET)][1]
    assert low == f"{filling.DUET[:place]}D,4{filling.DUET[place + 5 :]}"


# --- what cannot be done


def test_measures_and_voices_are_named_as_on_the_page(folder: Path) -> None:
    pickup = open_tune(folder / "pickup.mid")
    assert (pickup.measures("0"), pickup.measures("1-3"), pickup.numbers[-1]) == ((0, 1), (1, 3), "16")
    choir = open_tune(folder / "choir.musicxml")
    assert (choir.measures("1"), choir.measures("7-10"), choir.voice("3"), choir.voice(2)) == ((0, 1), (6, 4), 2, 1)
    for wrong, message in {
        "9-7": "end before they start", "7 to 9": "FIRST-LAST", "0-3": "no measure 0; it has 1 to 16", "17": "measure",
    }.items():  # fmt: skip
        with pytest.raises(InvalidInputError, match=message):
            choir.measures(wrong)
    with pytest.raises(InvalidInputError, match="0 being the pickup"):
        pickup.measures("99")
    with pytest.raises(PolyphonyError, match="`voice`"):
        choir.voice()
    with pytest.raises(UnknownNameError):
        choir.voice("Alto")


def test_a_number_of_measures_in_several_places_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "movements.musicxml"
    text = filling.choir(7)
    for number, other in (("4", "1"), ("5", "2"), ("6", "2"), ("7", "4")):
        text = text.replace(f'<measure number="{number}">', f'<measure number="{other}">')
    path.write_text(text, encoding="utf-8")
    tune = open_tune(path)
    assert tune.numbers == ("1", "2", "3", "1", "2", "2", "4")
    message = (
        r"3 measures have the number 2; give `measures` by their places in the file, #1 to #7: these are #2, #5, #6"
    )
    for named in ("2", "2-3", "#1-2"):
        with pytest.raises(InvalidInputError, match=message):
            tune.measures(named)
    assert [tune.measures(named) for named in ("#2", "#5-#6", "#4-4", "3")] == [(1, 1), (4, 2), (3, 4), (2, 1)]
    for wrong in ("#0", "#8", "#x"):
        with pytest.raises(InvalidInputError, match=f"has no measure {wrong}; by their places they are #1 to #7"):
            tune.measures(wrong)


def test_the_halves_around_a_repeat_sign_have_one_number(tmp_path: Path) -> None:
    path = tmp_path / "split.abc"
    path.write_text("X:1\nM:4/4\nL:1/4\nK:C\nG|CDEF|GAB:|c|cBAG|FE:|:DC|C4|C3|]\n")
    tune = open_tune(path)
    assert tune.numbers == ("0", "1", "2", "2", "3", "4", "4", "5", "6")
    assert [tune.measures(named) for named in ("2", "4-5", "#4", "0-1")] == [(2, 2), (5, 3), (3, 1), (0, 2)]
    # one quarter and three that are a pickup and a short measure are none
    path.write_text("X:1\nM:4/4\nL:1/4\nK:C\nG|CDE|FGAB|c4|]\n")
    assert open_tune(path).numbers == ("0", "1", "2", "3")


def test_a_name_of_several_voices_is_not_unknown(tmp_path: Path) -> None:
    path = tmp_path / "twins.mid"
    tracks = [
        filling.chunk([filling.named("Piano"), filling.meter(4, 2), *filling.line(filling.quarters(8), 24, channel)])
        for channel in (0, 1)
    ]
    path.write_bytes(filling.midi(tracks, 24))
    tune = open_tune(path)
    with pytest.raises(InvalidInputError, match="'Piano'"):
        tune.voice("Piano")
    with pytest.raises(UnknownNameError):
        tune.voice("\u00b2")


def test_a_drum_kit_alone_is_no_melody(tmp_path: Path) -> None:
    path = tmp_path / "drums.mid"
    events = [filling.meter(4, 2), *filling.line(filling.quarters(16), 24, 9)]
    path.write_bytes(filling.midi([filling.chunk(events)], 24))
    for name in (None, 1):
        with pytest.raises(InvalidInputError, match="voice 1 '' is a drum kit, which has no melody"):
            open_tune(path).voice(name)


def test_notes_that_do_not_fit_are_refused(folder: Path) -> None:
    tune = open_tune(folder / "choir.musicxml")
    with pytest.raises(InvalidInputError, match="must lie within ticks"):
        tune.replaced(0, 6, 1, in_steps(tune, 6, [(20, 6, 60)]))
    with pytest.raises(InvalidInputError, match="overlap"):
        tune.replaced(0, 6, 1, in_steps(tune, 6, [(0, 6, 60), (5, 6, 62)]))
    start = int(tune.bars.starts[6])
    with pytest.raises(InvalidInputError, match="no whole number of steps"):
        tune.replaced(0, 6, 1, make_notes([start + 100], [200], [60]))


BAD = {
    "none.mid": (filling.midi([filling.chunk(filling.line(filling.quarters(8), 24))], 24), NoDataError, "`meter`"),
    "type2.mid": (
        filling.midi([filling.chunk([filling.meter(4, 2), *filling.line(filling.quarters(8), 24)])], 24, 2),
        UnreadableFileError,
        "type 2",
    ),
    "smpte.mid": (
        filling.midi([filling.chunk([filling.meter(4, 2), *filling.line(filling.quarters(8), 24)])], 0xE728),
        UnreadableFileError,
        "not a readable MIDI file",
    ),
    "noise.mid": (b"no MIDI", UnreadableFileError, "not a readable"),
    "after_sysex.mid": (
        filling.midi(
            [b"MTrk\0\0\0\x1b" + bytes.fromhex("00903c4083603c00 00f0057e7f0601f7 003e4083603e00 00ff2f00")], 480, 0
        ),
        UnreadableFileError,
        r"after_sysex\.mid: track 1, byte 39: data byte 3E has no status byte",
    ),
    "realtime.mid": (
        filling.midi([filling.chunk([filling.meter(4, 2), (0, b"\xf8"), *filling.line(filling.quarters(8), 24)])], 24),
        UnreadableFileError,
        r"realtime\.mid: track 1, byte 31: F8 is no event",
    ),
    "empty.mid": (filling.midi([b"MTrk\0\0\0\0"], 24), UnreadableFileError, "says that it has no bytes"),
    "free.musicxml": (
        re.sub(r"<time>.*?</time>", "", filling.choir(4)).encode(),
        NoDataError,
        "measure 1 has no time signature",
    ),
    "parts.musicxml": (
        re.sub(r'<measure number="4">.*?</measure>', "", filling.choir(4), count=1, flags=re.DOTALL).encode(),
        UnreadableFileError,
        "different numbers of measures",
    ),
    "bomb.musicxml": (b'<!DOCTYPE a [<!ENTITY b "c">]><score-partwise/>', UnreadableFileError, "entities"),
    "free.abc": (b"X:1\nM:none\nL:1/4\nK:C\nCDEF|GABc|\n", NoDataError, "no meter"),
    "macro.abc": (b"X:1\nM:4/4\nL:1/4\nK:C\nCD&EF|GABc|\n", UnreadableFileError, "'&'.*is not read here"),
    "mode.abc": (b"X:1\nM:4/4\nL:1/4\nK:D exp _e\nDEFG|ABcd|\n", UnreadableFileError, "accidentals of its own"),
    "lengths.abc": (
        b"X:1\nM:4/4\nL:1/4\nK:C\nCDEF|C2[L:1/8]D4|GABc|\n",
        UnreadableFileError,
        "in the middle of a measure",
    ),
    "rests.abc": (b"X:1\nM:4/4\nL:1/4\nK:C\nCDEF|Z2|GABc|\n", UnreadableFileError, "Z2, a rest of whole measures"),
    "none.abc": (b"no ABC", UnreadableFileError, "not an ABC file"),
    "tune.wav": (b"RIFF", UnknownNameError, "kind of score file"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    content, kind, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(kind, match=message) as caught:
        open_tune(tmp_path / name)
    assert isinstance(caught.value, MusicEvalsError)


def test_options_of_other_formats_and_limits_are_refused(folder: Path) -> None:
    for name, options in {
        "type0.mid": {"tune": 1},
        "reel.abc": {"meter": "3/4"},
        "waltz.midi": {"meter": "three"},
    }.items():
        with pytest.raises(InvalidInputError):
            open_tune(folder / name, **options)  # type: ignore[arg-type]
    with pytest.raises(FileTooLargeError):
        open_tune(folder / "type0.mid", limits=Limits(max_bytes=100))
    with pytest.raises(InvalidInputError, match="holds 2 tunes"):
        open_tune(folder / "two.abc")


def test_a_meter_that_is_given_makes_measures(tmp_path: Path) -> None:
    (tmp_path / "none.mid").write_bytes(BAD["none.mid"][0])  # type: ignore[arg-type]
    tune = open_tune(tmp_path / "none.mid", meter="3/4")
    assert isinstance(tune.score, Score)
    assert tune.numbers == ("1", "2", "3")
