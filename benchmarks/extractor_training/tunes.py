"""Melodies that training renderings are made from: public-domain tunes and chorales of music21's corpus.

The tunes are Ryan's Mammoth Collection (Boston 1883), O'Neill's Music of Ireland (transcribed by volunteers) and Aird's
Airs (Glasgow 1778..1801), the chorales J. S. Bach's. The Essen folk songs are left out: their encoding is for
non-commercial use only.
So is every piece of the benchmark `known_edits`, and every chorale that begins with the melody of one.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.datasets.bach_corpus import chorale_paths, read_chorale
from music_evals.errors import UnreadableFileError, importing
from music_evals.files import write_atomically

__all__ = ["TICKS", "Chord", "Note", "Tune", "load_tunes"]

TICKS = 480  # a quarter note
SEED = 20261  # of the choice of tunes
N_CHORALES, N_TUNES = 120, 120  # chorales; tunes of each collection
COLLECTIONS = ("ryansMammoth", "oneills1850", "airdsAirs")
METERS = {(2, 4), (3, 4), (4, 4), (6, 8), (9, 8), (2, 2)}
INCIPIT = 8  # intervals by which two melodies are held to be one
# Tunes of the benchmark, under the titles that they go by.
EXCLUDED_TITLES = re.compile(
    r"green\s*sleeves|amazing|new britain|ode to joy|song of joy|the saints|scarborough|auld\s*lang|lang\s*syne"
    r"|londonderry|danny boy|su[sz]anna",
    re.IGNORECASE,
)

Note = tuple[int, int, int]
"""Onset and duration in ticks, and MIDI pitch."""

Chord = tuple[int, int, tuple[int, ...]]
"""Onset and duration in ticks, and pitch classes with the root first."""


@dataclasses.dataclass(frozen=True)
class Tune:
    """A melody on its bars, and what is known of its harmony.

    Parameters
    ----------
    name
        Where it comes from.
    numerator, denominator
        The time signature, the same throughout. Bar lines lie at multiples of `bar_ticks`; a pickup stands at the end
        of the first bar.
    voices
        The melody, then lower voices if there are any. The melody has one note at a time.
    chords
        Without gaps from 0 on; empty where the harmony is not known.

    """

    name: str
    numerator: int
    denominator: int
    voices: tuple[tuple[Note, ...], ...]
    chords: tuple[Chord, ...] = ()

    @property
    def bar_ticks(self) -> int:
        """Length of a bar."""
        return TICKS * 4 * self.numerator // self.denominator

    @property
    def beat_ticks(self) -> int:
        """Length of a beat: the dotted quarter in 6/8 and 9/8, else the unit of the time signature."""
        compound = self.denominator == 8 and self.numerator % 3 == 0
        return TICKS * 4 // self.denominator * (3 if compound else 1)

    @property
    def end_tick(self) -> int:
        """End of the last note."""
        return max(onset + duration for voice in self.voices for onset, duration, _ in voice)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Tune:
        """Rebuild a tune without chords from what JSON made of its fields."""
        voices = tuple(tuple((onset, length, pitch) for onset, length, pitch in voice) for voice in values["voices"])
        return cls(values["name"], values["numerator"], values["denominator"], voices)


@functools.cache
def load_tunes(cache: Path | None = None) -> tuple[tuple[Tune, ...], tuple[Tune, ...]]:
    """Return the chorales and the tunes, in an order that is always the same.

    Parameters
    ----------
    cache
        A folder in which the notes are kept: reading the corpus takes about a minute.

    Raises
    ------
    MissingBackendError
        music21 is not installed.

    """
    path = cache / "training_tunes.json" if cache else None
    if path and path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
    else:
        kept = [[dataclasses.asdict(tune) for tune in tunes] for tunes in (_chorales(), _folk_tunes())]
        if path:
            # several processes may read the corpus at once; each writes the same
            write_atomically(path, json.dumps(kept).encode(), parents=True)
    chorales, tunes = (tuple(Tune.from_dict(values) for values in group) for group in kept)
    return chorales, tunes


def _benchmark_chorales() -> set[str]:
    """Names of the chorales that edits.yaml lists: chorale_bwv153_1 is bwv153.1."""
    text = resources.files("music_evals.datasets.known_edits").joinpath("edits.yaml").read_text(encoding="utf-8")
    return {name.replace("_", ".") for name in re.findall(r"^ *- chorale_(\w+)$", text, re.MULTILINE)}


def _chorales() -> list[Tune]:
    paths = chorale_paths()
    reserved = _benchmark_chorales() & set(paths)
    forbidden = {_incipit(tune) for tune in map(_chorale, sorted(reserved)) if tune is not None}
    names = [name for name in paths if name not in reserved and re.fullmatch(r"bwv[\d.]+", name)]
    found: list[Tune] = []
    for name in np.random.default_rng(SEED).permutation(names).tolist():
        tune = _chorale(name)
        if tune is not None and _incipit(tune) not in forbidden:
            found.append(tune)
        if len(found) == N_CHORALES:
            break
    return found


def _chorale(name: str) -> Tune | None:
    """Read a chorale, or None if it is not for four voices in one meter."""
    try:
        chorale = read_chorale(name)
    except UnreadableFileError:
        return None
    numerator, denominator = (int(part) for part in chorale.time_signature.split("/"))
    if len(chorale.score.voices) != 4 or len(chorale.time_signatures) != 1 or (numerator, denominator) not in METERS:
        return None
    bar = 4 * numerator / denominator
    shift = bar - chorale.pickup_quarters if chorale.pickup_quarters else 0.0
    scale = TICKS / chorale.score.ticks_per_quarter
    voices = tuple(
        tuple(
            (round(int(note["onset_tick"]) * scale + shift * TICKS), round(int(note["duration_tick"]) * scale), pitch)
            for note in chorale.score.voice(index)
            if (pitch := int(note["pitch"]))
        )
        for index in range(4)
    )
    return Tune(name, numerator, denominator, voices)


def _incipit(tune: Tune) -> tuple[int, ...]:
    pitches = [pitch for _, _, pitch in tune.voices[0][: INCIPIT + 1]]
    return tuple(np.diff(pitches).tolist())


def _folk_tunes() -> list[Tune]:
    rng = np.random.default_rng(SEED)
    return [tune for collection in COLLECTIONS for tune in _collection(collection, rng)]


def _collection(collection: str, rng: np.random.Generator) -> Iterator[Tune]:
    texts = sorted(
        tune
        for path in sorted((_corpus() / collection).glob("*.abc"))
        for tune in re.split(r"\n(?=X:)", path.read_bytes().decode("latin-1"))
        if re.search(r"^K:", tune, re.MULTILINE) and not EXCLUDED_TITLES.search(tune)
    )
    n = 0
    for index in rng.permutation(len(texts)).tolist():
        tune = _folk_tune(texts[index], collection)
        if tune is not None:
            n += 1
            yield tune
        if n == N_TUNES:
            return


def _corpus() -> Path:
    with importing("symbolic", "reading the tunes of its corpus"):
        import music21
    return Path(music21.__file__).parent / "corpus"


def _folk_tune(text: str, collection: str) -> Tune | None:
    """Read one ABC tune, repeats not played, or None if it has several meters or bars that do not add up."""
    import music21

    try:
        part = music21.converter.parse(text, format="abc", forceSource=True).parts[0]
        measures = list(part.getElementsByClass("Measure"))
        meters = {(meter.numerator, meter.denominator) for meter in part.recurse().getElementsByClass("TimeSignature")}
        notes = _melody(part)
    except (music21.exceptions21.Music21Exception, ValueError, IndexError, AttributeError):
        return None  # music21 cannot read each of these files; there are more than enough
    if len(meters) != 1 or not meters <= METERS or len(notes) < 24 or not measures:
        return None
    numerator, denominator = meters.pop()
    bar = 4 * numerator / denominator
    lengths = [float(measure.duration.quarterLength) for measure in measures]
    if any(length != bar for length in lengths[1:-1]) or lengths[0] > bar:
        return None
    shift = round((bar - lengths[0]) * TICKS)
    melody = tuple((onset + shift, duration, pitch) for onset, duration, pitch in notes)
    title = re.search(r"^T: *(.*)$", text, re.MULTILINE)
    return Tune(f"{collection}: {title[1].strip() if title else ''}", numerator, denominator, (melody,))


def _melody(part: Any) -> list[Note]:
    """Return the notes of a part, ties merged, grace notes left out, of a chord the highest."""
    notes: list[Note] = []
    for note in part.flatten().stripTies().notes:
        onset, duration = round(float(note.offset) * TICKS), round(float(note.quarterLength) * TICKS)
        if duration < TICKS // 16 or (note.isChord and "ChordSymbol" in note.classes):
            continue
        if notes and onset < notes[-1][0] + notes[-1][1]:
            continue
        notes.append((onset, duration, max(pitch.midi for pitch in note.pitches)))
    return notes
