"""MIDI files edited event by event.

A voice is a channel of a track. Where notes of a voice are replaced, the bytes of all other tracks stay as they are,
and in its own track so does every other event; the time that an event waits for the one before it is written again
where that one is another now. The end of the track moves where new notes outlast it.

A note-off in these measures that ends no note is taken away with their notes, for it might end a new one.
"""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from music_evals.annotations import DRUMS, NoteArray, Score, TimeSignature
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits, check_score, read_bytes
from music_evals.symbolic.measures import drop_repeated_signatures, meter_map
from music_evals.symbolic.midi import check_n_voices, drop_repeated
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.reading.midi_events import (
    DRUM_CHANNEL,
    NOTE_OFF,
    NOTE_ON,
    SYSEX,
    MidiEvent,
    MidiFile,
    MidiNote,
    read_midi_file,
    read_number,
)
from music_evals.symbolic.rewriting.tune import Tune, check_edit, measure_numbers


class _Voice(NamedTuple):
    track: int
    channel: int


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MidiTune(Tune):
    """A MIDI file; see `Tune`."""

    file: MidiFile
    places: tuple[_Voice, ...]
    meter: TimeSignature | None
    limits: Limits

    def replaced(self, voice: int, first: int, n_measures: int, notes: NoteArray) -> bytes:
        """Return the file with other notes in some measures of one voice; see `Tune.replaced`."""
        start, stop = self.check_replacement(first, n_measures, notes)
        place = self.places[voice]
        events = self.file.events(place.track)
        old = _notes(self.file, place)
        # which events of a channel start a note that never ends, or end one that never starts
        paired = {index for note in old for index in (note.start_event, note.end_event)}
        unpaired = [
            index
            for index, event in enumerate(events)
            if event.is_note and event.status & 0x0F == place.channel and index not in paired
        ]
        # raise where a note sounds into the measures, or starts in them, and never ends
        for index in unpaired:
            event = events[index]
            if event.starts_note and event.tick < stop:
                raise UnreadableFileError(
                    f"{self.name}: a note of pitch {event.data[0]}, {event.tick / self.score.ticks_per_quarter:g} "
                    "quarters after the beginning, never ends, and would sound on in what is filled; end it or take it "
                    "out"
                )
        track = self.file.tracks[place.track]
        used = sum(len(event.delta) + event.stored + len(event.data) for event in events)
        rest = self.file.content[track.start + used : track.stop]  # what follows the end of the track
        new = _spliced(events, old, unpaired, channel=place.channel, start=start, stop=stop, notes=notes)
        body = b"".join(_encoded(new)) + rest
        content = self.file.with_track(place.track, body)
        after = _read(content, self.name, self.suffix, self.meter, self.limits)
        places = (self.places, after.places)
        check_edit(self, after, places, voice=voice, first=first, n_measures=n_measures, notes=notes)
        return content


def open_midi(
    path: str | os.PathLike[str], *, meter: TimeSignature | None = None, limits: Limits = DEFAULT_LIMITS
) -> MidiTune:
    """Read a MIDI file so that some of its measures can be replaced."""
    content = read_bytes(Path(path), limits)
    return _read(content, os.fspath(path), Path(path).suffix.lower(), meter, limits)


def _read(content: bytes, name: str, suffix: str, meter: TimeSignature | None, limits: Limits) -> MidiTune:
    file = read_midi_file(content, name, limits=limits)
    if not file.time_signatures and meter is None:
        raise NoDataError(f"{name}: states no time signature, so it has no measures; say what they are with `meter`")
    if file.time_signatures and meter is not None:
        stated = file.time_signatures[0]
        raise InvalidInputError(
            f"{name}: states its meter, {stated.numerator}/{stated.denominator} at first; `meter` is for MIDI files "
            "that state none, leave it out"
        )
    places = tuple(
        _Voice(number, channel)
        for number, track in enumerate(file.tracks)
        for channel in sorted({note.channel for note in track.notes})
    )
    check_n_voices(len(places), name)
    n_voices = collections.Counter(place.track for place in places)
    rows = [
        (note.onset, max(note.end - note.onset, 1), note.pitch, note.velocity, index)
        for index, place in enumerate(places)
        for note in _notes(file, place)
    ]
    score = Score(
        make_notes(*np.array(rows, dtype=np.int64).reshape(-1, 5).T),
        file.ticks_per_quarter,
        drop_repeated_signatures(file.time_signatures, file.ticks_per_quarter) or (() if meter is None else (meter,)),
        drop_repeated(file.tempos),
        drop_repeated(file.key_signatures),
        # the name of its track, with its channel where the track has several
        tuple(
            name if n_voices[place.track] == 1 else f"{name} channel {place.channel + 1}".strip()
            for place in places
            for name in [file.tracks[place.track].name.strip()]
        )
        or ("",),
        tuple(DRUMS if place.channel == DRUM_CHANNEL else 0 for place in places),
    )
    bars = meter_map(check_score(score, limits, name))
    return MidiTune(
        name, suffix, score, bars, measure_numbers(bars), file=file, places=places, meter=meter, limits=limits
    )


def _notes(file: MidiFile, place: _Voice) -> list[MidiNote]:
    return [note for note in file.tracks[place.track].notes if note.channel == place.channel]


def _spliced(
    events: Sequence[MidiEvent],
    old: Sequence[MidiNote],
    unpaired: Sequence[int],
    *,
    channel: int,
    start: int,
    stop: int,
    notes: NoteArray,
) -> list[MidiEvent]:
    """Return the events of a track with the notes of a channel, `old`, replaced from `start` to `stop`."""
    # what ends no note might end a new one
    dropped = {index for index in unpaired if start < events[index].tick < stop}
    # (tick, before what stands there, event): what ends comes before the events of its tick, what starts after them
    added: list[tuple[int, bool, MidiEvent]] = []
    for note in old:
        first = events[note.start_event]
        if (note.end <= start and note.onset < start) or note.onset >= stop:
            continue
        off = MidiEvent(start, NOTE_OFF | channel, bytes([first.data[0], 64]))
        if note.onset < start:  # sounds into the gap: it ends there
            added.append((start, True, off))
            if note.end <= stop:
                dropped.add(note.end_event)
        else:
            dropped.add(note.start_event)
            if note.end <= stop:
                dropped.add(note.end_event)
        if note.end > stop:  # sounds out of the gap: it starts again there
            added.append((stop, False, first._replace(tick=stop, stored=True)))
    for onset, duration, pitch, velocity in zip(
        *(notes[key].tolist() for key in ("onset_tick", "duration_tick", "pitch", "velocity")), strict=True
    ):
        added.append((onset, False, MidiEvent(onset, NOTE_ON | channel, bytes([pitch, velocity]))))
        added.append((onset + duration, True, MidiEvent(onset + duration, NOTE_OFF | channel, bytes([pitch, 64]))))
    # events in the order of time; those that were there keep their order, and the end of the track is last
    existing = [event for index, event in enumerate(events) if index not in dropped]
    ending = [event for event in existing if event.ends_track]
    rows = [(event.tick, 1, event) for event in existing if not event.ends_track]
    rows += [(tick, 0 if before else 2, event) for tick, before, event in added]
    merged = [event for _, _, event in sorted(rows, key=lambda row: row[:2])]
    last = merged[-1].tick if merged else 0
    return [*merged, *(event._replace(tick=max(event.tick, last)) for event in ending)]


def _encoded(events: Sequence[MidiEvent]) -> Iterator[bytes]:
    tick, running = 0, 0
    for event in events:
        wait = event.tick - tick
        same = event.delta and read_number(event.delta, 0)[0] == wait
        groups = [wait & 0x7F]  # seven bits a byte
        while wait := wait >> 7:
            groups.append(wait & 0x7F | 0x80)
        delta = event.delta if same else bytes(reversed(groups))
        status = b"" if not event.stored and running == event.status else bytes([event.status])
        yield delta + status + event.data
        tick = event.tick
        running = event.status if event.status < SYSEX else 0  # it ends with any other event
