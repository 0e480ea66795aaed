"""Pieces are read in processes of their own, kept, and lost one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.datasets.making import chords, melody, quarter_tokens, score, write_abc

from music_evals.datasets import pieces
from music_evals.datasets.pieces import Reading, Source, mode_of, read_pieces
from music_evals.files import Store
from music_evals.symbolic.midi import write_midi


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


def test_voices() -> None:
    source = midi("chords", write_midi(chords(melody(1))))
    one, line = (next(read_pieces([source], Reading(voices=voices), workers=1)) for voices in ("one", "skyline"))
    assert one.left_out.startswith("PolyphonyError")
    assert not one.facts.error
    assert line.tunes[0].tokens.tolist() == quarter_tokens(melody(1)).tolist()


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
