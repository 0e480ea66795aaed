"""The official variant, end to end, on the pair of recordings that the authors ship with their code.

The values are those of the official code at commit 9df5a46, run on that pair. The recordings are not part of this
repository; the tests skip where they are absent. ``MUSIC_EVALS_MCP_EXAMPLE`` names their folder.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from music_evals.audio.io import Audio, AudioPolicy, load_audio
from music_evals.audio.optional.process import installed_version
from music_evals.pipelines.preservation import evaluate_preservation

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("MUSIC_EVALS_MCP_EXAMPLE", ROOT.parent / "shared" / "data" / "mcp_example_pair"))
PAIR = (FOLDER / "ref.wav", FOLDER / "output.wav")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(path.is_file() for path in PAIR), reason=f"the example pair is not in {FOLDER}"),
]


def skip_without(package: str, what: str) -> None:
    if importlib.util.find_spec(package) is None and not installed_version(package):
        pytest.skip(f"the official {what} need {package}")


def judge(*metrics: str) -> dict[str, float]:
    result = evaluate_preservation([PAIR[0]], [PAIR[1]], metrics=metrics, variant="official")
    return {name: result[name] for name in metrics}


def test_chroma_and_beats():
    found = judge("chroma_dtw_similarity", "delta_bpm", "beat_f_measure", "information_gain")
    assert found["chroma_dtw_similarity"] == pytest.approx(0.9457, abs=5e-5)
    assert found["delta_bpm"] == pytest.approx(0.0, abs=5e-4)
    assert found["beat_f_measure"] == pytest.approx(0.981, abs=5e-4)
    assert found["information_gain"] == pytest.approx(0.772, abs=5e-4)


def test_melody():
    found = judge("voicing_recall", "motif_jaccard", "motif_recall")
    assert found["voicing_recall"] == pytest.approx(0.802, abs=5e-4)
    assert found["motif_jaccard"] == pytest.approx(0.165, abs=5e-4)
    assert found["motif_recall"] == pytest.approx(0.276, abs=5e-4)


def test_key():
    skip_without("essentia", "key")
    assert judge("circle_of_fifths_distance")["circle_of_fifths_distance"] == pytest.approx(1 / 6)


def test_chords():
    skip_without("madmom", "chords")
    # frames of 0.1 s; ffmpeg resamples, as it does for the official code
    assert judge("major_minor_score")["major_minor_score"] == pytest.approx(141 / 379, abs=1e-9)


def test_chords_with_another_resampler():
    """The card says what it costs; where this fails with the value above, madmom need not be given files any more."""
    skip_without("madmom", "chords")
    policy = AudioPolicy(44100, peak_normalise=False)
    pair = [Audio(load_audio(path, policy=policy).samples, 44100, policy) for path in PAIR]
    found = evaluate_preservation(pair[:1], pair[1:], metrics=["major_minor_score"], variant="official")
    assert found["major_minor_score"] == pytest.approx(139 / 379, abs=1e-9)


def test_structure():
    skip_without("msaf", "sections")
    found = judge("segment_ari", "boundary_f_measure")
    assert found["segment_ari"] == pytest.approx(1.0)
    assert found["boundary_f_measure"] == pytest.approx(0.667, abs=5e-4)
