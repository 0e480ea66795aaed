import zipfile

import numpy as np
import pytest

from music_evals.datasets.bach_corpus import chorale_paths, encoder_credit, read_chorale
from music_evals.errors import UnknownNameError

music21 = pytest.importorskip("music21", reason="the corpus comes with music21 (extra: symbolic)")


def page_of(name):
    """The notes as music21 reads them from the page, without MIDI: repeats written out, ties merged."""
    stream = music21.converter.parse(chorale_paths()[name], forceSource=True, storePickle=False).expandRepeats()
    parts = [part.stripTies().flatten().notes for part in stream.parts]
    return [
        sorted((float(note.offset), note.pitch.midi) for note in part if not note.duration.isGrace) for part in parts
    ]


def test_the_corpus_has_408_compressed_chorales():
    assert len(chorale_paths()) == 408


# With repeats, without, with a grace note, in 3/2, with two metres.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bwv269", "bwv10.7", "bwv299", "bwv36.4-2"])
def test_the_midi_route_agrees_with_the_page(name):
    chorale = read_chorale(name)
    tick = chorale.score.ticks_per_quarter
    for index, expected in enumerate(page_of(name)):
        voice = chorale.score.voice(index)
        found = zip((voice["onset_tick"] / tick).tolist(), voice["pitch"].tolist(), strict=True)
        assert [(round(onset, 4), pitch) for onset, pitch in found] == [(round(o, 4), p) for o, p in expected]


def test_facts_of_a_chorale_with_a_pickup_and_a_repeat():
    # BWV 269, Aus meines Herzens Grunde: G major, 3/4, upbeat of a quarter, 20 bars on the page, the Stollen twice.
    chorale = read_chorale("bwv269")
    assert chorale.score.voices == ("Soprano", "Alto", "Tenor", "Bass")
    assert (chorale.key_fifths, chorale.mode, chorale.time_signature, chorale.pickup_quarters) == (1, "major", "3/4", 1)
    assert chorale.time_signatures == {"3/4"}
    assert [bar.offset_quarters for bar in chorale.measures[:3]] == [0, 1, 4]
    # Both times the repeated strain ends with a bar of two quarters, which the upbeat completes.
    assert [bar.notated_quarters for bar in chorale.measures if not bar.is_full][:3] == [1, 2, 1]
    assert chorale.score.voice(0)["pitch"][:5].tolist() == [67, 67, 74, 71, 69]


def test_a_minor_chorale_without_a_pickup():
    # BWV 10.7, Magnificat, German tone: two flats, G minor, starts on a full bar.
    chorale = read_chorale("bwv10.7")
    assert (chorale.key_fifths, chorale.mode, chorale.time_signature, chorale.pickup_quarters) == (
        -2,
        "minor",
        "4/4",
        0,
    )


def test_voices_are_monophonic_in_the_source():
    voice = read_chorale("bwv299").score.voice(0)
    ends = voice["onset_tick"] + voice["duration_tick"]
    assert (ends[:-1] <= voice["onset_tick"][1:]).all()
    assert (np.diff(voice["onset_tick"]) > 0).all()


def test_an_unknown_chorale_names_the_nearest():
    with pytest.raises(UnknownNameError, match="bwv269"):
        read_chorale("bwv26.9")


@pytest.mark.parametrize(
    ("body", "credit"),
    [
        ("<credit-words size='8'>PDF © 2004 A. Name\nexample.org</credit-words>", "PDF © 2004 A. Name example.org"),
        (
            "<rights>Copyright A. Name</rights><credit-words>by permission</credit-words>",
            "Copyright A. Name; by permission",
        ),
        ("<credit-words>Chorale 1</credit-words>", ""),
        ("", ""),
    ],
)
def test_credits_are_the_lines_that_speak_of_rights(tmp_path, body, credit):
    path = tmp_path / "x.mxl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/container.xml", "<rights>not this</rights>")
        archive.writestr("x.xml", f"<score-partwise>{body}</score-partwise>")
    assert encoder_credit(path) == credit
