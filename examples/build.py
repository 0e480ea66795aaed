"""Makes the files of this folder: ``python examples/build.py [FOLDER]``.

Music, lyrics and tags are those of `known_edits` and of the demo songs of `caimd`, written for this repository (CC0).
The predictions are made from them by rules that a reader can follow, and from a seed.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from music_evals.annotations import MUSIB_LAYOUT, Score, Tempo, TimeSignature
from music_evals.datasets.caimd.schema import load_rows as load_songs
from music_evals.datasets.caimd.schema import song_texts
from music_evals.datasets.known_edits.build import load_rows, render, score
from music_evals.datasets.manifest import load_split
from music_evals.symbolic import noteseq
from music_evals.symbolic.contexts import pick_voice, quantize_voice
from music_evals.symbolic.midi import write_midi

SEED = 0
STEPS = 6  # in a quarter, of the melodies with a gap
SECONDS = 24  # of each original
SONGS = ("song_disco", "song_rock")
EDITS = {"new_melody": ("melody_replaced", 1.0, 1.0), "faster": ("tempo", 1.2, 1.2)}
"""Folder -> kind and strength of the edit in `known_edits`, and how many times faster it is."""


def rows_of_songs() -> dict[tuple[str, str, float], Mapping[str, Any]]:
    """Return (piece, kind, strength) -> row of `known_edits`."""
    return {(row["piece"], row["kind"], row["strength"]): row for row in load_rows("default", "tuning")}


def recordings(rows: Mapping[tuple[str, str, float], Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield the beginning of both songs, and the same stretch of music of their edits."""
    for song in SONGS:
        for folder, (kind, strength, speed) in EDITS.items():
            row = rows[song, kind, strength]
            yield f"originals/{song}.ogg", _ogg(render(row, which="reference"), SECONDS)
            yield f"{folder}/{song}.ogg", _ogg(render(row, which="estimate"), SECONDS / speed)


def _ogg(path: Path, seconds: float) -> bytes:
    samples, rate = soundfile.read(path)
    buffer = io.BytesIO()
    cut = samples[: round(seconds * rate)]
    soundfile.write(buffer, cut, rate, format="OGG", subtype="VORBIS", compression_level=0.95)
    return buffer.getvalue()


def scores(rows: Mapping[tuple[str, str, float], Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield three songs as MIDI, and their melodies with a gap of four measures that an edit's melody fills."""
    for song in (*SONGS, "song_waltz"):
        yield f"midi/{song}.mid", rows[song, "melody_replaced", 1.0]["reference_midi"]
    middle = MUSIB_LAYOUT.middle
    for song in SONGS:
        row = rows[song, "melody_replaced", 1.0]
        true, other = (_melody(score(row, side)) for side in ("reference", "estimate"))
        filled = np.concatenate([true[: middle.start], other[middle], true[middle.stop :]])
        yield f"midi_pairs/reference/{song}.mid", _one_voice(true)
        yield f"midi_pairs/prediction/{song}.mid", _one_voice(filled)


def _melody(whole: Score) -> Any:
    notes = quantize_voice(pick_voice(whole, "melody"), whole.ticks_per_quarter, STEPS)
    return noteseq.encode(notes, MUSIB_LAYOUT.n_steps)


def _one_voice(tokens: Any) -> bytes:
    meter, tempo = TimeSignature(0, 4, 4), Tempo(0, 120.0)
    return write_midi(
        Score(noteseq.decode(tokens), STEPS, tempos=(tempo,), time_signatures=(meter,), voices=("melody",))
    )


def middles() -> Iterator[dict[str, Any]]:
    """Yield a system that copies the first four measures after the gap into it."""
    future = MUSIB_LAYOUT.future
    for row in load_split("jsb_chorales", "musib", "test"):
        yield {"item_id": row["item_id"], "middle": row["tokens"][future][: MUSIB_LAYOUT.middle_steps]}


def lyrics() -> Iterator[dict[str, str]]:
    """Yield a writer that takes the song's own lyrics and says the last character of every third line twice."""
    for row in load_songs("demo", "test"):
        lines = song_texts(row)[0].split("\n")
        told = [line + line[-1] if n % 3 == 2 and not line.startswith("(") else line for n, line in enumerate(lines)]
        yield {"id": row["id"], "text": "\n".join(told)}


def tags() -> Iterator[dict[str, Any]]:
    """Yield a tagger that takes half of the tags of each dimension from the song and half from the next one."""
    rng = np.random.default_rng(SEED)
    rows = list(load_songs("demo", "test"))
    for row, other in zip(rows, [*rows[1:], rows[0]], strict=True):
        told: dict[str, Any] = {"id": row["id"]}
        for group in ("professional", "amateur"):
            ours, theirs = (
                {name: held["tags"] for name, held in of[group]["dimensions"].items()} for of in (row, other)
            )
            halves = {name: _half(rng, ours[name]) + _half(rng, theirs[name]) for name in ours}
            told[group] = {name: list(dict.fromkeys(both)) for name, both in halves.items()}
        yield told


def _half(rng: np.random.Generator, names: list[str]) -> list[str]:
    return [str(name) for name in rng.permutation(names)[: -(-len(names) // 2)]]


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows).encode()


PREDICTIONS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "mine.jsonl": middles,
    "lyrics.jsonl": lyrics,
    "tags.jsonl": tags,
}


def build(folder: Path) -> list[str]:
    """Write all files below a folder, and return their paths in it."""
    rows = rows_of_songs()
    files = {**dict(recordings(rows)), **dict(scores(rows))}
    files |= {name: _json_lines(make()) for name, make in PREDICTIONS.items()}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return sorted(files)


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name in build(place):
        print(f"{(place / name).stat().st_size:>8} {name}")
