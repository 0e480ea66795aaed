"""Sections: where they begin, and which of them are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Segments, StructureFrames
from music_evals.audio._filters import moving_average, pool, unit_columns
from music_evals.audio._form import divide, label_sections
from music_evals.audio.backends import UndefinedFeature
from music_evals.audio.io import Audio
from music_evals.audio.spectra import HOP_LENGTH, frame_levels
from music_evals.audio.structure import ROWS, compute_structure, spectral_rows

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

    Parameters
    ----------
    audio
        The recording, 10 s or longer.

    Returns
    -------
    Segments
        From 0 to the end; labels ``"A"``, ``"B"`` ... in the order of their first appearance.

    Raises
    ------
    UndefinedFeature
        Nothing sounds.

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
    division = divide(blocks, POOLED_FRAMES * hop_sec, start_sec=start_sec, end_sec=end_sec)
    if division.recurrence < MIN_RECURRENCE:
        return segment_foote(audio, structure=compute_structure(audio))
    return _sections(division.bounds_sec, label_sections(division), audio.duration_sec)


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

    Returns
    -------
    Segments
        As `segment_form` returns them of music that keeps a tempo.

    """
    division = divide(blocks, hop_sec, start_sec=start_sec, end_sec=end_sec)
    return _sections(division.bounds_sec, label_sections(division), duration_sec)


def segment_foote(audio: Audio, *, structure: StructureFrames) -> Segments:
    """Cut at the peaks of Foote's novelty; sections of like mean vectors get one label.

    Parameters
    ----------
    audio
        The recording.
    structure
        Its structure frames.

    Returns
    -------
    Segments
        From 0 to the end; labels ``"A"``, ``"B"`` ... in the order of their first appearance.

    References
    ----------
    J. Foote: "Automatic audio segmentation using a measure of audio novelty", ICME 2000.

    """
    per_sec = 1 / structure.hop_sec
    vectors = unit_columns(moving_average(structure.frames, round(SMOOTH_SEC * per_sec)))
    bounds = _peaks(_novelty(vectors, round(KERNEL_SEC * per_sec)), round(MIN_SECTION_SEC * per_sec))
    return _labelled(structure, bounds, audio.duration_sec)


def segment_agglomerative(audio: Audio, *, structure: StructureFrames) -> Segments:
    """Merge neighbouring frames of chroma and MFCC until there is a section for every eight seconds, by librosa.

    Sections are labelled as those of `segment_foote` are.
    """
    from librosa.segment import agglomerative

    frames = structure.frames[: ROWS["mfcc"].stop]
    n_sections = min(max(1, round(audio.duration_sec / AGGLOMERATIVE_SECTION_SEC)), frames.shape[1])
    starts = agglomerative(frames, n_sections)
    return _labelled(structure, starts[1:], audio.duration_sec)


def _novelty(vectors: FloatArray, half: int) -> npt.NDArray[np.float64]:
    """Return Foote's novelty, largest value 1, shape (n_frames,)."""
    # A checkerboard with a taper is an outer product, so its sum over the self-similarity is the squared length of the
    # vectors' sum under one side of it.
    from scipy.ndimage import correlate1d

    offsets = np.arange(-half, half + 1)
    side = np.sign(offsets) * np.exp(-0.5 * (offsets / (0.5 * half)) ** 2)
    novelty: npt.NDArray[np.float64] = np.square(correlate1d(vectors.astype(np.float64), side, axis=1)).sum(axis=0)
    return novelty / max(float(novelty.max()), float(np.finfo(np.float64).tiny))


def _peaks(novelty: npt.NDArray[np.float64], distance: int) -> npt.NDArray[np.intp]:
    from scipy.signal import find_peaks

    peaks, _ = find_peaks(novelty, distance=distance, prominence=PROMINENCE)
    kept: npt.NDArray[np.intp] = peaks[(peaks >= distance) & (peaks <= len(novelty) - distance)]
    return kept


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
