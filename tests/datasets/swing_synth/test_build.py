"""Rows of swing_synth, built anew and as they lie in the folder."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from music_evals.annotations import KeySignature
from music_evals.datasets.manifest import load_split, rows_sha256
from music_evals.datasets.swing_synth.build import (
    CONFIGS,
    N_PIECES,
    OFF_BEATS,
    build_configs,
    compose,
    piece_row,
    swing_score,
)
from music_evals.errors import UnknownNameError
from music_evals.symbolic.piece_rows import score_of_row

FOLDER = Path(__file__).resolve().parents[3] / "datasets_scripts" / "swing_synth"
SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def stored():
    return {config: {split: load_split(FOLDER, config, split).to_list() for split in SPLITS} for config in CONFIGS}


@pytest.mark.slow
def test_a_rebuild_gives_the_rows_of_the_manifest(stored):
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    rows = stored["swing_synth"]["test"]
    rebuilt = [piece_row(int(row["name"].removeprefix("swing_")), 8) for row in rows]
    name = "data/swing_synth/test-00000-of-00001.parquet"
    assert rows_sha256(rebuilt) == manifest["files"][name]["rows_sha256"]


@pytest.mark.parametrize("config", CONFIGS)
def test_splits_share_no_chart_and_hold_every_piece_once(stored, config):
    families = {split: {row["family"] for row in stored[config][split]} for split in SPLITS}
    assert not families["train"] & families["validation"] | families["train"] & families["test"]
    assert not families["validation"] & families["test"]
    names = [row["name"] for split in SPLITS for row in stored[config][split]]
    assert len(set(names)) == len(names) == N_PIECES


def test_both_configs_are_the_same_pieces(stored):
    for split in SPLITS:
        eights, twelves = (stored[config][split] for config in CONFIGS)
        for eight, twelve in zip(eights, twelves, strict=True):
            assert (eight["name"], eight["title"], eight["family"]) == (
                twelve["name"],
                twelve["title"],
                twelve["family"],
            )
            pitches = [[(note["voice"], note["pitch"]) for note in row["notes"]] for row in (eight, twelve)]
            assert pitches[0] == pitches[1]


@pytest.mark.parametrize("config", CONFIGS)
def test_notes_start_on_the_beat_or_the_swung_off_beat_and_the_bass_on_the_beat(stored, config):
    steps = CONFIGS[config]
    for row in stored[config]["validation"]:
        voices = row["voices"]
        for voice, places in (("piano", {0, OFF_BEATS[steps]}), ("bass", {0})):
            onsets = {note["onset"] % steps for note in row["notes"] if voices[note["voice"]] == voice}
            assert onsets == places
    assert OFF_BEATS[12] * 3 == 12 * 2  # exact 2 to 1


@pytest.mark.slow
def test_keys_are_uniform():
    counts = Counter(compose(number).tonic for number in range(N_PIECES))
    expected = N_PIECES / 12
    chi_square = sum((counts[tonic] - expected) ** 2 / expected for tonic in range(12))
    assert chi_square < 24.7  # the 99 % quantile of 11 degrees of freedom


def test_a_piece_has_whole_choruses_and_ends_on_its_tonic():
    for number in range(30):
        piece = compose(number)
        row = piece_row(number, 8)
        n_bars = len(piece.chart.bars) * piece.n_choruses
        assert row["measure_starts"] == list(range(0, 32 * n_bars + 1, 32))
        last = [note for note in row["notes"] if note["onset"] == 32 * (n_bars - 1)]
        assert min(note["pitch"] for note in last) % 12 == piece.tonic
        assert row["melody"] == ""
        assert score_of_row(row).voices == ("piano", "bass")


def test_minor_keys_have_the_signature_of_their_relative_major():
    piece = next(piece for piece in map(compose, range(100)) if piece.chart.minor and piece.tonic == 9)
    assert swing_score(piece, 8).key_signatures == (KeySignature(0, 0, minor=True),)


def test_the_seed_makes_the_pieces():
    assert compose(3) == compose(3)
    assert compose(3) != compose(3, seed=1)
    assert len({np.array(row["measure_starts"]).size for row in build_configs(range(8))["triplet"]["train"]}) > 1


def test_another_grid_is_refused():
    with pytest.raises(UnknownNameError, match="grid"):
        swing_score(compose(0), 16)
