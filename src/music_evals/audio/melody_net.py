"""The networks that follow the melody of a mixture: their input, their run, and the reading of what they say.

Both were trained by ``benchmarks/melody_tracker`` on renderings of public-domain tunes and of random music: one heard
leads that are rendered, the other in every second mixture a lead that is performed. What they say is averaged, which is
steadier than either. ``weights/<name>.json`` are their receipts. They run by onnxruntime on one thread.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import Audio
from music_evals.audio.spectra import constant_q, shared
from music_evals.errors import importing

LOWEST_PITCH = 36  # MIDI, C2
N_PITCHES = 61  # up to C7
WEIGHTS = ("melody_rendered.onnx", "melody_performed.onnx")
RANGE_DB = 80.0
MULTIPLE = 4  # the networks work at a quarter of the frame rate inside

# A long recording is run in pieces, so that memory stays bounded. Each piece is run with as much around it as the
# convolutions reach (307 frames, which a test works out). But a network also compares every frame with how the lead
# sounds on average over all that it is given: here that is the piece and what is around it, not the whole recording.
# In recordings of 100 and 200 s that moved the likeliest class of one to two frames in a thousand, whatever the margin.
PIECE = 2048  # frames, 48 s
MARGIN = 308  # frames, 7.2 s; a multiple of `MULTIPLE`, so that each piece is taken apart as the whole would be

FloatArray = npt.NDArray[np.float32]


class MelodyActivations(NamedTuple):
    """What the networks say, frame by frame, on the grid of the constant-Q transform.

    `classes`: log-probabilities of the 61 pitches from MIDI 36 and of a rest, shape (62, n_frames). `onsets`:
    probability that a note of the melody begins, at each pitch, shape (61, n_frames).
    """

    classes: FloatArray
    onsets: FloatArray


class MelodyPath(NamedTuple):
    """A path through the activations, frame by frame, each of shape (n_frames,).

    `pitches`: MIDI number, the most likely one where the melody rests. `voiced`: False in a rest. `attacks`: True where
    a note begins.
    """

    pitches: npt.NDArray[np.int64]
    voiced: npt.NDArray[np.bool_]
    attacks: npt.NDArray[np.bool_]


def levels(magnitudes: FloatArray) -> FloatArray:
    """Return the levels of a constant-Q transform: 1 at its 99.5th percentile, 0 at 80 dB below and under it."""
    flat = magnitudes.ravel()
    rank = int(0.995 * (len(flat) - 1))
    reference = max(float(np.partition(flat, rank)[rank]), float(flat.max()) * 1e-3)
    floor = 10 ** (-RANGE_DB / 20)
    decibels = 20 * np.log10(np.maximum(magnitudes / np.float32(reference), floor))
    values: FloatArray = (1 + decibels / RANGE_DB).astype(np.float32)
    return values


@shared
def levels_of(audio: Audio) -> FloatArray:
    """Return the levels of a recording that is not silent; worked out once and kept with it."""
    return levels(constant_q(audio))


@shared
def melody_activations(audio: Audio) -> MelodyActivations:
    """Run the networks over a recording that is not silent; worked out once and kept with it."""
    return run_networks(load_sessions(), levels_of(audio))


def run_networks(sessions: Sequence[Any], values: FloatArray) -> MelodyActivations:
    """Return what sessions say on average about levels of any length, shape (288, n_frames).

    Of classes the mean is that of log-probabilities, so that a pitch needs the consent of every network.
    """
    outputs = [_run(session, values) for session in sessions]
    classes = _log_softmax(np.mean([output.classes for output in outputs], axis=0))
    return MelodyActivations(classes, np.mean([output.onsets for output in outputs], axis=0))


def _run(session: Any, values: FloatArray) -> MelodyActivations:
    """Run one session, in pieces where there are more than `PIECE` frames."""
    n_frames = values.shape[1]
    pieces = []
    for start in range(0, n_frames, PIECE):
        first, last = max(0, start - MARGIN), min(n_frames, start + PIECE + MARGIN)
        padding = -(last - first) % MULTIPLE
        piece = np.pad(values[:, first:last], ((0, 0), (0, padding)))[None]
        inner = slice(start - first, min(n_frames, start + PIECE) - first)
        pieces.append([output[0][:, inner] for output in session.run(["classes", "onsets"], {"levels": piece})])
    classes, onsets = (np.concatenate(parts, axis=1) for parts in zip(*pieces, strict=True))
    return MelodyActivations(_log_softmax(classes), (1 / (1 + np.exp(-onsets))).astype(np.float32))


def _log_softmax(classes: FloatArray) -> FloatArray:
    above = classes - classes.max(axis=0)
    logarithm: FloatArray = above - np.log(np.exp(above).sum(axis=0))
    return logarithm


@functools.cache
def load_sessions(names: tuple[str, ...] = WEIGHTS) -> tuple[Any, ...]:
    """Return a session of each of the networks; of all of them unless some are named."""
    with importing("audio", "following the melody"):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # many recordings at once are the benchmark's business, not one's
    options.inter_op_num_threads = 1
    folder = importlib.resources.files("music_evals.audio") / "weights"
    return tuple(
        onnxruntime.InferenceSession((folder / name).read_bytes(), options, providers=["CPUExecutionProvider"])
        for name in names
    )


def decode(
    activations: MelodyActivations,
    *,
    onset_weight: float = 1.0,
    change_cost: float = 2.0,
    rest_cost: float = 2.0,
    rest_bias: float = 0.0,
) -> MelodyPath:
    """Return the most likely sequence of notes and rests (Viterbi).

    A note is one frame of attack and any number of frames that sustain it; every note begins with an attack, also one
    at the pitch of the note before.
    """
    scores = activations.classes.T.astype(np.float64)  # (n_frames, 62)
    onsets = np.clip(activations.onsets.T.astype(np.float64), 1e-4, 1 - 1e-4)
    sustain = scores[:, :-1] + onset_weight * np.log1p(-onsets)
    attack = scores[:, :-1] + onset_weight * np.log(onsets) - change_cost
    states, begins = _best_path(sustain, attack, scores[:, -1] + rest_bias, rest_cost)
    voiced = states < N_PITCHES
    pitches = np.where(voiced, states, scores[:, :-1].argmax(axis=1)) + LOWEST_PITCH
    return MelodyPath(pitches, voiced, begins)


def _best_path(
    sustain: npt.NDArray[np.float64], attack: npt.NDArray[np.float64], rest: npt.NDArray[np.float64], rest_cost: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the state of each frame (a pitch, or `N_PITCHES` for a rest) and whether a note begins in it."""
    # Where a note stands is one number a pitch: the better of attacking and sustaining it. An attack may follow
    # anything, a sustained frame only its own note, a rest only a rest or, at its cost, a note.
    n_frames = len(rest)
    notes, silence = attack[0], rest[0]  # scores of the best paths that end in a note of each pitch, in a rest
    begins = np.ones((n_frames, N_PITCHES), dtype=bool)
    came_from = np.full(n_frames, N_PITCHES)  # the best state at t - 1: where an attack at t comes from
    fell_silent = np.full(n_frames, -1)  # the note after which a rest at t begins; -1: it goes on
    for t in range(1, n_frames):
        loudest = int(notes.argmax())
        best = max(notes[loudest], silence)
        came_from[t] = N_PITCHES if silence >= notes[loudest] else loudest
        held, struck = notes + sustain[t], best + attack[t]
        begins[t] = struck > held
        if notes[loudest] - rest_cost > silence:
            fell_silent[t] = loudest
        silence = max(silence, notes[loudest] - rest_cost) + rest[t]
        notes = np.maximum(held, struck)
    # trace the path back from its end
    states = np.empty(n_frames, dtype=np.int64)
    attacks = np.zeros(n_frames, dtype=bool)
    state = int(notes.argmax()) if notes.max() > silence else N_PITCHES
    for t in range(n_frames - 1, -1, -1):
        states[t] = state
        if state == N_PITCHES:
            state = int(fell_silent[t]) if fell_silent[t] >= 0 else N_PITCHES
        elif begins[t, state]:
            attacks[t] = True
            state = int(came_from[t])
    return states, attacks
