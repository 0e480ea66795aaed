import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from music_evals.annotations import KeySignature, Tempo, TimeSignature
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    UnreadableFileError,
)
from music_evals.symbolic.contexts import tokens_from_score
from music_evals.symbolic.limits import Limits
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.midi import read_midi, write_midi
from music_evals.symbolic.notation import (
    TICKS_PER_QUARTER,
    abc_fields,
    abc_tunes,
    from_abc,
    from_music21,
    read_abc,
    read_musicxml,
    split_abc,
)

SPEC = find_spec("music21")
needs_music21 = pytest.mark.skipif(SPEC is None, reason="needs the extra symbolic (music21)")
CORPUS = Path(SPEC.origin).parent / "corpus" if SPEC is not None and SPEC.origin else Path()


def note(step, octave, divisions, *inside, tie=()):
    ties = "".join(f'<tie type="{kind}"/>' for kind in tie)
    return (
        f"<note>{''.join(inside)}<pitch><step>{step}</step><octave>{octave}</octave></pitch>"
        f"<duration>{divisions}</duration>{ties}</note>"
    )


def measure(number, *content, attributes="", repeat=""):
    sign = f'<barline location="right"><repeat direction="{repeat}"/></barline>' if repeat else ""
    head = f"<attributes>{attributes}</attributes>" if attributes else ""
    return f'<measure number="{number}">{head}{"".join(content)}{sign}</measure>'


def document(*parts):
    names = "".join(f'<score-part id="P{i}"><part-name>Part {i}</part-name></score-part>' for i in range(len(parts)))
    bodies = "".join(f'<part id="P{i}">{"".join(measures)}</part>' for i, measures in enumerate(parts))
    return f'<score-partwise version="4.0"><part-list>{names}</part-list>{bodies}</score-partwise>'


def meter(beats, kind, extra=""):
    return f"<divisions>2</divisions>{extra}<time><beats>{beats}</beats><beat-type>{kind}</beat-type></time>"


@pytest.fixture
def read_xml(tmp_path):
    def read(text, **options):
        path = tmp_path / "piece.musicxml"
        path.write_text(text, encoding="utf-8")
        return read_musicxml(path, **options)

    return read


def quarters(score):
    """Onset and duration in quarters, and pitch, of every note."""
    return [
        (onset / TICKS_PER_QUARTER, duration / TICKS_PER_QUARTER, pitch)
        for onset, duration, pitch, _, _ in score.notes.tolist()
    ]


class TestMusicXml:
    def test_ties_are_merged_or_not(self, read_xml):
        text = document(
            [
                measure(1, note("C", 4, 4), note("D", 4, 4, tie=("start",)), attributes=meter(4, 4)),
                measure(2, note("D", 4, 2, tie=("stop",)), note("D", 4, 6)),
            ]
        )
        assert quarters(read_xml(text)) == [(0, 2, 60), (2, 3, 62), (5, 3, 62)]
        assert quarters(read_xml(text, merge_ties=False)) == [(0, 2, 60), (2, 2, 62), (4, 1, 62), (5, 3, 62)]

    def test_a_pickup_stays_one(self, read_xml):
        score = read_xml(
            document(
                [
                    measure(0, note("G", 4, 2), attributes=meter(3, 4, "<key><fifths>1</fifths></key>")),
                    measure(1, note("C", 5, 6)),
                    measure(2, note("C", 5, 6)),
                ]
            )
        )
        bars = meter_map(score)
        assert (bars.starts / TICKS_PER_QUARTER).tolist() == [0, 1, 4, 7]
        assert bars.pickup_ticks == TICKS_PER_QUARTER
        assert score.time_signatures == (TimeSignature(0, 3, 4), TimeSignature(TICKS_PER_QUARTER, 3, 4))
        assert score.key_signatures == (KeySignature(0, 1),)
        assert meter_map(read_midi(write_midi(score))).starts.tolist() == bars.starts.tolist()

    def test_a_bar_that_a_repeat_sign_splits_is_one(self, read_xml):
        split = [
            measure(0, note("G", 4, 2), attributes=meter(3, 4)),
            measure(1, note("C", 5, 4), repeat="backward"),
            measure(2, note("E", 4, 2)),
            measure(3, note("F", 4, 6)),
        ]
        written = read_xml(document(split), expand_repeats=False)
        assert (meter_map(written).starts / TICKS_PER_QUARTER).tolist() == [0, 1, 4, 7]
        played = read_xml(document(split))
        assert [pitch for _, _, pitch in quarters(played)] == [67, 72, 67, 72, 64, 65]
        assert (meter_map(played).starts / TICKS_PER_QUARTER).tolist() == [0, 1, 4, 7, 10]

    def test_meter_change_and_tempo(self, read_xml):
        tempo = '<direction><sound tempo="90"/></direction>'
        score = read_xml(
            document(
                [
                    measure(1, tempo, note("C", 4, 8), attributes=meter(4, 4)),
                    measure(2, note("C", 4, 6), attributes=meter(6, 8)),
                ]
            )
        )
        assert score.time_signatures == (TimeSignature(0, 4, 4), TimeSignature(4 * TICKS_PER_QUARTER, 6, 8))
        assert score.tempos == (Tempo(0, 90.0),)

    def test_chords_voices_and_grace_notes(self, read_xml):
        score = read_xml(
            document(
                [
                    measure(
                        1,
                        "<note><grace/><pitch><step>B</step><octave>3</octave></pitch></note>",
                        note("C", 4, 4),
                        note("E", 4, 4, "<chord/>"),
                        "<backup><duration>4</duration></backup>",
                        note("C", 3, 4),
                        attributes=meter(2, 4),
                    )
                ],
                [measure(1, note("C", 2, 4), attributes=meter(2, 4))],
            )
        )
        assert [(pitch, voice) for _, _, pitch, _, voice in score.notes.tolist()] == [
            (48, 0),
            (60, 0),
            (64, 0),
            (36, 1),
        ]
        assert score.voices == ("Part 0", "Part 1")

    def test_instruments_sound_at_their_pitch(self, read_xml):
        clarinet = "<transpose><diatonic>-1</diatonic><chromatic>-2</chromatic></transpose>"
        assert (
            quarters(read_xml(document([measure(1, note("C", 5, 2), attributes=meter(1, 4) + clarinet)])))[0][2] == 70
        )

    def test_triplets_are_exact(self, read_xml):
        divisions = meter(1, 4).replace("<divisions>2", "<divisions>3")
        score = read_xml(document([measure(1, *[note("C", 4, 1)] * 3, attributes=divisions)]))
        assert score.notes["onset_tick"].tolist() == [0, 3360, 6720]

    @needs_music21
    def test_the_stream_is_not_changed(self):
        from music21 import note as m21_note
        from music21 import stream

        part = stream.Part([m21_note.Note("C4"), m21_note.Note("D4", quarterLength=0.5)])
        before = [(element.offset, element.quarterLength) for element in part]
        assert quarters(from_music21(part)) == [(0, 1, 60), (1, 0.5, 62)]
        assert [(element.offset, element.quarterLength) for element in part] == before


def mxl(entries, compression=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return content.getvalue()


def container(target="score.xml"):
    return f'<container><rootfiles><rootfile full-path="{target}"/></rootfiles></container>'


PIECE = document([measure(1, note("C", 4, 8), attributes=meter(4, 4))])
BOMB = "<!DOCTYPE a [<!ENTITY a 'lol'><!ENTITY b '&a;&a;&a;&a;'>]><score-partwise>&b;</score-partwise>"

CORRUPTED = {
    "empty": (b"", UnreadableFileError),
    "text": (b"To be, or not to be", UnreadableFileError),
    "other xml": (b"<html><body/></html>", UnreadableFileError),
    "truncated": (PIECE[:-40].encode(), UnreadableFileError),
    "note without a name": (PIECE.replace("<step>C", "<step>H").encode(), UnreadableFileError),
    "duration that is no number": (PIECE.replace("<duration>8", "<duration>x").encode(), UnreadableFileError),
    "meter 0/4": (PIECE.replace("<beats>4", "<beats>0").encode(), UnreadableFileError),
    "octave 99": (PIECE.replace("<octave>4", "<octave>99").encode(), UnreadableFileError),
    "entities": (BOMB.encode(), UnreadableFileError),
    "entities in UTF-16": (BOMB.encode("utf-16"), UnreadableFileError),
    "no archive": (b"PK\x03\x04" + bytes(50), UnreadableFileError),
    "truncated archive": (mxl({"META-INF/container.xml": container(), "score.xml": PIECE})[:-30], UnreadableFileError),
    "archive without a container": (mxl({"score.xml": PIECE}), UnreadableFileError),
    "container that names no score": (mxl({"META-INF/container.xml": "<container/>"}), UnreadableFileError),
    "container that names a missing score": (mxl({"META-INF/container.xml": container()}), UnreadableFileError),
    "container that is no xml": (mxl({"META-INF/container.xml": "text"}), UnreadableFileError),
    "path out of the archive": (
        mxl({"META-INF/container.xml": container("../a.xml"), "../a.xml": PIECE}),
        UnreadableFileError,
    ),
    "unusual packing": (
        mxl({"META-INF/container.xml": container(), "score.xml": PIECE}, zipfile.ZIP_BZIP2),
        UnreadableFileError,
    ),
    "thousands of entries": (mxl({f"{index}": "" for index in range(1500)}), UnreadableFileError),
    "zip bomb": (mxl({"META-INF/container.xml": container(), "score.xml": b"\0" * (20 * 2**20)}), FileTooLargeError),
    "ages long": (PIECE.replace("<duration>8", "<duration>99999999").encode(), FileTooLargeError),
}


class TestCorrupted:
    @pytest.mark.parametrize("name", CORRUPTED)
    def test_named_error_with_file_and_reason(self, name, tmp_path):
        content, kind = CORRUPTED[name]
        path = tmp_path / "broken.mxl"
        path.write_bytes(content)
        with pytest.raises(kind, match=r"broken\.mxl.*: \w+") as caught:
            read_musicxml(path)
        assert type(caught.value) is kind

    def test_a_size_that_lies(self, tmp_path):
        # the table of contents says 10 bytes; zipfile then reads no more than that, and the checksum is wrong
        content = mxl({"META-INF/container.xml": container(), "score.xml": "x" * 1000})
        path = tmp_path / "broken.mxl"
        path.write_bytes(content.replace((1000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
        with pytest.raises(UnreadableFileError):
            read_musicxml(path)

    def test_missing_file(self, tmp_path):
        with pytest.raises(NoDataError):
            read_musicxml(tmp_path / "none.mxl")

    def test_bounds(self, read_xml):
        for limits in (Limits(max_bytes=100), Limits(max_notes=1), Limits(max_quarters=3)):
            text = document([measure(1, note("C", 4, 4), note("C", 4, 4), attributes=meter(4, 4))])
            with pytest.raises(FileTooLargeError, match="Limits"):
                read_xml(text, limits=limits)

    def test_repeats_that_lead_nowhere(self, read_xml):
        forward = '<barline location="left"><repeat direction="forward"/></barline>'
        text = document(
            [
                measure(1, forward, note("C", 4, 8), attributes=meter(4, 4)),
                measure(2, forward, note("D", 4, 8)),
                measure(3, note("E", 4, 8), repeat="backward"),
            ]
        )
        with pytest.raises(UnreadableFileError, match="expand_repeats=False"):
            read_xml(text)
        assert [pitch for _, _, pitch in quarters(read_xml(text, expand_repeats=False))] == [60, 62, 64]

    def test_only_streams_need_music21(self, read_xml, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "music21.exceptions21", None)
        assert quarters(read_xml(PIECE)) == [(0, 4, 60)]
        with pytest.raises(MissingBackendError, match=r"\.\[symbolic\]"):
            from_music21(None)


TUNES = """X:1
T:First
M:4/4
L:1/4
Q:1/4=100
K:D
D|d2 f2|a2-a2|f3:|
D|d4|f4|a3|]

X:7
T:Second
M:6/8
L:1/8
K:Am
ABc cBA|A3 z3|]
"""


class TestAbc:
    @pytest.fixture
    def tunes(self, tmp_path):
        path = tmp_path / "tunes.abc"
        path.write_text(TUNES)
        return path

    def test_one_tune_of_several(self, tunes):
        assert abc_tunes(tunes) == (1, 7)
        score = read_abc(tunes, tune=7)
        assert quarters(score) == [
            (0, 0.5, 69),
            (0.5, 0.5, 71),
            (1, 0.5, 72),
            (1.5, 0.5, 72),
            (2, 0.5, 71),
            (2.5, 0.5, 69),
            (3, 1.5, 69),
        ]
        assert score.time_signatures == (TimeSignature(0, 6, 8),)
        assert score.key_signatures == (KeySignature(0, 0, minor=True),)
        with pytest.raises(InvalidInputError, match=r"2 tunes \(1..7\).*tune="):
            read_abc(tunes)
        with pytest.raises(InvalidInputError, match="no tune 3; it holds 1, 7"):
            read_abc(tunes, tune=3)

    def test_pickup_tie_repeat_key_and_tempo(self, tunes):
        score = read_abc(tunes, tune=1)
        # the first line twice, f sharp and c sharp by the key, the tied a as one note
        line = [(1, 62), (2, 74), (2, 78), (4, 81), (3, 78)]
        assert [(duration, pitch) for _, duration, pitch in quarters(score)] == [
            *line, *line, (1, 62), (4, 74), (4, 78), (3, 81),
        ]  # fmt: skip
        assert meter_map(score).pickup_ticks == TICKS_PER_QUARTER
        assert score.tempos == (Tempo(0, 100.0),)
        assert len(read_abc(tunes, tune=1, expand_repeats=False).notes) == 9

    def test_latin_1(self, tmp_path):
        path = tmp_path / "tune.abc"
        path.write_bytes("X:1\nT:Façade\nM:4/4\nL:1/4\nK:C\nCDEF|]\n".encode("latin-1"))
        assert read_abc(path).notes["pitch"].tolist() == [60, 62, 64, 65]

    @pytest.mark.parametrize("text", ["", "To be, or not to be", "X:1\nM:4/4\nL:x/y\nK:C\nCDEF|\n", "MThd\0\0\0\6"])
    def test_corrupted(self, text, tmp_path):
        path = tmp_path / "broken.abc"
        path.write_text(text)
        with pytest.raises(UnreadableFileError, match=r"broken\.abc"):
            read_abc(path)


@pytest.mark.skipif(not (CORPUS / "bach").is_dir(), reason="this music21 comes without its corpus")
class TestCorpus:
    # parts, notated bars with repeats played out, pickup in quarters: counted in the scores
    @pytest.mark.parametrize(
        ("name", "n_voices", "n_measures", "pickup"), [("bwv66.6", 4, 10, 1), ("bwv846", 2, 34, 0)]
    )
    def test_bach(self, name, n_voices, n_measures, pickup):
        score = read_musicxml(CORPUS / "bach" / f"{name}.mxl")
        bars = meter_map(score)
        assert (len(score.voices), bars.n_measures, bars.pickup_ticks / TICKS_PER_QUARTER) == (
            n_voices,
            n_measures,
            pickup,
        )
        again = read_midi(write_midi(score))
        assert np.array_equal(again.notes, score.notes)
        assert (again.time_signatures, again.key_signatures) == (score.time_signatures, score.key_signatures)

    def test_our_notes_are_those_of_music21s_own_export(self, tmp_path):
        from music21 import converter

        source = CORPUS / "bach" / "bwv66.6.mxl"
        exported = read_midi(Path(converter.parse(source, forceSource=True).write("midi", tmp_path / "a.mid")))
        score = read_musicxml(source)
        assert exported.ticks_per_quarter == score.ticks_per_quarter
        for field in ("onset_tick", "duration_tick", "pitch", "voice"):
            assert np.array_equal(exported.notes[field], score.notes[field])

    def test_a_chorale_as_tokens(self):
        soprano = tokens_from_score(read_musicxml(CORPUS / "bach" / "bwv66.6.mxl"), 24, voice="Soprano")
        # two eighths c#'' b', then quarters a' b' c#'': the first bar of the score
        assert [(step, int(token)) for step, token in enumerate(soprano) if token < 128] == [
            (0, 73), (3, 71), (6, 69), (12, 71), (18, 73),
        ]  # fmt: skip

    def test_an_air(self):
        path = CORPUS / "airdsAirs" / "book1.abc"
        assert len(abc_tunes(path)) == 200
        score = read_abc(path, tune=1)
        assert score.notes["pitch"][:6].tolist() == [69, 67, 71, 71, 71, 69]  # AG|B2B2 B2AG
        assert tokens_from_score(score, 384).shape == (384,)


BOOK = (
    "% A book\n\nX:1\nT:One\nT:Another Name\nM:C|\nL:1/4\nK:G\nGABc|dedB|]\n"
    "\nX:1\nT:Two % of two\nM:4/4\nL:1/4\nK:Dm\n[M:2/4]DE|FG|]\n"
)


def test_a_book_is_split_into_tunes_that_read_alone(tmp_path):
    (tmp_path / "book.abc").write_text(BOOK)
    first, second = split_abc(tmp_path / "book.abc")  # two tunes of one number, which `read_abc` cannot tell apart
    assert from_abc(first).notes["pitch"].tolist() == [67, 69, 71, 72, 74, 76, 74, 71]
    assert from_abc(second).notes["pitch"].tolist() == [62, 64, 65, 67]
    (tmp_path / "one.abc").write_text("T:No number\nM:4/4\nL:1/4\nK:C\nCDEF|\n")
    assert len(split_abc(tmp_path / "one.abc")) == 1


def test_fields_of_header_and_body(tmp_path):
    (tmp_path / "book.abc").write_text(BOOK)
    first, second = split_abc(tmp_path / "book.abc")
    assert abc_fields(first, "T") == ("One", "Another Name")
    assert abc_fields(second, "T") == ("Two",)
    assert abc_fields(second, "M") == ("4/4", "2/4")
    assert abc_fields(first, "Z") == ()


def test_text_that_is_no_abc_is_named():
    with pytest.raises(UnreadableFileError, match="tune 7: not an ABC file"):
        from_abc("GABc|", name="tune 7")
    with pytest.raises(FileTooLargeError):
        from_abc(BOOK, limits=Limits(max_bytes=10))


@needs_music21
def test_musicxml_may_be_given_as_bytes(tmp_path):
    from music21.musicxml.m21ToXml import GeneralObjectExporter
    from music21.note import Note
    from music21.stream import Stream

    content = GeneralObjectExporter(Stream([Note("C4"), Note("E4")])).parse()
    (tmp_path / "a.musicxml").write_bytes(content)
    assert read_musicxml(content).notes.tolist() == read_musicxml(tmp_path / "a.musicxml").notes.tolist()
    with pytest.raises(UnreadableFileError, match="MusicXML bytes"):
        read_musicxml(b"<score/>")


@pytest.mark.parametrize(
    "text",
    [
        'V:S name="Soprano"\nV:B clef=bass\nK:C\nV:S\nc2d2|\nV:B\nC4|\nV:S\ne4|\nV:B\nD4|\n',
        "V:B\nK:C\nV:S nm=Soprano\nc2d2|e4|\nV:B\nC4|D4|\n",
        'V:S name="Soprano"\nK:C\n[V:S] c2d2|\n[V:B] C4|\n[V:S] e4|\n[V:B] D4|\n',
        'V:S name="Soprano"\nK:C\n[V:S]c2d2|[V:B]C4|[V:S]e4|[V:B]D4|\n',
    ],
    ids=["named", "declared in another order", "line by line", "within a line"],
)
def test_voices_of_abc_sound_together_however_they_are_written(text):
    score = from_abc("X:1\nM:4/4\nL:1/4\n" + text)
    assert score.voices == ("Soprano", "B")
    quarters = score.notes["onset_tick"] // score.ticks_per_quarter
    assert quarters.tolist() == [0, 0, 2, 4, 4]
    assert score.notes["pitch"].tolist() == [72, 60, 74, 76, 62]
    assert score.notes["voice"].tolist() == [0, 1, 0, 0, 1]
