"""What a reader must know of each score before comparing it: range, direction, title."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from music_evals.annotations import DIMENSIONS, SCORED
from music_evals.errors import UnknownNameError
from music_evals.metrics.arrays import check_variant
from music_evals.metrics.lyric_structure import MAXIMUM

__all__ = [
    "COMPANIONS",
    "DESCRIPTION_SCORES",
    "LYRIC_SCORES",
    "PRESERVATION_METRICS",
    "Scale",
    "features_of",
    "scale_of",
]

_INF = float("inf")


class Scale(NamedTuple):
    """Meaning of a score.

    Attributes
    ----------
    facet
        Scores of one facet share a table: ``"harmony"``, ``"rhythm"``, ``"structure"`` or ``"melody"`` of music;
        ``"lyrics"``; ``"average"``, ``"professional"`` or ``"amateur"`` of descriptions.
    low, high
        Range.
    direction
        ``"higher"`` or ``"lower"`` is better; ``"zero"``: nearer to 0 is better, the sign tells which way it went.
    best
        The best that can be had: of preservation, the value of a recording compared with itself.
    features
        Fields of `music_evals.annotations.Features` that it compares; `features_of` knows the variants. None for texts.
    title
        For tables and pictures.
    chance
        Mean over pairs of unrelated pieces with the default extractors: the held-out half of `known_edits`, both
        renderers (``benchmarks/preservation_validity/responses.csv``). A guide and no constant. NaN where it says
        nothing.

    """

    facet: str
    low: float
    high: float
    direction: str
    best: float
    features: tuple[str, ...]
    title: str
    chance: float = float("nan")


PRESERVATION_METRICS: Final[Mapping[str, Scale]] = MappingProxyType(
    {
        "circle_of_fifths_distance": Scale(
            "harmony", 0.0, 1.0, "lower", 0.0, ("key",), "Circle-of-fifths distance", 0.44
        ),
        "major_minor_score": Scale("harmony", 0.0, 1.0, "higher", 1.0, ("chords",), "Major-minor score", 0.06),
        "chroma_dtw_similarity": Scale("harmony", 0.0, 1.0, "higher", 1.0, ("chroma",), "Chroma DTW similarity", 0.67),
        "delta_bpm": Scale("rhythm", 0.0, _INF, "lower", 0.0, ("beats",), "Delta BPM", 18.8),
        "beat_f_measure": Scale("rhythm", 0.0, 1.0, "higher", 1.0, ("beats",), "Beat F-measure", 0.30),
        "information_gain": Scale("rhythm", 0.0, 1.0, "higher", 1.0, ("beats",), "Information gain", 0.16),
        "segment_ari": Scale("structure", -1.0, 1.0, "higher", 1.0, ("segments",), "Segment ARI", 0.48),
        "boundary_f_measure": Scale("structure", 0.0, 1.0, "higher", 1.0, ("segments",), "Boundary F, 0.5 s", 0.08),
        "voicing_recall": Scale("melody", 0.0, 1.0, "higher", 1.0, ("f0",), "Voicing recall", 0.84),
        "motif_jaccard": Scale("melody", 0.0, 1.0, "higher", 1.0, ("melody",), "Motif Jaccard", 0.03),
        "motif_recall": Scale("melody", 0.0, 1.0, "higher", 1.0, ("melody",), "Motif recall", 0.07),
    }
)
"""The eleven metrics of music context preservation, in the order of their results."""

COMPANIONS: Final[Mapping[str, Scale]] = MappingProxyType(
    {
        "same_mode": Scale("harmony", 0.0, 1.0, "higher", 1.0, ("key",), "Same mode"),
        "chroma_dtw_centred": Scale("harmony", -1.0, 1.0, "higher", 1.0, ("chroma",), "Chroma DTW, centred", 0.26),
        "chroma_dtw_centred_transposed": Scale(
            "harmony", -1.0, 1.0, "higher", 1.0, ("chroma",), "Chroma DTW, centred, any transposition", 0.56
        ),
        "tempo_log2": Scale("rhythm", -0.5, 0.5, "zero", 0.0, ("beats",), "Tempo change, octaves folded"),
        "tempo_octave": Scale("rhythm", -_INF, _INF, "zero", 0.0, ("beats",), "Tempo octaves"),
        "beat_f_measure_aligned": Scale("rhythm", 0.0, 1.0, "higher", 1.0, ("beats",), "Beat F-measure, aligned"),
        "information_gain_aligned": Scale("rhythm", 0.0, 1.0, "higher", 1.0, ("beats",), "Information gain, aligned"),
        "beat_offset_sec": Scale("rhythm", -_INF, _INF, "zero", 0.0, ("beats",), "Beat offset, s"),
        "boundary_f_measure_3s": Scale("structure", 0.0, 1.0, "higher", 1.0, ("segments",), "Boundary F, 3 s", 0.53),
        "ssm_correlation": Scale("structure", -1.0, 1.0, "higher", 1.0, ("structure",), "SSM correlation", 0.10),
        "voicing_false_alarm": Scale("melody", 0.0, 1.0, "lower", 0.0, ("f0",), "Voicing false alarm"),
        "raw_pitch_accuracy": Scale("melody", 0.0, 1.0, "higher", 1.0, ("f0",), "Raw pitch accuracy", 0.05),
        "raw_chroma_accuracy": Scale("melody", 0.0, 1.0, "higher", 1.0, ("f0",), "Raw chroma accuracy"),
        "overall_accuracy": Scale("melody", 0.0, 1.0, "higher", 1.0, ("f0",), "Overall accuracy"),
    }
)
"""What is reported beside the eleven, never mixed into them."""


def _points(title: str, most: float) -> Scale:
    return Scale("lyrics", 0.0, most, "higher", most, (), title)


LYRIC_SCORES: Final[Mapping[str, Scale]] = MappingProxyType(
    {
        "lyric_structure": _points("Lyric structure, total", sum(MAXIMUM.values())),
        **{
            f"lyric_{level}": _points(title, most)
            for (level, most), title in zip(
                MAXIMUM.items(),
                ("Song", "Section", "Phrase", "Word", "Rhyming fitting accuracy", "Proportion reasonableness"),
                strict=True,
            )
        },
    }
)
"""Points of structured lyrics: the total, then its levels, with the titles of MuChin's table 1."""


def _similarity(facet: str, title: str) -> Scale:
    return Scale(facet, -1.0, 1.0, "higher", 1.0, (), title)


DESCRIPTION_SCORES: Final[Mapping[str, Scale]] = MappingProxyType(
    {
        "tag_semantic_similarity": _similarity("average", "Both groups"),
        "professional_average": _similarity("average", "Professional"),
        "amateur_average": _similarity("average", "Amateur"),
        **{
            f"{group}/{name}": _similarity(group, DIMENSIONS[group][name].table_row)
            for group, names in SCORED.items()
            for name in names
        },
    }
)
"""Similarities of tags: averages, then each dimension of each group (MuChin, Wang et al., IJCAI 2024, section 3.3)."""


def scale_of(name: str) -> Scale:
    """Return range, direction and facet of a metric or companion.

    Raises
    ------
    UnknownNameError
        A metric that does not exist.

    """
    found = PRESERVATION_METRICS.get(name) or COMPANIONS.get(name)
    if found is None:
        raise UnknownNameError("preservation metric", name, [*PRESERVATION_METRICS, *COMPANIONS])
    return found


def features_of(name: str, variant: str = "corrected") -> tuple[str, ...]:
    """Return the features that a metric or companion needs: official motifs are made of f0, ours of notes.

    Raises
    ------
    UnknownNameError
        A metric or variant that does not exist.

    """
    check_variant(variant)
    needed = scale_of(name).features
    return ("f0",) if variant == "official" and needed == ("melody",) else needed
