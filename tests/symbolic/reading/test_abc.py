"""ABC read by the standard 2.1: every value is worked out by hand from the section that the test names."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import KeySignature, Tempo, TimeSignature
from music_evals.errors import FileTooLargeError, UnreadableFileError
from music_evals.symbolic.limits import Limits
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.notation import TICKS_PER_QUARTER, from_abc, read_abc, split_abc

HEAD = "X:1\nM:4/4\nL:1/4\nK:C\n"

C, D, E, F, G, A, B = 60, 62, 64, 65, 67, 69, 71


def notes(text: str, **options: bool) -> list[tuple[float, float, int]]:
    """Return onset and duration in quarters and pitch of every note of a text."""
    score = from_abc(text, **options)
    return [(on / TICKS_PER_QUARTER, long / TICKS_PER_QUARTER, pitch) for on, long, pitch, _, _ in score.notes.tolist()]


def pitches(music: str, head: str = HEAD) -> list[int]:
    return [pitch for _, _, pitch in notes(head + music + "\n")]


def in_time(music: str, head: str = HEAD) -> list[tuple[float, float]]:
    return [(onset, duration) for onset, duration, _ in notes(head + music + "\n")]


# --- pitch: keys (3.1.14), accidentals (4.2, 11.3), clefs and transpositions (4.6)


@pytest.mark.parametrize(
    ("music", "sounding"),
    [
        ("^F F G F|F", [66, 66, 67, 66, 65]),
        ("^F f f'|", [66, 78, 90]),
        ("^F =F F|", [66, 65, 65]),
        ("^F || F|", [66, 65]),
        ("^F |: F :|", [66, 65, 65]),
        ("^F [K:G] F|", [66, 66]),
        ("__B ^^C _B =C|", [69, 62, 70, 60]),
        ("^F-|F F|", [66, 65]),
        ("^F-F|F|", [66, 65]),
        ("[^FA]-|[FA]2 F|", [66, 69, 65]),
        ("^F- G|F|", [66, 67, 65]),
        ("^C & C|", [61, 60]),
    ],
)
def test_an_accidental_holds_to_the_end_of_its_bar_and_over_a_tie(music: str, sounding: list[int]) -> None:
    assert sorted(pitches(music)) == sorted(sounding)
    if "&" not in music and "[" not in music:
        assert pitches(music) == sounding


@pytest.mark.parametrize(
    ("rule", "sounding"), [("not", [66, 65, 77]), ("octave", [66, 66, 77]), ("pitch", [66, 66, 78])]
)
@pytest.mark.parametrize("form", ["%%propagate-accidentals {}\n", "I:propagate-accidentals {}\n"])
def test_how_long_an_accidental_holds_may_be_stated(rule: str, sounding: list[int], form: str) -> None:
    assert pitches("^F F f|", "X:1\n" + form.format(rule) + HEAD.removeprefix("X:1\n")) == sounding


# sharps of each key, by the circle of fifths and the place of each mode on it
@pytest.mark.parametrize(
    ("key", "fifths"),
    [
        ("C", 0), ("G", 1), ("Bb", -2), ("F#", 6), ("Cb", -7), ("C#", 7),
        ("Am", 0), ("A minor", 0), ("AMIN", 0), ("Aaeolian", 0), ("GM", -2), ("Ebm", -6),
        ("DMix", 1), ("D mixolydian", 1), ("Ador", 1), ("A DORIAN", 1), ("EPhr", 0), ("FLyd", 0), ("B locrian", 0),
        ("Cion", 0), ("Gmaj", 1), ("G major", 1), ("none", 0), ("", 0), ("HP", 2), ("Hp", 2),
        ("D clef=bass", 2), ("D bass", 2), ("Em treble", 1), ("Dmixm", 1),
    ],
)  # fmt: skip
def test_keys_and_modes(key: str, fifths: int) -> None:
    sharp = [letter for n, letter in enumerate("FCGDAEB") if n < fifths]
    flat = [letter for n, letter in enumerate("BEADGCF") if n < -fifths]
    natural = dict(zip("CDEFGAB", (C, D, E, F, G, A, B), strict=True))
    want = [natural[letter] + (letter in sharp) - (letter in flat) for letter in "CDEFGAB"]
    assert pitches("CDEFGAB|", f"X:1\nL:1/8\nK:{key}\n") == want


@pytest.mark.parametrize(
    ("key", "music", "sounding"),
    [
        ("D =c", "FCc", [66, 60, 72]),
        ("D Phr ^f", "FBE", [66, 70, 63]),
        ("Am^g", "GA", [68, 69]),
        ("Dmix=c", "FC", [66, 60]),
        ("D =c =g", "GC", [67, 60]),
        ("D exp _b _e ^f", "BEFC", [70, 63, 66, 60]),
        ("D exp_b_e", "BEFC", [70, 63, 65, 60]),
        ("^f", "FC", [66, 60]),
        ("C octave=-1", "C", [48]),
        ("C transpose=2", "C", [62]),
        ("C treble-8", "C", [48]),
        ("C clef=treble+8", "C", [72]),
        ("C bass-8", "C", [48]),
        ("C middle=d", "C", [60]),
    ],
)
def test_keys_of_their_own_and_what_moves_the_sound(key: str, music: str, sounding: list[int]) -> None:
    assert pitches(music + "|", f"X:1\nL:1/4\nK:{key}\n") == sounding


def test_a_clef_within_the_tune_changes_no_key_and_a_key_no_clef() -> None:
    assert pitches("F[K:bass]F|[K:clef=treble-8]F|[K:C]F|", "X:1\nL:1/4\nK:D\n") == [66, 66, 54, 53]


@pytest.mark.parametrize(
    ("note", "pitch"), [("C,", 48), ("c'", 84), ("c,", 60), ("C'", 72), ("C,,", 36), ("_C", 59), ("^B", 72)]
)
def test_octaves(note: str, pitch: int) -> None:
    assert pitches(note + "|") == [pitch]


# --- time: lengths (4.3), broken rhythm (4.4), rests (4.5), tuplets (4.13), chords (4.17)


@pytest.mark.parametrize(
    ("music", "durations"),
    [
        ("C2 C C/ C// C/4 C3/2 C3/ C2/4", [2, 1, 0.5, 0.25, 0.25, 1.5, 1.5, 0.5]),
        ("C>D", [1.5, 0.5]),
        ("C<D", [0.5, 1.5]),
        ("C>>D", [1.75, 0.25]),
        ("C<<<D", [0.125, 1.875]),
        ("C > D", [1.5, 0.5]),
        ("(C>)D", [1.5, 0.5]),
        ("C>(DE)", [1.5, 0.5, 1]),
        (".C>.D", [1.5, 0.5]),
        ("C>{d}D", [1.5, 0.5]),
        ("C{d}>D", [1.5, 0.5]),
        ('C>"Am"!trill!D', [1.5, 0.5]),
        ("C>~D", [1.5, 0.5]),
        ("C>|D", [1.5, 0.5]),
        ("C>[K:G]D", [1.5, 0.5]),
        ("C->D", [1.5, 0.5]),
        ("C>D<E", [1.5, 0.25, 1.5]),
        ("(3CDE", [2 / 3] * 3),
        ("(3CD|E", [2 / 3] * 3),
        ("(3C(DE)", [2 / 3] * 3),
        ("(2CD", [1.5] * 2),
        ("(4CDEF", [0.75] * 4),
        ("(6CDEFGA", [1 / 3] * 6),
        ("(3:2:4CDEF", [2 / 3] * 4),
        ("(3::2CDE", [2 / 3, 2 / 3, 1]),
        ("(5:4:5CDEFG", [0.8] * 5),
        ("(5CDEFG", [0.4] * 5),
        ("(3C2D2E2", [4 / 3] * 3),
        ("(3{d}CDyE", [2 / 3] * 3),
        ("C y D y2 E", [1, 1, 1]),
    ],
)
def test_lengths(music: str, durations: list[float]) -> None:
    assert [duration for _, duration in in_time(music + "|")] == pytest.approx(durations, abs=1e-4)


def test_five_notes_stand_for_three_in_compound_meters() -> None:
    assert [long for _, long in in_time("(5CDEFG|", "X:1\nM:6/8\nL:1/8\nK:C\n")] == pytest.approx([0.3] * 5, abs=1e-4)


def test_a_rest_is_a_note_of_a_tuplet_and_of_a_broken_rhythm() -> None:
    onsets, durations = zip(*in_time("(3zCD z>E C>xF|"), strict=True)
    assert onsets == pytest.approx([2 / 3, 4 / 3, 3.5, 4, 6], abs=1e-4)
    assert durations == pytest.approx([2 / 3, 2 / 3, 0.5, 1.5, 1], abs=1e-4)


@pytest.mark.parametrize(
    ("music", "onset"),
    [("Z|C4|", 4), ("Z2|C4|", 8), ("X2|C4|", 8), ("z4|x4|C4|", 8), ("Z3 C4|", 12), ("[M:3/4] Z2|C3|", 6)],
)
def test_rests(music: str, onset: float) -> None:
    assert in_time(music)[0][0] == onset


@pytest.mark.parametrize(
    ("music", "want"),
    [
        ("[CE]2 G|", [(0, 2, 60), (0, 2, 64), (2, 1, 67)]),
        ("[C2E2]3 G|", [(0, 6, 60), (0, 6, 64), (6, 1, 67)]),
        ("[C2E]G|", [(0, 2, 60), (0, 2, 64), (2, 1, 67)]),
        ("[CE]2-[CE]2|", [(0, 4, 60), (0, 4, 64)]),
        ("[C-E]2[CF]2|", [(0, 4, 60), (0, 2, 64), (2, 2, 65)]),
        ("[C-E-][CE]|", [(0, 2, 60), (0, 2, 64)]),
        ("[C!trill!E.G]|", [(0, 1, 60), (0, 1, 64), (0, 1, 67)]),
        ("[CE]>[DF]|", [(0, 1.5, 60), (0, 1.5, 64), (1.5, 0.5, 62), (1.5, 0.5, 65)]),
    ],
)
def test_chords(music: str, want: list[tuple[float, float, int]]) -> None:
    assert sorted(notes(HEAD + music + "\n")) == sorted(want)


@pytest.mark.parametrize(
    ("music", "want"),
    [
        ("C-C|", [(0, 2, 60)]),
        ("C- C|", [(0, 2, 60)]),
        ("C -C|", [(0, 2, 60)]),
        ("C4-|C4|", [(0, 8, 60)]),
        ("C4-|\nC4-|C4|", [(0, 12, 60)]),
        ("C-D|", [(0, 1, 60), (1, 1, 62)]),
        ("C-c|", [(0, 1, 60), (1, 1, 72)]),
        ("C-{d}C|", [(0, 2, 60)]),
        ("C/8-D/8C/8|", [(0, 0.125, 60), (0.125, 0.125, 62), (0.25, 0.125, 60)]),
        ("C-zC|", [(0, 1, 60), (2, 1, 60)]),
        ("|:C2 D2-|1 D4:|2 D2 E2|]", [(0, 2, 60), (2, 6, 62), (8, 2, 60), (10, 4, 62), (14, 2, 64)]),
    ],
)
def test_ties(music: str, want: list[tuple[float, float, int]]) -> None:
    assert notes(HEAD + music + "\n") == want


def test_overlays_start_again_at_the_bar_line() -> None:
    assert sorted(notes(HEAD + "C4 & E2 F2 & z2 G2|A4|\n")) == [
        (0, 2, 64), (0, 4, 60), (2, 2, 65), (2, 2, 67), (4, 4, 69),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("meter", "quarters"),
    [("4/4", 0.5), ("C|", 0.5), ("3/4", 0.5), ("2/4", 0.25), ("6/8", 0.5), ("3/8", 0.25), ("none", 0.5)],
)
def test_the_unit_without_a_length_is_that_of_the_meter(meter: str, quarters: float) -> None:
    assert in_time("C|", f"X:1\nM:{meter}\nK:C\n") == [(0, quarters)]
    assert in_time("C[M:2/4]C|", f"X:1\nM:{meter}\nK:C\n") == [(0, quarters), (quarters, quarters)]


def test_no_meter_and_no_length() -> None:
    assert in_time("CD|", "X:1\nK:C\n") == [(0, 0.5), (0.5, 0.5)]
    assert from_abc("X:1\nK:C\nCD|\n").time_signatures == ()


@pytest.mark.parametrize(
    ("meter", "signature"), [("2+3/8", (5, 8)), ("(2+3)/8", (5, 8)), ("C", (4, 4)), ("C|", (2, 2))]
)
def test_meters(meter: str, signature: tuple[int, int]) -> None:
    score = from_abc(f"X:1\nM:{meter}\nL:1/8\nK:C\nCDE|\n")
    assert score.time_signatures == (TimeSignature(0, *signature),)


# --- order: repeats, endings (4.8, 4.9, 4.10), parts (3.1.9)


@pytest.mark.parametrize(
    ("music", "played"),
    [
        ("C|D:|E|F:|", "CDCDEFEF"),
        ("C:|D:|E:|", "CCDDEE"),
        ("|:C:|:D:|", "CCDD"),
        ("C::D:|", "CCDD"),
        ("C:||:D:|", "CCDD"),
        ("C:|]|:D:|", "CCDD"),
        ("C||D:|", "CDD"),
        ("C|]D:|", "CDD"),
        ("|:C||D:|", "CDCD"),
        ("|:C:|D||E:|", "CCDEE"),
        ("|::C::|", "CCC"),
        ("|:C|1D:|2E|]", "CDCE"),
        ("|:C[1D:|[2E|]", "CDCE"),
        ("|:C|1 D:|\n|2 E|]", "CDCE"),
        ("|:C|1D:|2E:|3F|]", "CDCECF"),
        ("|:C|1,3D:|2E:|", "CDCECD"),
        ("|:C|1-3D:|4E|]", "CDCDCDCE"),
        ("|:C|[1-2 D:|[3 E|]", "CDCDCE"),
        ("|:C|1D:|2E:|", "CDCE"),
        ("|:C|1D:|2E|]F:|", "CDCEFF"),
        ("|:C|1D:|2E|:F:|", "CDCEFF"),
        ("|:C|1D:|E|F:|", "CDCEFEF"),
        ("C|1D:|2E||F|1G:|2A|]", "CDCEFGFA"),
        ("|:C|D[|]:|E|", "CDCDE"),
        ("|:C|D| :E|F:|", "CDEFEF"),
        ("C.|D:|", "CDCD"),
        ("C|:D|:E:|F", "CDEEF"),
        ("|:C|\n::D:|", "CCDD"),
        ("C|D[|]|E:|", "CDECDE"),
        ("|:C||1D:|2E|]", "CDCE"),
        ("|:C|1D:||[2E|]", "CDCE"),
        ("C|\nP:X\nD:|", "CDCD"),
        ("|:C|D", "CD"),
    ],
)
def test_repeats(music: str, played: str) -> None:
    assert "".join("CDEFGAB"[(C, D, E, F, G, A, B).index(pitch)] for pitch in pitches(music)) == played
    written = [pitch for _, _, pitch in notes(HEAD + music + "\n", expand_repeats=False)]
    assert "".join("CDEFGAB"[(C, D, E, F, G, A, B).index(pitch)] for pitch in written) == "".join(
        letter for letter in music if letter in "CDEFGAB"
    )


@pytest.mark.parametrize(
    ("order", "body", "played"),
    [
        ("ABA", "P:A\nC:|\nP:B\nD|\n", "CCDCC"),
        ("A2(BA)2", "P:A\nC|\nP:B\nD|\n", "CCDCDC"),
        ("A.B.", "P:A\nC|\nP:B\nD|\n", "CD"),
        ("BA", "[P:A]C|[P:B]D|\n", "DC"),
        ("AB", "E|\nP:A\nC|\nP:B\nD|\n", "ECD"),
        ("AB", "C|D|\n", "CD"),
        ("BA", "P:A\nC|\nP:D.C.\nD|\nP:B\nE|\n", "ECD"),
        ("ABAC", "P:A\nP:B\nC|\nP:C (slowly)\nD|\n", "CD"),
    ],
)
def test_parts(order: str, body: str, played: str) -> None:
    score = from_abc(f"X:1\nM:4/4\nL:1/4\nP:{order}\nK:C\n{body}")
    assert score.notes["pitch"].tolist() == ["CDE".index(letter) * 2 + C for letter in played]


def test_jumps_are_signs_on_the_page() -> None:
    assert pitches("!segno!C|D!fine!|E!D.S.!|F!D.C. al fine!|") == [C, D, E, F]


def test_a_piece_of_thirty_strains_is_no_more_work_than_its_length() -> None:
    text = HEAD + "\n".join(f"{letter}4:|" for letter in "CDEFGABCDEFGABCDEFGABCDEFGABCD")
    start = time.process_time()
    assert len(notes(text)) == 60
    assert time.process_time() - start < 30


# --- what changes no note


@pytest.mark.parametrize(
    "music",
    [
        "{g}C {/d}D !trill!E +fermata+F|", "~C .D HE LF|", "uC vD T E OF|", '"Am"C "^text"D "<("E F|', "(C D) .(E F)|",
        "C D E !crescendo(!F|", "C D` E`F|", "C D $E F|", "C D E!\nF|", "!C D E|!F|", "C D\\\nE F|",
        "C D % a remark\nE F|",
        "C D [r:remark]E F|", "C D\nr:remark\nE F|", "C D\nw: la la\nE F|", "C D\n%%MIDI program 4\nE F|",
        "C D\nI:linebreak $\nE F|", "C D\n%\nE F|", "C D\n   % no empty line\nE F|", "nC jD kE lF|", "C D =\nE F|",
        "C D *;?@#E F|", "C D\n%%begintext\nABC\n%%endtext\nE F|", "C D\nN:a note\n+:that goes on\nE F|",
    ],
)  # fmt: skip
def test_signs_and_remarks_change_no_note(music: str) -> None:
    assert notes(HEAD + music + "\n") == [(0, 1, 60), (1, 1, 62), (2, 1, 64), (3, 1, 65)]


@pytest.mark.parametrize(
    "field", ["R:hornpipe", "Q:1/4=120", "U:T=!trill!", "%%MIDI grace 1/4", "H:told\nby many\nlines", "Z:x\n+:y"]
)
def test_fields_of_the_header_change_no_note(field: str) -> None:
    assert in_time("C D T E F|", f"X:1\nM:4/4\nL:1/4\n{field}\nK:C\n") == [(0, 1), (1, 1), (2, 1), (3, 1)]


def test_an_empty_line_ends_the_tune() -> None:
    assert pitches("CDEF|\n\nSome words about it: ABC|") == [C, D, E, F]


def test_a_note_before_a_repeat_sign_at_the_start_of_a_line_is_no_field() -> None:
    assert pitches("|:C D|\nE:|\nG::A|\nB:|") == [C, D, E, C, D, E, G, G, A, B, A, B]


# --- fields and voices


def test_inline_and_whole_line_fields_are_the_same() -> None:
    lines = "C4|\nK:D\nF4|\nL:1/8\nF8|\nM:3/4\nF6|\n"
    inline = "C4|[K:D]F4|[L:1/8]F8|[M:3/4]F6|\n"
    one, two = from_abc(HEAD + lines), from_abc(HEAD + inline)
    assert one.notes.tolist() == two.notes.tolist()
    assert one.notes["pitch"].tolist() == [60, 66, 66, 66]
    assert one.time_signatures == two.time_signatures
    assert [signature.tick // TICKS_PER_QUARTER for signature in one.time_signatures] == [0, 12]
    assert one.key_signatures == (KeySignature(0, 0), KeySignature(4 * TICKS_PER_QUARTER, 2))


@pytest.mark.parametrize(
    ("tempo", "bpm"), [("1/4=100", 100), ("3/8=60", 90), ('"Allegro" 1/2=60', 120), ("1/4 1/8=80", 120), ("120", 120)]
)
def test_tempi(tempo: str, bpm: float) -> None:
    assert from_abc(f"X:1\nM:4/4\nL:1/4\nQ:{tempo}\nK:C\nC4|\n").tempos == (Tempo(0, bpm),)


def test_voices_stand_side_by_side_and_a_repeat_of_one_holds_for_all() -> None:
    head = "X:1\nM:4/4\nL:1/4\nV:S name=Upper\nV:B clef=bass octave=-1\nK:C\n"
    score = from_abc(head + "[V:S] c4:|d4|\n[V:B] C2 D2|E4|\n")
    assert score.voices == ("Upper", "B")
    rows = [(on // TICKS_PER_QUARTER, pitch, voice) for on, _, pitch, _, voice in score.notes.tolist()]
    assert rows == [(0, 72, 0), (0, 48, 1), (2, 50, 1), (4, 72, 0), (4, 48, 1), (6, 50, 1), (8, 74, 0), (8, 52, 1)]


def test_fields_before_the_music_hold_for_all_voices() -> None:
    score = from_abc("X:1\nM:4/4\nK:C\nL:1/4\nK:D\nV:1\nF4|\nV:2\nC4|\n")
    assert score.notes["pitch"].tolist() == [66, 61]
    assert score.notes["duration_tick"].tolist() == [4 * TICKS_PER_QUARTER] * 2


def test_a_rest_of_several_bars_stands_beside_as_many_of_another_voice() -> None:
    score = from_abc("X:1\nM:4/4\nL:1/4\nK:C\nV:1\nC4|D4|E4|\nV:2\nZ2|G4|\n")
    assert [(on // TICKS_PER_QUARTER, pitch) for on, _, pitch, _, _ in score.notes.tolist()] == [
        (0, 60), (4, 62), (8, 64), (8, 67),
    ]  # fmt: skip


def test_a_pickup_and_halves_around_a_repeat_sign() -> None:
    score = from_abc("X:1\nM:3/4\nL:1/4\nK:C\nC|:D2E|F2:|G|A3|\n")
    bars = meter_map(score)
    assert bars.pickup_ticks == TICKS_PER_QUARTER
    written = meter_map(from_abc("X:1\nM:3/4\nL:1/4\nK:C\nC|:D2E|F2:|G|A3|\n", expand_repeats=False))
    assert (written.starts / TICKS_PER_QUARTER).tolist() == [0, 1, 4, 7, 10]


def test_the_head_of_a_file_holds_for_all_of_its_tunes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "book.abc"
    path.write_text("%abc-2.1\nM:3/4\nL:1/4\nwords\n\nX:1\nK:C\nCDE|\n\nX:2\nL:1/8\nK:C\nCDE|\n")
    assert [from_abc(text).notes["duration_tick"].tolist() for text in split_abc(path)] == [
        [TICKS_PER_QUARTER] * 3,
        [TICKS_PER_QUARTER // 2] * 3,
    ]
    assert read_abc(path, tune=1).notes.tolist() == from_abc(split_abc(path)[0]).notes.tolist()


# --- refused by name


@pytest.mark.parametrize(
    ("music", "place"),
    [
        ("C D ü E|", "line 5"),
        ("C D 2 E|", "line 5"),
        ("C D !E F!|", "line 5"),
        ("CDEF|\nC+E+|", "line 6"),
        ("[CzE]|", "line 5"),
        ("C {d E|", "line 5"),
        ('C "Am E|', "line 5"),
        ("^/C|", "line 5"),
        ("(3C(3DEF|", "line 5"),
        (">C|", "line 5"),
        ("C/0|", "line 5"),
        ("(0CDE|", "line 5"),
        ("C0|", "line 5"),
        ("[L:1/0]C|", "line 5"),
        ("[K:Xyz]C|", "line 5"),
        ("[K:Dfoo]C|", "line 5"),
        ("[M:4/0]C|", "line 5"),
        ("[M:x]C|", "line 5"),
        ("& C|", "line 5"),
        ("c'''''''|", "line 5"),
        ("|:C|[0 D:|", "line 5"),
        ("m:~n2=o/n/m/n\nC|", "line 5"),
        ("[K:C shift=CD]C|", "line 5"),
    ],
)
def test_what_is_no_abc_is_refused_with_its_line(music: str, place: str) -> None:
    with pytest.raises(UnreadableFileError, match=f"tune 7: {place}: .+"):
        from_abc(HEAD + music + "\n", name="tune 7")


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "C2 & D4|\n",
        HEAD + "V:1\nC4|D3|\nV:2\nC4|D4|\n",
        "X:1\nP:AB\nL:1/4\nK:C\nP:A\nC|\n",
        "X:1\nP:A(B\nL:1/4\nK:C\nC|\n",
        "X:1\nm:~n2=o/n/m/n\nK:C\nC|\n",
        "X:1\nM:none\nK:C\nZ2|\n",
        HEAD + "|:C:|[2 D|E|]\n",
        HEAD + "|1C|2D|]\n",
    ],
)
def test_what_contradicts_itself_is_refused(text: str) -> None:
    with pytest.raises(UnreadableFileError, match="tune 7"):
        from_abc(text, name="tune 7")


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "C999999999999999999|\n",
        HEAD + "Z999999999|\n",
        HEAD + "|:C9999:|" * 100 + "\n",
        HEAD + "CDEF|" * 400 + "\n",
        HEAD + "|::::::::::::::::::::::::::::::C300::::::::::::::::::::::::::::::|\n",
    ],
)
def test_what_is_over_a_bound_is_refused_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises(FileTooLargeError):
        from_abc(text, limits=Limits(max_quarters=5000, max_notes=1000))
    assert time.process_time() - start < 30


# --- one piece in two legal spellings

NATURAL = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
SIGNS = {-1: "_", 0: "=", 1: "^"}
Event = tuple[str, int, int, int] | int
"""A note: letter, alteration, octave and eighths; or the eighths of a rest."""
Tune = list[list[Event]]
SHARPS, FLATS = "FCGDAEB", "BEADGCF"


@st.composite
def bars(draw: st.DrawFn) -> Tune:
    """Draw bars of eight eighths."""
    drawn = []
    for _ in range(draw(st.integers(2, 5))):
        bar: list[Event] = []
        left = 8
        while left:
            length = draw(st.sampled_from([n for n in (1, 1, 2, 2, 3, 4, 8) if n <= left]))
            if draw(st.integers(0, 9)) == 0:
                bar.append(length)
            else:
                bar.append(
                    (draw(st.sampled_from("CDEFGAB")), draw(st.integers(-1, 1)), draw(st.integers(4, 5)), length)
                )
            left -= length
        drawn.append(bar)
    return drawn


def spell(tune: Tune, fifths: int, unit: int, *, short: bool) -> list[str]:
    """Write each bar in a key, with `unit` units an eighth; if not `short`, with every accidental."""
    of_key = dict.fromkeys(NATURAL, 0)
    of_key.update(dict.fromkeys(SHARPS[: max(fifths, 0)], 1) | dict.fromkeys(FLATS[: max(-fifths, 0)], -1))
    texts = []
    for bar in tune:
        holds: dict[str, int] = {}
        if bar == [8]:
            texts.append("Z" if short else f"z{8 * unit}")
            continue
        text, skip = [], 0
        for index, event in enumerate(bar):
            if isinstance(event, int):
                symbol, length = "z", event
            else:
                letter, alter, octave, length = event
                sign = SIGNS[alter] if not short or holds.get(letter, of_key[letter]) != alter else ""
                if sign:
                    holds[letter] = alter
                symbol = sign + (letter.lower() if octave == 5 else letter)
            following = bar[index + 1] if index + 1 < len(bar) else 0
            after = following if isinstance(following, int) else following[3]
            mark, written = "", Fraction(length * unit)
            if skip:
                written, skip = Fraction(2 * length * unit), 0
            elif short and length == 3 and after == 1:
                mark, written, skip = ">", Fraction(2 * unit), 1
            text.append(f"{symbol}{written if written != 1 else ''}{mark}")
        texts.append(("" if short else " ").join(text))
    return texts


def oracle(tune: Tune) -> list[tuple[float, float, int]]:
    rows, onset = [], 0
    for event in (event for bar in tune for event in bar):
        if isinstance(event, int):
            onset += event
            continue
        letter, alter, octave, length = event
        rows.append((onset / 2, length / 2, 12 * (octave + 1) + NATURAL[letter] + alter))
        onset += length
    return rows


@given(
    tune=bars(),
    keys=st.tuples(st.integers(-7, 7), st.integers(-7, 7)),
    units=st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4])),
)
def test_two_legal_spellings_of_one_tune_have_its_notes(
    tune: Tune, keys: tuple[int, int], units: tuple[int, int]
) -> None:
    names = ["Cb", "Gb", "Db", "Ab", "Eb", "Bb", "F", "C", "G", "D", "A", "E", "B", "F#", "C#"]
    want = oracle([*tune, *tune])
    heads = [f"X:1\nM:4/4\nL:1/{8 * unit}\nK:{names[key + 7]}\n" for key, unit in zip(keys, units, strict=True)]
    plain = spell(tune, keys[0], units[0], short=False)
    short = spell(tune, keys[1], units[1], short=True)
    assert notes(heads[0] + "|".join([*plain, *plain]) + "|]\n") == want
    assert notes(heads[1] + "|:" + "|\n".join(short) + ":|\n") == want
    other = f"X:1\nM:4/4\nL:1/{8 * units[1]}\nP:A2\nK:none\nP:A\n[K:{names[keys[1] + 7]}]"
    assert notes(other + "|".join(short) + "|]\n") == want
