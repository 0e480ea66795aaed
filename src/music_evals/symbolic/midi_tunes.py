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
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits, read_bytes
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.midi import read_midi
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.tunes import Tune, check_edit, measure_numbers

__all__ = ["MidiEvent", "MidiTune", "open_midi", "track_events"]

_NOTE_OFF, _NOTE_ON, _PROGRAM = 0x80, 0x90, 0xC0
_SYSEX, _SYSEX_MORE, _META = 0xF0, 0xF7, 0xFF
_END_OF_TRACK, _TRACK_NAME = 0x2F, 0x03
_ONE_DATA_BYTE = (0xC0, 0xD0)
_DRUM_CHANNEL = 9


class MidiEvent(NamedTuple):
    """One event of a track."""

    tick: int
    """When it happens, from the start of the track."""
    status: int
    """Its status byte, also where the file leaves it out (running status)."""
    data: bytes
    """All that follows the status byte."""
    stored: bool = True
    """Whether the file holds the status byte."""
    delta: bytes = b""
    """The time that it waits, as the file holds it."""

    @property
    def is_note(self) -> bool:
        """Whether it starts or ends a note."""
        return self.status & 0xF0 in {_NOTE_OFF, _NOTE_ON}

    @property
    def starts_note(self) -> bool:
        """Whether it starts a note: a note-on of velocity 0 ends one."""
        return self.status & 0xF0 == _NOTE_ON and self.data[1] > 0

    @property
    def ends_track(self) -> bool:
        """Whether it is the end of the track."""
        return self.status == _META and self.data[0] == _END_OF_TRACK


class _Note(NamedTuple):
    onset: int
    end: int
    start_event: int  # index in the track
    end_event: int


class _Track(NamedTuple):
    start: int  # of its events in the file
    stop: int
    events: tuple[MidiEvent, ...]
    rest: bytes  # what follows the end of the track


class _Voice(NamedTuple):
    track: int
    channel: int


@dataclasses.dataclass(frozen=True, eq=False)
class MidiTune(Tune):
    """A MIDI file; see `Tune`."""

    content: bytes = b""
    tracks: tuple[_Track, ...] = ()
    places: tuple[_Voice, ...] = ()
    meter: TimeSignature | None = None
    limits: Limits = DEFAULT_LIMITS

    def replaced(self, voice: int, first: int, n_measures: int, notes: NoteArray) -> bytes:
        """Return the file with other notes in some measures of one voice; see `Tune.replaced`."""
        start, stop = self.check_replacement(first, n_measures, notes)
        place = self.places[voice]
        track = self.tracks[place.track]
        self._check_ended(track, place.channel, stop)
        events = _spliced(track.events, place.channel, start, stop, notes)
        body = b"".join(_encoded(events)) + track.rest
        size = len(body).to_bytes(4, "big")
        content = self.content[: track.start - 4] + size + body + self.content[track.stop :]
        after = _read(content, self.name, self.suffix, self.meter, self.limits)
        places = (self.places, after.places)
        check_edit(self, after, places, voice=voice, first=first, n_measures=n_measures, notes=notes)
        return content

    def _check_ended(self, track: _Track, channel: int, stop: int) -> None:
        """Raise where a note sounds into the measures, or starts in them, and never ends."""
        for index in _unpaired(track.events, channel):
            event = track.events[index]
            if event.starts_note and event.tick < stop:
                raise UnreadableFileError(
                    f"{self.name}: a note of pitch {event.data[0]}, {event.tick / self.score.ticks_per_quarter:g} "
                    "quarters after the beginning, never ends, and would sound on in what is filled; end it or take it "
                    "out"
                )


def open_midi(
    path: str | os.PathLike[str], *, meter: TimeSignature | None = None, limits: Limits = DEFAULT_LIMITS
) -> MidiTune:
    """Read a MIDI file so that some of its measures can be replaced.

    Parameters
    ----------
    path
        The file, of type 0 or 1.
    meter
        What to take for its meter where it states none; where it states one, this is refused.
    limits
        As `symbolic.midi.read_midi`.

    Raises
    ------
    NoDataError
        There is no such file, or it states no time signature and no meter is given.
    InvalidInputError
        It states one, and a meter is given.
    UnreadableFileError
        Not a MIDI file, damaged, of type 2, or in SMPTE time.
    FileTooLargeError
        Over a bound.

    """
    content = read_bytes(Path(path), limits)
    return _read(content, os.fspath(path), Path(path).suffix.lower(), meter, limits)


def _read(content: bytes, name: str, suffix: str, meter: TimeSignature | None, limits: Limits) -> MidiTune:
    read = read_midi(content, limits=limits)
    if int.from_bytes(content[8:10], "big") > 1:
        raise UnreadableFileError(f"{name}: a MIDI file of type 2, whose tracks are pieces of their own; split it")
    if not read.time_signatures and meter is None:
        raise NoDataError(f"{name}: states no time signature, so it has no measures; say what they are with `meter`")
    if read.time_signatures and meter is not None:
        stated = read.time_signatures[0]
        raise InvalidInputError(
            f"{name}: states its meter, {stated.numerator}/{stated.denominator} at first; `meter` is for MIDI files "
            "that state none, leave it out"
        )
    tracks = tuple(_tracks(content, name))
    places, notes = _voices(tracks)
    score = Score(
        notes,
        read.ticks_per_quarter,
        read.time_signatures or (() if meter is None else (meter,)),
        read.tempos,
        read.key_signatures,
        tuple(_names(tracks, places)) or ("",),
        tuple(DRUMS if place.channel == _DRUM_CHANNEL else 0 for place in places),
    )
    bars = meter_map(score)
    numbers = measure_numbers(bars)
    return MidiTune(name, suffix, score, bars, numbers, (), content, tracks, places, meter, limits)


def track_events(body: bytes) -> Iterator[MidiEvent]:
    """Yield the events of a track up to its end, from the bytes of its chunk.

    Raises
    ------
    IndexError
        The bytes end within an event.
    ValueError
        An event without a status byte.

    """
    position, tick, running = 0, 0, 0
    while position < len(body):
        begin = position
        wait, position = _number(body, position)
        tick, delta = tick + wait, body[begin:position]
        stored = body[position] >= 0x80
        status = body[position] if stored else running
        position += stored
        if status < _NOTE_OFF:
            raise ValueError("data without a status byte")
        begin = position
        if status in {_SYSEX, _SYSEX_MORE, _META}:
            size, position = _number(body, position + (status == _META))
            position += size
        else:
            running = status
            position += 1 if status & 0xF0 in _ONE_DATA_BYTE else 2
        if position > len(body):
            raise IndexError("the track ends within an event")
        event = MidiEvent(tick, status, body[begin:position], stored, delta)
        yield event
        if event.ends_track:
            return


def _number(body: bytes, position: int) -> tuple[int, int]:
    """Read a number of seven bits a byte; return it and where it ends."""
    value = 0
    while True:
        byte = body[position]
        value, position = value << 7 | byte & 0x7F, position + 1
        if byte < 0x80:
            return value, position


def _tracks(content: bytes, name: str) -> Iterator[_Track]:
    position = 8 + int.from_bytes(content[4:8], "big")
    while position + 8 <= len(content):
        start = position + 8
        stop = min(start + int.from_bytes(content[position + 4 : start], "big"), len(content))
        if content[position : position + 4] == b"MTrk":
            body = content[start:stop]
            try:
                events = tuple(track_events(body))
            except (IndexError, ValueError) as error:
                raise UnreadableFileError(f"{name}: a damaged track cannot be edited ({error})") from error
            used = sum(len(event.delta) + event.stored + len(event.data) for event in events)
            yield _Track(start, stop, events, body[used:])
        position = stop


def _notes(events: Sequence[MidiEvent], channel: int) -> list[_Note]:
    """Pair the notes of a channel, first in, first out, as `symbolic.midi.read_midi` does."""
    return _paired(events, channel)[0]


def _unpaired(events: Sequence[MidiEvent], channel: int) -> list[int]:
    """Return which events of a channel start a note that never ends, or end one that never starts."""
    return _paired(events, channel)[1]


def _paired(events: Sequence[MidiEvent], channel: int) -> tuple[list[_Note], list[int]]:
    open_: dict[int, collections.deque[int]] = collections.defaultdict(collections.deque)
    found = []
    alone = []
    for index, event in enumerate(events):
        if not event.is_note or event.status & 0x0F != channel:
            continue
        if event.starts_note:
            open_[event.data[0]].append(index)
        elif open_[event.data[0]]:
            start = open_[event.data[0]].popleft()
            found.append(_Note(events[start].tick, event.tick, start, index))
        else:
            alone.append(index)
    return found, [*alone, *(index for waiting in open_.values() for index in waiting)]


def _voices(tracks: Sequence[_Track]) -> tuple[tuple[_Voice, ...], NoteArray]:
    places: list[_Voice] = []
    rows: list[tuple[int, int, int, int, int]] = []
    for number, track in enumerate(tracks):
        for channel in sorted({event.status & 0x0F for event in track.events if event.starts_note}):
            notes = _notes(track.events, channel)
            if not notes:
                continue
            for note in notes:
                pitch, velocity = track.events[note.start_event].data
                rows.append((note.onset, max(note.end - note.onset, 1), pitch, velocity, len(places)))
            places.append(_Voice(number, channel))
    return tuple(places), make_notes(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)


def _names(tracks: Sequence[_Track], places: Sequence[_Voice]) -> Iterator[str]:
    """Yield the name of each voice: that of its track, with its channel where the track has several."""
    for place in places:
        named = (
            event.data[1:]
            for event in tracks[place.track].events
            if event.status == _META and event.data[0] == _TRACK_NAME
        )
        text = next(named, b"\0")
        name = text[_number(text, 0)[1] :].decode("utf-8", "replace").strip("\0 ")
        alone = sum(other.track == place.track for other in places) == 1
        yield name if alone else f"{name} channel {place.channel + 1}".strip()


def _spliced(events: Sequence[MidiEvent], channel: int, start: int, stop: int, notes: NoteArray) -> list[MidiEvent]:
    """Return the events of a track with the notes of a channel from `start` to `stop` replaced."""
    # what ends no note might end a new one
    dropped = {index for index in _unpaired(events, channel) if start < events[index].tick < stop}
    # (tick, before what stands there, event): what ends comes before the events of its tick, what starts after them
    added: list[tuple[int, bool, MidiEvent]] = []
    for note in _notes(events, channel):
        first = events[note.start_event]
        if (note.end <= start and note.onset < start) or note.onset >= stop:
            continue
        off = MidiEvent(start, _NOTE_OFF | channel, bytes([first.data[0], 64]))
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
        added.append((onset, False, MidiEvent(onset, _NOTE_ON | channel, bytes([pitch, velocity]))))
        added.append((onset + duration, True, MidiEvent(onset + duration, _NOTE_OFF | channel, bytes([pitch, 64]))))
    return _merged([event for index, event in enumerate(events) if index not in dropped], added)


def _merged(kept: Sequence[MidiEvent], added: Sequence[tuple[int, bool, MidiEvent]]) -> list[MidiEvent]:
    """Return events in the order of time; those that were there keep their order, and the end of the track is last."""
    ending = [event for event in kept if event.ends_track]
    rows = [(event.tick, 1, event) for event in kept if not event.ends_track]
    rows += [(tick, 0 if before else 2, event) for tick, before, event in added]
    merged = [event for _, _, event in sorted(rows, key=lambda row: row[:2])]
    last = merged[-1].tick if merged else 0
    return [*merged, *(event._replace(tick=max(event.tick, last)) for event in ending)]


def _encoded(events: Sequence[MidiEvent]) -> Iterator[bytes]:
    tick, running = 0, 0
    for event in events:
        wait = event.tick - tick
        same = event.delta and _number(event.delta, 0)[0] == wait
        delta = event.delta if same else _as_number(wait)
        status = b"" if not event.stored and running == event.status else bytes([event.status])
        yield delta + status + event.data
        tick = event.tick
        running = event.status if event.status < _SYSEX else 0  # it ends with any other event


def _as_number(value: int) -> bytes:
    """Write a number, seven bits a byte."""
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F | 0x80)
    return bytes(reversed(groups))
