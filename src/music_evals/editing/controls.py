"""The ends of every scale: the source itself, music that has nothing to do with it, and what needs no model."""

from __future__ import annotations

import dataclasses

import numpy as np

from music_evals.annotations import EditorInfo, EditRequest, Score, Tempo, TimeSignature
from music_evals.audio.rendering import render_additive
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.editing.weightless import TimeStretch, Transposition
from music_evals.symbolic.notes import make_notes

__all__ = ["Identity", "SimpleEdit", "Unrelated", "unrelated_score"]

SYSTEMS = {"identity": "Identity", "unrelated": "Unrelated", "simple_edit": "SimpleEdit"}

_SCALE = (0, 2, 4, 5, 7, 9, 11)
_ROOTS = (0, 1, 3, 4, 5)  # degrees that a chord may stand on
_BEATS = 4
_GRID = 480  # ticks a quarter
_LONGEST_NOTE = 3  # beats


class Identity(Editor):
    """Returns the source: what a system that changes nothing scores."""

    @property
    def info(self) -> EditorInfo:
        """What it is."""
        return EditorInfo(name="identity", title="Source, unchanged", entrances=("audio", "score"), control=True)

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:  # noqa: ARG002 (nothing is drawn)
        return Edited(request.audio, request.sample_rate, request.score)


@dataclasses.dataclass(frozen=True)
class Unrelated(Editor):
    """Returns a piece of our own, as long as the source, that knows nothing of it: what chance scores.

    Its key, tempo, chords and tune are drawn at random, so that it stands for any other music and not for one piece.
    """

    @property
    def info(self) -> EditorInfo:
        """What it is."""
        return EditorInfo(
            name="unrelated",
            title="Music of our own that is not the source",
            entrances=("audio", "score"),
            deterministic=False,
            control=True,
        )

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        piece = unrelated_score(request.duration_sec, np.random.default_rng(seeds.item))
        if request.audio is None:
            return Edited(score=piece)
        assert request.sample_rate is not None
        samples = render_additive(piece, seed=seeds.item % 2**32, sample_rate=request.sample_rate)
        return Edited(np.tile(samples, (len(request.audio), 1)), request.sample_rate)


class SimpleEdit(Editor):
    """Transposes and stretches by what the targets of an instruction name: the success that needs no model.

    It follows ``transpose``, ``tempo`` as a factor and ``length``, and leaves everything else as it is.
    """

    @property
    def info(self) -> EditorInfo:
        """What it is."""
        title = "What targets name, by transposition and time stretch"
        return EditorInfo(name="simple_edit", title=title, entrances=("audio", "score"), keeps_time=False, control=True)

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        targets = {target.kind: target for target in request.instruction.targets}
        steps: list[Editor] = []
        if "transpose" in targets:
            steps.append(Transposition(semitones=targets["transpose"].amount))
        if "tempo" in targets and targets["tempo"].unit == "x":
            steps.append(TimeStretch(rate=targets["tempo"].amount))
        elif "length" in targets:
            length = targets["length"]
            steps.append(TimeStretch(rate=(1 if length.unit == "x" else request.duration_sec) / length.amount))
        edited = Edited(request.audio, request.sample_rate, request.score)
        for step in steps:
            edited = step._edited(dataclasses.replace(request, audio=edited.audio, score=edited.score), seeds)
        return edited


def unrelated_score(duration_sec: float, rng: np.random.Generator) -> Score:
    """Return a tune over triads whose last note ends within a bar after `duration_sec`.

    Key, tempo (70 to 160 a minute), mode, chords and tune are drawn at random.
    """
    tonic, bpm = int(rng.integers(12)), float(rng.integers(70, 161))
    mode = 0 if rng.random() < 0.5 else 5  # the minor scale begins at the sixth degree of its relative major
    n_bars = max(int(np.ceil(duration_sec * bpm / 60 / _BEATS)), 1)
    rows: list[tuple[int, int, int, int, int]] = []
    for bar in range(n_bars):
        root = int(rng.choice(_ROOTS)) + mode
        rows += [(bar * _BEATS * _GRID, _BEATS * _GRID, _pitch(tonic, root + third, 48), 60, 1) for third in (0, 2, 4)]
        beat = 0
        while beat < _BEATS:
            length = min(int(rng.integers(1, _LONGEST_NOTE + 1)), _BEATS - beat)
            step = int(rng.integers(0, 10)) + mode
            rows.append(((bar * _BEATS + beat) * _GRID, length * _GRID, _pitch(tonic, step, 60), 90, 0))
            beat += length
    columns = np.array(rows, dtype=np.int64).T
    return Score(
        make_notes(*columns),
        _GRID,
        time_signatures=(TimeSignature(0, _BEATS, 4),),
        tempos=(Tempo(0, bpm),),
        voices=("tune", "chords"),
        programs=(0, 48),
    )


def _pitch(tonic: int, degree: int, lowest: int) -> int:
    """Return the pitch of a degree of the major scale on a tonic, counted from a C."""
    return lowest + tonic + 12 * (degree // 7) + _SCALE[degree % 7]
