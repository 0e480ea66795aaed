"""Measures of an ABC tune replaced in its text: constructs in which an edit could touch something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from music_evals.annotations import NoteArray
from music_evals.errors import FileTooLargeError, InvalidInputError, NoDataError, UnreadableFileError
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.rewriting import abc as abc_tunes
from music_evals.symbolic.tunes import Tune, open_tune

HEAD = "X:1\nM:4/4\nL:1/4\nK:C\n"
TWO_VOICES = "X:1\nM:4/4\nL:1/4\nV:1\nV:2\nK:C\n"
WHOLE = [(0, 24, 60)]

Open = Callable[..., Tune]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Return a function that reads a text as a tune."""

    def read(text: str, **options: int) -> Tune:
        path = tmp_path / "tune.abc"
        path.write_text(text, encoding="utf-8", newline="")
        return open_tune(path, **options)  # type: ignore[arg-type]

    return read


def in_steps(tune: Tune, first: int, notes: list[tuple[int, int, int]]) -> NoteArray:
    """Return notes of (onset step, steps, pitch) from the start of a measure as notes of the tune."""
    step = tune.bars.ticks_per_quarter // 6
    start = int(tune.bars.starts[first])
    return make_notes([start + row[0] * step for row in notes], [row[1] * step for row in notes], [n[2] for n in notes])


def replaced(tune: Tune, measures: str, notes: list[tuple[int, int, int]], voice: int = 0) -> str:
    first, n_measures = tune.measures(measures)
    return tune.replaced(voice, first, n_measures, in_steps(tune, first, notes)).decode()


# --- other voices


@pytest.mark.parametrize(
    "music",
    [
        "V:1\nCDEF|GA\nV:2\nC,4|C,2\nV:1\nBc|c4|]\nV:2\nD,2|E,4|]\n",
        "[V:1]CDEF|GA[V:2]C,4|C,4|[V:1]Bc|c4|]\n[V:2]E,4|]\n",
    ],
)
def test_a_measure_that_another_voice_interrupts_is_refused(opened: Open, music: str) -> None:
    with pytest.raises(UnreadableFileError, match="a measure is interrupted by another voice"):
        opened(TWO_VOICES + music)


def test_a_last_measure_without_a_bar_line_is_not_interrupted(opened: Open) -> None:
    text = TWO_VOICES + "V:1\nCDEF|GABc\nV:2\nC,4|D,4\n"
    assert replaced(opened(text), "2", WHOLE) == text.replace("GABc", "C4")


def test_an_edit_that_would_change_something_else_is_refused(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    tune = opened(HEAD + "CDEF|GABc|c4|]\n")
    for wrong in ("C4|D4", "C4 [L:1/8]", "C3", "D4", "C4 [K:G]"):
        monkeypatch.setattr(abc_tunes, "_text", lambda *_, wrong=wrong, **__: wrong)
        with pytest.raises(UnreadableFileError, match="cannot be edited safely"):
            replaced(tune, "2", WHOLE)


# --- fields within measures


@pytest.mark.parametrize("field", ["\nL:1/8\n", "\nM:3/4\n", "[L:1/8]", "[M:3/4]"])
def test_a_unit_or_a_meter_that_changes_within_a_measure_is_refused(opened: Open, field: str) -> None:
    with pytest.raises(UnreadableFileError, match="in the middle of a measure; put it at a bar line"):
        opened(f"{HEAD}CDEF|GA{field}A2B2|c8|\n")


def test_fields_before_the_first_note_of_a_measure_hold_for_it(opened: Open) -> None:
    tune = opened(f'{HEAD}CDEF|"Am"\nL:1/8\nK:G\nG2A2B2c2|c8|]\n')
    assert replaced(tune, "2", [(0, 12, 66), (12, 12, 65)]) == f'{HEAD}CDEF|"Am"\nL:1/8\nK:G\nF4 =F4|c8|]\n'
    # what is stated again changes nothing
    again = opened(f"{HEAD}CDEF|GA[M:4/4]\nL:1/4\nBc|c4|]\n")
    assert replaced(again, "2", WHOLE) == f"{HEAD}CDEF|C2- [M:4/4]\nL:1/4\nC2|c4|]\n"


# --- ties and slurs over an edge of the gap


@pytest.mark.parametrize("tie", ["-", ".-"])
def test_a_tie_into_the_gap_goes(opened: Open, tie: str) -> None:
    tune = opened(f"{HEAD}CDEF{tie}|FGAB|c4|]\n")
    assert replaced(tune, "2", WHOLE) == f"{HEAD}CDEF|C4|c4|]\n"


@pytest.mark.parametrize(
    ("old", "notes", "new"),
    [
        ('CD(EF|("G"G)A)Bc|c4|]', [(0, 12, 60), (12, 12, 62)], 'CD(EF|"G"C2) D2|c4|]'),
        ('CDEF|GA"Bb"B(c|c)BAG|]', [(0, 12, 60), (12, 12, 62)], 'CDEF|C2 "Bb"(D2|c)BAG|]'),
        ("(CD(EF|GA)Bc|c4)|]", WHOLE, "(CD(EF|C4)|c4)|]"),
        ("CD(EF|GA)B(c|c4)|]", WHOLE, "CD(EF|(C4)|c4)|]"),
        ("CDEF|GAB(c|c4)|]", [(18, 2, 60), (20, 2, 62), (22, 2, 64)], "CDEF|z3 (3C/2D/2(E/2|c4)|]"),
        ("CDEF|GAB(c|c4)|]", [(0, 18, 60)], "CDEF|C3 (z|c4)|]"),
    ],
)
def test_slurs_over_an_edge_of_the_gap_stay_open_and_closed(
    opened: Open, old: str, notes: list[tuple[int, int, int]], new: str
) -> None:
    assert replaced(opened(f"{HEAD}{old}\n"), "2", notes) == f"{HEAD}{new}\n"


# --- what is written


@pytest.mark.parametrize(
    ("meter", "measure", "after"),
    [
        ("6/8", "GABABc", "GAB ABc"),
        ("9/8", "GABABcdfd", "GAB ABc dfd"),
        ("3/8", "GAB", "GAB"),
        ("6/4", "GABABcGABABc", "GABABc GABABc"),
        ("4/4", "Adfdgedc", "Adfd gedc"),
        ("4/4", "A2dfd2gc", "A2 df d2 gc"),
        ("6/8", "G2AB2c", "G2A B2c"),
        ("C|", "Adfdgedc", "Adfd gedc"),
        ("2/4", "Adfd", "Ad fd"),
        ("3/4", "Adfdge", "Ad fd ge"),
    ],
)
def test_spaces_stand_between_beams(opened: Open, meter: str, measure: str, after: str) -> None:
    tune = opened(f"X:1\nM:{meter}\nL:1/8\nK:C\n{measure}|{measure}|{measure}|]\n")
    first, n_measures = tune.measures("2")
    start, stop = tune.bars.span(first, n_measures)
    notes = tune.score.notes
    inside = notes[(notes["onset_tick"] >= start) & (notes["onset_tick"] < stop)]
    assert tune.replaced(0, first, n_measures, inside).decode() == tune.text.replace(f"|{measure}|", f"|{after}|", 1)  # type: ignore[attr-defined]


def test_beams_of_a_pickup_are_those_of_its_whole_measure(opened: Open) -> None:
    tune = opened("X:1\nM:4/4\nL:1/8\nK:C\nABc|cdefgfed|c8|]\n")
    after = replaced(tune, "0", [(0, 3, 60), (3, 3, 62), (6, 3, 64)])
    assert after == tune.text.replace("ABc", "CDE")  # type: ignore[attr-defined]


@pytest.mark.parametrize("mark", ["!segno!", "!p!", "!D.S.!", "!D.C.alfine!", "!crescendo(!", "!<)!", "S"])
def test_navigation_and_dynamics_stay(opened: Open, mark: str) -> None:
    tune = opened(f"{HEAD}CDEF|{mark}GA{mark}!trill!Bc{mark}|c4|]\n")
    assert replaced(tune, "2", WHOLE) == f"{HEAD}CDEF|{mark}C2- {mark}C2{mark}|c4|]\n"


@pytest.mark.parametrize("line", ["$", "\\\n", "%see\n", "\n"])
def test_breaks_of_lines_stay(opened: Open, line: str) -> None:
    tune = opened(f"{HEAD}CDEF|GA{line}Bc|c4|]\n")
    assert replaced(tune, "2", [(0, 12, 60), (12, 12, 62)]) == f"{HEAD}CDEF|C2 {line}D2|c4|]\n"


# --- several tunes, and what else a file holds


TUNE = f"{HEAD}CDEF|GABc|]\n"


def test_an_empty_line_ends_a_tune(opened: Open) -> None:
    tail = "\nSome history of this tune, told by Q. | And more: CDEF|GABc|\n"
    assert replaced(opened(TUNE + tail), "2", WHOLE) == TUNE.replace("GABc", "C4") + tail
    assert "what stands after it is not read" in opened(f"{TUNE}\ncdef|gabc|]\n").remarks[-1]
    assert opened(f"{TUNE}\nNo music.\n\n{TUNE.replace('X:1', 'X:2')}", tune=1).remarks == ()
    windows = (TUNE + tail).replace("\n", "\r\n")
    assert replaced(opened(windows), "2", WHOLE) == windows.replace("GABc", "C4", 1)
    two = f"{TUNE}\nThe second of them:\n\n{TUNE.replace('X:1', 'X:2')}  \n{tail}"
    first, second = opened(two, tune=1), opened(two, tune=2)
    assert replaced(first, "2", WHOLE) == two.replace("GABc", "C4", 1)
    place = two.index("CDEF", two.index("X:2"))
    assert replaced(second, "1", WHOLE) == f"{two[:place]}C4{two[place + 4 :]}"


def test_a_number_that_two_tunes_have_is_refused(opened: Open) -> None:
    three = f"{TUNE}\n{TUNE}\n{TUNE.replace('X:1', 'X:2')}"
    with pytest.raises(InvalidInputError, match="2 tunes have the number 1; give each a number of its own"):
        opened(three, tune=1)
    assert replaced(opened(three, tune=2), "2", WHOLE).count("C4") == 1
    with pytest.raises(InvalidInputError, match="holds no tune 3; it holds 1, 1, 2"):
        opened(three, tune=3)
    with pytest.raises(InvalidInputError, match=r"holds 3 tunes \(1\.\.2\); choose one"):
        opened(three)


def test_the_head_of_a_file_holds_for_its_tunes(opened: Open) -> None:
    text = "%abc-2.1\nM:3/4\nL:1/8\nfree text\n\nX:1\nT:a\nK:C\nC2D2E2|G6|]\n\nX:2\nM:2/4\nL:1/4\nK:C\nCD|EF|]\n"
    one, two = opened(text, tune=1), opened(text, tune=2)
    assert replaced(one, "2", [(0, 6, 60), (6, 12, 62)]) == text.replace("G6", "C2 D4")
    assert replaced(two, "2", [(0, 6, 60), (6, 6, 62)]) == text.replace("EF", "C D")
    only = text[: text.index("X:2")]
    assert replaced(opened(only), "2", [(0, 18, 60)]) == only.replace("G6", "C6")


def test_a_tune_without_a_number_and_one_without_music(opened: Open) -> None:
    bare = TUNE.removeprefix("X:1\n")
    assert replaced(opened(bare), "2", WHOLE) == bare.replace("GABc", "C4")
    with pytest.raises(NoDataError):
        opened(f"{HEAD}\nCDEF|GABc|]\n")


# --- chords


@pytest.mark.parametrize(
    ("chord", "alone"), [("[F-A-]", "[FA]"), ("[F-A]", "[FA]"), ("[FA-]", "[FA]"), ("[F.-A-]-", "[FA]")]
)
def test_ties_within_a_chord_are_ties(opened: Open, chord: str, alone: str) -> None:
    """A tie that is left in the text would hold the first note of the gap, where it has the pitch of the chord."""
    tune = opened(f"{HEAD}CDE{chord}|[FA]GAB|c4|]\n")
    quarter = tune.bars.ticks_per_quarter
    held = {
        int(n["pitch"]): int(n["duration_tick"]) // quarter for n in tune.score.notes if n["onset_tick"] == 3 * quarter
    }
    assert held == {65: 1 + (chord != "[FA-]"), 69: 1 + (chord != "[F-A]")}
    assert replaced(tune, "2", [(0, 24, 65)]) == f"{HEAD}CDE{alone}|F4|c4|]\n"


def test_ornaments_and_slurs_within_a_chord_are_no_notes(opened: Open) -> None:
    tune = opened(f"{HEAD}CDE[(F!accent!A]|.[GB])GAB|c4|]\n")
    assert tune.score.notes["pitch"].tolist() == [60, 62, 64, 65, 69, 67, 71, 67, 69, 71, 72]
    assert tune.remarks == ()
    assert replaced(tune, "2", WHOLE) == f"{HEAD}CDE[(F!accent!A]|C4)|c4|]\n"
    assert replaced(tune, "1", WHOLE) == f"{HEAD}(C4|.[GB])GAB|c4|]\n"


@pytest.mark.parametrize("chord", ['["Am"FA]', "[FzA]", "[-FA]", "[F{g}A]"])
def test_what_else_stands_in_a_chord_is_refused(opened: Open, chord: str) -> None:
    with pytest.raises(UnreadableFileError, match=r"the chord .* is not read here; write what is no note"):
        opened(f"{HEAD}CDE{chord}|GABc|c4|]\n")


def test_lengths_and_keys_within_a_line_hold_from_there(opened: Open) -> None:
    inline = opened(f"{HEAD}CDEF|[L:1/8][K:D]C2D2E2F2|G8|]\n")
    lines = opened(f"{HEAD}CDEF|\nL:1/8\nK:D\nC2D2E2F2|G8|]\n")
    assert inline.score.notes.tolist() == lines.score.notes.tolist()
    assert inline.score.notes["pitch"].tolist()[4:] == [61, 62, 64, 66, 67]
    assert replaced(lines, "2", WHOLE).endswith("\nL:1/8\nK:D\n=C8|G8|]\n")
    assert replaced(inline, "2", WHOLE).endswith("CDEF|[L:1/8][K:D]=C8|G8|]\n")


@pytest.mark.parametrize("music", ["(0CDEF|", "C/0DEF|", "C//0DEF|", "[CE]/0DEF|", "[L:1/0]CDEF|", "L:1/0\nCDEF|"])
def test_a_length_that_is_divided_by_zero_is_refused(opened: Open, music: str) -> None:
    with pytest.raises(UnreadableFileError, match="cannot be edited safely"):
        opened(f"{HEAD}{music}GABc|\n")


def test_a_note_of_endless_length_is_refused_before_it_is_laid_out(opened: Open) -> None:
    with pytest.raises(FileTooLargeError):
        opened(f"{HEAD}C9999999999999DEF|GABc|\n")
