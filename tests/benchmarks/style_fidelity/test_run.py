"""The parts of the benchmark on made pieces: known changes, and what the measures say of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.style_fidelity import run, six
from music_evals.annotations import Score
from music_evals.symbolic.encodings.piano_rolls import piano_roll
from music_evals.symbolic.notes import make_notes


def piece(number: int, *, is_swung: bool) -> run.Piece:
    """Eight bars of two voices: quarters over whole notes, or swung eighths over quarters."""
    rng = np.random.default_rng(number)
    starts = np.arange(32) * 8
    if is_swung:
        starts = np.sort(np.concatenate([starts, starts + 5]))
    lengths = np.diff(starts, append=256)
    below = np.arange(0, 256, 8 if is_swung else 32)
    onsets = np.concatenate([starts, below])
    durations = np.concatenate([lengths, np.diff(below, append=256)])
    pitches = np.concatenate([60 + rng.integers(0, 12, len(starts)), 40 + rng.integers(0, 8, len(below))])
    voices = np.repeat([0, 1], [len(starts), len(below)])
    score = Score(make_notes(onsets, durations, pitches, voice=voices), 8, voices=("top", "low"))
    return run.Piece(score, f"tune{number}", "top")


@pytest.fixture(scope="module")
def corpora() -> run.Corpora:
    """Four pieces of each of two styles in each split."""
    pieces = {
        split: tuple([piece(10 * place + n, is_swung=swung) for n in range(4)] for swung in (False, True))
        for place, split in enumerate(("train", "validation", "test"))
    }
    return run.Corpora(("bach", "swing"), pieces)


def test_changes_do_what_they_are_called() -> None:
    one = piece(0, is_swung=True)
    notes = one.score.notes
    assert np.array_equal(run.transposed(3)(one.score).notes["pitch"], notes["pitch"] + 3)
    assert np.array_equal(run.transposed(-2)(one.score).notes["pitch"], notes["pitch"] - 2)
    straight = run.off_beats(5, 4)(one.score).notes
    assert set(straight["onset_tick"] % 8) == {0, 4}
    assert set(straight["onset_tick"] + straight["duration_tick"]) == set(notes["onset_tick"] + notes["duration_tick"])
    assert set(run.voice_alone("low")(one.score).notes["voice"]) == {1}
    roll = piano_roll(one.score)
    shuffled = run.shuffled_bars(roll, np.random.default_rng(0))
    bars, moved = (value.onsets.reshape(8, -1) for value in (roll, shuffled))
    assert not np.array_equal(bars, moved)
    assert sorted(map(bytes, bars)) == sorted(map(bytes, moved))
    assert not run.silence(roll).cells.any()


@pytest.mark.slow
def test_the_classifier_tells_made_styles_apart(corpora: run.Corpora) -> None:
    table, classifier = run.accuracies(corpora)
    assert len(table) == len(run.LENGTHS) * len(run.SUBSETS)
    of_four = next(row for row in table if (row["bars"], row["features"]) == (4, "all features"))
    assert (of_four["stretches"], of_four["pieces"], float(of_four["accuracy"])) == (16, 8, 1.0)
    assert classifier.styles == ("bach", "swing")
    tried = run.conditions(corpora, np.random.default_rng(0))
    said = {(row["style"], row["condition"]): row for row in run.given_to(classifier, tried)}
    assert float(said["bach", "as it is"]["given_to_swing"]) == 0
    assert float(said["swing", "as it is"]["given_to_swing"]) == 1
    assert said["bach", "silence"]["undefined"] == said["bach", "silence"]["stretches"] == 8


def test_divergences_are_larger_from_the_other_style(corpora: run.Corpora) -> None:
    tried = [one for one in run.conditions(corpora, np.random.default_rng(0)) if one[1] in {"as it is", "silence"}]
    rows = run.divergences(corpora, tried, n_resamples=20)
    assert {row["condition"] for row in rows} == {"as it is"}  # silence has no histograms
    found = {(row["target"], row["style"], row["score"]): float(row["value"]) for row in rows}
    onset = "style_onset_divergence"
    assert found["bach", "bach", onset] == pytest.approx(0, abs=1e-9)
    # all onsets on the beat; of swing, 64 of 96: Jensen-Shannon in nats by hand
    middle = (1 + 2 / 3) / 2
    by_hand = (np.log(1 / middle) + 2 / 3 * np.log(2 / 3 / middle) + 1 / 3 * np.log(2)) / 2
    assert found["bach", "swing", onset] == pytest.approx(by_hand, abs=2e-5)


def test_melodies_lose_what_was_taken(corpora: run.Corpora) -> None:
    rows = {row["condition"]: row for row in run.melodies(corpora, np.random.default_rng(0))}
    for name in ("as it is", "melody kept, silence below", "melody kept, noise below"):
        assert float(rows[name]["melody_cell_recall"]) == 1
    tenth, half = (float(rows[f"{name} of the notes left out"]["melody_cell_recall"]) for name in ("a tenth", "half"))
    assert 0.3 < half < 0.75 < tenth < 1
    octave = rows["melody an octave up"]
    assert (float(octave["raw_pitch_accuracy"]), float(octave["melody_contour_accuracy"])) == (0, 1)


def test_the_page_holds_the_tables_of_its_files() -> None:
    page = (run.ROOT / "benchmarks" / "style_fidelity" / "README.md").read_text(encoding="utf-8")
    made = run.sections(run.ROOT / "benchmarks" / "style_fidelity")
    assert run.fill(page, made) == page
    assert "| 4 | 576 | 100.0 % | 99.7 % (98.9 to 100.0) |" in made["accuracy"]


def test_tables_of_the_six_pieces_are_those_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "table.md").write_text(
        "### Melody kept\n\n| no |\n\n### Style\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n### How\n\n| no |\n\n"
        "## Divergence from the target corpus\n\nIn nats.\n\n| c |\n| --- |\n| 3 |\n"
    )
    (tmp_path / "README.md").write_text("# Page\n\n<!-- six:start -->\nold\n<!-- six:end -->\n\nend\n")
    six.main([str(tmp_path), "--out", str(tmp_path)])
    assert (tmp_path / "README.md").read_text() == (
        "# Page\n\n<!-- six:start -->\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n"
        "| c |\n| --- |\n| 3 |\n<!-- six:end -->\n\nend\n"
    )
