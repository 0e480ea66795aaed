"""Standard MIDI files, chunk by chunk and event by event.

Files are read by the standard (Standard MIDI Files 1.0, RP-001 of the MIDI Manufacturers Association). A file that
breaks it is refused where notes could be lost, moved or invented, and the message names the track, from 1, and the byte
of the file, from 0. What `symbolic.midi` reads and what `symbolic.rewriting.midi` edits come from here, so they are one
reading.

- A system-exclusive message (F0), its continuations (F7) and meta events (FF) have lengths of their own and take their
  time like every event. They cancel running status: a data byte after one of them is refused. Some programs go on with
  the status before a meta event, and many readers follow them; the standard forbids it.
- F1 to F6 and F8 to FE are messages of a wire, not of a file, and are refused, as are data bytes above 127 and numbers
  of more than four bytes.
- Type 2 and unknown types, SMPTE time and a division of 0 are refused, and so are fewer tracks than the header
  promises, and notes in those beyond them. A file of type 0 with several tracks is read as one of type 1, for they can
  only sound together.
- Chunks of other kinds are skipped, and so is what follows a track's end in its chunk, and the promised tracks in the
  file. A longer header, and longer signatures and tempi, are read as far as they are known.
- A track is to close with the event End of Track. One without it is read only where its chunk ends with an event and
  the file, or another track, follows at once; an empty chunk is refused.
- A key signature whose mode is neither 0 (major) nor 1 (minor) is left out: no note depends on it. Tempi and signatures
  with other impossible values are refused.
- A file within a RIFF file (RMID) is read as it stands there.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from music_evals.annotations import KeySignature, Tempo, TimeSignature
from music_evals.errors import FileTooLargeError, UnreadableFileError
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits, check_n_notes

NOTE_OFF, NOTE_ON, PROGRAM_CHANGE = 0x80, 0x90, 0xC0
SYSEX, SYSEX_MORE, META = 0xF0, 0xF7, 0xFF
DRUM_CHANNEL = 9

_TRACK_NAME, _END_OF_TRACK, _TEMPO, _TIME_SIGNATURE, _KEY_SIGNATURE = 0x03, 0x2F, 0x51, 0x58, 0x59
_SHORTEST = {_TEMPO: ("tempo", 3), _TIME_SIGNATURE: ("time signature", 4), _KEY_SIGNATURE: ("key signature", 2)}
_MAX_FIFTHS, _MAJOR, _MINOR = 7, 0, 1
_N_DATA_BYTES = (0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 2)  # by the upper half of the status
_ADVICE = "open it in a sequencer and save it anew"


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
        return self.status & 0xF0 in {NOTE_OFF, NOTE_ON}

    @property
    def starts_note(self) -> bool:
        """Whether it starts a note: a note-on of velocity 0 ends one."""
        return self.status & 0xF0 == NOTE_ON and self.data[1] > 0

    @property
    def ends_track(self) -> bool:
        """Whether it is the end of the track."""
        return self.status == META and self.data[0] == _END_OF_TRACK


class MidiNote(NamedTuple):
    """A note-on with the note-off that ends it."""

    onset: int
    """Its tick, from the start of the track."""
    end: int
    """The tick at which it ends, not before `onset`."""
    pitch: int
    velocity: int
    channel: int
    """From 0."""
    program: int
    """The program of its channel in its track when it starts, 0 where none was chosen."""
    start_event: int
    """Index of the note-on among the events of the track."""
    end_event: int
    """Index of what ends it."""


class MidiTrack(NamedTuple):
    """A track with its notes."""

    start: int
    """Where its events start in the file, in bytes."""
    stop: int
    """Where its chunk ends."""
    name: str
    """Its last track name, decoded; empty where it has none."""
    notes: list[MidiNote]
    """In the order of their ends."""


@dataclasses.dataclass(frozen=True, eq=False)
class MidiFile:
    """A MIDI file; a RIFF file has more before and after it."""

    name: str  # the file, for messages
    content: bytes
    start: int  # where the MIDI file lies in the content
    stop: int
    ticks_per_quarter: int
    tracks: tuple[MidiTrack, ...]
    time_signatures: tuple[TimeSignature, ...]  # these and those below of all tracks, at one tick in file order
    tempos: tuple[Tempo, ...]
    key_signatures: tuple[KeySignature, ...]

    def events(self, track: int) -> tuple[MidiEvent, ...]:
        """Return the events of a track up to its end."""
        place = self.tracks[track]
        return tuple(
            track_events(self.content[place.start : place.stop], f"{self.name}: track {track + 1}", place.start)
        )

    def with_track(self, track: int, body: bytes) -> bytes:
        """Return the file with another body of one track; the sizes around it are written anew."""
        place = self.tracks[track]
        head, tail = self.content[self.start : place.start - 4], self.content[place.stop : self.stop]
        file = head + len(body).to_bytes(4, "big") + body + tail
        if not self.start:
            return file
        # RIFF: chunks of odd size are padded with a byte, which the size of the whole counts and their own does not
        old_pad, pad = (self.stop - self.start) % 2, len(file) % 2
        content = self.content[: self.start - 4] + len(file).to_bytes(4, "little") + file + bytes(pad)
        content += self.content[self.stop + old_pad :]
        size = int.from_bytes(self.content[4:8], "little") + len(content) - len(self.content)
        return content[:4] + size.to_bytes(4, "little") + content[8:]


class _Chunk(NamedTuple):
    number: int  # of the track, from 1
    start: int  # of its events
    stop: int
    is_followed: bool  # by another track, or by the end of the file


def read_midi_file(content: bytes, name: str, *, limits: Limits = DEFAULT_LIMITS) -> MidiFile:
    """Read the tracks, notes, signatures and tempi of a MIDI file.

    Notes are paired in each track, channel and pitch by themselves, first in, first out. A note-on that nothing ends
    and a note-off of nothing are no notes.
    """
    start, stop = _find_file(content, name)
    ticks_per_quarter, n_tracks, position = _read_header(content, start, stop, name)
    reader = _Reader(name, limits, ticks_per_quarter)
    chunks = _track_chunks(content[:stop], position, name)
    notes = [reader.read_track(content[chunk.start : chunk.stop], chunk) for chunk in chunks]
    if len(chunks) < n_tracks or any(notes[n_tracks:]):
        raise UnreadableFileError(
            f"{name}: damaged MIDI file ({len(chunks)} tracks where the header promises {n_tracks}); {_ADVICE}"
        )
    return MidiFile(
        name,
        content,
        start,
        stop,
        ticks_per_quarter,
        tuple(
            MidiTrack(chunk.start, chunk.stop, text, track_notes)
            for chunk, text, track_notes in zip(chunks, decode_names(reader.track_names), notes, strict=True)
        ),
        tuple(sorted(reader.time_signatures, key=attrgetter("tick"))),
        tuple(sorted(reader.tempos, key=attrgetter("tick"))),
        tuple(sorted(reader.key_signatures, key=attrgetter("tick"))),
    )


def _find_file(content: bytes, name: str) -> tuple[int, int]:
    """Return where the MIDI file starts and stops: all of it, or the data chunk of a RIFF file."""
    if content[:4] != b"RIFF" or content[8:12] != b"RMID":
        return 0, len(content)
    position = 12
    while position + 8 <= len(content):
        size = int.from_bytes(content[position + 4 : position + 8], "little")
        start, stop = position + 8, position + 8 + size
        if content[position : position + 4] == b"data":
            if stop > len(content):
                raise UnreadableFileError(
                    f"{name}: byte {position}: {stop - len(content)} bytes are missing; {_ADVICE}"
                )
            return start, stop
        position = stop + size % 2
    raise UnreadableFileError(f"{name}: not a readable MIDI file (a RIFF file without a data chunk); {_ADVICE}")


def _read_header(content: bytes, start: int, stop: int, name: str) -> tuple[int, int, int]:
    """Return the ticks in a quarter, the number of tracks, and where the header ends."""
    refused = f"{name}: not a readable MIDI file"
    if content[start : start + 4] != b"MThd":
        raise UnreadableFileError(f"{refused} (it does not start with MThd); give a file that ends in .mid")
    after = start + 8 + int.from_bytes(content[start + 4 : start + 8], "big")
    if not start + 14 <= after <= stop:
        raise UnreadableFileError(f"{refused} (its header is cut off); {_ADVICE}")
    kind, n_tracks, division = (int.from_bytes(content[start + at : start + at + 2], "big") for at in (8, 10, 12))
    if kind == 2:
        raise UnreadableFileError(f"{name}: a MIDI file of type 2, whose tracks are pieces of their own; split it")
    if kind > 2:
        raise UnreadableFileError(f"{refused} (type {kind}, where 0, 1 and 2 are known); {_ADVICE}")
    if division == 0 or division >= 0x8000:
        time = "SMPTE time, in frames of a film" if division else "0 ticks in a quarter"
        raise UnreadableFileError(f"{refused} ({time}); export it with time in ticks of a quarter")
    return division, n_tracks, after


def _track_chunks(content: bytes, position: int, name: str) -> list[_Chunk]:
    """Return where the events of each track lie; chunks of other kinds are left out."""
    chunks: list[_Chunk] = []
    while position < len(content):
        start = position + 8
        stop = start + int.from_bytes(content[position + 4 : start], "big")
        if content[position : position + 4] == b"MTrk":
            place = f"{name}: track {len(chunks) + 1}, byte {position}"
            if stop > len(content):
                missing = stop - len(content)
                raise UnreadableFileError(f"{place}: {missing} bytes of the track are missing; {_ADVICE}")
            if stop == start:
                raise UnreadableFileError(f"{place}: the track says that it has no bytes, not even its end; {_ADVICE}")
            is_followed = content[stop : stop + 4] in {b"", b"MTrk"}
            chunks.append(_Chunk(len(chunks) + 1, start, stop, is_followed))
        position = stop
    return chunks


def track_events(body: bytes, place: str = "track", offset: int = 0) -> Iterator[MidiEvent]:
    """Yield the events of a track up to its end."""
    for tick, status, stored, begin, data, stop in _scan(body, place, offset):
        yield MidiEvent(tick, status, body[data:stop], stored, body[begin : data - stored])


def _scan(body: bytes, place: str, offset: int) -> Iterator[tuple[int, int, bool, int, int, int]]:
    """Yield tick, status and whether it is stored of each event, and where it, its data and the next one start."""
    size = len(body)
    padded = body + bytes(8)  # an event is read over the end, and found out afterwards
    position = tick = running = 0
    while position < size:
        begin = position
        wait = padded[position]
        position += 1
        if wait >= 0x80:
            wait, position = read_number(padded, begin, place, offset)
        tick += wait
        status = padded[position]
        stored = status >= 0x80
        if stored:
            data = position + 1
        else:
            # running status: that of the last channel message, without a byte of its own
            status, data = running, position
        if NOTE_OFF <= status < SYSEX:
            running = status
            position = data + _N_DATA_BYTES[status >> 4]
            # there are one or two data bytes, so that the first and the last are all
            if padded[data] >= 0x80 or padded[position - 1] >= 0x80:
                wrong = data + (padded[data] < 0x80)
                raise UnreadableFileError(
                    f"{place}, byte {offset + wrong}: {padded[wrong]:02X} is no data byte (00 to 7F); {_ADVICE}"
                )
        else:
            running = 0
            position = _end_of_system_event(padded, status, data, place, offset)
        if position > size:
            raise UnreadableFileError(
                f"{place}, byte {offset + begin}: the track ends within the event that starts here; {_ADVICE}"
            )
        yield tick, status, stored, begin, data, position
        if status == META and padded[data] == _END_OF_TRACK:
            return


def _end_of_system_event(padded: bytes, status: int, data: int, place: str, offset: int) -> int:
    """Return where a system-exclusive or meta event ends; any other is refused."""
    if status in {SYSEX, SYSEX_MORE}:
        length, start = read_number(padded, data, place, offset)
        return start + length
    if status == META:
        if padded[data] >= 0x80:
            raise UnreadableFileError(
                f"{place}, byte {offset + data}: {padded[data]:02X} is no kind of meta event (00 to 7F); {_ADVICE}"
            )
        length, start = read_number(padded, data + 1, place, offset)
        return start + length
    if status:
        raise UnreadableFileError(
            f"{place}, byte {offset + data - 1}: {status:02X} is no event of a MIDI file; {_ADVICE}"
        )
    raise UnreadableFileError(
        f"{place}, byte {offset + data}: data byte {padded[data]:02X} has no status byte (running status ends with a "
        f"system-exclusive or meta event); {_ADVICE}"
    )


def read_number(body: bytes, position: int, place: str = "track", offset: int = 0) -> tuple[int, int]:
    """Read a number of up to four bytes, seven bits in each; return it and where it ends."""
    value = 0
    for at in range(position, position + 4):
        byte = body[at]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + 1
    raise UnreadableFileError(f"{place}, byte {offset + position}: a number of more than four bytes; {_ADVICE}")


@dataclasses.dataclass
class _Reader:
    """Reads tracks one after the other, and gathers what belongs to the whole file."""

    name: str
    limits: Limits
    ticks_per_quarter: int
    n_notes: int = 0
    track_names: list[bytes] = dataclasses.field(default_factory=list)
    time_signatures: list[TimeSignature] = dataclasses.field(default_factory=list)
    tempos: list[Tempo] = dataclasses.field(default_factory=list)
    key_signatures: list[KeySignature] = dataclasses.field(default_factory=list)

    def read_track(self, body: bytes, chunk: _Chunk) -> list[MidiNote]:
        """Return the notes of a track."""
        place = f"{self.name}: track {chunk.number}"
        self.track_names.append(b"")
        programs = [0] * 16
        sounding: dict[int, collections.deque[tuple[int, int, int, int]]] = collections.defaultdict(collections.deque)
        notes: list[MidiNote] = []
        n_started = 0
        status = data = 0
        for index, (tick, status, _, begin, data, stop) in enumerate(_scan(body, place, chunk.start)):
            if status < 0xA0:
                channel, pitch, velocity = status & 0x0F, body[data], body[data + 1]
                waiting = sounding[channel << 7 | pitch]
                if velocity and status >= NOTE_ON:
                    waiting.append((tick, velocity, programs[channel], index))
                    n_started += 1
                    if self.n_notes + n_started > self.limits.max_notes:
                        # raise where too many notes have ended, or sound at once
                        n_ended = len(notes)
                        check_n_notes(max(self.n_notes + n_ended, n_started - n_ended), self.limits, self.name)
                elif waiting:
                    onset, velocity, program, start_event = waiting.popleft()
                    notes.append(MidiNote(onset, tick, pitch, velocity, channel, program, start_event, index))
            elif PROGRAM_CHANGE <= status < 0xD0:
                programs[status & 0x0F] = body[data]
            elif status == META:
                value = body[read_number(body, data + 1)[1] : stop]
                self._read_meta(body[data], value, tick, f"{place}, byte {chunk.start + begin}")
        if (status != META or body[data] != _END_OF_TRACK) and not chunk.is_followed:
            raise UnreadableFileError(
                f"{place}, byte {chunk.stop}: the track stops here without its end, and what follows is no track; "
                f"{_ADVICE}"
            )
        self.n_notes += len(notes)
        check_n_notes(self.n_notes, self.limits, self.name)
        return notes

    def _read_meta(self, kind: int, value: bytes, tick: int, place: str) -> None:
        """Take the name of the track, a tempo or a signature, or raise where it is impossible."""
        if kind == _TRACK_NAME:
            self.track_names[-1] = value
        if kind not in _SHORTEST:
            return
        if len(self.tempos) + len(self.time_signatures) + len(self.key_signatures) >= self.limits.max_notes:
            raise FileTooLargeError(
                f"{self.name}: more than {self.limits.max_notes} tempi and signatures (Limits.max_notes)",
                name=Path(self.name).name,
                unit="tempi and signatures",
                limit=self.limits.max_notes,
            )
        event, n_bytes = _SHORTEST[kind]
        if len(value) < n_bytes:
            raise UnreadableFileError(
                f"{place}: a {event} of {len(value)} bytes, where {n_bytes} are needed; {_ADVICE}"
            )
        if kind == _TEMPO:
            microseconds = int.from_bytes(value[:3], "big")
            if not microseconds:
                raise UnreadableFileError(f"{place}: a tempo of 0 microseconds a quarter; {_ADVICE}")
            self.tempos.append(Tempo(tick, 6e7 / microseconds))
        elif kind == _TIME_SIGNATURE:
            numerator, denominator = value[0], 2 ** value[1]
            if 4 * numerator * self.ticks_per_quarter < denominator:
                raise UnreadableFileError(
                    f"{place}: a time signature of {numerator}/{denominator}, whose bars are shorter than a tick, of "
                    f"which a quarter has {self.ticks_per_quarter}; {_ADVICE}"
                )
            self.time_signatures.append(TimeSignature(tick, numerator, denominator))
        else:
            self._read_key_signature(int.from_bytes(value[:1], "big", signed=True), value[1], tick, place)

    def _read_key_signature(self, fifths: int, mode: int, tick: int, place: str) -> None:
        if abs(fifths) > _MAX_FIFTHS:
            kind = "sharps" if fifths > 0 else "flats"
            raise UnreadableFileError(
                f"{place}: a key signature of {abs(fifths)} {kind}, where there are {_MAX_FIFTHS} at most; {_ADVICE}"
            )
        if mode in {_MAJOR, _MINOR}:
            self.key_signatures.append(KeySignature(tick, fifths, mode == _MINOR))


def decode_names(names: Sequence[bytes]) -> list[str]:
    r"""Decode the track names of one file, all by one codec, for one program wrote them.

    The standard knows only ASCII, and files do not say what else they are in. The first of these that fits all names
    together is taken:

    1. UTF-8, where they are valid UTF-8.
    2. GB18030 (Chinese), where they are valid, and at least half of their letters beyond ASCII are hanzi of the first
       level of GB 2312, the 3755 most frequent ones.
    3. Shift-JIS (Japanese, as code page 932), where they are valid, and at least half are kana or kanji of the first
       level of JIS X 0208; half-width kana do not count, for nearly every byte is one.
    4. Windows-1252, which holds Latin-1.

    One Chinese or Japanese character alone that touches an ASCII letter does not count: so "Flöte" and "Größe" look
    in the wrong codec. Korean and Cyrillic names are not recognised. NULs, with which some programs fill
    up a name, are left out.
    """
    names = [name.replace(b"\0", b"") for name in names]
    codec = "latin-1"
    for candidate, is_common in _CODECS.items():
        try:
            texts = [name.decode(candidate) for name in names]
        except UnicodeDecodeError:
            continue
        if is_common is None or _is_likely(texts, is_common):
            codec = candidate
            break
    return [name.decode(codec) for name in names]


def _is_likely(texts: Sequence[str], is_common: Callable[[str], bool]) -> bool:
    """Tell whether at least half of the letters beyond ASCII are common ones that do not stand alone in a word."""
    n_letters = n_common = 0
    for text in texts:
        for run in re.finditer(r"[^\x00-\x7f]+", text):
            letters = [letter for letter in run[0] if letter.isalpha()]
            n_letters += len(letters)
            around = text[max(run.start() - 1, 0) : run.start()] + text[run.end() : run.end() + 1]
            if len(run[0]) > 1 or not any(letter.isalpha() for letter in around):
                n_common += sum(map(is_common, letters))
    return n_common > 0 and 2 * n_common >= n_letters


def _is_common_chinese(letter: str) -> bool:
    code = letter.encode("gb18030")
    return len(code) == 2 and 0xB0 <= code[0] <= 0xD7 and code[1] >= 0xA1


_CODECS: dict[str, Callable[[str], bool] | None] = {  # with what tells a common letter
    "utf-8": None,
    "gb18030": _is_common_chinese,
    "cp932": lambda letter: "ぁ" <= letter <= "ヾ" or b"\x88\x9f" <= letter.encode("cp932") <= b"\x98\x72",
    "cp1252": None,
}
