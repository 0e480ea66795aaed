"""Medium swing by rules: what a jazz musician would hold it to, and the folder as its users meet it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from music_evals.datasets.manifest import rows_sha256
from music_evals.datasets.style_pieces import features
from music_evals.datasets.swing_synth.build import (
    CONFIGS,
    N_PIECES,
    Piece,
    build_configs,
    compose_piece,
    piece_row,
    ticks,
)
from music_evals.datasets.swing_synth.players import BASS_RANGE, PIANO_RANGE, VOICINGS, spans
from music_evals.datasets.swing_synth.progressions import QUALITIES, compose, parse_bars
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.piece_rows import score_of_row

PIECES = st.integers(0, 10_000).map(compose_piece)
FORM_BARS = {"blues": 12, "minor blues": 12, "AABA": 32, "ABAC": 32, "16 bars": 16}
GUIDE_TONES = {"maj7": {4, 11}, "7": {4, 10}, "m7": {3, 10}, "m7b5": {3, 10}, "m6": {3, 9}, "dim7": {3, 9}}


def sounding(piece: Piece, place: int) -> Any:
    """The chord of a place; an off-beat right before a chord is of that chord."""
    chords = spans(piece.bars, piece.tonic)
    place = min(place + place % 2, chords[-1].end - 8 if place >= chords[-1].end - 8 else place + 1)
    return next(chord for chord in chords if chord.start <= place < chord.end)


# --- chords


def test_bars_are_read() -> None:
    (first, second), (third,) = parse_bars("IIm7 bII7 | Imaj7")
    assert (first.root, first.quality, first.beats) == (2, "m7", 2)
    assert (second.root, second.quality, third.beats) == (1, "7", 4)
    assert second.leads_to(third)
    assert third.tones == (0, 4, 7, 11)
    with pytest.raises(ValueError, match="has no quality"):
        parse_bars("Isus4")


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_forms_have_their_bars_and_bars_their_beats(seed: int) -> None:
    found = compose(np.random.default_rng(seed))
    assert len(found.bars) == FORM_BARS[found.form]
    assert all(sum(chord.beats for chord in bar) == 4 for bar in found.bars)
    if found.form == "AABA":
        assert found.bars[:8] == found.bars[8:16] == found.bars[24:]


def test_substitutes_stand_where_a_dominant_leads_on() -> None:
    songs = [compose(np.random.default_rng(seed)) for seed in range(300)]
    dominants = [
        (bar[-1].root - after[0].root) % 12
        for song in songs
        for bar, after in zip(song.bars, song.bars[1:], strict=False)
        if bar[-1].quality == "7"
    ]
    by_fifth, by_semitone = dominants.count(7), dominants.count(1)
    assert 0.03 < by_semitone / (by_fifth + by_semitone) < 0.25


# --- players


@settings(max_examples=30)
@given(piece=PIECES)
def test_the_bass_plays_roots_where_chords_begin_and_walks_in_quarters(piece: Piece) -> None:
    at = {hit.start: hit.pitches[0] for hit in piece.bass}
    for chord in spans(piece.bars, piece.tonic):
        assert at[chord.start] % 12 == chord.root
    assert all(BASS_RANGE[0] <= pitch <= BASS_RANGE[1] for pitch in at.values())
    n = 8 * (len(piece.bars) - 1)
    assert set(range(0, n, 2)) <= set(at)
    leaps = np.abs(np.diff([at[place] for place in range(0, n, 2)]))
    assert leaps.max() <= 12
    assert np.median(leaps) <= 5


@settings(max_examples=30)
@given(piece=PIECES)
def test_the_bass_comes_to_a_root_by_a_near_way(piece: Piece) -> None:
    at = {hit.start: hit.pitches[0] for hit in piece.bass}
    chords = spans(piece.bars, piece.tonic)
    ways = [(at[chord.start] - at[chord.start - 2]) % 12 for chord in chords[1:-1]]
    assert np.isin(ways, [1, 11, 2, 10, 5, 7]).mean() > 0.85


@settings(max_examples=30)
@given(piece=PIECES)
def test_voicings_hold_the_guide_tones_and_move_little(piece: Piece) -> None:
    tones = [np.array(hit.pitches) for hit in piece.piano]
    for hit, pitches in zip(piece.piano, tones, strict=True):
        assert PIANO_RANGE[0] <= pitches.min()
        assert pitches.max() <= PIANO_RANGE[1]
        assert 3 <= len(set(hit.pitches)) <= 4
        chord = sounding(piece, hit.start)
        assert GUIDE_TONES[chord.quality] <= {(pitch - chord.root) % 12 for pitch in hit.pitches}
    moves = [abs(a.mean() - b.mean()) for a, b in itertools.pairwise(tones)]
    assert max(moves) < 6


def test_voicings_are_of_their_chords() -> None:
    """Every tone of a voicing is a chord tone or a tension of it."""
    tensions = {2, 5, 9, 1, 8}
    for quality, shapes in VOICINGS.items():
        for shape in shapes:
            assert {tone % 12 for tone in shape} <= set(QUALITIES[quality]) | tensions
            assert GUIDE_TONES[quality] <= {tone % 12 for tone in shape}


@settings(max_examples=30)
@given(piece=PIECES)
def test_no_two_chords_of_the_piano_overlap(piece: Piece) -> None:
    ends = [hit.start + hit.length for hit in piece.piano]
    assert all(end <= after.start for end, after in zip(ends, piece.piano[1:], strict=False))
    assert ends[-1] == 8 * len(piece.bars)


@settings(max_examples=30)
@given(piece=PIECES)
def test_a_piece_comes_home(piece: Piece) -> None:
    assert [chord.root for chord in piece.bars[-1]] == [0]
    assert piece.bass[-1].pitches[0] % 12 == piece.tonic


# --- grids and rows


def test_off_beats_lie_late() -> None:
    assert [ticks(number, 8) for number in range(5)] == [0, 5, 8, 13, 16]
    assert [ticks(number, 12) for number in range(5)] == [0, 8, 12, 20, 24]


@settings(max_examples=10)
@given(piece=PIECES, grid=st.sampled_from(sorted(CONFIGS.values())))
def test_rows_are_scores_of_whole_bars(piece: Piece, grid: int) -> None:
    row = piece_row(piece, grid)
    score = score_of_row(row)
    assert score.voices == ("piano", "bass")
    assert meter_map(score).n_measures == len(piece.bars)
    assert set(row) == set(features())
    within = {int(tick) % grid for tick in score.notes["onset_tick"]}
    assert within <= {0, {8: 5, 12: 8}[grid]}
    assert not row["melody"]


def test_keys_are_spread_and_spelt() -> None:
    rows = [piece_row(compose_piece(index), 8) for index in range(150)]
    assert {row["key_fifths"] for row in rows} == set(range(-5, 7))
    in_f = next(row for row in rows if row["title"].endswith("in F"))
    assert (in_f["key_fifths"], in_f["mode"]) == (-1, "major")
    in_d_minor = next(row for row in rows if row["title"].endswith("in D minor"))
    assert (in_d_minor["key_fifths"], in_d_minor["mode"]) == (-1, "minor")


# --- the folder


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "datasets_scripts" / "swing_synth"


@pytest.fixture(scope="module")
def built() -> dict[str, dict[str, list[dict[str, Any]]]]:
    return build_configs()


def test_the_files_are_what_the_rules_give(folder: Path, built: Any) -> None:
    files = json.loads((folder / "manifest.json").read_text())["files"]
    for config, splits in built.items():
        for split, rows in splits.items():
            name = f"data/{config}/{split}-00000-of-00001.parquet"
            assert files[name]["rows_sha256"] == rows_sha256(rows), name
    assert sum(len(rows) for rows in built["swing_synth"].values()) == N_PIECES


def test_no_progression_is_in_two_splits(built: Any) -> None:
    for splits in built.values():
        families = [{row["family"] for row in rows} for rows in splits.values()]
        assert sum(map(len, families)) == len(set().union(*families))
        names = [row["name"] for rows in splits.values() for row in rows]
        assert len(set(names)) == len(names)


def test_the_card_tells_the_counts(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    for config in CONFIGS:
        for split, sizes in counts[config].items():
            assert f"| `{config}` | {split} | {' | '.join(f'{number:,}' for number in sizes.values())} |" in text
    for form, number in counts["forms"].items():
        assert f"{number} {form}" in text
    assert f"{counts['minor']} of the {N_PIECES} are in minor" in " ".join(text.split())
    assert yaml.safe_load(text.split("---\n")[1])["license"] == "cc0-1.0"
