"""Variant ``official`` of the preservation metrics is held to numbers of the authors' code."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.annotations import Beats, Chords, Chroma, F0Track, Key, Segments
from music_evals.errors import InvalidInputError, UndefinedMetricWarning, UnsupportedTypeError
from music_evals.metrics import harmony, melody, rhythm, structure

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "preservation_official.json").read_text(encoding="utf-8"))
# One arithmetic, two orders of addition: nothing larger than this is rounding.
ROUNDING = {"rel": 1e-12, "abs": 1e-12}
HOP_SEC = 256 / 22050


def name(case: dict[str, Any]) -> str:
    return case.get("what", "")


def score(function: Any, *pair: Any) -> float | None:
    """The official value, None where it is undefined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value = function(*pair, variant="official")
    return None if math.isnan(value) else value


def close(expected: float | None) -> Any:
    return None if expected is None else pytest.approx(expected, **ROUNDING)


def test_keys() -> None:
    keys = [Key(tonic, mode) for mode in ("major", "minor") for tonic in range(12)]
    distances = [[harmony.circle_of_fifths_distance(a, b, variant="official") for b in keys] for a in keys]
    assert distances == GOLDEN["keys"]["distance"]


@pytest.mark.parametrize("case", GOLDEN["chords"], ids=name)
def test_chords(case: dict[str, Any]) -> None:
    pair = [Chords(np.array(intervals), tuple(labels)) for intervals, labels in (case["reference"], case["estimate"])]
    assert score(harmony.major_minor_score, *pair) == close(case["majmin"])


@pytest.mark.parametrize("case", GOLDEN["chroma"], ids=name)
def test_chroma(case: dict[str, Any]) -> None:
    pair = [Chroma(np.array(case[side], dtype=np.float32), 512 / 22050) for side in ("reference", "estimate")]
    assert score(harmony.chroma_dtw_similarity, *pair) == close(case["chroma_dtw_cosine"])


@pytest.mark.parametrize("case", GOLDEN["beats"], ids=lambda case: f"{len(case['reference'])}-{len(case['estimate'])}")
def test_beats(case: dict[str, Any]) -> None:
    pair = [Beats(np.array(case[side], dtype=np.float64)) for side in ("reference", "estimate")]
    assert score(rhythm.beat_f_measure, *pair) == close(case["f_measure"])
    assert score(rhythm.information_gain, *pair) == close(case["information_gain"])


def tracks(case: dict[str, Any]) -> list[F0Track]:
    frequencies = [np.array(case[side], dtype=np.float64) for side in ("reference", "estimate")]
    return [F0Track(np.arange(len(f)) * HOP_SEC, f) for f in frequencies]


FRAME_METRICS = [
    "voicing_recall", "voicing_false_alarm", "raw_pitch_accuracy", "raw_chroma_accuracy", "overall_accuracy",
]  # fmt: skip


@pytest.mark.parametrize("metric", FRAME_METRICS)
@pytest.mark.parametrize("case", GOLDEN["f0"], ids=name)
def test_frames_of_the_melody(case: dict[str, Any], metric: str) -> None:
    function = getattr(melody, metric)
    if "raises" in case:
        assert case["raises"] == "ValueError"
        with pytest.raises(InvalidInputError, match="200"):
            function(*tracks(case), variant="official")
    else:
        assert score(function, *tracks(case)) == close(case["scores"][metric])


@pytest.mark.parametrize("case", GOLDEN["f0"], ids=name)
def test_motifs(case: dict[str, Any]) -> None:
    assert score(melody.motif_jaccard, *tracks(case)) == close(case["jaccard"])
    assert score(melody.motif_recall, *tracks(case)) == close(case["recall"])


def test_motifs_of_notes_are_not_official() -> None:
    track = F0Track(np.arange(4) * HOP_SEC, np.full(4, 440.0))
    with pytest.raises(UnsupportedTypeError, match="made of Melody"):
        melody.motif_jaccard(track, track)


@pytest.mark.parametrize("case", GOLDEN["segments"], ids=name)
def test_sections(case: dict[str, Any]) -> None:
    pair = []
    for edges, labels in (case["reference"], case["estimate"]):
        pair.append(Segments(np.stack([edges[:-1], edges[1:]], axis=1), tuple(labels)))
    assert score(structure.boundary_f_measure, *pair) == close(case["boundary_f_after_shift"])
    assert score(structure.segment_ari, *pair) == close(case["ari"])


def test_equal_pieces_score_less_than_1_against_themselves() -> None:
    # the facts' table of the uniform fallback on identical files: 30 s .91, and the boundaries stay perfect
    case = next(case for case in GOLDEN["segments"] if case["reference"][0][-1] == 30)
    assert case["boundary_f_after_shift"] == 1
    assert case["ari"] == pytest.approx(0.91, abs=0.005)


def test_a_missing_tempo_is_0() -> None:
    # librosa.beat.beat_track gives tempo 0 and no beats where it hears no onset
    assert rhythm.delta_bpm(Beats(np.zeros(0)), Beats(np.array([1.0, 1.5]), 120.0), variant="official") == 120
