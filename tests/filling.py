"""Tunes of many kinds that are filled in tests, all of our own making, and a model that fills any gap."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, REST, Tokens
from music_evals.protocols import GapLimits

PHRASE = (60, 62, 64, 65, 67, 65, 64, 62, 60, 64, 67, 72, 71, 69, 67, 67)


class Walker:
    """Draws notes of the context: quarters, eighths, triplets and rests; more frequent pitches are likelier."""

    name = "walker"
    deterministic = False
    sees_reference = False

    def __init__(self, steps: int = 384, hidden_steps: int = 192, quantum: int = 6) -> None:
        self.gap_limits = GapLimits(steps, hidden_steps, quantum)
        self.shown: list[tuple[Tokens, npt.NDArray[np.bool_]]] = []

    def infill(self, tokens: Tokens, hidden: npt.NDArray[np.bool_], *, rng: np.random.Generator) -> Tokens:
        self.shown.append((tokens.copy(), hidden.copy()))
        filled = tokens.copy()
        for row, mask in zip(filled, hidden, strict=True):
            pitches = row[~mask & (row < HOLD)]
            steps = np.flatnonzero(mask)
            row[steps] = HOLD
            length = int(rng.choice([2, 3, 6]))
            row[steps[::length]] = rng.choice([*pitches, REST], size=len(steps[::length]))
        return filled

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        hidden = np.zeros(contexts.shape, dtype=np.bool_)
        hidden[:, 144:240] = True
        return self.infill(contexts, hidden, rng=rng)[:, 144:240]

    def gap_log_likelihood(self, tokens: Tokens, hidden: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        found = []
        for row, mask in zip(tokens, hidden, strict=True):
            counts = np.bincount(row[~mask & (row < HOLD)], minlength=128) + 0.1
            inside = row[mask & (row < HOLD)]
            found.append(float(np.log(counts / counts.sum())[inside].sum()))
        return np.array(found)


def number(value: int) -> bytes:
    """Write a number of MIDI, seven bits a byte."""
    groups = [value & 127]
    while value := value >> 7:
        groups.append(value & 127 | 128)
    return bytes(reversed(groups))


def chunk(events: Sequence[tuple[int, bytes]], *, running: bool = False, tail: bytes = b"") -> bytes:
    """Return a track of events at ticks; with running status a repeated status byte is left out."""
    body, tick, last = b"", 0, b""
    for at, event in sorted(events, key=lambda row: row[0]):
        bare = running and event[:1] == last and event[0] < 0xF0
        body += number(at - tick) + (event[1:] if bare else event)
        tick, last = at, event[:1] if event[0] < 0xF0 else b""
    body += b"\x00\xff\x2f\x00" + tail
    return b"MTrk" + len(body).to_bytes(4, "big") + body


def midi(tracks: Sequence[bytes], ticks_per_quarter: int, kind: int = 1) -> bytes:
    head = kind.to_bytes(2, "big") + len(tracks).to_bytes(2, "big") + ticks_per_quarter.to_bytes(2, "big")
    return b"MThd\x00\x00\x00\x06" + head + b"".join(tracks)


def named(name: str) -> tuple[int, bytes]:
    return 0, b"\xff\x03" + bytes([len(name)]) + name.encode()


def meter(upper: int, power: int, tick: int = 0) -> tuple[int, bytes]:
    return tick, bytes([0xFF, 0x58, 4, upper, power, 24, 8])


def line(
    rows: Sequence[tuple[float, float, int]], ticks_per_quarter: int, channel: int = 0, *, off: bool = True
) -> list[tuple[int, bytes]]:
    """Return note events of (onset, duration, pitch) in quarters; without `off` a note ends by a velocity of 0."""
    events = []
    for onset, duration, pitch in rows:
        start, end = round(onset * ticks_per_quarter), round((onset + duration) * ticks_per_quarter)
        ending = bytes([0x80 | channel, pitch, 33]) if off else bytes([0x90 | channel, pitch, 0])
        events += [(end, ending), (start, bytes([0x90 | channel, pitch, 70 + pitch % 20]))]
    # what ends at a tick comes before what starts there
    return sorted(events, key=lambda row: (row[0], row[1][0] & 0xF0 == 0x90 and row[1][2] > 0))


def quarters(n: int, start: float = 0.0, shift: int = 0) -> list[tuple[float, float, int]]:
    return [(start + index, 1.0, PHRASE[index % 16] + shift) for index in range(n)]


def write_midis(folder: Path) -> None:
    """Write MIDI files of several types, resolutions and habits."""
    controls = [(at * 480, bytes([0xB0, 64, 127 * (at % 2)])) for at in range(0, 64, 3)]
    both = [meter(4, 2), *line(quarters(64), 480), *line(quarters(64, shift=-24), 480, 1), *controls]
    (folder / "type0.mid").write_bytes(midi([chunk([named("one track"), *both])], 480, 0))
    tempo = [meter(4, 2), (0, b"\xff\x51\x03\x07\xa1\x20"), (100 * 30, b"\xff\x51\x03\x08\xa1\x20")]
    words = [(100 * at, b"\xff\x05\x02la") for at in range(0, 64, 2)]
    tune = [named("Tune"), (0, b"\xc0\x28"), *line(quarters(64), 100, off=False), *words]
    bass = [named("Bass"), *line([(4 * bar, 4.0, 36 + bar % 5) for bar in range(16)], 100, 1)]
    tracks = [chunk(tempo), chunk(tune, running=True, tail=b"\x00\x90"), chunk(bass), b"XYZW\x00\x00\x00\x03abc"]
    (folder / "odd_running.mid").write_bytes(midi(tracks[:3], 100) + tracks[3])
    waltz = [meter(3, 2), *line([*quarters(23), (23, 2.5, 67), *quarters(22, 26)], 96, 3)]
    (folder / "waltz.midi").write_bytes(midi([chunk(waltz)], 96))
    pickup = [meter(1, 2), meter(4, 2, 220), *line(quarters(65), 220, 2)]
    (folder / "pickup.mid").write_bytes(midi([chunk([named("Pickup"), *pickup])], 220))


def xml_note(step: str, octave: int, duration: int, voice: str = "1", *, extra: str = "") -> str:
    pitch = f"<pitch><step>{step}</step><octave>{octave}</octave></pitch>"
    return f"<note>{pitch}<duration>{duration}</duration>{extra}<voice>{voice}</voice></note>"


def xml_part(part: str, measures: Sequence[str], *, divisions: int, time: tuple[int, int], fifths: int = 0) -> str:
    head = (
        f"<attributes><divisions>{divisions}</divisions><key><fifths>{fifths}</fifths></key><time><beats>{time[0]}"
        f"</beats><beat-type>{time[1]}</beat-type></time></attributes>"
    )
    texts = [
        f'  <measure number="{index}">\n   {head if index == 1 else ""}{text}\n  </measure>\n'
        for index, text in enumerate(measures, start=1)
    ]
    return f' <part id="{part}">\n{"".join(texts)} </part>\n'


def xml(
    parts: dict[str, str], names: dict[str, str], declaration: str = '<?xml version="1.0" encoding="UTF-8"?>'
) -> str:
    listed = "".join(
        f'<score-part id="{key}"><part-name>{name}</part-name></score-part>' for key, name in names.items()
    )
    return (
        f'{declaration}\n<score-partwise version="4.0">\n <!-- kept as it is --><part-list>{listed}</part-list>\n'
        f"{''.join(parts.values())}</score-partwise>\n"
    )


LETTERS = "CDEFGAB"


def choir(n_measures: int = 16) -> str:
    """Return a score of two parts; the first has two voices, with words and chord symbols between the notes."""
    upper, lower = [], []
    for bar in range(n_measures):
        first = "".join(
            xml_note(LETTERS[(bar + beat) % 7], 5, 2)
            + ("<direction><direction-type><words>dolce</words></direction-type></direction>" if beat == 1 else "")
            + ("<harmony><root><root-step>G</root-step></root><kind>major</kind></harmony>" if beat == 2 else "")
            for beat in range(4)
        )
        second = xml_note(LETTERS[bar % 7], 4, 8, "2")
        upper.append(f"{first}<backup><duration>8</duration></backup>\n   {second}")
        lower.append(xml_note(LETTERS[(3 * bar) % 7], 3, 8))
    parts = {
        "P1": xml_part("P1", upper, divisions=2, time=(4, 4), fifths=2),
        "P2": xml_part("P2", lower, divisions=2, time=(4, 4), fifths=2),
    }
    return xml(parts, {"P1": "Ch\u0153ur", "P2": "Bass"})


def held_jig() -> str:
    """Return a jig for a clarinet in B flat, in which notes are tied into measure 7 and out of measure 8."""
    start = '<tie type="start"/>'
    stop = '<tie type="stop"/>'
    bars = ["".join(xml_note(LETTERS[(bar + beat) % 7], 4, 3) for beat in range(2)) for bar in range(12)]
    bars[0] = "<attributes><transpose><chromatic>-2</chromatic></transpose></attributes>" + bars[0]
    bars[5] = xml_note("C", 4, 3) + xml_note("E", 4, 3, extra=start)
    bars[6] = xml_note("E", 4, 3, extra=stop) + xml_note("G", 4, 3)
    bars[7] = xml_note("G", 4, 3) + xml_note("A", 4, 3, extra=start)
    bars[8] = xml_note("A", 4, 3, extra=stop) + xml_note("B", 4, 3)
    return xml({"P1": xml_part("P1", bars, divisions=2, time=(6, 8))}, {"P1": "Clarinet"}, '<?xml version="1.0"?>')


def write_scores(folder: Path) -> None:
    """Write MusicXML files: plain, compressed, and in UTF-16."""
    (folder / "choir.musicxml").write_text(choir(), encoding="utf-8")
    (folder / "jig.xml").write_bytes(held_jig().replace('"1.0"?', '"1.0" encoding="UTF-16"?').encode("utf-16"))
    container = '<container><rootfiles><rootfile full-path="score.xml"/></rootfiles></container>'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("score.xml", choir())
        archive.writestr("cover.png", b"\x89PNG no picture")
    (folder / "choir.mxl").write_bytes(packed.getvalue())


REEL = """\
%abc-2.1
% a tune of our own
X:7
T:The filled gap
M:4/4
L:1/8
K:Edor
B2|:"Em"E2 GF E2 Bc|d2 (3cBA B2 ^GA|"D"d3 A F2 A2|{f}g4 ~f2 ed|
e2 Be "A"e2 ^cd|(e2 f2) g2 fe-|e2 d2 [M:4/4] B>A G2|"Bm"F2 DF "C"E2 z2|
B2 e2 e2 de|f2 af e2 d2-|d4 !trill!B4|A2 FA D2 FA|1 E8 :|2 E6 z2|]
W: words at the end
"""

TWO_TUNES = (
    "X:1\r\nT:Un caf\xe9\r\nM:3/4\r\nL:1/4\r\nK:G\r\n"
    + "GAB|cBA|" * 7
    + "G3|]\r\n\r\n"
    + ("X:2\r\nT:Second\r\nM:3/4\r\nL:1/4\r\nK:F\r\nw: la\r\n" + "FGA|B2c|" * 6 + "F3|]\r\n")
)

DUET = 'X:1\nM:4/4\nL:1/4\nV:1 name="High voice"\nV:2 name=Low\nK:D\n' + "".join(
    f"V:1\n{'defg|agfe|' if pair % 2 else 'abag|f2e2|'}\nV:2\n{'D2A,2|D4|'}\n" for pair in range(8)
)


def write_abcs(folder: Path) -> None:
    """Write ABC files: repeats and a pickup, two tunes in Latin-1, and two voices."""
    (folder / "reel.abc").write_text(REEL, encoding="utf-8", newline="")
    (folder / "two.abc").write_bytes(TWO_TUNES.encode("latin-1"))
    (folder / "duet.abc").write_text(DUET, encoding="utf-8", newline="")


def write_chords(folder: Path) -> None:
    """Write sixteen measures of C D E F, each over its lower octave, as one voice in three formats."""
    upper = [(index, 1.0, (72, 74, 76, 77)[index % 4]) for index in range(64)]
    lower = [(onset, duration, pitch - 12) for onset, duration, pitch in upper]
    (folder / "octaves.mid").write_bytes(midi([chunk([meter(4, 2), *line(upper, 24), *line(lower, 24)])], 24))
    (folder / "octaves.abc").write_text("X:1\nM:4/4\nL:1/4\nK:C\n" + "[cC][dD][eE][fF]|" * 16 + "\n")
    both = "".join(xml_note(s, 5, 1) + xml_note(s, 4, 1).replace("<note>", "<note><chord/>") for s in "CDEF")
    part = xml_part("P1", [both] * 16, divisions=1, time=(4, 4))
    (folder / "octaves.musicxml").write_text(xml({"P1": part}, {"P1": "Piano"}), encoding="utf-8")


TUNES = {
    "type0.mid": ("one track channel 1", "7-10", "lag_vote"),
    "odd_running.mid": ("Tune", "7-10", "copy_past"),
    "waltz.midi": (None, "5-9", "walker"),
    "pickup.mid": ("Pickup", "3-6", "walker"),
    "choir.musicxml": ("Ch\u0153ur voice 1", "7-10", "interpolation_copy"),
    "choir.mxl": ("Bass", "3-5", "walker"),
    "jig.xml": (None, "7-8", "walker"),
    "reel.abc": (None, "2-7", "walker"),
    "two.abc": (None, "4-5", "walker"),
    "duet.abc": ("High voice", "7-10", "copy_past"),
}
"""File -> voice, measures and model of the ten tunes."""


def write_tunes(folder: Path) -> None:
    write_midis(folder)
    write_scores(folder)
    write_abcs(folder)
