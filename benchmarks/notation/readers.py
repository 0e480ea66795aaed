"""Our readers and the independent ones, each as a process of its own that reads one request a line.

::

    python -m benchmarks.notation.readers abc2midi      # as run.py starts it; requests come by standard input

A request is ``{"kind", "played", "content"}``: ABC as text or else the path of a file, to be read as it is played or in
written order. Of ABC the independent readers get a copy that is in the order wanted (`stripping.py`). The answer is
``{"notes": [[onset, duration, pitch], ...]}`` in quarters from the beginning of the file, ``{"refused": why}`` or
``{"crashed": why}``. The first line is ``{"version": ...}``, or ``{"missing": what}`` where the program is not
installed. This module imports nothing but the standard library, so that the independent readers can live in an
environment of their own.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

# abc2midi reports these and plays what is written: the note without its tie, the music without the repeat.
HARMLESS = ("Could not find note to be tied", "Missing :| at end of tune", "Expected end repeat not found at |:")

Notes = list[tuple[float, float, int]]
Read = Callable[[str, str, bool], Notes]


class RefusedError(ValueError):
    """The reader says that it cannot read the file."""


class MissingError(RuntimeError):
    """The program is not installed."""


def read_ours(kind: str, content: str, played: bool) -> Notes:  # noqa: FBT001
    """Read with `music_evals`: the text of a tune as it is, not the copy without ornaments."""
    from music_evals.errors import MusicEvalsError
    from music_evals.symbolic.midi import read_midi
    from music_evals.symbolic.notation import from_abc, read_musicxml

    try:
        if kind == "abc":
            score = from_abc(content, expand_repeats=played)
        else:
            score = read_midi(content) if kind == "midi" else read_musicxml(content, expand_repeats=played)
    except MusicEvalsError as error:
        raise RefusedError(f"{type(error).__name__}: {error}") from error
    tpq, notes = score.ticks_per_quarter, score.notes
    columns = (notes["onset_tick"] / tpq, notes["duration_tick"] / tpq, notes["pitch"])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def find_abc2midi() -> str:
    """Return the program: the one that symusic's wheel brings, or else the system's."""
    spec = importlib.util.find_spec("symusic")
    inside = Path(spec.origin).parent / "bin" / "abc2midi" if spec is not None and spec.origin else None
    program = str(inside) if inside is not None and inside.is_file() else shutil.which("abc2midi")
    if program is None:
        raise MissingError("abc2midi is not installed: pip install symusic, or apt-get install abcmidi")
    return program


def read_abc2midi(_kind: str, content: str, _played: bool) -> Notes:  # noqa: FBT001
    """Read a copy without ornaments with abc2midi, and what it writes with mido."""
    number, _, rest = content.partition("\n")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "tune.abc"), Path(folder, "tune.mid")
        # The notes of a chord come one after the other unless they are told to come together.
        source.write_text(f"{number}\n%%MIDI chordattack 0\n{rest}", encoding="utf-8")
        done = subprocess.run(
            [find_abc2midi(), str(source), "-o", str(target), "-quiet"],
            capture_output=True, check=False, encoding="utf-8", errors="replace",
        )  # fmt: skip
        said = (done.stdout + done.stderr).splitlines()
        errors = [line for line in said if line.startswith("Error") and not line.rstrip().endswith(HARMLESS)]
        if errors:  # it ends with code 0 all the same
            raise RefusedError("; ".join(errors))
        if not target.is_file():
            raise RefusedError(f"no MIDI file; it ended with code {done.returncode}")
        # Onsets come up to two ticks of 480 late, which is within the tolerance.
        return midi_notes(mido_file(filename=str(target)))


def mido_file(**source: Any) -> Any:
    """Open a MIDI file with mido."""
    mido = importlib.import_module("mido")
    try:
        return mido.MidiFile(**source)
    except (OSError, ValueError, EOFError, LookupError, mido.KeySignatureError) as error:
        raise RefusedError(f"{type(error).__name__}: {error}") from error


def midi_notes(file: Any) -> Notes:
    """Pair note-ons with note-offs in their order, track by track and channel by channel.

    A note-on without an end is no note. A note of no length lasts one tick, as it does for us.
    """
    notes: Notes = []
    for track in file.tracks:
        now = 0
        sounding: dict[tuple[int, int], list[int]] = defaultdict(list)
        for message in track:
            now += message.time
            if message.type not in {"note_on", "note_off"}:
                continue
            starts = sounding[message.channel, message.note]
            if message.type == "note_on" and message.velocity:
                starts.append(now)
            elif starts:
                start = starts.pop(0)
                length = max(now - start, 1)
                notes.append((start / file.ticks_per_beat, length / file.ticks_per_beat, message.note))
    return notes


def read_mido(_kind: str, content: str, _played: bool) -> Notes:  # noqa: FBT001
    """Read a MIDI file with mido."""
    file = mido_file(filename=content)
    if file.type == 2:
        raise RefusedError("type 2: patterns that are no one piece")
    return midi_notes(file)


def read_pretty_midi(_kind: str, content: str, _played: bool) -> Notes:  # noqa: FBT001
    """Read a MIDI file with pretty_midi; a note-off ends all notes of its pitch there."""
    pretty_midi = importlib.import_module("pretty_midi")
    try:
        file = pretty_midi.PrettyMIDI(content)
    except Exception as error:
        raise RefusedError(f"{type(error).__name__}: {error}") from error
    ticks = [
        (file.time_to_tick(note.start), file.time_to_tick(note.end), note.pitch)
        for instrument in file.instruments
        for note in instrument.notes
    ]
    return [(start / file.resolution, (end - start) / file.resolution, pitch) for start, end, pitch in ticks]


def read_verovio(kind: str, content: str, played: bool) -> Notes:  # noqa: FBT001
    """Read MusicXML, or a copy of ABC without ornaments, with verovio, and its MIDI with mido."""
    verovio = importlib.import_module("verovio")
    verovio.enableLog(0)
    toolkit = verovio.toolkit()
    toolkit.setOptions({"expandNever": not played, "midiNoCue": True, "inputFrom": "abc" if kind == "abc" else "auto"})
    if not (toolkit.loadData(content) if kind == "abc" else toolkit.loadFile(content)):
        raise RefusedError("not loaded")
    midi = base64.b64decode(toolkit.renderToMIDI())
    return midi_notes(mido_file(file=io.BytesIO(midi)))


def read_music21(_kind: str, content: str, _played: bool) -> Notes:  # noqa: FBT001
    """Read MusicXML with music21, in written order at sounding pitch, ties merged."""
    music21 = importlib.import_module("music21")
    try:
        score = music21.converter.parse(content, forceSource=True)
        score = score.toSoundingPitch().stripTies()
    except Exception as error:
        raise RefusedError(f"{type(error).__name__}: {error}") from error
    notes: Notes = []
    for element in score.flatten().notes:
        if isinstance(element, music21.harmony.Harmony) or element.duration.isGrace:
            continue
        times = float(element.offset), float(element.quarterLength)
        notes += [(*times, pitch.midi) for pitch in element.pitches]
    return notes


def read_partitura(_kind: str, content: str, played: bool) -> Notes:  # noqa: FBT001
    """Read MusicXML with partitura; its pitches are the written ones, so each transposition is applied here."""
    partitura = importlib.import_module("partitura")
    try:
        parts = partitura.load_musicxml(content, quiet=True).parts
        octaves = octave_changes(Path(content))
        for part, changes in zip(parts, octaves, strict=False):
            for change, octave in zip(part.iter_all(partitura.score.Transposition), changes, strict=False):
                change.chromatic += 12 * octave
        if played:
            parts = [partitura.score.unfold_part_maximal(part) for part in parts]
        return [note for part in parts for note in _part_notes(partitura, part)]
    except Exception as error:
        raise RefusedError(f"{type(error).__name__}: {error}") from error


def octave_changes(path: Path) -> list[list[int]]:
    """Return the octaves of each ``<transpose>`` of each part, which partitura 1.9 leaves out."""
    if path.suffix == ".mxl":
        with zipfile.ZipFile(path) as archive:
            container = ET.fromstring(archive.read("META-INF/container.xml"))  # noqa: S314 - pinned files
            names = [node.attrib["full-path"] for node in container.iter() if "full-path" in node.attrib]
            document = archive.read(names[0])
    else:
        document = path.read_bytes()
    parts = ET.fromstring(document).iter("part")  # noqa: S314
    return [[int(node.findtext("octave-change", "0")) for node in part.iter("transpose")] for part in parts]


def _part_notes(partitura: Any, part: Any) -> Iterable[tuple[float, float, int]]:
    # Its quarters count from the first full bar.
    start = float(part.quarter_map(part.first_point.t))
    changes = sorted((change.start.t, change.chromatic) for change in part.iter_all(partitura.score.Transposition))
    for note in part.note_array():
        if note["duration_div"] > 0:
            shift = next((by for at, by in reversed(changes) if at <= note["onset_div"]), 0)
            onset, duration = float(note["onset_quarter"]) - start, float(note["duration_quarter"])
            yield onset, duration, int(note["pitch"]) + shift


def _abc2midi_version() -> str:
    first = subprocess.run([find_abc2midi(), "-ver"], capture_output=True, check=False, encoding="utf-8").stdout
    return first.split()[0]


def _version_of(*packages: str) -> Callable[[], str]:
    def version() -> str:
        for package in packages:
            if importlib.util.find_spec(package) is None:
                raise MissingError(f"{package} is not installed: pip install {package}")
        return importlib.metadata.version(packages[0])

    return version


READERS: dict[str, tuple[Read, Callable[[], str]]] = {
    "music_evals": (read_ours, _version_of("music_evals")),
    "abc2midi": (read_abc2midi, _abc2midi_version),
    "verovio": (read_verovio, _version_of("verovio", "mido")),
    "music21": (read_music21, _version_of("music21")),
    "partitura": (read_partitura, _version_of("partitura")),
    "mido": (read_mido, _version_of("mido")),
    "pretty_midi": (read_pretty_midi, _version_of("pretty_midi")),
}


def serve(name: str, answers: io.TextIOBase) -> None:
    """Answer the requests of standard input, one a line, until it ends."""

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    read, version = READERS[name]
    try:
        say({"version": version()})
    except MissingError as error:
        say({"missing": str(error)})
        return
    for line in sys.stdin:
        request = json.loads(line)
        try:
            say({"notes": read(request["kind"], request["content"], request["played"])})
        except RefusedError as error:
            say({"refused": str(error)[:500]})
        except Exception as error:  # noqa: BLE001 - what is counted here
            say({"crashed": f"{type(error).__name__}: {error}"[:500]})


def main() -> None:
    """Serve the reader of this name, with standard output for answers alone."""
    # Readers print on standard output, in C too; their words go to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with warnings.catch_warnings(), contextlib.closing(answers):
        warnings.simplefilter("ignore")
        serve(sys.argv[1], answers)


if __name__ == "__main__":
    main()
