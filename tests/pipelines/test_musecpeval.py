"""The variant `musecpeval-0.3` gives what the package gave for music and sections of our own making."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.parity.musecpeval.made_up import PAIRS, random_sections, write_pairs

from music_evals.annotations import F0Track, Features, Score, Segments, TimbreFrames
from music_evals.errors import UnknownNameError, UnsupportedTypeError
from music_evals.metrics import harmony, melody, rhythm, structure, timbre
from music_evals.metrics.arrays import MUSECPEVAL
from music_evals.metrics.catalogue import RELEASE_SCORES, RELEASES, metric_of
from music_evals.pipelines.preservation import compare, evaluate_preservation
from music_evals.symbolic.notes import make_notes

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "preservation_musecpeval_0_3.json").read_text("utf-8"))
OF_SECTIONS = ("segment_pairwise_f", "segment_ari")
HEARD = [name for name in RELEASES[MUSECPEVAL] if name not in OF_SECTIONS]


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    pairs = write_pairs(tmp_path_factory.mktemp("pairs"))
    found = evaluate_preservation(*zip(*pairs, strict=True), metrics=HEARD, variant=MUSECPEVAL, per_item=True)
    return found["per_item"]


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=PAIRS)
def test_recordings(items: list[dict[str, Any]], pair: int) -> None:
    expected = GOLDEN["pairs"][pair]["scores"]
    assert set(expected) == set(HEARD)
    for name, value in expected.items():
        mine = items[pair][name]
        assert math.isnan(mine) if value is None else mine == pytest.approx(value, abs=1e-6), name


def segments(side: list[Any]) -> Segments:
    edges, labels = side
    return Segments(np.stack([edges[:-1], edges[1:]], axis=1), tuple(labels))


def test_the_sections_are_those_of_the_golden_values() -> None:
    assert [[*case["reference"], *case["estimate"]] for case in GOLDEN["sections"]] == random_sections()


@pytest.mark.parametrize("case", GOLDEN["sections"])
@pytest.mark.parametrize("name", OF_SECTIONS)
def test_sections(case: dict[str, Any], name: str) -> None:
    pair = segments(case["reference"]), segments(case["estimate"])
    assert getattr(structure, name)(*pair, variant=MUSECPEVAL) == pytest.approx(case["scores"][name], abs=1e-12)


def test_a_release_has_scores_of_its_own() -> None:
    assert set(RELEASE_SCORES) < set(RELEASES[MUSECPEVAL])
    assert {metric_of(name).facet for name in RELEASES[MUSECPEVAL]} == {
        "harmony", "rhythm", "structure", "melody", "timbre",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        (MUSECPEVAL, {"metrics": ["major_minor_score"]}),
        (MUSECPEVAL, {"metrics": ["voicing_recall"]}),
        (MUSECPEVAL, {"metrics": HEARD, "companions": ["same_mode"]}),
        ("corrected", {"metrics": ["mean_mfcc_cosine"]}),
        ("official", {"metrics": ["mfcc_skl_similarity"]}),
        ("musecpeval-0.4", {}),
    ],
)
def test_what_a_variant_does_not_have_is_refused(variant: str, options: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError):
        compare(Features(1.0), Features(1.0), variant=variant, **options)


def test_a_facet_stands_for_its_scores() -> None:
    noise = TimbreFrames(np.random.default_rng(0).standard_normal((36, 90)), 0.02)
    found = compare(Features(9.0, timbre=noise), Features(9.0, timbre=noise), metrics=["timbre"], variant=MUSECPEVAL)
    assert list(found) == ["mfcc_skl_similarity", "mean_mfcc_cosine"]
    assert [value.value for value in found.values()] == pytest.approx([1.0, 1.0])


def test_formulas_of_other_variants_refuse_it() -> None:
    track = F0Track(np.arange(4) * 0.1, np.full(4, 440.0))
    for refused in (
        lambda: melody.voicing_recall(track, track, variant=MUSECPEVAL),
        lambda: melody.motif_jaccard(track, track, variant=MUSECPEVAL),  # type: ignore[arg-type]
        lambda: timbre.mean_mfcc_cosine(None, None, variant="corrected"),  # type: ignore[arg-type]
        lambda: harmony.same_mode(None, None, variant=MUSECPEVAL),  # type: ignore[arg-type]
        lambda: rhythm.tempo_log2(None, None, variant=MUSECPEVAL),  # type: ignore[arg-type]
    ):
        with pytest.raises(UnknownNameError):
            refused()
    with pytest.raises(UnsupportedTypeError, match="made of Chroma"):
        melody.motif_recall(track, track, variant=MUSECPEVAL)


def test_spectral_shapes_that_cannot_be_told_apart_are_alike() -> None:
    """Two Gaussians with covariance I whose means are d apart: D = d^2, here 50, and the similarity one half."""
    rng = np.random.default_rng(3)
    frames = rng.standard_normal((4, 4000))
    frames -= frames.mean(axis=1, keepdims=True)
    frames = np.linalg.inv(np.linalg.cholesky(np.cov(frames))) @ frames
    moved = frames + np.array([[np.sqrt(50)], [0], [0], [0]])
    pair = TimbreFrames(frames, 0.02), TimbreFrames(moved, 0.02)
    assert timbre.mfcc_skl_similarity(*pair) == pytest.approx(0.5, abs=1e-4)
    few = TimbreFrames(frames[:, :4], 0.02)
    assert timbre.mfcc_skl_similarity(few, few) == 0


def test_the_modules_of_facets_have_the_scores_of_the_release(in_root: Path, tmp_path: Path) -> None:
    import evaluate

    piece = Score(make_notes([0, 480, 960, 1440], [480] * 4, [60, 64, 67, 72]), 480)
    module = evaluate.load("./metrics/harmony_preservation", MUSECPEVAL, cache_dir=str(tmp_path))
    result = module.compute(references=[piece], predictions=[piece])
    assert [result[name] for name in result if name + "_n" in result] == pytest.approx([0.0, 1.0, 1.0])
    assert list(result)[::5] == ["circle_of_fifths_distance", "chroma_dtw_similarity", "mean_chroma_cosine"]
    with pytest.raises(UnknownNameError, match=r"unknown metric of musecpeval-0\.3 'major_minor_score'"):
        evaluate.load("./metrics/major_minor_score", MUSECPEVAL, cache_dir=str(tmp_path)).compute(
            references=[piece], predictions=[piece]
        )
