"""`known_edits`: edits of music whose truth is known exactly. Builder of the data set, its loader and its recordings.

A row is a piece and one edit of it: both scores as MIDI files, operations on the recording, the truth of both (beats,
tempo, key, chords, melody, sections), and what `edits.yaml` says the edit left alone. `render` makes the recordings.
"""

# no `from __future__ import annotations`: it would make a second thing of that name, next to the function

import dataclasses
import functools
import hashlib
import io
import json
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.annotations import Beats, Chords, Chroma, Features, Key, Melody, Score, Segments
from music_evals.datasets.known_edits import audio_edits
from music_evals.datasets.known_edits.arranging import Plan, Texture, arrange, spread
from music_evals.datasets.known_edits.chorales import CHORALES, set_chorale
from music_evals.datasets.known_edits.harmony import NAMES
from music_evals.datasets.known_edits.kinds import Edited, apply_edit
from music_evals.datasets.known_edits.labels import Kind, declared, half_of, holds, kinds, pieces
from music_evals.datasets.known_edits.pieces import TPQ, Note, Piece, Span, beat_of
from music_evals.datasets.known_edits.songs import compose, songs
from music_evals.datasets.known_edits.truth import f0_track, features_of, moved, parts_of, velocity_chroma
from music_evals.datasets.manifest import load_split
from music_evals.errors import OutputError, UnknownNameError
from music_evals.files import cache_folder, write_atomically
from music_evals.protocols import RENDERERS
from music_evals.symbolic.midi import read_midi, write_midi
from music_evals.yaml_files import packaged_yaml

__all__ = [
    "SMALL_EDITS", "SMALL_PIECES", "Edit", "annotations", "build_configs", "chroma", "compose_piece", "features",
    "iter_edits", "left_out", "load_rows", "render", "render_pair", "row_of", "score",
]  # fmt: skip

RENDERED = {"known_edits": "render_pair"}

LOGGER = logging.getLogger(__name__)

SIDES = ("reference", "estimate")

SMALL_PIECES = ("song_pop", "folk_auld_lang_syne")  # of the config `small`
SMALL_EDITS = (
    ("gain", -18),
    ("reharmonised", 1.0),
    ("tempo", 0.9),
    ("sections_reordered", 1),
    ("melody_replaced", 1.0),
)
"""Kinds and strengths of the config `small`: the control and one edit a facet."""

SAMPLE_RATE = 22050  # Hz, of the recordings
_RENDER_VERSION = 1  # goes up when the same row sounds different


@dataclasses.dataclass(frozen=True, eq=False)
class Edit:
    """One edit of one piece."""

    piece: Piece  # the source
    kind: Kind  # what `edits.yaml` says of the kind
    strength: float  # one of its strengths
    edited: Edited  # music, operations and words
    before: Features  # the truth of both sides
    after: Features

    @property
    def item_id(self) -> str:
        """Piece, kind and strength, e.g. ``"song_pop/transpose/7"``."""
        return f"{self.piece.name}/{self.kind.name}/{self.strength:g}"

    @property
    def labels(self) -> Mapping[str, str]:
        """Field -> label, as `edits.yaml` says."""
        return self.kind.labels[self.kind.strengths.index(self.strength)]

    @property
    def untrue(self) -> list[str]:
        """Fields whose label is not true of this piece."""
        return [field for field, label in self.labels.items() if not holds(field, label, self.before, self.after)]


@functools.cache
def _tunes() -> dict[str, Any]:
    tunes: dict[str, Any] = packaged_yaml("music_evals.datasets.known_edits", "tunes.yaml")
    return tunes


@functools.cache
def compose_piece(name: str) -> Piece:
    """Return one of the 28 pieces; the same at every call."""
    if name in songs():
        return compose(name)
    if name in CHORALES:
        return set_chorale(name)
    tunes = _tunes()
    if name in tunes:
        return _arrange_tune(name, tunes[name])
    raise UnknownNameError("piece of known_edits", name, pieces())


def iter_edits(names: Iterable[str] | None = None) -> Iterator[Edit]:
    """Make the edits of pieces in memory, in the order of `edits.yaml`; those in `left_out` are not among them."""
    for edit in _every_edit(names):
        if not _reason(edit):
            yield edit


def left_out(names: Iterable[str] | None = None) -> dict[str, dict[str, int]]:
    """Count the edits that the set does not hold: reason -> kind -> pieces times strengths."""
    # needs: the piece does not offer what the kind needs. repeats: the edit is that of a weaker strength once more; two
    # sections in reverse order are two sections rotated. untrue: a label of `edits.yaml` is not true of this piece; a
    # chord on the last beat of a bar alone does not survive the loss of that beat.
    counts: dict[str, Counter[str]] = {"needs": Counter(), "repeats": Counter(), "untrue": Counter()}
    for name in pieces() if names is None else names:
        for kind in kinds().values():
            counts["needs"][kind.name] += len(kind.strengths) * (not _offered(compose_piece(name), kind))
    for edit in _every_edit(names):
        if reason := _reason(edit):
            counts[reason][edit.kind.name] += 1
    return {reason: {kind: n for kind, n in count.items() if n} for reason, count in counts.items()}


def _offered(piece: Piece, kind: Kind) -> bool:
    return not kind.needs or kind.needs in piece.offers


def _every_edit(names: Iterable[str] | None) -> Iterator[Edit]:
    for name in pieces() if names is None else names:
        piece = compose_piece(name)
        before = features_of(piece)
        for kind in kinds().values():
            for strength in kind.strengths if _offered(piece, kind) else ():
                edited = apply_edit(piece, kind.name, strength)
                after = moved(features_of(edited.piece), edited.operations)
                yield Edit(piece, kind, strength, edited, before, after)


def _reason(edit: Edit) -> str:
    """Return why an edit is left out, or ""."""
    if edit.kind.name == "sections_reordered" and edit.strength == 2 and len(edit.piece.sections) == 2:
        return "repeats"
    return "untrue" if edit.untrue else ""


def features() -> Any:
    """Return the columns as `datasets.Features`."""
    import datasets

    text, number = datasets.Value("string"), datasets.Value("float64")
    span = {"start_sec": number, "end_sec": number}
    truth = {
        "duration_sec": number,
        "bpm": number,
        "beats_sec": datasets.List(number),
        "key": {"tonic": datasets.Value("int8"), "mode": text},
        "chords": datasets.List({**span, "label": text}),
        "melody": datasets.List({**span, "pitch": number}),
        "sections": datasets.List({**span, "label": text}),
    }
    return datasets.Features(
        {
            **dict.fromkeys(("item_id", "piece", "half", "kind"), text),
            "strength": number,
            "instruction": text,
            **dict.fromkeys(("reference_midi", "estimate_midi"), datasets.Value("binary")),
            "operations": text,
            "reference": truth,
            "estimate": truth,
            "labels": dict.fromkeys(declared()["fields"], text),
        }
    )


def row_of(edit: Edit) -> dict[str, Any]:
    """Return an edit as a row of the data set."""
    return {
        "item_id": edit.item_id,
        "piece": edit.piece.name,
        "half": half_of(edit.piece.name),
        "kind": edit.kind.name,
        "strength": float(edit.strength),
        "instruction": edit.edited.instruction,
        "reference_midi": write_midi(edit.piece.score()),
        "estimate_midi": write_midi(edit.edited.piece.score()),
        "operations": json.dumps(list(edit.edited.operations)),
        "reference": _truth_row(edit.before),
        "estimate": _truth_row(edit.after),
        "labels": dict(edit.labels),
    }


def _truth_row(truth: Features) -> dict[str, Any]:
    beats, key, chords, melody, segments = parts_of(truth)
    return {
        "duration_sec": truth.duration_sec,
        "bpm": beats.bpm,
        "beats_sec": beats.times_sec.tolist(),
        "key": {"tonic": key.tonic, "mode": key.mode},
        "chords": _span_rows(chords.intervals_sec, "label", chords.labels),
        "melody": _span_rows(melody.intervals_sec, "pitch", melody.pitches.tolist()),
        "sections": _span_rows(segments.intervals_sec, "label", segments.labels),
    }


def _span_rows(intervals_sec: Any, name: str, values: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {"start_sec": start, "end_sec": end, name: value}
        for (start, end), value in zip(intervals_sec.tolist(), values, strict=True)
    ]


def build_configs() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Make all rows: config -> split -> rows."""
    rows = [row_of(edit) for edit in iter_edits()]
    halves = {half: [row for row in rows if row["half"] == half] for half in declared()["pieces"]}
    few = [row for row in rows if row["piece"] in SMALL_PIECES]
    small = [row for row in few if (row["kind"], row["strength"]) in SMALL_EDITS]
    return {"default": halves, "small": {"test": small}}


def load_rows(
    config: str = "default", split: str = "held_out", *, dataset: str | os.PathLike[str] = "known_edits"
) -> Any:
    """Load one split of the data set as a `datasets.Dataset`; its rows are what the other functions here take.

    There are ``"default"`` with ``"tuning"`` and ``"held_out"``, and ``"small"`` with ``"test"``; others raise
    `UnknownNameError`. The dataset is a name as `repositories.find_repository` finds it, a folder, or an id on the Hub.
    """
    return load_split(dataset, config, split)


def annotations(row: Mapping[str, Any], which: str) -> Features:
    """Return the exact truth of one side of a row; chroma and structure are not part of it."""
    truth = row[_side(which)]
    melody = Melody(_spans(truth["melody"]), np.array([note["pitch"] for note in truth["melody"]], dtype=np.float64))
    return Features(
        truth["duration_sec"],
        beats=Beats(np.array(truth["beats_sec"], dtype=np.float64), truth["bpm"]),
        key=Key(truth["key"]["tonic"], truth["key"]["mode"]),
        chords=Chords(_spans(truth["chords"]), tuple(chord["label"] for chord in truth["chords"])),
        f0=f0_track(melody, truth["duration_sec"]),
        melody=melody,
        segments=Segments(_spans(truth["sections"]), tuple(span["label"] for span in truth["sections"])),
    )


def _spans(rows: Iterable[Mapping[str, Any]]) -> Any:
    return np.array([(row["start_sec"], row["end_sec"]) for row in rows], dtype=np.float64).reshape(-1, 2)


def _side(which: str) -> str:
    if which not in SIDES:
        raise UnknownNameError("side of a pair", which, SIDES)
    return which


def chroma(row: Mapping[str, Any], which: str) -> Chroma:
    """Return the pitch classes that one side of a row sounds, from its score; see `truth.velocity_chroma`."""
    operations = json.loads(row["operations"]) if which == "estimate" else []
    return velocity_chroma(score(row, which), row[which]["duration_sec"], operations)


def score(row: Mapping[str, Any], which: str) -> Score:
    """Return the score of one side of a row, before any operation on the recording; its voices are named by role."""
    return read_midi(row[f"{_side(which)}_midi"])


def render(
    row: Mapping[str, Any],
    *,
    renderer: str = "additive",
    which: str = "estimate",
    cache: str | os.PathLike[str] | None = None,
) -> Path:
    """Make the recording of one side of a row, or find it in the cache.

    Recordings are mono WAV files of 32-bit floats at 22.05 kHz, so that a lower level stays what it is. Their names are
    made of what they hold: all edits of a piece share the file of the source, and processes that render the same at one
    time write the same. The renderer is ``"additive"``, which needs nothing, or ``"fluidsynth"``, which raises
    `MissingBackendError` without FluidSynth and a soundfont; `which` is ``"reference"`` or ``"estimate"``; the cache is
    ``$MUSIC_EVALS_CACHE/known_edits`` or ``~/.cache/music_evals/known_edits``. Another renderer or side raises
    `UnknownNameError`; a cache and a temporary folder that cannot be written to `OutputError`.
    """
    midi: bytes = row[f"{_side(which)}_midi"]
    operations = row["operations"] if which == "estimate" else "[]"
    folder = cache_folder("known_edits") if cache is None else Path(cache)
    source = _stored(folder, midi, "[]", renderer)
    return source if operations == "[]" else _stored(folder, midi, operations, renderer)


def render_pair(
    row: Mapping[str, Any], *, renderer: str = "additive", cache: str | os.PathLike[str] | None = None
) -> tuple[Path, Path]:
    """Return the recordings of source and edit; see `render`."""
    reference, estimate = (render(row, renderer=renderer, which=which, cache=cache) for which in SIDES)
    return reference, estimate


def _stored(folder: Path, midi: bytes, operations: str, renderer: str) -> Path:
    import soundfile

    from music_evals.audio import rendering

    if renderer not in RENDERERS:
        raise UnknownNameError("renderer", renderer, RENDERERS)
    font = rendering.find_soundfont() if renderer == "fluidsynth" else None
    sounds = rendering.identify_sounds(font) if font else ""
    identity = f"{_RENDER_VERSION}:{renderer}:{sounds}:{SAMPLE_RATE}:{operations}:".encode()
    path = folder / f"{hashlib.sha256(identity + midi).hexdigest()[:32]}.wav"
    if path.exists():
        return path
    if operations != "[]":
        samples, _ = soundfile.read(_stored(folder, midi, "[]", renderer), dtype="float32")
        samples = audio_edits.apply(samples, SAMPLE_RATE, json.loads(operations))
    elif font:
        samples = rendering.render_fluidsynth(midi, soundfont=font, sample_rate=SAMPLE_RATE)
    else:
        samples = rendering.render_additive(read_midi(midi), sample_rate=SAMPLE_RATE)
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, SAMPLE_RATE, subtype="FLOAT", format="WAV")
    try:
        return write_atomically(path, buffer.getvalue(), parents=True)
    except OutputError:
        return write_atomically(Path(_folder_instead(folder).name, path.name), buffer.getvalue())


@functools.cache
def _folder_instead(folder: Path) -> Any:
    """Return a folder that lasts as long as the process, in place of a cache that cannot be written to."""
    LOGGER.warning("%s cannot be written to; recordings are made again in the next run", folder)
    return tempfile.TemporaryDirectory(prefix="music_evals_", ignore_cleanup_errors=True)


_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_BENDS = {"#": 1, "b": -1}
_VELOCITY = 90


def _arrange_tune(name: str, tune: Mapping[str, Any]) -> Piece:
    """Return one of the tunes of `tunes.yaml` with its accompaniment."""
    numerator, denominator = tune["meter"]
    bar = 4 * TPQ * numerator // denominator
    melody, pickup = _melody(tune["melody"], bar)
    starts = [pickup + index * bar for index in range(tune["chords"].count("|") + 1)]
    chords = spread(tune["chords"], pickup, bar)
    if pickup:
        chords.insert(0, Span(0, pickup, chords[0].label))
    sections: list[Span] = []
    for label, n_bars in tune["sections"]:
        start = sections[-1].end if sections else 0
        sections.append(Span(start, (start or pickup) + n_bars * bar, label))
    return arrange(
        name,
        melody,
        chords,
        sections,
        Plan(tune["programs"], {label: Texture(**texture) for label, texture in tune["textures"].items()}),
        bars=[0, *starts] if pickup else starts,
        meter=(numerator, denominator),
        mspq=round(6e7 / tune["bpm"] * TPQ / beat_of((numerator, denominator))),
        key=Key(NAMES.index(tune["tonic"]), tune["mode"]),
    )


def _melody(text: str, bar: int) -> tuple[list[Note], int]:
    """Return the notes and the ticks of the pickup."""
    notes: list[Note] = []
    pickup = onset = 0
    for index, words in enumerate(text.split("|")):
        at = onset
        for word in words.split():
            name, eighths = word.split(":")
            duration = round(float(eighths) * TPQ / 2)
            if name != "r":  # such as Bb4
                pitch = 12 * (int(name[-1]) + 1) + _STEPS[name[0]] + sum(_BENDS[sign] for sign in name[1:-1])
                notes.append(Note(onset, duration, pitch, _VELOCITY))
            onset += duration
        if index == 0 and onset < bar:
            pickup = onset
        elif onset < at + bar:
            onset = at + bar  # the last bar lacks what the pickup has
    return notes, pickup
