"""The Bach chorales inside the music21 package, read as notes and bar lines.

Each file is parsed, its repeats are written out, and it goes through music21's own MIDI export, which merges ties and
gives one track a voice: the route by which MUSIB made its JSB set. Two things differ from a bare export: grace notes,
which have no length on the page but get one in MIDI, are left out; and the conductor track, which carries a voice's
name but no notes, is dropped.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import zipfile
from pathlib import Path
from typing import Any

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.errors import NoDataError, UnknownNameError, UnreadableFileError, importing
from music_evals.symbolic.midi import read_midi

VOICES = ("soprano", "alto", "tenor", "bass")


@dataclasses.dataclass(frozen=True)
class Measure:
    """One measure of the first part with its repeats written out."""

    offset_quarters: float  # where it starts, in quarter notes from the start of the piece
    notated_quarters: float  # how long the notes in it are
    # How long its time signature says it should be; longer than `notated_quarters` for pickups and their completion.
    full_quarters: float

    @property
    def is_full(self) -> bool:
        """Whether the measure is as long as its time signature says."""
        return self.notated_quarters == self.full_quarters


@dataclasses.dataclass(frozen=True, eq=False)
class Chorale:
    """One file of the corpus."""

    name: str  # file name without its ending, e.g. ``"bwv269"``
    # Its notes with repeats written out, on the grid of the MIDI export; one voice a part, in the order of the page.
    # Key and time signatures are those of the first part's first measure.
    score: Score
    measures: tuple[Measure, ...]  # the measures of the first part, repeats written out
    time_signatures: frozenset[str]  # every signature that occurs anywhere, e.g. ``{"4/4"}``
    # ``"major"`` or ``"minor"`` as the encoder wrote it beside the key signature; where the file gives none, by
    # music21's key analysis.
    mode: str

    @property
    def pickup_quarters(self) -> float:
        """Length of the incomplete first measure in quarter notes, 0 where the piece starts with a full one."""
        first = self.measures[0]
        return 0.0 if first.is_full else first.notated_quarters

    @property
    def time_signature(self) -> str:
        """The first time signature, e.g. ``"4/4"``."""
        first = self.score.time_signatures[0]
        return f"{first.numerator}/{first.denominator}"

    @property
    def key_fifths(self) -> int:
        """Sharps (positive) or flats (negative) of the first key signature."""
        return self.score.key_signatures[0].fifths


def chorale_paths() -> dict[str, Path]:
    """Return the compressed MusicXML files of Bach in music21's corpus, by name, sorted."""
    corpus = _music21().corpus
    paths = {path.stem: Path(path) for path in corpus.getComposer("bach") if path.suffix == ".mxl"}
    if not paths:
        raise NoDataError(
            "the corpus of the installed music21 holds no Bach; some system packages leave it out: "
            "install music21 with pip"
        )
    return dict(sorted(paths.items()))


def read_chorale(name: str) -> Chorale:
    """Read one file of the corpus, about 0.15 s."""
    paths = chorale_paths()
    if name not in paths:
        raise UnknownNameError("chorale", name, paths)
    return _parse(name, paths[name])


def chorale_list() -> tuple[str, ...]:
    """Return the names of music21's 371 chorales in the order of Riemenschneider's edition; 350 files, some twice."""
    names = _music21().corpus.chorales.Iterator(returnType="filename")
    return tuple(Path(name).name for name in names)  # no stem: that of bwv18.5-l would be bwv18


def read_listed(name: str) -> Chorale:
    """Read one file of `chorale_list`, whatever its format, about 0.3 s."""
    music21 = _music21()
    try:
        matches = music21.corpus.getWork(f"bach/{name}")
    except music21.corpus.CorpusException as error:
        raise NoDataError(f"the corpus of the installed music21 holds no {name}: install music21 with pip") from error
    # several where other names begin alike, or where a piece is there in several formats
    paths = [Path(path) for path in (matches if isinstance(matches, list) else [matches])]
    own = [path for path in paths if path.name in {f"{name}.mxl", f"{name}.xml"}]
    return _parse(name, (own or paths)[0])


@functools.cache
def _parse(name: str, path: Path) -> Chorale:
    """Read a file of notation as a chorale; once, for most files have a place in the list too."""
    music21 = _music21()
    # forceSource without storePickle: nothing is read from or left in music21's own cache of parsed files.
    stream = music21.converter.parse(path, forceSource=True, storePickle=False)
    grace = [note for note in stream.recurse().notes if note.duration.isGrace]
    if grace:
        stream.remove(grace, recurse=True)
    score = read_midi(music21.midi.translate.music21ObjectToMidiFile(stream).writestr())  # writes repeats out itself
    first = stream.parts[0].expandRepeats()
    key = first.recurse().getElementsByClass(music21.key.KeySignature).first()
    mode = getattr(key, "mode", None) or stream.expandRepeats().analyze("key").mode
    signatures = stream.recurse().getElementsByClass(music21.meter.TimeSignature)
    meter = first.recurse().getElementsByClass(music21.meter.TimeSignature).first()
    if len(score.voices) != len(stream.parts):
        raise UnreadableFileError(
            f"{name} has {len(stream.parts)} parts, but {len(score.voices)} tracks with notes in its MIDI export"
        )
    score = dataclasses.replace(
        score,
        time_signatures=(TimeSignature(0, meter.numerator, meter.denominator),),
        key_signatures=(KeySignature(0, key.sharps, mode == "minor"),),
    )
    measures = (
        Measure(float(bar.offset), float(bar.duration.quarterLength), float(bar.barDuration.quarterLength))
        for bar in first.getElementsByClass("Measure")
    )
    return Chorale(name, score, tuple(measures), frozenset(signature.ratioString for signature in signatures), mode)


def encoder_credit(path: Path) -> str:
    """Return the lines about rights of a compressed MusicXML file, "" if it has no such lines."""
    with zipfile.ZipFile(path) as archive:
        pages = [name for name in archive.namelist() if name != "mimetype" and not name.startswith("META-INF/")]
        text = archive.read(pages[0]).decode("utf-8", errors="replace")
    # A pattern, not a parser: the line may stand in any of several elements, and nothing of the tree is needed.
    lines = (" ".join(line.split()) for line in re.findall(r"<(?:rights|credit-words)[^<>]*>([^<]*)<", text))
    return "; ".join(dict.fromkeys(line for line in lines if re.search(r"©|copyright|permission", line, re.IGNORECASE)))


def _music21() -> Any:
    with importing("symbolic", "reading the Bach corpus"):
        import music21
    return music21
