"""What cards and pages promise of real recordings holds in the committed scores of their edits."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from music_evals.yaml_files import read_yaml_file

pd = pytest.importorskip("pandas")

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "preservation_validity"
CONTROL = read_yaml_file(FOLDER / "real_edits.yaml")["control"]
HALVES = ("development", "test")


@pytest.fixture(scope="module", params=HALVES)
def edits(request: pytest.FixtureRequest) -> Any:
    """The pairs of a half."""
    table = pd.read_csv(FOLDER / "real_scores.csv")
    return table[table.half == request.param]


def test_noise_is_below_unrelated_music_and_that_below_every_edit_that_changes_nothing(edits: Any) -> None:
    score = edits.chroma_dtw_similarity
    noise, unrelated = (score[edits.kind == kind].mean() for kind in ("noise_alone", "unrelated"))
    assert noise < unrelated < score[edits.kind.isin(CONTROL)].min()


def test_the_key_of_music_is_hardly_ever_undefined(edits: Any) -> None:
    music = edits[~edits.kind.isin(["unrelated", "noise_alone"])]
    assert music.circle_of_fifths_distance.isna().mean() <= 0.05


def test_octaves_of_tempo_flip_hardly_ever(edits: Any) -> None:
    flipped = edits.tempo_octave.abs() > 0.5
    assert flipped[edits.kind.isin(CONTROL)].mean() <= 0.03
    assert flipped[(edits.kind == "tempo") & (edits.strength == 0.8)].mean() <= 0.10


def test_intervals_in_their_order_are_steadier_than_motifs(edits: Any) -> None:
    same_music = edits[edits.kind.isin(CONTROL)]
    motifs, order = (same_music[name].quantile(0.1) for name in ("motif_jaccard", "interval_lcs"))
    assert order >= 0.6 > motifs  # where motifs reach it too, their cards say too little


@pytest.mark.parametrize("kind", ["eq", "mp3"])
def test_on_some_recordings_an_equaliser_or_mp3_takes_half_of_the_motifs(kind: str) -> None:
    """As the cards of both say."""
    scores = pd.read_csv(FOLDER / "real_scores.csv")
    for name in ("motif_jaccard", "motif_recall"):
        assert scores[name][scores.kind == kind].min() <= 0.5


def test_companions_that_are_shown_tell_edits_apart_where_the_motifs_do_not() -> None:
    table = pd.read_csv(FOLDER / "real_evidence.csv").set_index(["metric", "half"]).auc
    for half in HALVES:
        shown = min(table[name, half] for name in ("ssm_correlation", "raw_pitch_accuracy", "melody_contour_accuracy"))
        assert shown >= 0.95 > max(table[name, half] for name in ("motif_jaccard", "motif_recall"))


def timbre_of(roles: list[str]) -> Any:
    """The scores of recordings in the benchmark of timbre."""
    table = pd.read_csv(FOLDER / "timbre.csv")
    return table[(table.input == "recordings") & table.role.isin(roles)]


def test_timbre_stays_where_a_recording_is_moved_and_falls_where_it_is_distorted() -> None:
    same, changed = timbre_of(["same"]), timbre_of(["changed"])
    assert same.timbre_similarity.min() > 0.95
    assert same.timbre_similarity.min() > changed.timbre_similarity.max()
    assert changed[changed.edit == "overdrive 30"].timbre_similarity.max() < 0.5


def test_timbre_falls_by_degree() -> None:
    means = timbre_of(["degrees"]).groupby("edit").timbre_similarity.mean()
    for edit in ("eq", "reverb", "overdrive"):
        strengths = sorted(int(name.split()[1]) for name in means.index if name.startswith(edit))
        falling = [means[f"{edit} {strength}"] for strength in strengths]
        assert all(after <= before + 0.001 for before, after in itertools.pairwise(falling))
