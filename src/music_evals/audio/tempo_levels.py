"""One metrical level, and one phase, for the two recordings of a pair.

Half a tempo and twice a tempo are both right for most music, and which of them a tracker finds is close to chance: an
edit that leaves the tempo alone may be counted at twice the tempo of its original. By how much one recording is faster
than the other can be heard without counting at all, from how their onsets recur (`Beats.pulse`): over the logarithm of
the lag, the row of peaks of one is that of the other, moved. Where the tempi that were found contradict that, one of
the two is counted again. So it is where the beats of the two lie apart, mostly by half a beat, and the evidence for
those of the other is as good.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Beats
from music_evals.audio.beats import BEAT_BONUS, FRAME_RATE_HZ, MOST_LOG_ODDS, PULSE_STEPS, beats_within

FloatArray = npt.NDArray[np.float64]

REACH_OCTAVES: Final = 1.25  # ratios of tempi that are looked at, to both sides
SHORTEST_OCTAVES: Final = 4  # of lags: recordings below 5.3 s are left alone
# Chosen on some 250 edits of 28 real recordings. At the true ratio an edit agrees with its original by .7 to 1, and
# where its tempo was found wrong, by .1 or more better than there. Unrelated music agrees by about .66 at its best.
MIN_AGREEMENT: Final = 0.75
MIN_GAIN: Final = 0.1  # over the agreement at the ratio of the tempi that were found
TOLERANCE_OCTAVES: Final = 0.1
RANGE_BPM: Final = (36.0, 260.0)  # wider than that of a single recording: the other may lie at its end
WINDOW_OCTAVES: Final = 0.33  # around the tempo of the other recording: less than to the next level, 4 / 3

# Phase; chosen on edits that nobody hears of the development half of `benchmarks/preservation_validity`'s recordings.
HIT_SEC: Final = 0.07
FEW_HITS: Final = 0.5  # F measure below which the beats of two recordings lie apart
MANY_HITS: Final = 0.75  # and from which they lie together
PULL: Final = 1.0  # log-odds that the beats of the other recording add
EQUAL_EVIDENCE: Final = 0.25  # log-odds a beat that the beats of the other may be worth less than the recording's own
PHASE_WINDOW_OCTAVES: Final = 0.26  # around the recording's own tempo


def pulse_agreement(reference: Beats, estimate: Beats) -> tuple[FloatArray, FloatArray]:
    """Return how well the onsets of two recordings agree if one is faster than the other."""
    first, second = reference.pulse, estimate.pulse
    if min(len(first), len(second)) < SHORTEST_OCTAVES * PULSE_STEPS:
        return np.zeros(0), np.zeros(0)
    reach = round(REACH_OCTAVES * PULSE_STEPS)
    shifts = np.arange(-reach, reach + 1)
    agreement = np.zeros(len(shifts))
    for index, shift in enumerate(shifts):  # twice the tempo: the same peaks at half the lags
        first_part, second_part = first[max(shift, 0) :], second[max(-shift, 0) :]
        n = min(len(first_part), len(second_part))
        power = float((first_part[:n] @ first_part[:n]) * (second_part[:n] @ second_part[:n]))
        agreement[index] = first_part[:n] @ second_part[:n] / np.sqrt(power) if power > 0 else 0.0
    return shifts / PULSE_STEPS, agreement


def share_level(reference: Beats, estimate: Beats) -> tuple[Beats, Beats]:
    """Return the beats of both recordings of a pair, counted at one metrical level.

    By how much the estimate is faster is read off the onsets of both (`pulse_agreement`). Both stay as they are where
    their tempi say the same within 7 %, where the onsets do not agree well enough to tell, or not better than at the
    ratio of the tempi that were found. Else one of them is counted again, around the tempo that the other and the ratio
    give: the one that loses less of the evidence of its beats. Nothing is assumed of the ratio; where the music is
    played at twice the tempo, one is counted at twice the tempo of the other.
    """
    octaves, agreement = pulse_agreement(reference, estimate)
    tempo_octaves = float(np.log2(estimate.bpm / reference.bpm))
    if not len(octaves) or np.isnan(tempo_octaves):
        return reference, estimate
    best = int(np.lexsort((np.abs(octaves), -agreement))[0])
    ratio = float(octaves[best])
    at_tempi = agreement[np.abs(octaves - tempo_octaves) <= TOLERANCE_OCTAVES / 2].max(initial=-1.0)
    if (
        abs(tempo_octaves - ratio) <= TOLERANCE_OCTAVES
        or agreement[best] < MIN_AGREEMENT
        or agreement[best] - at_tempi < MIN_GAIN
    ):
        return reference, estimate
    again = (
        (reference, _counted_near(estimate, reference.bpm * 2**ratio)),
        (_counted_near(reference, estimate.bpm / 2**ratio), estimate),
    )
    agreed = [pair for pair in again if abs(np.log2(pair[1].bpm / pair[0].bpm) - ratio) <= TOLERANCE_OCTAVES]
    return max(agreed, key=lambda pair: _worth(pair[0]) + _worth(pair[1]), default=(reference, estimate))


def share_phase(reference: Beats, estimate: Beats) -> tuple[Beats, Beats]:
    """Return the beats of both recordings of a pair, at one phase where the evidence for both phases is equal.

    Both stay as they are where their tempi differ by more than 7 %, where half of their beats or more hit one another,
    or where the beats of the other are worth less, by more than 0.25 log-odds a beat. Else the one that loses less is
    counted again where the other's beats are.
    """
    if not len(reference.log_odds) or not len(estimate.log_odds):
        return reference, estimate
    far = not abs(np.log2(estimate.bpm / reference.bpm)) <= TOLERANCE_OCTAVES  # NaN without beats
    if far or _f_measure(reference, estimate) >= FEW_HITS:
        return reference, estimate
    again = _pulled(reference, estimate), _pulled(estimate, reference)
    losses = [
        (_worth(old) - _worth(new)) / len(old.times_sec) for old, new in zip((reference, estimate), again, strict=True)
    ]
    pairs = zip(losses, ((again[0], estimate), (reference, again[1])), strict=True)
    near = [each for each in pairs if each[0] <= EQUAL_EVIDENCE and _f_measure(*each[1]) >= MANY_HITS]
    return min(near, key=lambda each: each[0], default=(0.0, (reference, estimate)))[1]


def _pulled(beats: Beats, other: Beats) -> Beats:
    """Return the beats of a recording, counted again with some evidence added at those of another."""
    log_odds = beats.log_odds.astype(np.float64)
    frames = np.round(other.times_sec * FRAME_RATE_HZ).astype(np.int64)
    for near, share in ((-1, 0.7), (0, 1.0), (1, 0.7)):
        inside = (frames + near >= 0) & (frames + near < len(log_odds))
        log_odds[frames[inside] + near] += share * PULL
    again = _counted_near(dataclasses.replace(beats, log_odds=log_odds), beats.bpm, PHASE_WINDOW_OCTAVES)
    return dataclasses.replace(again, log_odds=beats.log_odds)


def _f_measure(first: Beats, second: Beats) -> float:
    """Return the F measure of beats, none of which are as near to one another as a hit is wide."""
    if not len(first.times_sec) or not len(second.times_sec):
        return 0.0
    places = np.searchsorted(first.times_sec, second.times_sec)
    around = [np.clip(places + step, 0, len(first.times_sec) - 1) for step in (-1, 0)]
    distances = np.min([np.abs(first.times_sec[place] - second.times_sec) for place in around], axis=0)
    hits = int(np.count_nonzero(distances <= HIT_SEC))
    return 2 * hits / (len(first.times_sec) + len(second.times_sec))


def _counted_near(beats: Beats, bpm: float, window_octaves: float = WINDOW_OCTAVES) -> Beats:
    """Return the beats around a tempo; none where it is out of range."""
    width = 2**window_octaves
    return beats_within(beats, max(bpm / width, RANGE_BPM[0]), min(bpm * width, RANGE_BPM[1]))


def _worth(beats: Beats) -> float:
    """Return the evidence of all beats, as `decode_beats` adds it up."""
    frames = beats.times_sec * FRAME_RATE_HZ
    odds = np.interp(frames, np.arange(len(beats.log_odds)), beats.log_odds)
    return float(np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS).sum() + BEAT_BONUS * len(frames))
