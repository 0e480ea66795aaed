"""Pairs to try the preservation page with: a tune and edits of it, written here and rendered when the page is built.

The tune is the theme of the last movement of Beethoven's ninth symphony (1824), harmonised for this purpose.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from music_evals.annotations import DRUMS, NOTE_DTYPE, Score, Tempo, TimeSignature

TICKS: Final = 4  # in a quarter
TUNE: Final = (
    "64 64 65 67 67 65 64 62 60 60 62 64 64. 62- 62=",
    "64 64 65 67 67 65 64 62 60 60 62 64 62. 60- 60=",
    "62 62 64 60 62 64- 65- 64 60 62 64- 65- 64 62 60 62 55=",
    "64 64 65 67 67 65 64 62 60 60 62 64 62. 60- 60=",
)
"""Four phrases of four measures in C: MIDI pitches, ``.`` a quarter and a half, ``-`` an eighth, ``=`` a half."""
LENGTHS: Final = {".": 6, "-": 2, "=": 8}
CHORDS: Final = ("C C G C C G C G", "C C G C C G G C", "G C G C G C D G", "C C G C C G G C")  # two chords a measure
ROOTS: Final = {"C": (48, (0, 4, 7)), "G": (43, (0, 4, 7)), "D": (50, (0, 4, 7)), "A": (45, (0, 3, 7)),
                "F": (41, (0, 4, 7)), "E": (40, (0, 3, 7))}  # fmt: skip
MINOR: Final = {"C": "A", "G": "E", "D": "F"}  # other chords on the same melody, for the reharmonised edit
MEASURE, PHRASE = 4 * TICKS, 16 * TICKS
KICK, SNARE, HAT = 36, 38, 42


@dataclasses.dataclass(frozen=True)
class Piece:
    """How the tune is played."""

    bpm: float = 120.0  # quarters a minute
    transpose: int = 0  # semitones
    programs: tuple[int, int, int] = (73, 0, 33)  # general MIDI programs of melody, chords and bass
    reharmonised: bool = False  # the second half over other chords
    altered: bool = False  # the third phrase of the melody backwards


class Example(NamedTuple):
    """A pair of files."""

    title: str
    original: str
    edit: str


EDITS: Final = {
    "a fifth higher, 4 BPM slower": ("fifth_up_slower", Piece(bpm=116.0, transpose=7)),
    "other instruments": ("other_instruments", Piece(programs=(71, 24, 32))),
    "other chords in the second half": ("other_chords", Piece(reharmonised=True)),
}
"""Title -> stem of the file, and how the edit is played."""


def score_of(piece: Piece) -> Score:
    """Return the notes of a piece: 16 measures of melody, chords, bass and drums."""
    rows: list[tuple[int, int, int, int, int]] = []
    for index, (phrase, chords) in enumerate(zip(TUNE, CHORDS, strict=True)):
        start = onset = index * PHRASE
        tune = phrase.split()
        for word in tune[::-1] if piece.altered and index == 2 else tune:
            length = LENGTHS.get(word[-1], TICKS)
            rows.append((onset, length, int(word.rstrip(".-=")) + 12 + piece.transpose, 100, 0))
            onset += length
        # chords, bass and drums of each half measure
        for half, name in enumerate(chords.split()):
            at = start + half * MEASURE // 2
            root, steps = ROOTS[MINOR[name] if piece.reharmonised and index >= 2 else name]
            rows += [(at, MEASURE // 2, root + 12 + step + piece.transpose, 70, 1) for step in steps]
            rows.append((at, MEASURE // 2, root - 12 + piece.transpose, 90, 2))
            rows += [(at, TICKS, KICK, 100, 3), (at + TICKS, TICKS, SNARE, 90, 3)]
            rows += [(at + step, 2, HAT, 70, 3) for step in range(0, MEASURE // 2, 2)]
    rows.sort(key=lambda row: (row[0], row[4], row[2]))
    return Score(
        np.array(rows, dtype=NOTE_DTYPE),
        TICKS,
        time_signatures=(TimeSignature(0, 4, 4),),
        tempos=(Tempo(0, piece.bpm),),
        voices=("melody", "chords", "bass", "drums"),
        programs=(*piece.programs, DRUMS),
    )


def write_examples(folder: Path) -> list[Example]:
    """Write recordings (FLAC, 22,050 Hz) and scores (MIDI) into a folder; return the pairs."""
    import soundfile

    from music_evals.audio.rendering import SAMPLE_RATE, render_additive
    from music_evals.symbolic.midi import save_midi

    def record(name: str, samples: np.ndarray) -> str:
        path = folder / f"{name}.flac"
        soundfile.write(path, samples, SAMPLE_RATE, subtype="PCM_16")
        return str(path)

    played = render_additive(score_of(Piece()))
    original = record("original", played)
    examples = [
        Example(f"Recordings: {title}", original, record(name, render_additive(score_of(piece))))
        for title, (name, piece) in EDITS.items()
    ]
    examples.append(Example("Recordings: a silent edit", original, record("silent", np.zeros_like(played))))
    scores = {"original": Piece(), "melody_altered": Piece(altered=True)}
    paths = [str(save_midi(score_of(piece), folder / f"{name}.mid")) for name, piece in scores.items()]
    return [*examples, Example("Scores: the third phrase backwards", *paths)]
