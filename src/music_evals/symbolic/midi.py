"""MIDI files and `pretty_midi` objects, to and from `Score`.

`reading.midi_events` reads, by the standard; symusic writes. What a MIDI file cannot hold is lost on the way out:
voices without notes, the difference between two overlapping notes of one pitch in one voice (their ends are paired in
order), and tempi finer than a microsecond a quarter. What `Score` cannot hold is lost on the way in: controllers,
pedals, lyrics and note-offs without a note. A note-on that is never ended is no note.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import os
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from music_evals.annotations import DRUMS, KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError, UnreadableFileError
from music_evals.files import write_atomically
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits, check_n_bytes, check_n_notes, check_score, read_bytes
from music_evals.symbolic.measures import drop_repeated_signatures
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.reading.midi_events import DRUM_CHANNEL, read_midi_file

if TYPE_CHECKING:
    import pretty_midi

__all__ = ["from_pretty_midi", "read_midi", "save_midi", "to_pretty_midi", "write_midi"]

MAX_TICKS_PER_QUARTER = 2**15 - 1  # the division of a MIDI header has 15 bits
MAX_PRETTY_MIDI_TICK = 10_000_000  # pretty_midi refuses later ticks, and holds one float for each
MAX_MIDI_TICK = 2**31 - 1  # symusic counts in 32 bits
MAX_VOICES = 2**15 - 1  # of `NOTE_DTYPE`

Change = TypeVar("Change", Tempo, KeySignature)


def read_midi(source: str | os.PathLike[str] | bytes, *, limits: Limits = DEFAULT_LIMITS) -> Score:
    """Read a MIDI file.

    Every track, channel and program that has notes becomes a voice, in file order, with the track's name. A note of no
    length lasts one tick. Of several changes at one tick the last counts; changes that change nothing are left out.

    What the standard does not allow, and could change a note, is refused; the rules are those of
    `symbolic.reading.midi_events`, which also says how names are decoded.

    Parameters
    ----------
    source
        A path, or the bytes of a file: a MIDI file of type 0 or 1, or one within a RIFF file (RMID).
    limits
        Bounds on bytes, length and notes.

    Returns
    -------
    Score
        In the ticks of the file. Signatures and tempi are empty where the file has none.

    Raises
    ------
    NoDataError, FileTooLargeError
        There is no such file, or it is over a bound.
    UnreadableFileError
        Not a MIDI file, damaged, of type 2, in SMPTE time, or with impossible values; names the file, the track, the
        byte and the reason.

    Examples
    --------
    >>> from music_evals.symbolic.notes import make_notes
    >>> score = Score(make_notes([0, 480], [480, 960], [60, 64]), 480, (TimeSignature(0, 4, 4),), voices=("Tune",))
    >>> read_midi(write_midi(score)).notes["pitch"].tolist()
    [60, 64]
    """
    if isinstance(source, bytes):
        name, content = "MIDI bytes", source
        check_n_bytes(len(content), limits, name)
    else:
        name, content = os.fspath(source), read_bytes(Path(source), limits)
    file = read_midi_file(content, name, limits=limits)
    n_notes = [len(track.notes) for track in file.tracks]
    columns = itertools.chain.from_iterable(note[:6] for track in file.tracks for note in track.notes)
    rows = np.fromiter(columns, np.int64, 6 * sum(n_notes)).reshape(-1, 6)
    onsets, ends, pitches, velocities, channels, programs = rows.T
    tracks = np.repeat(np.arange(len(n_notes)), n_notes)
    places, voices = np.unique((tracks << 4 | channels) << 7 | programs, return_inverse=True)
    check_n_voices(len(places), file.name)
    # a voice for each track, channel and program
    score = Score(
        make_notes(onsets, np.maximum(ends - onsets, 1), pitches, velocities, voices),
        file.ticks_per_quarter,
        drop_repeated_signatures(file.time_signatures, file.ticks_per_quarter),
        drop_repeated(file.tempos),
        drop_repeated(file.key_signatures),
        tuple(file.tracks[place >> 11].name for place in places.tolist()),
        tuple(DRUMS if place >> 7 & 0x0F == DRUM_CHANNEL else place & 0x7F for place in places.tolist()),
    )
    return check_score(score, limits, name)


def check_n_voices(n_voices: int, name: str) -> None:
    """Raise where a file has more voices than notes can be numbered by."""
    if n_voices > MAX_VOICES:
        raise UnreadableFileError(
            f"{name}: {n_voices} voices (tracks, channels and programs), more than {MAX_VOICES}; split it"
        )


def drop_repeated(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Leave out every change to what is in force already; of several at one tick the last counts."""
    distinct: list[Change] = []
    for change in {change.tick: change for change in changes}.values():
        if not distinct or dataclasses.replace(change, tick=distinct[-1].tick) != distinct[-1]:
            distinct.append(change)
    return tuple(distinct)


def write_midi(score: Score) -> bytes:
    """Write a score as the bytes of a MIDI file, one track a voice, program 0 where the score gives none.

    A grid or a length beyond what a MIDI file holds is an `InvalidInputError`.
    """
    import symusic

    if score.ticks_per_quarter > MAX_TICKS_PER_QUARTER or score.end_tick > MAX_MIDI_TICK:
        raise InvalidInputError(
            f"a MIDI file holds at most {MAX_TICKS_PER_QUARTER} ticks a quarter and {MAX_MIDI_TICK} ticks; this "
            f"score has {score.ticks_per_quarter} and {score.end_tick}; put it on a coarser grid with "
            "symbolic.notes.quantize"
        )
    file = symusic.Score(score.ticks_per_quarter)
    for index, voice in enumerate(score.voices):
        program = score.programs[index] if score.programs else 0
        track = symusic.Track(voice, 0 if program == DRUMS else program, program == DRUMS)
        notes = score.voice(index)
        columns = (notes["onset_tick"], notes["duration_tick"], notes["pitch"], notes["velocity"])
        for note in zip(*(column.tolist() for column in columns), strict=True):
            track.notes.append(symusic.Note(*note))
        file.tracks.append(track)
    for change in score.time_signatures:
        file.time_signatures.append(symusic.TimeSignature(change.tick, change.numerator, change.denominator))
    for tempo in score.tempos:
        file.tempos.append(symusic.Tempo(tempo.tick, tempo.bpm))
    for key in score.key_signatures:
        file.key_signatures.append(symusic.KeySignature(key.tick, key.fifths, int(key.minor)))
    return bytes(file.dumps_midi())


def save_midi(score: Score, path: str | os.PathLike[str]) -> Path:
    """Write a score to a MIDI file, whole or not at all, and return its path; see `write_midi`."""
    return write_atomically(path, write_midi(score))


def from_pretty_midi(midi: pretty_midi.PrettyMIDI, *, limits: Limits = DEFAULT_LIMITS) -> Score:
    """Take the notes of a `pretty_midi.PrettyMIDI` object, in the ticks of its own tempo map.

    Every instrument with notes becomes a voice. A note of no length lasts one tick. Pitches and velocities outside of
    their ranges, and ends before onsets, are an `InvalidNotesError`; a bound is a `FileTooLargeError`.
    """
    name = "pretty_midi object"
    check_n_notes(sum(len(instrument.notes) for instrument in midi.instruments), limits, name)
    instruments = [instrument for instrument in midi.instruments if instrument.notes]
    rows = [
        (midi.time_to_tick(note.start), midi.time_to_tick(note.end), note.pitch, note.velocity, voice)
        for voice, instrument in enumerate(instruments)
        for note in instrument.notes
    ]
    onsets, ends, pitches, velocities, voices = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    notes = make_notes(onsets, np.where(ends == onsets, 1, ends - onsets), pitches, velocities, voices)
    times, bpms = midi.get_tempo_changes()
    # key numbers of pretty_midi: 0..11 are C..B major, 12..23 C..B minor
    keys = []
    for change in midi.key_signature_changes:
        minor, tonic = divmod(change.key_number, 12)
        fifths = (7 * ((tonic + 3 * minor) % 12) + 5) % 12 - 5
        keys.append(KeySignature(midi.time_to_tick(change.time), fifths, bool(minor)))
    score = Score(
        notes,
        int(midi.resolution),
        drop_repeated_signatures(
            sorted(
                (
                    TimeSignature(midi.time_to_tick(change.time), change.numerator, change.denominator)
                    for change in midi.time_signature_changes
                ),
                key=attrgetter("tick"),
            ),
            int(midi.resolution),
        ),
        drop_repeated(Tempo(midi.time_to_tick(time), float(bpm)) for time, bpm in zip(times, bpms, strict=True)),
        drop_repeated(sorted(keys, key=attrgetter("tick"))),
        tuple(instrument.name for instrument in instruments),
        tuple(DRUMS if instrument.is_drum else int(instrument.program) for instrument in instruments),
    )
    return check_score(score, limits, name)


def to_pretty_midi(score: Score) -> pretty_midi.PrettyMIDI:
    """Return the score as a `pretty_midi.PrettyMIDI` object, with its tempo map; without one it runs at 120 a minute.

    It is refused as by `write_midi`, and where it is longer than the 10,000,000 ticks that pretty_midi holds.
    """
    import pretty_midi

    if score.end_tick > MAX_PRETTY_MIDI_TICK:
        raise InvalidInputError(
            f"pretty_midi holds at most {MAX_PRETTY_MIDI_TICK} ticks, the score ends at {score.end_tick}; put it on a "
            "coarser grid with symbolic.notes.quantize"
        )
    return pretty_midi.PrettyMIDI(io.BytesIO(write_midi(score)))
