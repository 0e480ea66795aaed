"""Where the melody of the inpainting page comes from, other than the visitor's hand: examples and uploaded files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, Score
from music_evals.errors import FileTooLargeError, NoDataError, PolyphonyError, UnknownNameError
from music_evals.symbolic.contexts import STEPS_PER_QUARTER, pick_voice, quantize_voice
from music_evals.symbolic.notes import make_notes, rescale_tick
from music_evals.symbolic.noteseq import encode
from music_evals.ui.uploads import load_score
from music_evals.ui.widgets.roll_editor import Melody

MAX_VOICES = 64  # a full orchestra has about forty

_LETTERS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}

# A note is a letter, # where it is sharp, its octave and its length in quarters; r is a rest.
_ODE = (
    "E4:1 E4:1 F4:1 G4:1 G4:1 F4:1 E4:1 D4:1 C4:1 C4:1 D4:1 E4:1 E4:1.5 D4:.5 D4:2 "
    "E4:1 E4:1 F4:1 G4:1 G4:1 F4:1 E4:1 D4:1 C4:1 C4:1 D4:1 E4:1 D4:1.5 C4:.5 C4:2 "
    "D4:1 D4:1 E4:1 C4:1 D4:1 E4:.5 F4:.5 E4:1 C4:1 D4:1 E4:.5 F4:.5 E4:1 D4:1 C4:1 D4:1 G3:2 "
    "E4:1 E4:1 F4:1 G4:1 G4:1 F4:1 E4:1 D4:1 C4:1 C4:1 D4:1 E4:1 D4:1.5 C4:.5 C4:2"
)
_WALK = (
    "D4:1 F4:1 A4:1 G4:.5 F4:.5 E4:1 G4:1 C5:2 A4:1 A4:.5 G4:.5 F4:1 D4:1 E4:3 r:1 "
    "D4:1 F4:1 A4:1 D5:1 C5:1 A#4:.5 A4:.5 G4:2 F4:.5 G4:.5 A4:1 E4:1 C#4:1 D4:3 r:1 "
    "F4:1.5 G4:.5 A4:1 C5:1 A#4:1.5 A4:.5 G4:2 E4:1.5 F4:.5 G4:1 A#4:1 A4:3 r:1 "
    "D4:1 F4:1 A4:1 D5:1 C5:1 A#4:.5 A4:.5 G4:2 F4:.5 E4:.5 D4:1 E4:1 C#4:1 D4:4"
)

EXAMPLES: Final[Mapping[str, str]] = {
    "Ode to Joy": _ODE,  # Beethoven, op. 125 (1824): public domain
    "A walk in D minor": _WALK,  # written for this page
}
"""Melodies of sixteen measures that ship with the page, as text for `_spelled`."""


HIGHEST: Final = "the highest notes of all voices"  # label of what is a melody whatever the file holds


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """An uploaded file, of which one voice is taken at a time."""

    name: str  # of the file, without its folder
    score: Score  # what it holds
    voices: Mapping[str, int | None]  # label -> number of each voice that has notes; None for `HIGHEST`

    @property
    def n_measures(self) -> int:
        """Measures of the longest voice, at least 1."""
        steps = int(rescale_tick(self.score.end_tick, self.score.ticks_per_quarter, STEPS_PER_QUARTER))
        return max(-(-steps // MUSIB_LAYOUT.steps_per_measure), 1)

    @property
    def last_start(self) -> int:
        """The last measure, from 1, at which sixteen measures may start."""
        return max(self.n_measures - MUSIB_LAYOUT.n_measures, 0) + 1

    def cut(self, voice: str, first_measure: int) -> Melody:
        """Return sixteen measures of a voice; what lies beyond the end of the piece is rest."""
        if voice not in self.voices:
            raise UnknownNameError("voice", voice, self.voices)
        first = min(max(first_measure, 1), self.last_start)
        start = (first - 1) * MUSIB_LAYOUT.steps_per_measure
        stop = start + MUSIB_LAYOUT.n_steps
        ticks_per_quarter = self.score.ticks_per_quarter
        notes = pick_voice(self.score, self.voices[voice], highest=self.voices[voice] is None)
        begins = notes["onset_tick"] * STEPS_PER_QUARTER < stop * ticks_per_quarter
        lasts = (notes["onset_tick"] + notes["duration_tick"]) * STEPS_PER_QUARTER > start * ticks_per_quarter
        quantized = quantize_voice(notes[begins & lasts], ticks_per_quarter, STEPS_PER_QUARTER)
        return Melody(encode(quantized, stop)[start:].copy(), first)

    def _is_one_voice(self, voice: str) -> bool:
        try:
            self.cut(voice, 1)
        except PolyphonyError:
            return False
        return True


def open_piece(path: str | os.PathLike[str] | None) -> Piece:
    """Read an uploaded MIDI, MusicXML or ABC file, in a process of its own."""
    score = load_score(path)
    sounding = np.unique(score.notes["voice"]).tolist()
    name = os.path.basename(path or "")  # noqa: PTH119  (a name for messages; the file was read already)
    if not sounding:
        raise NoDataError(f"{name} holds no notes; upload a file with a melody")
    if len(sounding) > MAX_VOICES:
        raise FileTooLargeError(
            f"{name} has notes in {len(sounding)} voices, more than {MAX_VOICES}",
            name=name,
            unit="voices",
            limit=MAX_VOICES,
            size=len(sounding),
        )
    return Piece(name, score, {**{_label(score, voice): voice for voice in sounding}, HIGHEST: None})


def example(name: str) -> Melody:
    """Return a melody of `EXAMPLES`."""
    if name not in EXAMPLES:
        raise UnknownNameError("example", name, EXAMPLES)
    return _spelled(EXAMPLES[name])


def chorale(dataset: str) -> Melody:
    """Return the first soprano window of the test split of a data set in the form of `jsb_chorales`."""
    from music_evals.benchmark.tasks.inpainting.items import load_items

    items = load_items(dataset, "musib", "test")
    row = next((row for row, item in enumerate(items.item_ids) if "soprano" in item), 0)
    return Melody(items.contexts[row].copy())


def _label(score: Score, voice: int) -> str:
    count = int((score.notes["voice"] == voice).sum())
    return f"{voice + 1}: {score.voices[voice][:40] or 'no name'} ({count} notes)"


def _spelled(text: str) -> Melody:
    """Read notes such as ``C#4:1.5``, one after the other, and ``r:1`` for a rest."""
    rows: list[Sequence[int]] = []
    step = 0
    for word in text.split():
        name, _, quarters = word.partition(":")
        steps = round(float(quarters) * STEPS_PER_QUARTER)
        if name != "r":
            rows.append((step, steps, 12 * (int(name[-1]) + 1) + _LETTERS[name[0]] + name.count("#")))
        step += steps
    return Melody(encode(make_notes(*np.array(rows).T), MUSIB_LAYOUT.n_steps))
