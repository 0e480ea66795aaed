"""Pieces are read in processes of their own, kept, and lost one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.datasets.making import chords, melody, quarter_tokens, score, write_abc

from music_evals.annotations import DRUMS, Score, TimeSignature
from music_evals.datasets import pieces
from music_evals.datasets.pieces import VOICES, Reading, Source, Voices, mode_of, read_pieces
from music_evals.files import Store
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes


def midi(name: str, content: bytes) -> Source:
    return Source(name, "book", ".mid", content)


GOOD = midi("good", write_midi(score(melody(1))))


def test_a_broken_piece_costs_itself_alone(tmp_path: Path) -> None:
    missing = Source("missing", "book", ".mid", tmp_path / "nowhere.mid")
    broken, empty, good = read_pieces([midi("broken", b"no MIDI"), missing, GOOD], Reading(), workers=1)
    assert broken.facts.error.startswith("UnreadableFileError")
    assert broken.left_out == broken.facts.error
    assert empty.facts.error.startswith("NoDataError")
    assert good.tunes[0].tokens.tolist() == quarter_tokens(melody(1)).tolist()
    assert (good.tunes[0].name, good.tunes[0].collection, good.facts.n_measures) == ("good", "book", 20)


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    [first] = read_pieces([GOOD], Reading(), store=store, workers=1)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(pieces, "ReaderProcess", never)
    done: list[tuple[int, int]] = []
    [again] = read_pieces([GOOD], Reading(), store=store, workers=1, progress=lambda *counts: done.append(counts))
    assert again.facts == first.facts
    assert again.tunes[0].tokens.tolist() == first.tunes[0].tokens.tolist()
    assert done == [(1, 1)]
    with pytest.raises(AssertionError, match="started"):  # another way to read is another entry
        list(read_pieces([GOOD], Reading(measures="fixed"), store=store, workers=1))


@pytest.mark.slow
def test_voices() -> None:
    source = midi("chords", write_midi(chords(melody(1))))
    one, line = (next(read_pieces([source], Reading(voices=voices), workers=1)) for voices in ("one", "skyline"))
    assert one.left_out.startswith("PolyphonyError")
    assert not one.facts.error
    assert line.tunes[0].tokens.tolist() == quarter_tokens(melody(1)).tolist()


def with_kit(*lines: tuple[str, list[int]]) -> Score:
    """Return voices of a name and a pitch a quarter each, and a kit that plays on for a measure more."""
    kit = [42] * (len(lines[0][1]) + 4 if lines else 64)
    voices = [*(pitches for _, pitches in lines), kit]
    onsets = [480 * place for pitches in voices for place in range(len(pitches))]
    index = [number for number, pitches in enumerate(voices) for _ in pitches]
    notes = make_notes(onsets, [480] * len(onsets), [pitch for pitches in voices for pitch in pitches], voice=index)
    names, programs = (*(name for name, _ in lines), "Kit"), (*(0 for _ in lines), DRUMS)
    return Score(notes, 480, (TimeSignature(0, 4, 4),), voices=names, programs=programs)


@pytest.mark.parametrize("voices", VOICES)
def test_drums_are_no_voice(voices: Voices) -> None:
    songs = {"song": with_kit(("Lead", melody(1, 16))), "kit": with_kit()}
    sources = [midi(name, write_midi(song)) for name, song in songs.items()]
    song, kit = read_pieces(sources, Reading(voices=voices), workers=1)
    assert [tune.tokens.tolist() for tune in song.tunes] == [quarter_tokens(melody(1, 16)).tolist()]
    assert kit.left_out == "NoDataError: drums alone have notes; a melody needs another voice"


@pytest.mark.slow
def test_of_several_voices_and_drums_each_voice_is_a_tune() -> None:
    source = midi("song", write_midi(with_kit(("Lead", melody(1, 16)), ("Bass", melody(2, 16)))))
    one, each = (next(read_pieces([source], Reading(voices=voices), workers=1)) for voices in ("one", "each"))
    assert one.left_out.startswith("PolyphonyError")
    assert [tune.voice for tune in each.tunes] == ["Lead", "Bass"]
    assert [tune.n_measures for tune in each.tunes] == [16, 16]


@pytest.mark.slow
def test_abc_gives_title_and_mode(tmp_path: Path) -> None:
    write_abc(tmp_path / "a.abc", [(1, "First", melody(1, 16))])
    text = (tmp_path / "a.abc").read_text().replace("K:C", "K:Ddor")
    lost = text.replace("|]", ":|1 C4|2 D4|3 E4|:|")  # repeats that lead nowhere
    tune, other = read_pieces(
        [Source(name, "book", ".abc", content.encode()) for name, content in (("a", text), ("b", lost))],
        Reading(),
        workers=1,
    )
    assert (tune.tunes[0].title, tune.tunes[0].mode, tune.tunes[0].key_fifths) == ("First", "dorian", 0)
    assert tune.tunes[0].tokens.tolist() == quarter_tokens(melody(1, 16)).tolist()
    assert not tune.as_written
    assert other.as_written
    assert other.tunes


@pytest.mark.parametrize(
    ("field", "mode"),
    [
        ("G", "major"),
        ("Gm", "minor"),
        ("F#m", "minor"),
        ("E Minor", "minor"),
        ("Amix", "mixolydian"),
        ("A Mixolydian", "mixolydian"),
        ("Bbmaj", "major"),
        ("Ador", "dorian"),
        ("HP", ""),
        ("none", ""),
    ],
)
def test_modes(field: str, mode: str) -> None:
    assert mode_of(f"X:1\nK:{field}\nABc|") == mode
