"""Characters of sung lyrics moved to where the voice shows them: onsets, melisma, breaths and pauses.

The paper of MuChin has forced alignment corrected for melisma and breaths, and does not say how. Here it is one
probabilistic model, so that every constant is a quantity that can be counted on songs whose alignment is known.

Given are times a_1..a_n at which characters begin in a first alignment, and events of the voice (`evidence`). Sought
are the frames b_1 < ... < b_n at which they do begin, at least `SHORTEST_SEC` apart. Frames are 10 ms long.

Evidence. At each frame there is an event with features x, or none. If onsets are given, frames are independent, and the
events' likelihood is, up to a factor without b, the product over the onsets of the ratio

    r(t) = P(what is seen at t | onset at t) / P(what is seen at t | no onset at t).

Without an event, r is the share of onsets that show none. With one, Bayes turns the odds that an event with features x
is an onset, exp(w.x + w0), into r = exp(w.x + w0) * (1 - q) / q, q being the share of frames with an onset. An event
lies off its onset by some frames, two-sided geometrically. A melisma needs no rule of its own: a step of pitch within a
vowel has low odds, one with a dip of the level or a gap has high ones, and as there are as many onsets as characters,
the steps that are left over belong to the character that is sung.

First alignment. a_i - b_i is Laplace distributed around a shift with a scale, or the character is mistaken: a_i lies
where another event is, one that is no onset, as when an aligner of speech takes a note of a melisma for the next
character; or it is lost, and a_i lies anywhere. Within a line, lengths keep their ratio to those of the first
alignment: the absolute logarithm of the ratio is exponential with rate STIFFNESS.

Shift, scale and the shares of mistaken and lost characters are those of the song: they are estimated by EM (`N_ROUNDS`
steps; the shares with a prior as of `PRIOR_CHARACTERS` characters). So a good first alignment is hardly moved, and a
draft may be.

Answer. Forward and backward sums over all b within `reach_sec` of a give the probability of each frame for each
character. The answer is the b, in order, of which most are expected to lie within 50 ms of the truth (Viterbi over the
probabilities summed over 50 ms either way); that probability is the confidence of a character.

The end of a character is where its voice ends, or where the next one begins. What lies between is a rest: a breath if
noise of its own is heard in it, else a pause. Its notes are the held pitches between onset and end.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import F0Track
from music_evals.errors import InvalidAnnotationError, InvalidInputError
from music_evals.numerics import one_thread
from music_evals.preparation.evidence import GRID_SEC, SMALLEST_STEP, Evidence, Levels, Voice, find_events, follow_voice
from music_evals.preparation.lyrics import Character

__all__ = ["MIXTURE", "VOICE_ALONE", "Model", "Refined", "Rest", "SungCharacter", "SungNote", "refine"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Model:
    """What onsets look like: counted on the development half of ``benchmarks/lyric_alignment`` by its ``--fit``."""

    weights: tuple[float, ...]  # with `bias`, of the log odds that an event is an onset, for `evidence.FEATURES`
    bias: float
    onset_share: float  # of the frames
    missed: float  # share of onsets without an event within 50 ms
    off_frames: float  # mean distance of an event from its onset, in frames of 10 ms


VOICE_ALONE: Final = Model((3.23, 4.22, 1.16, 2.26), -3.8, 0.011, 0.114, 1.34)
"""Of a voice alone, or of a stem of it."""
MIXTURE: Final = Model((0.22, -0.09, 2.31, 1.79), -3.25, 0.011, 0.34, 1.3)
"""Of a voice with accompaniment: the level says less, and one onset in three shows nothing."""

STIFFNESS: Final = 0.3
LOST_SEC: Final = 0.5
MISTAKEN_SEC: Final = 1.0
FARTHEST_SEC: Final = 8.0  # an event that is farther off is not taken for an onset
PRIOR_CHARACTERS: Final = 20  # as many characters of another song stand beside those of this one
LEAST_SCALE_SEC, GREATEST_SCALE_SEC = 0.02, 0.5
N_ROUNDS: Final = 5
TIE: Final = 0.01  # of what is equally right within `SURE_SEC`, the likelier
SHORTEST_SEC: Final = 0.06  # of a character; faster syllables are not sung
LEAST_FRAMES: Final = round(SHORTEST_SEC / GRID_SEC)
SURE_SEC: Final = 0.05
SHORTEST_REST_SEC: Final = 0.08
LONGEST_CLOSURE_SEC: Final = 1.0  # without a voice within a character; what sounds behind a longer one is not of it
SHORTEST_NOTE_SEC: Final = 0.08
SHORTEST_BREATH_SEC: Final = 0.15
BREATH_DB: Final = 8.0  # above the quietest 50 ms of its rest
FALL_FRAMES: Final = (5, 12)
RING_SEC: Final = 0.12  # in which a voice dies away in the room


class SungNote(NamedTuple):
    """A note under a character; the pitch is a MIDI number, whole or not."""

    start_sec: float
    end_sec: float
    pitch: float


class Rest(NamedTuple):
    """A stretch without singing; the kind is ``"pause"`` or ``"breath"``."""

    start_sec: float
    end_sec: float
    kind: str


@dataclasses.dataclass(frozen=True)
class SungCharacter(Character):
    """A character where the voice sings it."""

    notes: tuple[SungNote, ...] = ()  # several where it is a melisma; none where no frame of it is voiced
    confidence: float = 0.0  # probability by the model that it begins within 50 ms of `start_sec`, 0..1


class Refined(NamedTuple):
    """A refined alignment, by time."""

    characters: tuple[SungCharacter, ...]
    rests: tuple[Rest, ...]  # between the characters
    shift_sec: float  # median by which the first alignment was off
    spread_sec: float  # scale of its errors around that
    wild: float  # share of characters of which the first alignment is taken to say nothing


def refine(
    characters: Sequence[Character],
    f0: F0Track,
    levels: Levels,
    *,
    reach_sec: float = 2.0,
    slack_sec: float = 0.3,
    model: Model = VOICE_ALONE,
) -> Refined:
    """Return the characters moved to where the voice shows them, with their notes and the rests between them.

    The characters are those of the whole song, by time, from a forced aligner or `lyrics.spread_lines`; pitch and
    levels are best of the voice alone. A character is moved by at most `reach_sec`, and by at most `slack_sec` out of
    the time that its line has in the first alignment.

    Raises `InvalidAnnotationError` for no character, characters out of order, no voiced frame, or more characters than
    the recording or what lies within reach has room for; `InvalidInputError` for a reach that is not positive or a
    negative slack.
    """
    if not reach_sec > 0 or not slack_sec >= 0:
        raise InvalidInputError(f"expected `reach_sec` > 0 and `slack_sec` >= 0, got {reach_sec} and {slack_sec}")
    if not characters:
        raise InvalidAnnotationError("no character to align; are the lyrics empty?")
    for first, second in itertools.pairwise(characters):
        if second.start_sec <= first.start_sec or second.line < first.line:
            raise InvalidAnnotationError(
                f"characters must be in order; {first.text!r} begins at {first.start_sec:.3f} s in line {first.line}, "
                f"then {second.text!r} at {second.start_sec:.3f} s in line {second.line}"
            )
    voice = follow_voice(f0, levels)
    lattice = _Lattice(characters, voice, find_events(voice), model, (reach_sec, slack_sec))
    with one_thread():
        prior = FIRST_PRIOR
        marginals = lattice.marginals(prior)
        for _ in range(N_ROUNDS):
            prior = lattice.update(prior, marginals)
            marginals = lattice.marginals(prior)
    onsets, sure = lattice.decode(marginals)
    sung, rests = _cut(characters, onsets, sure, voice)
    return Refined(tuple(sung), tuple(rests), prior.shift_sec, prior.scale_sec, prior.mistaken + prior.lost)


class _Prior(NamedTuple):
    """How the first alignment errs: its shift, the scale around it, the shares at a wrong event and lost."""

    shift_sec: float
    scale_sec: float
    mistaken: float
    lost: float

    def near(self, off_sec: Floats) -> Floats:
        """Return the density of an error that is neither: Laplace."""
        density: Floats = np.exp(-np.abs(off_sec - self.shift_sec) / self.scale_sec) / (2 * self.scale_sec)
        return density


FIRST_PRIOR: Final = _Prior(0.0, 0.2, 0.2, 0.1)


class _Lattice:
    """The frames at which each character may begin, and how likely each choice is."""

    def __init__(
        self, characters: Sequence[Character], voice: Voice, evidence: Evidence, model: Model,
        limits_sec: tuple[float, float],
    ) -> None:  # fmt: skip
        self.first_sec = np.array([character.start_sec for character in characters]) - voice.start_sec
        lows, highs = _windows(characters, self.first_sec, voice, *limits_sec)
        self.frames = [np.arange(low, high + 1) for low, high in zip(lows, highs, strict=True)]
        self.off_sec = [frames * GRID_SEC - first for frames, first in zip(self.frames, self.first_sec, strict=True)]
        self.lost = [np.exp(-np.abs(off) / LOST_SEC) / (2 * LOST_SEC) for off in self.off_sec]
        self.events_sec = evidence.frames * GRID_SEC
        self.no_onset = 1 / (1 + np.exp(_log_odds(evidence, model)))
        self.choices = [self._choice(frames) for frames in self.frames]
        # r(t) of each frame, see point 1 of the module
        n_frames = len(voice.voiced)
        gain = _log_odds(evidence, model) + np.log((1 - model.onset_share) / model.onset_share)
        # two-sided geometric: P(k) = (1 - d) / (1 + d) * d ** |k|, whose mean |k| is 2 d / (1 - d ** 2)
        d = (np.sqrt(1 + model.off_frames**2) - 1) / model.off_frames
        best = np.full(n_frames, np.log(model.missed))
        for k in range(-5, 6):
            at = evidence.frames + k
            inside = (at >= 0) & (at < n_frames)
            value = gain + np.log((1 - d) / (1 + d)) + abs(k) * np.log(d)
            np.maximum.at(best, at[inside], value[inside])
        ratio: Floats = np.exp(best)
        self.ratios = [ratio[frames] for frames in self.frames]
        same_line = [first.line == second.line for first, second in itertools.pairwise(characters)]
        self.edges = [self._edge(i + 1, same) for i, same in enumerate(same_line)]

    def _choice(self, frames: Integers) -> tuple[Floats, Floats]:
        """Return events around, and the probability that each is taken for an onset at each frame, (frames, events)."""
        distance = np.abs(frames[:, None] * GRID_SEC - self.events_sec)
        near = distance.min(axis=0) <= max(FARTHEST_SEC, distance.min())
        distance = distance[:, near]
        # a wrong event is one that is no onset
        weight = np.exp((distance.min(axis=1, keepdims=True) - distance) / MISTAKEN_SEC) * self.no_onset[near]
        return self.events_sec[near], weight / weight.sum(axis=1, keepdims=True)

    def _edge(self, i: int, same_line: bool) -> Floats:  # noqa: FBT001
        """Return the weight of each step from a frame of character i - 1 to one of character i, shape (from, to)."""
        before, frames = self.frames[i - 1], self.frames[i]
        # it depends on the length alone: a table by length, of which each row of the matrix is a piece
        steps = np.arange(frames[0] - before[-1], frames[-1] - before[0] + 1)
        possible = steps >= LEAST_FRAMES
        weight = possible.astype(np.float64)
        if same_line:
            ratio = steps[possible] * GRID_SEC / (self.first_sec[i] - self.first_sec[i - 1])
            weight[possible] = np.minimum(ratio, 1 / ratio) ** STIFFNESS  # exp(-STIFFNESS * |log ratio|)
        rows: Floats = np.lib.stride_tricks.sliding_window_view(weight, len(frames))[::-1]
        return rows

    def _densities(self, i: int, prior: _Prior) -> Floats:
        """Return how likely the first place of a character is for each of its frames, by kind of error: (3, n)."""
        events_sec, chosen = self.choices[i]
        at_event = chosen @ prior.near(events_sec - self.first_sec[i])
        densities: Floats = np.stack(
            [(1 - prior.mistaken - prior.lost) * prior.near(self.off_sec[i]), prior.mistaken * at_event,
             prior.lost * self.lost[i]]
        )  # fmt: skip
        return densities

    def marginals(self, prior: _Prior) -> list[Floats]:
        """Return for each character the probability of each of its frames (forward, backward)."""
        nodes = [ratio * self._densities(i, prior).sum(axis=0) for i, ratio in enumerate(self.ratios)]
        forward = [nodes[0] / nodes[0].sum()]
        for node, edge in zip(nodes[1:], self.edges, strict=True):
            ahead = node * (forward[-1] @ edge)
            forward.append(ahead / ahead.sum())
        backward = [np.ones(len(nodes[-1]))]
        for node, edge in zip(nodes[:0:-1], self.edges[::-1], strict=True):
            behind = edge @ (node * backward[-1])
            backward.append(behind / behind.sum())
        shares = [ahead * behind for ahead, behind in zip(forward, backward[::-1], strict=True)]
        return [share / share.sum() for share in shares]

    def update(self, prior: _Prior, marginals: Sequence[Floats]) -> _Prior:
        """Return the prior of which these marginals are most likely (one step of EM; the shift by its median)."""
        densities = np.concatenate([self._densities(i, prior) for i in range(len(self.frames))], axis=1)
        kinds = densities / densities.sum(axis=0) * np.concatenate(marginals)
        off, (near, mistaken, lost) = np.concatenate(self.off_sec), kinds
        order = np.argsort(off, kind="stable")
        passed = np.cumsum(near[order])
        shift = float(off[order][np.searchsorted(passed, passed[-1] / 2)])
        scale = float((near * np.abs(off - shift)).sum() / near.sum())
        n = len(self.frames) + PRIOR_CHARACTERS
        return _Prior(
            shift,
            float(np.clip(scale, LEAST_SCALE_SEC, GREATEST_SCALE_SEC)),
            float(mistaken.sum() + PRIOR_CHARACTERS * FIRST_PRIOR.mistaken) / n,
            float(lost.sum() + PRIOR_CHARACTERS * FIRST_PRIOR.lost) / n,
        )

    def decode(self, marginals: Sequence[Floats]) -> tuple[Integers, Floats]:
        """Return the frames, in order, of which most are expected to be right, and the probability that each is."""
        reach = round(SURE_SEC / GRID_SEC)
        right = [np.convolve(share, np.ones(2 * reach + 1))[reach:-reach] for share in marginals]
        total = right[0] + TIE * marginals[0]
        came_from = []
        for i in range(1, len(self.frames)):
            best = np.maximum.accumulate(total)
            first_best = np.maximum.accumulate(np.where(total == best, np.arange(len(total)), 0))
            # the last frame of the character before that leaves room
            last = np.searchsorted(self.frames[i - 1], self.frames[i] - LEAST_FRAMES, side="right") - 1
            came_from.append(first_best[last])
            total = np.where(last >= 0, best[last], -np.inf) + right[i] + TIE * marginals[i]
        path = [int(total.argmax())]
        for back in reversed(came_from):
            path.append(int(back[path[-1]]))
        path.reverse()
        onsets = np.array([int(frames[j]) for frames, j in zip(self.frames, path, strict=True)])
        sure = [min(float(probabilities[j]), 1.0) for probabilities, j in zip(right, path, strict=True)]
        return onsets, np.array(sure)


def _windows(
    characters: Sequence[Character], first_sec: Floats, voice: Voice, reach_sec: float, slack_sec: float
) -> tuple[Integers, Integers]:
    """Return the first and the last frame of each character, from which an order can be made in any case."""
    spans: dict[int, tuple[float, float]] = {}
    for character in characters:
        low, high = spans.get(character.line, (character.start_sec, character.end_sec))
        spans[character.line] = min(low, character.start_sec), max(high, character.end_sec)
    lines = np.array([spans[character.line] for character in characters]) - voice.start_sec
    least = np.maximum(first_sec - reach_sec, lines[:, 0] - slack_sec)
    greatest = np.minimum(first_sec + reach_sec, lines[:, 1] + slack_sec)
    lows = np.clip(np.ceil(np.round(least / GRID_SEC, 6)), 0, None).astype(np.int64)
    highs = np.clip(np.floor(np.round(greatest / GRID_SEC, 6)), None, len(voice.voiced) - 1).astype(np.int64)
    ranks = LEAST_FRAMES * np.arange(len(lows))
    lows = np.maximum.accumulate(lows - ranks) + ranks  # not before those ahead of it have had their shortest length
    highs = np.minimum.accumulate((highs - ranks)[::-1])[::-1] + ranks
    if (lows > highs).any():
        i = int(np.argmax(lows > highs))
        raise InvalidAnnotationError(
            f"there is no room for character {i}, {characters[i].text!r} at {characters[i].start_sec:.3f} s: each of "
            f"the {len(lows)} characters needs {SHORTEST_SEC} s within reach of the recording; check the first "
            f"alignment, or widen `reach_sec`"
        )
    return lows, highs


def _log_odds(evidence: Evidence, model: Model) -> Floats:
    """Return the log odds that each event is an onset."""
    odds: Floats = evidence.features @ np.array(model.weights) + model.bias
    return odds


def _cut(
    characters: Sequence[Character], onsets: Integers, sure: Floats, voice: Voice
) -> tuple[list[SungCharacter], list[Rest]]:
    """Return the characters from onset to end, with notes, and the rests between them."""
    sung: list[SungCharacter] = []
    rests: list[Rest] = []
    n_frames = len(voice.voiced)
    seconds: Floats = voice.start_sec + np.arange(n_frames + 1, dtype=np.float64) * GRID_SEC
    for i, (character, start) in enumerate(zip(characters, onsets.tolist(), strict=True)):
        limit = int(onsets[i + 1]) if i + 1 < len(onsets) else n_frames
        end = _end_of_voice(voice, start, limit)
        if end is None:  # nothing is voiced: as long as it was, if there is so much room
            end = min(limit, start + max(round((character.end_sec - character.start_sec) / GRID_SEC), 1))
        if i + 1 < len(onsets) and (limit - end) * GRID_SEC < SHORTEST_REST_SEC:
            end = limit
        notes = _notes(voice, start, end, seconds)
        sung.append(
            SungCharacter(
                character.text, float(seconds[start]), float(seconds[end]), character.line, notes, float(sure[i])
            )
        )
        if end < limit and i + 1 < len(onsets):
            rests.append(Rest(float(seconds[end]), float(seconds[limit]), _kind_of_rest(voice, end, limit)))
    return sung, rests


def _end_of_voice(voice: Voice, start: int, limit: int) -> int | None:
    """Return where the level falls fastest around the last voiced frame of a character; None if nothing is voiced."""
    inside = np.flatnonzero(voice.voiced[start:limit])
    if not len(inside):
        return None
    silences = np.flatnonzero(np.diff(inside) * GRID_SEC > LONGEST_CLOSURE_SEC)
    inside = inside[: silences[0] + 1] if len(silences) else inside
    last = start + int(inside[-1]) + 1
    if last >= limit - 3:
        return last
    places = np.arange(max(last - FALL_FRAMES[0], start + 1), min(last + FALL_FRAMES[1], limit - 2))
    if not len(places):
        return last
    drops = voice.decibels[np.maximum(places - 2, 0)] - voice.decibels[np.minimum(places + 2, len(voice.voiced) - 1)]
    return int(places[drops.argmax()])


def _notes(voice: Voice, start: int, end: int, seconds: Floats) -> tuple[SungNote, ...]:
    """Return the held pitches of a character; what is too short, or too near in pitch, belongs to the note before."""
    inside = np.arange(start, end)[voice.voiced[start:end]]
    if not len(inside):
        return ()
    changes = np.flatnonzero(np.diff(voice.note[inside])) + 1
    pieces: list[Integers] = []
    for piece in np.split(inside, changes):
        near = pieces and abs(voice.note[piece[0]] - np.median(voice.note[pieces[-1]])) < SMALLEST_STEP
        if pieces and (near or len(piece) * GRID_SEC < SHORTEST_NOTE_SEC):
            pieces[-1] = np.concatenate([pieces[-1], piece])
        elif pieces and len(pieces) == 1 and len(pieces[0]) * GRID_SEC < SHORTEST_NOTE_SEC:
            pieces[-1] = np.concatenate([pieces[-1], piece])  # the glide into the first note
        else:
            pieces.append(piece)
    edges = [start, *(int(piece[0]) for piece in pieces[1:]), end]
    return tuple(
        SungNote(float(seconds[first]), float(seconds[last]), float(np.median(voice.pitch[piece])))
        for piece, first, last in zip(pieces, edges[:-1], edges[1:], strict=True)
    )


def _kind_of_rest(voice: Voice, start: int, end: int) -> str:
    """Return ``"breath"`` where, after the voice has died away, noise rises above the quietest part of the rest."""
    from scipy.ndimage import uniform_filter1d

    late = uniform_filter1d(voice.decibels[start:end], 5)[round(RING_SEC / GRID_SEC) : -6]
    if (end - start) * GRID_SEC < SHORTEST_BREATH_SEC or not len(late):
        return "pause"
    lowest = int(late.argmin())
    rises = max(late[lowest:].max(), late[: lowest + 1].max()) - late[lowest] >= BREATH_DB
    peak = int(late.argmax())
    return "breath" if rises and peak > 0 else "pause"  # a level that only falls is the room
