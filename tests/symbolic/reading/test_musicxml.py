"""MusicXML read as the standard has it: each rule by a document whose right value is worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import FileTooLargeError, UnreadableFileError
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.notation import musicxml_document, read_musicxml
from music_evals.symbolic.reading.musicxml import parse_musicxml
from music_evals.symbolic.reading.written import to_score
from music_evals.symbolic.rewriting import musicxml as musicxml_tunes

SPEC = find_spec("music21")
CORPUS = Path(SPEC.origin).parent / "corpus" if SPEC is not None and SPEC.origin else Path()
FOUR_FOUR = "<time><beats>4</beats><beat-type>4</beat-type></time>"
LETTERS = "CDEFGAB"


def note(
    pitch: str, duration: str | int = 1, *, before: str = "", ties: str = "", voice: int = 1, after: str = ""
) -> str:
    """Write a note such as C5 or Eb4; `before` stands before the pitch, `ties` are words such as "stop start"."""
    letter, sign, octave = re.fullmatch(r"([A-G])(#|b)?(\d)", pitch).groups()  # type: ignore[union-attr]
    alter = f"<alter>{1 if sign == '#' else -1}</alter>" if sign else ""
    tied = "".join(f'<tie type="{kind}"/>' for kind in ties.split())
    return (
        f"<note>{before}<pitch><step>{letter}</step>{alter}<octave>{octave}</octave></pitch>"
        f"<duration>{duration}</duration>{tied}<voice>{voice}</voice>{after}</note>"
    )


def rest(duration: int) -> str:
    return f"<note><rest/><duration>{duration}</duration></note>"


def back(duration: int) -> str:
    return f"<backup><duration>{duration}</duration></backup>"


def forward(duration: int) -> str:
    return f"<forward><duration>{duration}</duration></forward>"


def attributes(*content: str, divisions: int = 1, time: str = FOUR_FOUR) -> str:
    return f"<attributes><divisions>{divisions}</divisions>{''.join(content)}{time}</attributes>"


def barline(*content: str, location: str = "right") -> str:
    return f'<barline location="{location}">{"".join(content)}</barline>'


def repeat(direction: str, times: str = "") -> str:
    given = f' times="{times}"' if times else ""
    return f'<repeat direction="{direction}"{given}/>'


def ending(number: str, kind: str, text: str = "") -> str:
    return f'<ending number="{number}" type="{kind}">{text}</ending>'


START, END = barline(repeat("forward"), location="left"), barline(repeat("backward"))


def document(*parts: Sequence[str]) -> bytes:
    names = "".join(f'<score-part id="P{i}"><part-name>Part {i}</part-name></score-part>' for i in range(len(parts)))
    bodies = "".join(
        f'<part id="P{i}">'
        + "".join(f'<measure number="{number}">{content}</measure>' for number, content in enumerate(measures, 1))
        + "</part>"
        for i, measures in enumerate(parts)
    )
    return f'<score-partwise version="4.0"><part-list>{names}</part-list>{bodies}</score-partwise>'.encode()


def quarters(score: Score) -> list[tuple[float, float, int]]:
    """Return onset and end in quarters, and pitch, of every note."""
    ticks = score.ticks_per_quarter
    return [(on / ticks, (on + length) / ticks, pitch) for on, length, pitch, _, _ in score.notes.tolist()]


def one_measure(*content: str, extra: str = "", divisions: int = 1) -> list[tuple[float, float, int]]:
    return quarters(read_musicxml(document([attributes(extra, divisions=divisions) + "".join(content)])))


# --- time


def test_chords_backups_and_forwards() -> None:
    # a chord C4 E4 of one quarter, then D4; a second voice with G3 on the third quarter
    found = one_measure(
        note("C4"), note("E4", before="<chord/>"), note("D4"), back(2), forward(2), note("G3", voice=2), rest(1)
    )
    assert found == [(0, 1, 60), (0, 1, 64), (1, 2, 62), (2, 3, 55)]


def test_a_longer_note_of_a_chord_does_not_move_the_place() -> None:
    assert one_measure(note("C4"), note("E4", 3, before="<chord/>"), note("D4")) == [(0, 1, 60), (0, 3, 64), (1, 2, 62)]


def test_divisions_change_within_a_measure() -> None:
    found = one_measure(note("C4", 2), attributes(divisions=3, time=""), note("D4", 1), note("E4", 2), divisions=2)
    assert found == [(0, 1, 60), (1, pytest.approx(4 / 3), 62), (pytest.approx(4 / 3), 2, 64)]


def test_cue_notes_are_silent_and_take_time_and_grace_notes_take_none() -> None:
    grace = "<note><grace/><pitch><step>B</step><octave>3</octave></pitch><voice>1</voice></note>"
    assert one_measure(note("G5", before="<cue/>"), grace, note("C4")) == [(1, 2, 60)]


def test_hidden_notes_sound_and_percussion_without_a_pitch_does_not() -> None:
    hidden = note("C4").replace("<note>", '<note print-object="no">')
    drum = "<note><unpitched/><duration>1</duration></note>"
    assert one_measure(drum, hidden) == [(1, 2, 60)]


def test_durations_may_have_decimals() -> None:
    assert one_measure(note("C4", "0.5"), note("D4", "1.50")) == [(0, 0.5, 60), (0.5, 2, 62)]


def test_all_parts_begin_a_measure_together() -> None:
    # the first measure of the second part lacks a quarter
    score = read_musicxml(
        document([attributes() + note("C4", 4), note("D4", 4)], [attributes() + note("C3", 3), note("D3", 4)])
    )
    assert quarters(score) == [(0, 4, 60), (0, 3, 48), (4, 8, 62), (4, 8, 50)]


def test_a_part_with_fewer_measures_is_silent_at_the_end() -> None:
    score = read_musicxml(document([attributes() + note("C4", 4)], [attributes() + note("C3", 4), note("D3", 4)]))
    assert quarters(score) == [(0, 4, 60), (0, 4, 48), (4, 8, 50)]


@pytest.mark.parametrize(
    ("content", "start"),
    [
        ("", 4),
        (forward(3), 3),
        (rest(3), 3),
        (rest(8), 4),
        (forward(8), 4),
        (note("C4", 5), 5),
        (note("C4") + rest(8), 4),
    ],
)
def test_where_the_measure_after_starts(content: str, start: int) -> None:
    # an empty measure has the length of its signature, and rests alone make none longer than that
    score = read_musicxml(document([attributes() + content, note("G4", 4)]))
    assert quarters(score)[-1] == (start, start + 4, 67)


def test_without_a_time_signature_a_measure_is_as_long_as_its_notes() -> None:
    score = read_musicxml(document([attributes(time="") + note("C4", 5), attributes() + note("D4", 4)]))
    assert quarters(score) == [(0, 5, 60), (5, 9, 62)]
    assert score.time_signatures == (TimeSignature(5 * 10080, 4, 4),)


def test_time_signatures() -> None:
    def written(*times: str) -> list[tuple[float, int, int]]:
        score = read_musicxml(document([attributes(time=time) + note("C4", 4) for time in times]))
        return [(s.tick / 10080, s.numerator, s.denominator) for s in score.time_signatures]

    two = "<beats>2</beats><beat-type>4</beat-type>"
    assert written("<time><beats>3+2</beats><beat-type>8</beat-type></time>") == [(0, 5, 8)]
    assert written(f"<time>{two}<beats>3</beats><beat-type>8</beat-type></time>") == [(0, 7, 8)]
    assert written(f"<time>{two}</time>", "<time><senza-misura/></time>", FOUR_FOUR) == [(0, 2, 4), (8, 4, 4)]


def test_a_time_signature_within_a_measure_is_that_of_the_next_one() -> None:
    late = "<attributes><time><beats>2</beats><beat-type>4</beat-type></time></attributes>"
    score = read_musicxml(document([attributes() + note("C4", 4) + late, note("D4", 2)]))
    assert score.time_signatures == (TimeSignature(0, 4, 4), TimeSignature(4 * 10080, 2, 4))


# --- pitch, keys and tempi


@pytest.mark.parametrize(
    ("transpose", "pitches"),
    [
        ("<transpose><diatonic>-1</diatonic><chromatic>-2</chromatic></transpose>", [58, 58]),
        ("<transpose><chromatic>-9</chromatic><octave-change>-1</octave-change></transpose>", [39, 39]),
        ('<transpose number="2"><chromatic>3</chromatic></transpose>', [60, 63]),
        ("<transpose><chromatic>0</chromatic><double/></transpose>", [48, 60, 48, 60]),
        ('<transpose><chromatic>1</chromatic><double above="yes"/></transpose>', [61, 73, 61, 73]),
    ],
)
def test_transpositions(transpose: str, pitches: list[int]) -> None:
    staves = [note("C4", after=f"<staff>{staff}</staff>") for staff in (1, 2)]
    assert [pitch for *_, pitch in one_measure(*staves, extra=transpose)] == pitches


def test_quarter_tones_go_to_the_nearest_key() -> None:
    # C and a quarter tone is 60.5, which goes to the even 60; D and a quarter tone is 62.5, F 65.5 and goes to 66
    quarter_tones = [note(p).replace("</step>", "</step><alter>0.5</alter>") for p in ("C4", "D4", "F4")]
    three_quarters = note("C4").replace("</step>", "</step><alter>.75</alter>")
    assert [pitch for *_, pitch in one_measure(*quarter_tones, three_quarters)] == [60, 62, 66, 61]


def test_keys() -> None:
    key = "<key><fifths>{}</fifths><mode>{}</mode></key>"
    own = "<key><key-step>C</key-step><key-alter>1</key-alter></key>"
    clarinet = "<transpose><diatonic>-1</diatonic><chromatic>-2</chromatic></transpose>"
    keys = [
        key.format(-3, "minor"),
        key.format(9, "major"),
        own,
        key.format(2, "major"),
        key.format(3, "major") + clarinet,
    ]
    score = read_musicxml(document([attributes(written) + note("C4", 4) for written in keys]))
    # keys that have no name are left out; three sharps of a clarinet in B flat sound as one
    assert score.key_signatures == (
        KeySignature(0, -3, minor=True), KeySignature(12 * 10080, 2), KeySignature(16 * 10080, 1),
    )  # fmt: skip


def printed(inside: str, *, rest: str = "") -> str:
    return f"<direction><direction-type>{inside}</direction-type>{rest}</direction>"


# a dotted quarter is one and a half: 60 of them are 90 quarters
METRONOME = "<metronome><beat-unit>quarter</beat-unit><beat-unit-dot/><per-minute>60</per-minute></metronome>"
CIRCA = "<metronome><beat-unit>half</beat-unit><per-minute>ca. 60</per-minute></metronome>"
TEMPI = [
    ('<sound tempo="90"/>', (0, 90)),
    (printed("<words>Vivo</words>", rest='<sound tempo="132.5"/>'), (0, 132.5)),
    (printed(METRONOME), (0, 90)),
    (printed(METRONOME, rest='<sound tempo="88"/>'), (0, 88)),
    (printed("<words/>", rest='<offset sound="yes">2</offset><sound tempo="70"/>'), (2, 70)),
    (printed("<words/>", rest='<offset>2</offset><sound tempo="70"/>'), (0, 70)),
    ('<sound tempo="70"><offset>3</offset></sound>', (3, 70)),
    ('<sound tempo="0"/>', None),
    (printed(CIRCA), None),
]


@pytest.mark.parametrize(("marks", "tempo"), TEMPI)
def test_tempi(marks: str, tempo: tuple[float, float] | None) -> None:
    score = read_musicxml(document([attributes() + marks + note("C4", 4)]))
    assert score.tempos == (() if tempo is None else (Tempo(int(tempo[0] * 10080), tempo[1]),))


def test_velocities_are_percent_of_forte() -> None:
    loud = note("C4").replace("<note>", '<note dynamics="100">')
    score = read_musicxml(document([attributes() + loud + note("D4")]))
    assert score.notes["velocity"].tolist() == [90, 64]


def test_each_staff_is_a_voice() -> None:
    staves = [note("C4", 4, after="<staff>1</staff>"), back(4), note("C3", 4, voice=5, after="<staff>2</staff>")]
    score = read_musicxml(
        document([attributes("<staves>2</staves>") + "".join(staves)], [attributes() + note("E5", 4)])
    )
    assert score.voices == ("Part 0", "Part 0", "Part 1")
    assert sorted(score.notes[["voice", "pitch"]].tolist()) == [(0, 60), (1, 48), (2, 76)]


# --- ties


def tied(*measures: str) -> list[tuple[float, float, int]]:
    return quarters(read_musicxml(document([attributes() + measures[0], *measures[1:]])))


def test_ties_of_two_voices_on_one_staff() -> None:
    found = tied(
        note("C5", 4, ties="start") + back(4) + note("E4", 4, ties="start", voice=2),
        note("C5", 4, ties="stop") + back(4) + note("E4", 4, ties="stop", voice=2),
        note("C5", 4),
    )
    assert found == [(0, 8, 64), (0, 8, 72), (8, 12, 72)]


def test_a_chord_of_which_one_note_is_tied() -> None:
    chord = note("E4", 4, before="<chord/>")
    found = tied(note("C4", 4, ties="start") + chord, note("C4", 4, ties="stop") + chord)
    assert found == [(0, 8, 60), (0, 4, 64), (4, 8, 64)]


def test_a_tie_of_two_voices_on_one_pitch() -> None:
    # both voices hold C5; only the second is tied, in its own voice
    found = tied(
        note("C5", 4) + back(4) + note("C5", 4, ties="start", voice=2),
        note("C5", 2) + rest(2) + back(4) + note("C5", 4, ties="stop", voice=2),
    )
    assert found == [(0, 4, 72), (0, 8, 72), (4, 6, 72)]


def test_a_tie_into_another_voice_and_staff() -> None:
    found = tied(
        note("C4", 4, ties="start", after="<staff>1</staff>"),
        note("C4", 4, ties="stop", voice=2, after="<staff>2</staff>"),
    )
    assert found == [(0, 8, 60)]


def test_a_chord_may_name_its_voice_once() -> None:
    chord = note("E4", 4, before="<chord/>", ties="start", voice=2).replace("<voice>2</voice>", "")
    held = note("C5", 4, ties="start") + back(4) + note("C4", 4, voice=2) + chord
    notes = parse_musicxml(document([attributes() + held]), "a.xml", DEFAULT_LIMITS).measures[0].notes
    assert [(written.pitch, written.line) for written in notes] == [(72, "1"), (60, "2"), (64, "2")]
    found = tied(held, note("C5", 4, ties="stop") + back(4) + note("E4", 4, ties="stop", voice=2))
    assert found == [(0, 4, 60), (0, 8, 64), (0, 8, 72)]


def test_ties_that_are_printed_count_where_none_is_stated_for_sound() -> None:
    start, stop = (f'<notations><tied type="{kind}"/></notations>' for kind in ("start", "stop"))
    assert tied(note("C4", 4, after=start), note("C4", 4, after=stop)) == [(0, 8, 60)]
    # the second note says by <tie> that a tie starts, and none ends
    assert tied(note("C4", 4, after=start), note("C4", 4, ties="start", after=stop)) == [(0, 4, 60), (4, 8, 60)]


def test_a_tie_needs_both_ends() -> None:
    assert tied(note("C4", 4), note("C4", 4, ties="stop")) == [(0, 4, 60), (4, 8, 60)]
    assert tied(note("C4", 4, ties="start"), note("C4", 4)) == [(0, 4, 60), (4, 8, 60)]
    assert tied(note("C4", 4, ties="start"), rest(4), note("C4", 4, ties="stop")) == [(0, 4, 60), (8, 12, 60)]


def test_a_tie_of_which_both_ends_are_stated_bridges_a_duration_that_is_too_short() -> None:
    assert tied(note("C4", 3, ties="start") + forward(1), note("C4", 4, ties="stop")) == [(0, 8, 60)]
    over_another = tied(note("C4", 3, ties="start") + note("D4", 1), note("C4", 4, ties="stop"))
    assert over_another == [(0, 3, 60), (3, 4, 62), (4, 8, 60)]


@pytest.mark.parametrize(("implicit", "onset"), [("yes", 1), ("no", 4)])
def test_in_a_pickup_parts_without_notes_give_way(implicit: str, onset: int) -> None:
    heard = [attributes() + note("C4", 1), note("D4", 4)]
    content = document(heard, [attributes() + rest(4), note("E4", 4)])
    content = content.replace(b'number="1"', f'number="0" implicit="{implicit}"'.encode())
    score = read_musicxml(content)
    assert score.notes["onset_tick"].tolist() == [0, onset * score.ticks_per_quarter, onset * score.ticks_per_quarter]


def test_a_tie_into_both_endings() -> None:
    first = barline(ending("1", "start"), location="left") + note("C4", 4, ties="stop")
    second = barline(ending("2", "start"), location="left") + note("C4", 2, ties="stop") + note("D4", 2)
    found = tied(
        note("E4", 2) + note("C4", 2, ties="start"),
        first + barline(ending("1", "stop"), repeat("backward")),
        second + barline(ending("2", "discontinue")),
    )
    assert found == [(0, 2, 64), (2, 8, 60), (8, 10, 64), (10, 14, 60), (14, 16, 62)]


@pytest.mark.skipif(not (CORPUS / "beethoven").is_dir(), reason="music21's corpus is not installed")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("beethoven/opus133", marks=pytest.mark.slow),  # the longest
        "schumann_robert/opus41no1/movement1",
        "bach/bwv846",
    ],
)
def test_notes_of_real_scores_are_those_written_without_the_ends_of_ties(name: str) -> None:
    # the durations of Schumann's quartet are rounded: tied notes do not quite touch each other
    score = read_musicxml(CORPUS / f"{name}.mxl", expand_repeats=False, merge_ties=False)
    merged = read_musicxml(CORPUS / f"{name}.mxl", expand_repeats=False)
    xml = musicxml_document((CORPUS / f"{name}.mxl").read_bytes(), DEFAULT_LIMITS, name).decode()
    notes = [n for n in re.findall(r"<note\b.*?</note>", xml, re.DOTALL) if "<pitch>" in n and "<grace" not in n]
    assert len(score.notes) == len(notes)
    assert len(merged.notes) == len(notes) - sum('<tie type="stop"' in n for n in notes)


# --- order of playing


def order(measures: Sequence[str], **options: bool) -> str:
    """Return the letters of the measures in the order of playing, each measure one whole note on its own letter."""
    contents = [attributes() + measures[0], *measures[1:]]
    notes = [note(f"{LETTERS[place % 7]}{3 + place // 7}", 4) for place in range(len(contents))]
    full = [content.replace("@", single) for content, single in zip(contents, notes, strict=True)]
    score = read_musicxml(document(full), **options)
    names = {note_pitch(place): chr(65 + place) for place in range(len(contents))}
    return "".join(names[pitch] for pitch in score.notes["pitch"].tolist())


def note_pitch(place: int) -> int:
    return 12 * (4 + place // 7) + (0, 2, 4, 5, 7, 9, 11)[place % 7]


def bracket(number: str, *, ends: bool, starts: str = "") -> str:
    """Write a measure of an ending, which is followed by a repeat sign or not."""
    sign = repeat("backward") if ends else ""
    kind = "stop" if ends else "discontinue"
    return barline(ending(number, "start"), location="left") + starts + "@" + barline(ending(number, kind), sign)


def direction(words: str = "", signs: str = "", **sound: str) -> str:
    types = [f"<direction-type>{inside}</direction-type>" for inside in (f"<words>{words}</words>", signs) if inside]
    given = " ".join(f'{key.replace("_", "-")}="{value}"' for key, value in sound.items())
    return f"<direction>{''.join(types)}{f'<sound {given}/>' if sound else ''}</direction>"


REPEATS = {
    "one measure": ([START + "@" + END, "@"], "AAB"),
    "without a start": (["@", "@" + END, "@"], "ABABC"),
    "back to the end of the last repeat": (["@" + END, "@" + END, "@" + END], "AABBCC"),
    "as often as it says": (["@", START + "@" + barline(repeat("backward", "4")), "@"], "ABBBBC"),
    "once": (["@" + barline(repeat("backward", "1")), "@"], "AB"),
    "two endings": ([START + "@", bracket("1", ends=True), bracket("2", ends=False), "@"], "ABACD"),
    "three endings": (
        ["@", bracket("1,2", ends=True), bracket("3", ends=True), bracket("4", ends=False), "@"], "ABABACADE",
    ),
    "a second ending that ends with a sign": (["@", bracket("1", ends=True), bracket("2", ends=True), "@"], "ABACD"),
    "one ending alone": (["@", bracket("1", ends=True), "@"], "ABAC"),
    "one ending for two passes": (["@", bracket("1, 2", ends=True), "@"], "ABABAC"),
    "a repeat after endings": (["@", bracket("1", ends=True), bracket("2", ends=False), "@", "@" + END], "ABACDEDE"),
    "an ending of two measures": (
        ["@", barline(ending("1", "start"), location="left") + "@",
         "@" + barline(ending("1", "stop"), repeat("backward")), bracket("2", ends=False)], "ABCAD",
    ),
    "numbers in the text alone": (
        ["@", bracket("1", ends=True),
         barline(ending("1", "start", "2."), location="left") + "@" + barline(ending("1", "stop", "2."))], "ABAC",
    ),
    "an ending that is stopped and not started": (
        ["@", "@" + barline(ending("", "stop"), repeat("backward")), bracket("2", ends=False)], "ABAC",
    ),
    "a bracket that stops short of its sign": (
        ["@", barline(ending("1", "start"), location="left") + "@" + barline(ending("1", "stop")), "@" + END,
         bracket("2", ends=False)], "ABCAD",
    ),
    "signs at the other side of a bar line": (
        ["@" + barline(repeat("forward")), "@", barline(repeat("backward"), location="left") + "@"], "ABBC",
    ),
    "a start sign for the ear": ([ "@", '<sound forward-repeat="yes"/>@' + END], "ABB"),
    "a start that never ends": (["@", START + "@", "@"], "ABC"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATS)
def test_repeats_and_endings(name: str) -> None:
    measures, played = REPEATS[name]
    assert order(measures) == played
    assert order(measures, expand_repeats=False) == "".join(chr(65 + place) for place in range(len(measures)))


SEGNO, CODA = "<segno/>", "<coda/>"
JUMPS = {
    "da capo al fine": (["@", "@" + direction(fine="yes"), "@" + direction(dacapo="yes")], "ABCAB"),
    "in words": (["@", "@" + direction("Fine."), "@" + direction("D.C. \nal Fine")], "ABCAB"),
    "da capo to the end": (["@", "@" + direction("Da Capo")], "ABAB"),
    "without repeats after the jump": (
        ["@" + END, "@" + direction("Fine"), START + "@" + END + direction("D.C. al Fine")], "AABCCAB",
    ),
    "with the last ending after the jump": (
        ["@", bracket("1", ends=True), bracket("2", ends=False) + direction("Fine"), "@" + direction("D.C. al Fine")],
        "ABACDAC",
    ),
    "dal segno": (
        ["@", direction(segno="s") + "@", "@" + direction(fine="yes"), "@" + direction(dalsegno="s")], "ABCDBC",
    ),
    "dal segno by signs": (["@", direction(signs=SEGNO) + "@", "@" + direction("D.S.")], "ABCBC"),
    "a segno at the end of a measure": (["@" + direction(signs=SEGNO), "@", "@" + direction("D.S.")], "ABCBC"),
    "a segno of a bar line": (
        ["@", barline(SEGNO, location="left") + "@", "@" + direction("Dal Segno")], "ABCBC",
    ),
    "the segno of that name": (
        [direction(segno="x") + "@", direction(segno="y") + "@", "@" + direction(dalsegno="y")], "ABCBC",
    ),
    "al coda": (
        ["@", "@" + direction(tocoda="c"), "@" + direction(dacapo="yes"), direction(coda="c") + "@"], "ABCABD",
    ),
    "al coda in words": (
        ["@", "@" + direction("To Coda", CODA), "@" + direction("D.C. al Coda"), direction(signs=CODA) + "@"], "ABCABD",
    ),
    "al coda by two signs": (
        ["@", "@" + direction(signs=CODA), "@", direction(signs=CODA) + "@"], "ABCD",  # nothing jumps
    ),
    "dal segno al coda by two signs": (
        ["@", direction(signs=SEGNO) + "@", direction(signs=CODA) + "@", "@" + direction("D.S. al Coda"),
         direction(signs=CODA) + "@"], "ABCDBCE",
    ),
    "a fine that the way to the coda passes": (
        ["@" + direction("Fine"), "@" + direction("To Coda"), "@" + direction("D.C. al Coda"), direction("Coda") + "@"],
        "ABCABD",
    ),
    "repeats within the coda": (
        ["@", "@" + direction("To Coda"), "@" + direction("D.C. al Coda"), START + direction(coda="c") + "@" + END],
        "ABCABDD",
    ),
    "two jumps, each once": (
        [direction(segno="s") + "@", "@" + direction(dalsegno="s"), "@" + direction("D.C.")], "ABABCABC",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JUMPS)
def test_jumps(name: str) -> None:
    measures, played = JUMPS[name]
    # the note of a measure stands before what is said at its end
    assert order(measures) == played


CONTRADICTIONS = {
    "a start within a repeat": ([START + "@", START + "@", "@" + END], "starts in measure 1 does not end"),
    "a repeat within a measure": (["@", barline(repeat("backward"), location="middle") + "@"], "within measure 2"),
    "a repeat before the first measure": ([barline(repeat("backward"), location="left") + "@"], "before the first"),
    "a start after the last measure": (["@" + barline(repeat("forward"))], "end of the last measure"),
    "an ending that is never reached": (["@", bracket("2", ends=True), "@"], "measure 2 is in none of the passes"),
    "an ending without its sign": (["@", bracket("1", ends=False), bracket("2", ends=False)], "measure 3 is in none"),
    "an ending of no number": (["@", bracket("x", ends=True), "@"], "has the number 'x'"),
    "no times": (["@" + barline(repeat("backward", "0"))], "to be played '0' times"),
    "times that are no number": (["@" + barline(repeat("backward", "two"))], "to be played 'two' times"),
    "no segno": (["@", "@" + direction(dalsegno="s")], "measure 2 leads to a segno that is not there"),
    "no coda": (["@" + direction("To Coda"), "@" + direction("D.C. al Coda")], "leads to a coda that is not there"),
    "no way to the coda": (["@", "@" + direction("D.C. al Coda"), direction("Coda") + "@"], "none leaves for it"),
    "no fine": (["@", "@" + direction("D.C. al Fine")], "leads to a fine that is not there"),
    "two jumps at once": (["@", "@" + direction("Fine") + direction("D.C.") + direction("D.S.")], "has two jumps"),
    "a jump of one pass": (["@", "@" + direction(dacapo="yes", time_only="2")], "for pass 2 alone"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_leave_the_written_order(name: str) -> None:
    measures, message = CONTRADICTIONS[name]
    with pytest.raises(UnreadableFileError, match=rf"{message}.*expand_repeats=False"):
        order(measures)
    assert order(measures, expand_repeats=False) == "".join(chr(65 + place) for place in range(len(measures)))


def test_marks_of_all_parts_count_and_must_agree() -> None:
    plain, ended = attributes() + note("C4", 4), attributes() + note("C3", 4) + END
    assert len(read_musicxml(document([plain, note("D4", 4)], [ended, note("D3", 4)])).notes) == 6
    thrice = attributes() + note("C4", 4) + barline(repeat("backward", "3"))
    with pytest.raises(UnreadableFileError, match="parts differ in how often measure 1 is played"):
        read_musicxml(document([thrice], [ended]))
    measures = [[attributes() + note("C4", 4), bracket(n, ends=True).replace("@", note("D4", 4))] for n in ("1", "2")]
    with pytest.raises(UnreadableFileError, match="measure 2 has two endings"):
        read_musicxml(document(*measures))


def test_variations_are_played_twice_each() -> None:
    for n in (6, 30):
        measures = [note("C4") + note("D4") + note("E4") + note("F4") + END for _ in range(n)]
        score = read_musicxml(document([attributes() + measures[0], *measures[1:]]))
        assert score.notes["pitch"].tolist() == [60, 62, 64, 65] * 2 * n


def test_absurd_times_are_bounded() -> None:
    for times in ("99999", "999999999"):
        with pytest.raises(FileTooLargeError, match="Limits"):
            order(["@" + barline(repeat("backward", times))])


# a piece as sections, and how each is written and played
SECTIONS = st.lists(
    st.tuples(
        st.sampled_from(["plain", "repeat", "open repeat", "endings", "one ending"]),
        st.integers(1, 2),  # measures before the endings
        st.integers(2, 3),  # passes
    ),
    min_size=1, max_size=4,
)  # fmt: skip


def written_sections(sections: Sequence[tuple[str, int, int]]) -> tuple[list[str], list[int]]:
    """Return measures with their signs, and their order of playing, section by section."""
    measures: list[str] = []
    played: list[int] = []
    for number, (kind, n, times) in enumerate(sections):
        first = len(measures)
        body = list(range(first, first + n))
        starts = kind != "open repeat" or (number > 0 and sections[number - 1][0] == "plain")
        signs = [START if place == first and starts and kind != "plain" else "" for place in body]
        measures += [sign + "@" for sign in signs]
        if kind == "plain":
            played += body
        elif kind in {"repeat", "open repeat"}:
            measures[-1] += barline(repeat("backward", str(times)))
            played += body * times
        elif kind == "endings":
            measures += [bracket(str(each), ends=each < times) for each in range(1, times + 1)]
            played += [place for each in range(times) for place in [*body, first + n + each]]
        else:
            measures.append(bracket("1", ends=True))
            played += [*body, first + n, *body]
    return measures, played


@given(SECTIONS)
def test_sections_are_played_as_they_are_built(sections: list[tuple[str, int, int]]) -> None:
    measures, played = written_sections(sections)
    assert order(measures) == "".join(chr(65 + place) for place in played)


# --- two spellings of one piece


VOICES = st.lists(
    st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from(["", "C4", "E4", "G4", "C5"]), st.booleans()),
        min_size=1, max_size=5,
    ),
    min_size=1, max_size=3,
)  # fmt: skip


def spelled(voices: list[list[tuple[int, str, bool]]], factor: int, *, apart: bool, reverse: bool) -> bytes:
    """Write voices of (eighths, pitch, whether a third sounds with it) in one measure, in one of several ways."""
    chords: dict[str, str] = {"C4": "E3", "E4": "G3", "G4": "B3", "C5": "E5"}
    lines: list[tuple[str, int]] = []
    for number, events in enumerate(voices, 1):
        upper, lower, place = "", "", 0
        for eighths, pitch, has_third in events:
            duration = eighths * factor
            upper += note(pitch, duration, voice=number) if pitch else rest(duration)
            if pitch and has_third and not apart:
                upper += note(chords[pitch], duration, before="<chord/>", voice=number)
            lower += note(chords[pitch], duration, voice=number + 9) if pitch and has_third else forward(duration)
            place += duration
        lines += [(upper, place), (lower, place)] if apart else [(upper, place)]
    if reverse:
        lines.reverse()
    content = "".join(line + back(length) for line, length in lines)
    return document([attributes(divisions=2 * factor) + content, attributes(divisions=1) + note("C4", 4)])


@given(VOICES, st.integers(1, 5))
def test_two_spellings_have_the_same_notes(voices: list[list[tuple[int, str, bool]]], factor: int) -> None:
    plain = sorted(quarters(read_musicxml(spelled(voices, 1, apart=False, reverse=False))))
    for apart in (False, True):
        for reverse in (False, True):
            assert sorted(quarters(read_musicxml(spelled(voices, factor, apart=apart, reverse=reverse)))) == plain


def test_timewise_documents() -> None:
    parts = [[attributes() + note("C4", 4), note("D4", 4) + END], [attributes() + note("C3", 4), note("D3", 4)]]
    measures = "".join(
        f'<measure number="{place + 1}">'
        + "".join(f'<part id="P{number}">{part[place]}</part>' for number, part in enumerate(parts))
        + "</measure>"
        for place in range(2)
    )
    head = document(*parts).decode().partition("<part id")[0].replace("partwise", "timewise")
    timewise = f"{head}{measures}</score-timewise>".encode()
    one, other = read_musicxml(document(*parts)), read_musicxml(timewise)
    assert np.array_equal(one.notes, other.notes)
    assert (one.voices, one.time_signatures) == (other.voices, other.time_signatures)


def test_a_part_without_a_name_has_that_of_its_instrument_or_none() -> None:
    content = document([attributes() + note("C4", 4)]).decode()
    named = "<score-instrument><instrument-name> Oboe\nd'amore</instrument-name></score-instrument>"
    for part, voice in (("<part-name/>", ""), (f"<part-name/>{named}", "Oboe d'amore"), ("", "")):
        given = content.replace("<part-name>Part 0</part-name>", part)
        assert read_musicxml(given.encode()).voices == (voice,)


def test_utf_16() -> None:
    text = document([attributes() + note("C4", 4)]).decode().replace("Part 0", "Chœur")
    assert read_musicxml(('<?xml version="1.0" encoding="UTF-16"?>' + text).encode("utf-16")).voices == ("Chœur",)


# --- damage


DAMAGE = {
    "no duration": (note("C4").replace("<duration>1</duration>", ""), "note 2: <note> has no <duration>"),
    "no pitch": ("<note><duration>1</duration></note>", "note 2: <note> has no <pitch>"),
    "a negative duration": (note("C4", "-1"), "note 2: a duration of -1; expected at least 0"),
    "a duration in words": (note("C4", "one"), "note 2: duration of 'one'; expected a number"),
    "a duration that fills the memory": (note("C4", "1e999999"), "duration of '1e999999'; expected a number"),
    "an unknown step": (note("C4").replace("<step>C", "<step>H"), "note 2: the step 'H'; expected one of A to G"),
    "a pitch out of range": (note("C4").replace("<octave>4", "<octave>11"), "note 2: the MIDI pitch of C11 is 144"),
    "half an octave": (note("C4").replace("<octave>4", "<octave>4.5"), "octave of '4.5'; expected a whole number"),
    "no octave": (note("C4").replace("<octave>4</octave>", ""), "octave of ''; expected a number"),
    "divisions of 0": (attributes(divisions=0), "divisions of 0; expected more than 0"),
    "a meter of 0": (attributes(time=FOUR_FOUR.replace("<beats>4", "<beats>0")), "time signature 0/4 is invalid"),
    "a meter in thirds": (attributes(time=FOUR_FOUR.replace("type>4", "type>3")), "time signature 4/3 is invalid"),
    "a huge meter": (attributes(time=FOUR_FOUR.replace("<beats>4", "<beats>99999")), "signature 99999/4 is invalid"),
    "a meter without beats": (attributes(time="<time/>"), "a time signature without beats"),
    "a key in words": (attributes("<key><fifths>D</fifths></key>"), "fifths of 'D'; expected a number"),
    "a tempo in words": ('<sound tempo="fast"/>', "tempo of 'fast'; expected a number"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_with_its_place(name: str) -> None:
    content, message = DAMAGE[name]
    with pytest.raises(UnreadableFileError) as caught:
        read_musicxml(document([attributes() + note("D4", 4), note("D4", 1) + content]))
    assert "MusicXML bytes: cannot be read as a score (part 'Part 0', measure 2" in str(caught.value)
    assert message in str(caught.value)


def test_a_chord_needs_a_note_before_it() -> None:
    with pytest.raises(UnreadableFileError, match="note 1: it belongs to a chord, and no note stands before it"):
        one_measure(note("C4", before="<chord/>"))


@pytest.mark.parametrize("content", [b"", b"<score/>", b"<score-partwise>", b'<?xml version="1.0" encoding="x"?><a/>'])
def test_other_documents_are_refused(content: bytes) -> None:
    with pytest.raises(UnreadableFileError, match="cannot be read as a score"):
        parse_musicxml(content, "a.xml", DEFAULT_LIMITS)


def test_notes_are_bounded_before_they_are_read() -> None:
    with pytest.raises(FileTooLargeError):
        parse_musicxml(document([note("C4") + note("C4", "x")]), "a.xml", Limits(max_notes=1))


# --- the second reading


def test_what_is_read_in_two_ways_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = document([attributes() + note("C4", 3) + note("D4", 1)])
    monkeypatch.setattr(musicxml_tunes, "_STEPS", musicxml_tunes._STEPS | {"D": 3})
    with pytest.raises(UnreadableFileError, match="62"):
        read_musicxml(content)


def test_what_cannot_be_edited_has_one_reading() -> None:
    # without a time signature there are no measures to replace
    content = document([attributes(time="") + note("C4", 4)])
    assert musicxml_tunes.editable_notes(content, "a.xml") is None
    assert quarters(read_musicxml(content)) == [(0, 4, 60)]


def test_written_notes_keep_their_exact_times() -> None:
    written = parse_musicxml(
        document([attributes(divisions=7) + note("C4", 3) + note("D4", 25)]), "a.xml", DEFAULT_LIMITS
    )
    first, second = written.measures[0].notes
    assert (first.duration, second.onset) == (Fraction(3, 7), Fraction(3, 7))
    assert written.measures[0].length == 4
    score = to_score(written, "a.xml", DEFAULT_LIMITS, expand_repeats=True, merge_ties=True)
    assert score.notes["onset_tick"].tolist() == [0, 4320]


@pytest.mark.skipif(not (CORPUS / "haydn").is_dir(), reason="music21's corpus is not installed")
def test_a_violin_stays_with_the_quartet() -> None:
    # Haydn op. 1 no. 1, last movement: the first violin starts a measure wherever a note stands first in it
    path = CORPUS / "haydn" / "opus1no1" / "movement5.mxl"
    score = read_musicxml(path, expand_repeats=False, merge_ties=False)
    xml = musicxml_document(path.read_bytes(), DEFAULT_LIMITS, path.name).decode()
    measures = re.findall(r"<measure\b.*?</measure>", xml.partition("</part>")[0], re.DOTALL)
    grace = re.compile(r"<note\b[^>]*>\s*<grace.*?</note>", re.DOTALL)
    first_notes = [re.findall(r"<note\b.*?</note>", grace.sub("", measure), re.DOTALL)[0] for measure in measures]
    starts = set(meter_map(score).starts.tolist()) & set(score.voice(0)["onset_tick"].tolist())
    assert len(starts) == sum("<pitch>" in first for first in first_notes) > 50
