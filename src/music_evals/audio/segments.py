"""Sections: where they begin, and which of them are the same."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Segments, StructureFrames
from music_evals.audio.backends import UndefinedFeature
from music_evals.audio.filters import moving_average, pool, standardise, unit_columns
from music_evals.audio.io import Audio
from music_evals.audio.spectra import HOP_LENGTH, frame_levels
from music_evals.audio.structure import ROWS, compute_structure, spectral_rows
from music_evals.compiling import compiled_by_numba

__all__ = ["form_of", "segment_agglomerative", "segment_foote", "segment_form"]

FloatArray = npt.NDArray[np.floating[Any]]

POOLED_FRAMES: Final = 4  # spectrogram frames a feature frame: 93 ms
SOUNDING: Final = 0.1  # -20 dB below the loudest frame: where the music begins and ends

# How well the harmony must recur with a bar. Of 24 excerpts of real recordings, music in a steady tempo has .053 and
# more, eight that are played freely, or hardly repeat, .011 to .035.
MIN_RECURRENCE: Final = 0.042

SMOOTH_SEC: Final = 1.0
KERNEL_SEC: Final = 4.0
MIN_SECTION_SEC: Final = 4.0
PROMINENCE: Final = 0.1
LABEL_CUT: Final = 0.9
AGGLOMERATIVE_SECTION_SEC: Final = 8.0


def segment_form(audio: Audio) -> Segments:
    """Divide a recording into sections: of whole bars where it keeps a tempo, else where its sound changes.

    Where the harmony recurs with a bar, sections are of whole bars, at the bounds of repetitions and changes of colour.
    Where it does not, as in music that is played freely, a grid of equal bars would lie anywhere, and elsewhere after
    any edit; there the sections are those of `segment_foote`.

    Steps: the length of a bar from the lags after which the harmony recurs, with some alternatives; harmony, timbre and
    onsets in twelfths of a bar, and their self-similarity; for each bar line, how much a repetition begins or ends
    there and how much timbre and rhythm change; the sections with the greatest sum, where phrases of four bars are
    preferred and an upbeat is allowed; labels by average linkage on how well two sections agree bar by bar.

    Change is measured against the change that there is: a drone or noise, which has no form, is divided all the same.
    A recording has 10 s or more. Sections reach from 0 to the end and are labelled ``"A"``, ``"B"`` ... in the order of
    their first appearance. Where nothing sounds, `UndefinedFeature` is raised.

    References
    ----------
    J. Foote: "Automatic audio segmentation using a measure of audio novelty", ICME 2000 (change). J. Serrà, M. Müller,
    P. Grosche and J. L. Arcos: "Unsupervised music structure annotation by time series structure features and segment
    similarity", IEEE Transactions on Multimedia 16(5), 2014 (bounds of repetitions are bounds of sections).
    """
    rows = spectral_rows(audio)
    n_frames = rows[0].shape[1]
    edges = np.append(np.arange(0, n_frames - POOLED_FRAMES, POOLED_FRAMES), n_frames)
    hop_sec = HOP_LENGTH / audio.sample_rate
    levels = frame_levels(audio)
    sounding = np.flatnonzero(levels > SOUNDING * levels.max())
    if not len(sounding):
        raise UndefinedFeature("silent")
    start_sec, end_sec = (float(frame) * hop_sec for frame in (sounding[0], sounding[-1] + 1))
    blocks = [pool(row, edges) for row in rows]
    division = _divide(blocks, POOLED_FRAMES * hop_sec, start_sec=start_sec, end_sec=end_sec)
    if division.recurrence < MIN_RECURRENCE:
        return segment_foote(audio, structure=compute_structure(audio))
    return _sections(division.bounds_sec, _label_sections(division), audio.duration_sec)


def form_of(
    blocks: Sequence[FloatArray], hop_sec: float, *, start_sec: float, end_sec: float, duration_sec: float
) -> Segments:
    """Divide a piece into sections, from feature vectors alone: the heart of `segment_form`, for scores as well.

    Parameters
    ----------
    blocks
        Kinds of features that count alike, each of shape (n_features, n_frames): harmony first, then colour.
    hop_sec
        Seconds between frames, at most a tenth of a second or so; frame t covers t to t + 1 of them.
    start_sec, end_sec
        Where the music begins and ends.
    duration_sec
        Length of the whole.
    """
    division = _divide(blocks, hop_sec, start_sec=start_sec, end_sec=end_sec)
    return _sections(division.bounds_sec, _label_sections(division), duration_sec)


def segment_foote(audio: Audio, *, structure: StructureFrames) -> Segments:
    """Cut at the peaks of Foote's novelty; sections of like mean vectors get one label, ``"A"``, ``"B"`` ...

    J. Foote: "Automatic audio segmentation using a measure of audio novelty", ICME 2000.
    """
    per_sec = 1 / structure.hop_sec
    vectors = unit_columns(moving_average(structure.frames, round(SMOOTH_SEC * per_sec)))
    # foote's novelty, largest value 1, shape (n_frames,)
    half = round(KERNEL_SEC * per_sec)
    # A checkerboard with a taper is an outer product, so its sum over the self-similarity is the squared length of the
    # vectors' sum under one side of it.
    from scipy.ndimage import correlate1d
    from scipy.signal import find_peaks

    offsets = np.arange(-half, half + 1)
    side = np.sign(offsets) * np.exp(-0.5 * (offsets / (0.5 * half)) ** 2)
    novelty: npt.NDArray[np.float64] = np.square(correlate1d(vectors.astype(np.float64), side, axis=1)).sum(axis=0)
    novelty = novelty / max(float(novelty.max()), float(np.finfo(np.float64).tiny))
    # a section has a least length, also at the ends
    distance = round(MIN_SECTION_SEC * per_sec)
    peaks, _ = find_peaks(novelty, distance=distance, prominence=PROMINENCE)
    bounds: npt.NDArray[np.intp] = peaks[(peaks >= distance) & (peaks <= len(novelty) - distance)]
    return _labelled(structure, bounds, audio.duration_sec)


@compiled_by_numba
def segment_agglomerative(audio: Audio, *, structure: StructureFrames) -> Segments:
    """Merge neighbouring frames of chroma and MFCC until there is a section for every eight seconds, by librosa.

    Sections are labelled as those of `segment_foote` are.
    """
    from librosa.segment import agglomerative

    frames = structure.frames[: ROWS["mfcc"].stop]
    n_sections = min(max(1, round(audio.duration_sec / AGGLOMERATIVE_SECTION_SEC)), frames.shape[1])
    starts = agglomerative(frames, n_sections)
    return _labelled(structure, starts[1:], audio.duration_sec)


def _labelled(structure: StructureFrames, bounds: npt.NDArray[np.intp], duration_sec: float) -> Segments:
    from scipy.cluster.hierarchy import fcluster, linkage

    edges = np.concatenate([[0], bounds, [structure.frames.shape[1]]]).astype(np.intp)
    means = unit_columns(pool(structure.frames.astype(np.float64), edges))
    distances = (1 - means.T @ means)[np.triu_indices(means.shape[1], 1)]
    labels = fcluster(linkage(distances, "average"), LABEL_CUT, "distance") if len(distances) else np.zeros(1, np.intp)
    # a frame is centred at its time: the bound lies half a frame before
    return _sections((bounds - 0.5) * structure.hop_sec, labels, duration_sec)


def _sections(bounds_sec: FloatArray, clusters: npt.NDArray[np.intp], duration_sec: float) -> Segments:
    numbers = {int(cluster): n for n, cluster in enumerate(dict.fromkeys(clusters.tolist()))}
    edges = np.concatenate([[0.0], bounds_sec, [duration_sec]])
    return Segments(
        np.stack([edges[:-1], edges[1:]], axis=1), tuple(_letters(numbers[int(cluster)]) for cluster in clusters)
    )


def _letters(number: int) -> str:
    """Return A, B .. Z, AA, AB ..."""
    head, last = divmod(number, 26)
    return (_letters(head - 1) if head else "") + chr(ord("A") + last)


# The form of a piece from feature vectors: bars, novelty, repetition, and the division into sections that they favour.
#
# Nothing here knows where the vectors come from: a recording's spectrogram, or the notes of a score.


# Bars. A bar of 4/4 lasts 2 s at 120 beats a minute; the bell over its logarithm reaches from 72 to 200.
BAR_RANGE_SEC: Final = (1.0, 5.0)
BAR_CENTRE_SEC: Final = 2.0
BAR_WIDTH_OCTAVES: Final = 0.6
BAR_STEPS: Final = 1200  # candidates: steps of 0.13 %, a tenth of a second after a minute
MAX_LAG_SEC: Final = 24.0
MAX_LAG_SHARE: Final = 0.75
BASELINE_SEC: Final = 1.2
N_CANDIDATES: Final = 3
REGULARITY_WEIGHT: Final = 6.0

# Cells: what a bar is cut into, so that bars can be compared part by part.
CELLS_PER_BAR: Final = (12, 6, 3)  # beats of two, three and four a bar fall on them
MAX_CELLS: Final = 2400

# Sections. Phrases of four bars are the rule of metrical music, so their multiples cost nothing.
MAX_BARS: Final = 32
LENGTH_COST: Final = {1: 6.0, 2: 2.5, 3: 2.0, 4: 0.0, 6: 0.75, 8: 0.0, 10: 1.0, 12: 0.5, 16: 0.5}
OTHER_LENGTH_COST: Final = 3.0
RINGING_COST: Final = 1.0
OPEN_COST: Final = 1.0  # of the first section's length, where an upbeat precedes the first bar line
UPBEAT_COST: Final = 1.0
UPBEATS: Final = (0, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4)  # those that are tried, in bars
REPETITION_BARS: Final = (1.5, 3.0)
CONTRAST_BARS: Final = 2.0
MIN_LAG_BARS: Final = 1.5
BOUNDARY_COST: Final = 0.5
FORM_LABEL_CUT: Final = 0.5
LABEL_SMOOTHING_BARS: Final = 0.25


class Bar(NamedTuple):
    """A length that a bar may have, with the regularity that it shows, at most 1."""

    length_sec: float
    regularity: float
    recurrence: float  # mean cosine after one, two, three ... bars, less that around them


@dataclasses.dataclass(frozen=True)
class _Division:
    """Sections in bars of equal length."""

    bar_sec: float  # length of a bar
    start_sec: float  # where the music begins
    upbeat: int  # cells before the first bar line: an upbeat, or a bar that was cut
    bounds: tuple[int, ...]  # first cell of each section but the first, increasing; all on bar lines
    recurrence: float  # how well the harmony recurs with the likeliest bar: near 0 where there is no steady bar
    score: float  # how well the division explains the piece; comparable between divisions of one piece
    cells: tuple[FloatArray, ...]  # the features cell by cell, each kind of shape (n_features, n_cells), standardised
    cells_per_bar: int  # cells that a bar is cut into

    @property
    def bounds_sec(self) -> npt.NDArray[np.float64]:
        """Where sections meet, shape (n_sections - 1,)."""
        return self.start_sec + self.bar_sec / self.cells_per_bar * np.array(self.bounds, np.float64)


def _divide(blocks: Sequence[FloatArray], hop_sec: float, *, start_sec: float, end_sec: float) -> _Division:
    """Find the bars and the sections of a piece, from its harmony first, then its colour."""
    frames = start_sec / hop_sec, end_sec / hop_sec
    bars = bar_candidates(blocks[0], hop_sec)
    divisions = [_divide_by_bar(blocks, hop_sec, frames, bar) for bar in bars]
    best = max(divisions, key=lambda division: division.score)
    return dataclasses.replace(best, recurrence=bars[0].recurrence)


def bar_candidates(vectors: FloatArray, hop_sec: float) -> list[Bar]:
    """Return likely lengths of a bar, likeliest first."""
    # A length is likely if the piece resembles itself after one, two, three ... of them.
    # the mean cosine between frames by the lag between them, shape (n_frames,)
    from scipy.fft import irfft, rfft

    unit = unit_columns(vectors - vectors.mean(axis=1, keepdims=True))
    n_frames = unit.shape[1]
    spectrum = rfft(unit, 2 * n_frames, axis=1)
    total = irfft((np.abs(spectrum) ** 2).sum(axis=0), 2 * n_frames)[:n_frames]
    profile: npt.NDArray[np.float64] = total / (n_frames - np.arange(n_frames))
    profile = profile - moving_average(profile, round(BASELINE_SEC / hop_sec) | 1)
    longest = min(MAX_LAG_SHARE * len(profile) * hop_sec, MAX_LAG_SEC)
    lengths = np.geomspace(*BAR_RANGE_SEC, BAR_STEPS)
    combs = _combs(profile, hop_sec, lengths, np.maximum(longest, 1.01 * lengths))
    octaves = np.log2(lengths / BAR_CENTRE_SEC)
    strength = combs / max(float(combs.max()), 1e-9) * np.exp(-0.5 * (octaves / BAR_WIDTH_OCTAVES) ** 2)
    bars = []
    for _ in range(N_CANDIDATES):
        best = int(strength.argmax())
        bars.append(Bar(float(lengths[best]), float(strength[best]), float(combs[best])))
        strength[np.abs(np.log(lengths / lengths[best])) < 0.03] = -np.inf
    return bars


def _combs(
    profile: npt.NDArray[np.float64], hop_sec: float, lengths: npt.NDArray[np.float64], ends: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the mean of the profile at the multiples of each length below its end (s), shape (n_lengths,)."""
    means = np.empty(len(lengths))
    counts = np.ceil((ends - lengths) / lengths).astype(np.intp)
    for count in np.unique(counts):  # those with equally many multiples are one operation
        alike = counts == count
        steps = lengths[alike, None]
        multiples = steps + np.arange(count) * steps
        means[alike] = np.interp(multiples / hop_sec, np.arange(len(profile)), profile).mean(axis=1)
    return means


def _divide_by_bar(blocks: Sequence[FloatArray], hop_sec: float, frames: tuple[float, float], bar: Bar) -> _Division:
    """Return the best division into sections of whole bars of one length, from one frame to another."""
    start, end = frames
    bar_frames = bar.length_sec / hop_sec
    n_bars = max(round((end - start) / bar_frames), 1)
    per_bar = next((n for n in CELLS_PER_BAR if n * n_bars <= MAX_CELLS), CELLS_PER_BAR[-1])
    edges = start + np.arange(n_bars * per_bar + 1) * bar_frames / per_bar
    cells = tuple(standardise(_resample(block, edges)) for block in blocks)
    sums = _diagonal_sums(_similarity(cells))
    colour = np.concatenate([unit_columns(block) for block in cells[1:]])
    strength = _scale(_contrast(colour, round(CONTRAST_BARS * per_bar)))
    for bars in REPETITION_BARS:
        change = _repetition_change(sums, round(bars * per_bar), round(MIN_LAG_BARS * per_bar))
        strength = strength + _scale(change) / len(REPETITION_BARS)
    upbeats = [round(bars * per_bar) for bars in UPBEATS]
    upbeat, bounds, score = max(
        (_from_upbeat(strength, per_bar, upbeat) for upbeat in upbeats), key=lambda best: best[2]
    )
    score += REGULARITY_WEIGHT * bar.regularity
    return _Division(bar.length_sec, start * hop_sec, upbeat, tuple(bounds), bar.recurrence, score, cells, per_bar)


def _from_upbeat(strength: npt.NDArray[np.float64], per_bar: int, upbeat: int) -> tuple[int, list[int], float]:
    """Return an upbeat, the best first cells of sections with it, and their score."""
    lines = strength[upbeat::per_bar]
    if not upbeat:
        bars, score = _best_sections(lines)
        return 0, [bar * per_bar for bar in bars], score / np.sqrt(max(len(bars), 1))
    # the upbeat is a bar of its own, and nothing is known of how long the first section is
    bars, score = _best_sections(np.concatenate([[0.0], lines]), first_cost=OPEN_COST)
    score = score / np.sqrt(max(len(bars), 1)) - UPBEAT_COST
    return upbeat, [upbeat + (bar - 1) * per_bar for bar in bars], score


def _similarity(cells: Sequence[FloatArray]) -> FloatArray:
    """Return the mean over all kinds of features of the cosine between cells, shape (n_cells, n_cells)."""
    units = [unit_columns(block) for block in cells]
    total: FloatArray = sum(unit.T @ unit for unit in units[1:]) + units[0].T @ units[0]
    return total / len(units)


def _resample(vectors: FloatArray, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return means between edges (in frames, fractions allowed), shape (n_features, len(edges) - 1)."""
    n_frames = vectors.shape[1]
    total = np.concatenate([np.zeros((len(vectors), 1)), np.cumsum(vectors, axis=1, dtype=np.float64)], axis=1)
    at = np.clip(edges, 0, n_frames)
    whole = np.minimum(at.astype(np.intp), n_frames - 1)
    upto = total[:, whole] + (at - whole) * (total[:, whole + 1] - total[:, whole])
    means: npt.NDArray[np.float64] = np.diff(upto, axis=1) / np.maximum(np.diff(at), 1e-9)
    return means


def _contrast(vectors: FloatArray, half: int) -> npt.NDArray[np.float64]:
    """Return the squared distance between the mean of the `half` cells before and after, for each cell."""
    # Foote's novelty with a checkerboard without taper: its sum over the self-similarity is this distance.
    n_cells = vectors.shape[1]
    total = np.concatenate([np.zeros((len(vectors), 1)), np.cumsum(vectors, axis=1)], axis=1)
    middle = np.arange(half // 2, n_cells - half // 2)
    start, end = np.maximum(middle - half, 0), np.minimum(middle + half, n_cells)
    before = (total[:, middle] - total[:, start]) / np.maximum(middle - start, 1)
    after = (total[:, end] - total[:, middle]) / np.maximum(end - middle, 1)
    novelty = np.zeros(n_cells)
    novelty[middle] = np.square(after - before).sum(axis=0)
    return novelty


def _diagonal_sums(similarity: FloatArray) -> npt.NDArray[np.float64]:
    """Return at (i, j) the sum of the similarity along the diagonal before cell (i, j), shape (n_cells + 1,) * 2."""
    n_cells = len(similarity)
    sums = np.zeros((n_cells + 1, n_cells + 1))
    for row in range(n_cells):
        np.add(sums[row, :-1], similarity[row], out=sums[row + 1, 1:])
    return sums


def _repetition_change(sums: npt.NDArray[np.float64], length: int, min_lag: int) -> npt.NDArray[np.float64]:
    """Return how much a repetition begins or ends at each cell, from the sums along diagonals."""
    # For every other cell: the mean similarity along the diagonal of the `length` cells after, less that of those
    # before; the greatest rise (a repetition begins) and the greatest fall (one ends) are added.
    n_cells = len(sums) - 1
    n_inside = n_cells - 2 * length + 1
    change = np.zeros(n_cells)
    if n_inside < 2:
        return change
    rise = sums[2 * length :, 2 * length :] + sums[:n_inside, :n_inside]
    rise -= 2 * sums[length : length + n_inside, length : length + n_inside]
    rise /= length
    for lag in range(min(min_lag, n_inside)):  # what is too near is the same
        np.fill_diagonal(rise[lag:], 0)
        np.fill_diagonal(rise[:, lag:], 0)
    last = min(length + n_inside, n_cells)
    change[length:last] = (rise.max(axis=1) - rise.min(axis=1))[: last - length]
    return change


def _scale(curve: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    spread = float(curve.std())
    scaled: npt.NDArray[np.float64] = (curve - curve.mean()) / (spread if spread > 0 else 1.0)
    return scaled


def _best_sections(strength: npt.NDArray[np.float64], *, first_cost: float | None = None) -> tuple[list[int], float]:
    """Return the first bars of all sections but the first, and their score."""
    # The sum of the strengths at the bounds, less the costs of the lengths, is the greatest possible: dynamic
    # programming over bars. `first_cost` is that of the first section, whatever its length.
    n_bars = len(strength)
    costs = np.array([LENGTH_COST.get(length, OTHER_LENGTH_COST) for length in range(1, MAX_BARS + 1)])
    best = np.zeros(n_bars + 1)
    came_from = np.zeros(n_bars + 1, np.intp)
    gain = np.append(strength - BOUNDARY_COST, 0.0)  # the end is no bound
    for bar in range(1, n_bars + 1):
        starts = np.arange(max(bar - MAX_BARS, 0), bar)
        lengths = bar - starts
        cost = costs[lengths - 1]
        if bar == n_bars:  # the last section may ring on for a bar
            cost = np.minimum(cost, costs[np.maximum(lengths - 2, 0)] + RINGING_COST)
        if first_cost is not None:
            cost = np.where(starts == 0, first_cost, cost)
        scores = best[starts] - cost
        choice = int(scores.argmax())
        best[bar], came_from[bar] = scores[choice] + gain[bar], starts[choice]
    bounds = []
    bar = int(came_from[n_bars])
    while bar > 0:
        bounds.append(bar)
        bar = int(came_from[bar])
    return bounds[::-1], float(best[n_bars])


def _label_sections(division: _Division) -> npt.NDArray[np.intp]:
    """Return a number for each section, shared by repetitions: average linkage on how well they agree bar by bar."""
    from scipy.cluster.hierarchy import fcluster, linkage

    length = max(round(LABEL_SMOOTHING_BARS * division.cells_per_bar), 1)
    similarity = _similarity([moving_average(block, length) for block in division.cells])
    n_cells = len(similarity)
    spans = list(itertools.pairwise([0, *division.bounds, n_cells]))
    if len(spans) < 2:
        return np.zeros(len(spans), np.intp)
    if spans[0][1] > division.upbeat:  # all are compared from bar line to bar line
        spans[0] = division.upbeat, spans[0][1]
    pairs = [
        1 - _alignment(similarity[slice(*span), slice(*other)], division.cells_per_bar)
        for i, span in enumerate(spans)
        for other in spans[i + 1 :]
    ]
    labels: npt.NDArray[np.intp] = fcluster(linkage(pairs, "average"), FORM_LABEL_CUT, "distance")
    return labels


def _alignment(similarity: FloatArray, step: int) -> float:
    """Return the best mean similarity along a diagonal on which all of the shorter side lies."""
    wide = similarity if similarity.shape[0] <= similarity.shape[1] else similarity.T
    rows = np.arange(len(wide))
    return max(float(wide[rows, rows + shift].mean()) for shift in range(0, wide.shape[1] - len(wide) + 1, step))
