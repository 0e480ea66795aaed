"""Style fidelity and preservation of the melody: what they must see, and what they must not."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from datasets import load_dataset

from music_evals.annotations import Arrangement, PianoRoll, Score, TimeSignature
from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UndefinedMetricWarning, UnknownNameError
from music_evals.metrics.catalogue import MELODY_SCORES, STYLE_SCORES
from music_evals.metrics.style_classifier import StyleClassifier, fit_style_classifier
from music_evals.pipelines.style_transfer.fidelity import (
    MELODY_AUXILIARY,
    MELODY_METRICS,
    evaluate_melody,
    evaluate_style,
    load_style_classifier,
    melody_scores,
    style_probabilities,
    style_rows,
)
from music_evals.pipelines.style_transfer.histograms import CLASSIFIER_FEATURES, HISTOGRAMS, roll_histograms, stretches
from music_evals.symbolic.encodings.piano_rolls import arrange, piano_roll
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.piece_rows import score_of_row

DATASETS = Path(__file__).resolve().parents[3] / "datasets_scripts"

Notes = list[tuple[float, float, int]]


def roll_of(notes: Notes, bars: int = 1, transpose: int = 0) -> PianoRoll:
    """Notes as (onset, duration) in quarters and pitch, in bars of 4/4."""
    onset, duration, pitch = zip(*notes, strict=True)
    onset_tick, duration_tick = ((np.array(column) * 8).astype(int) for column in (onset, duration))
    notes_on_grid = make_notes(onset_tick, duration_tick, np.array(pitch) + transpose)
    score = Score(notes_on_grid, 8, (TimeSignature(0, 4, 4),))
    found = piano_roll(score, gaps=False)
    assert len(found) == 32 * bars
    return found


def hymn(rng: np.random.Generator, bars: int = 8, transpose: int = 0) -> PianoRoll:
    """Four-part chords on each beat."""
    notes: Notes = []
    for beat in range(4 * bars):
        root = int(rng.choice([48, 53, 55]))
        notes += [(beat, 1, root + step) for step in (0, 7, 12, 16)]
    return roll_of(notes, bars, transpose)


def swing(rng: np.random.Generator, bars: int = 8, transpose: int = 0) -> PianoRoll:
    """A walking bass and off-beat sevenths."""
    notes: Notes = [(beat, 1, int(rng.integers(28, 48))) for beat in range(4 * bars)]
    for beat in range(0, 4 * bars, 2):
        root = int(rng.choice([50, 55, 60]))
        notes += [(beat + 0.625, 0.25, root + step) for step in (0, 4, 10)]
    return roll_of(notes, bars, transpose)


@pytest.fixture
def corpora(rng: np.random.Generator) -> tuple[list[PianoRoll], list[PianoRoll]]:
    return [hymn(rng) for _ in range(8)], [swing(rng) for _ in range(8)]


@pytest.fixture
def classifier(corpora: tuple[list[PianoRoll], list[PianoRoll]]) -> StyleClassifier:
    rows = [style_rows(side, 2)[0] for side in corpora]
    labels = np.repeat([0, 1], [len(side) for side in rows])
    return fit_style_classifier(np.vstack(rows), labels, names=CLASSIFIER_FEATURES, styles=("hymn", "swing"), l2=0.01)


def test_histograms_by_hand() -> None:
    """A bar: C and G for two quarters, then E for a quarter from the off-beat on, then silence."""
    found = roll_histograms(roll_of([(0, 2, 48), (0, 2, 55), (2.5, 1, 64)]))
    bins = {
        name: {place: count for place, count in enumerate(counts.tolist()) if count} for name, counts in found.items()
    }
    assert bins["style_interval_divergence"] == {7: 16}
    assert bins["style_onset_divergence"] == {0: 2, 12: 1}
    assert bins["style_duration_divergence"] == {5: 1, 7: 2}  # up to one quarter; up to two
    assert bins["style_density_divergence"] == {0: 8, 1: 8, 2: 16}
    assert bins["style_register_divergence"] == {3: 16, 4: 16, 6: 8}  # columns 27, 34 and 43, sevens of semitones
    entropy = math.log2(3) / math.log2(12)
    assert bins["style_pitch_class_divergence"] == {int(100 * entropy): 1}
    assert bins["style_groove_divergence"] == {}


def test_grooves_by_hand() -> None:
    """Onsets on beat 1 and 3, then on 1 and 4: two of 32 steps differ; then as before, but for silence."""
    found = roll_histograms(roll_of([(0, 1, 60), (2, 1, 60), (4, 1, 60), (7, 1, 60)], 2))["style_groove_divergence"]
    assert np.flatnonzero(found).tolist() == [93]  # 30 / 32 = 0.9375


@pytest.mark.parametrize("semitones", [-7, -1, 5, 12])
def test_transposition_changes_registers_alone(semitones: int) -> None:
    one, other = (roll_histograms(hymn(np.random.default_rng(3), transpose=shift)) for shift in (0, semitones))
    differing = {name for name in HISTOGRAMS if not np.array_equal(one[name], other[name])}
    assert differing <= {"style_register_divergence"}
    assert differing or semitones != 12
    rows = [style_rows([swing(np.random.default_rng(3), transpose=shift)])[0] for shift in (0, semitones)]
    assert np.array_equal(*rows)


def test_shuffled_bars_change_grooves_alone(rng: np.random.Generator) -> None:
    roll = swing(rng)
    order = np.concatenate([np.arange(32) + 32 * bar for bar in (5, 2, 7, 0, 1, 6, 4, 3)])
    shuffled = roll.with_notes(roll.cells[order], roll.onsets[order], roll.offsets[order])
    one, other = roll_histograms(roll), roll_histograms(shuffled)
    assert {name for name in HISTOGRAMS if not np.array_equal(one[name], other[name])} <= {"style_groove_divergence"}


def test_a_corpus_is_like_itself_and_unlike_another(corpora: tuple[list[PianoRoll], list[PianoRoll]]) -> None:
    hymns, swings = corpora
    same, other = evaluate_style(hymns, hymns, n_resamples=50), evaluate_style(hymns, swings, n_resamples=50)
    assert all(same[name] == 0 for name in HISTOGRAMS)
    assert all(0 <= other[name] <= math.log(2) for name in HISTOGRAMS)
    for name in ("style_interval_divergence", "style_onset_divergence", "style_duration_divergence"):
        assert other[name] > 3 * other[f"{name}_null"]
    low, high = other["style_interval_divergence_ci"]
    assert 0 < low < high <= math.log(2)
    assert math.isnan(other["style_duration_divergence_ci"][0])  # all pieces of either style have the same lengths
    assert set(HISTOGRAMS) | {"style_probability", "style_accuracy"} == set(STYLE_SCORES)


def test_halves_of_one_style_lie_at_the_noise_floor(rng: np.random.Generator) -> None:
    found = evaluate_style([hymn(rng) for _ in range(10)], [hymn(rng) for _ in range(10)], n_resamples=300)
    assert all(found[name] <= 3 * found[f"{name}_null"] + 1e-12 for name in HISTOGRAMS)


def test_equal_seeds_give_equal_numbers_and_pieces_weigh_alike(
    corpora: tuple[list[PianoRoll], list[PianoRoll]],
) -> None:
    hymns, swings = corpora
    one = evaluate_style(hymns, swings, n_resamples=40, seed=5)
    assert repr(one) == repr(evaluate_style(hymns, swings, n_resamples=40, seed=5))  # NaN is not equal to itself
    doubled = evaluate_style(hymns * 2, swings, groups=list(range(8)) * 2, n_resamples=40)
    for name in HISTOGRAMS:
        assert doubled[name] == pytest.approx(one[name])
        assert doubled[f"{name}_n_clusters"] == 8
        assert doubled[f"{name}_n"] == 16


def test_the_classifier_is_asked_about_stretches(
    corpora: tuple[list[PianoRoll], list[PianoRoll]], classifier: StyleClassifier, rng: np.random.Generator
) -> None:
    found = evaluate_style(
        [swing(rng), hymn(rng)], corpora[1], classifier=classifier, target="swing", bars=2, n_resamples=5, per_item=True
    )
    first, second = found["per_item"]
    assert first["style_accuracy"] == 1
    assert second["style_accuracy"] == 0
    assert found["style_accuracy"] == 0.5
    assert first["style_probability"] > 0.8
    assert second["style_probability"] < 0.2
    away = evaluate_style([hymn(rng)], corpora[0], classifier=classifier, target="hymn", bars=2, n_resamples=5)
    assert away["style_accuracy"] == 1
    assert style_probabilities(swing(rng), classifier, bars=2).shape == (4,)


def test_stretches_are_whole_bars(rng: np.random.Generator) -> None:
    assert [len(part) for part in stretches(hymn(rng, 8), 3)] == [96, 96]
    assert [len(part) for part in stretches(hymn(rng, 2), 3)] == [64]
    with pytest.raises(InvalidInputError, match="at least 1 bar"):
        list(stretches(hymn(rng), 0))


def test_silence_is_undefined(corpora: tuple[list[PianoRoll], list[PianoRoll]], classifier: StyleClassifier) -> None:
    nothing = np.zeros_like(corpora[0][0].cells)
    silence = corpora[0][0].with_notes(nothing, nothing, nothing)
    assert np.isnan(style_rows([silence])[0]).all()
    with pytest.warns(UndefinedMetricWarning):
        found = evaluate_style([silence], corpora[0], classifier=classifier, target="hymn", n_resamples=5)
    assert math.isnan(found["style_probability"])
    assert math.isnan(found["style_interval_divergence"])
    assert found["style_density_divergence"] == pytest.approx(math.log(2))  # nothing at once is a number too
    assert found["style_density_divergence_n_defined"] == 1


def test_bad_input_is_refused(corpora: tuple[list[PianoRoll], list[PianoRoll]], classifier: StyleClassifier) -> None:
    hymns = corpora[0]
    with pytest.raises(NoDataError):
        evaluate_style([], hymns)
    with pytest.raises(NoDataError):
        evaluate_style(hymns, [])
    with pytest.raises(PairCountError):
        evaluate_style(hymns, hymns, groups=[1])
    with pytest.raises(InvalidInputError, match="`target`"):
        evaluate_style(hymns, hymns, classifier=classifier)
    with pytest.raises(InvalidInputError, match="n_resamples"):
        evaluate_style(hymns, hymns, n_resamples=0)


def setting() -> Arrangement:
    """Two bars of a tune over held thirds."""
    tune = [(0, 1, 67), (1, 1, 69), (2, 1, 71), (3, 1, 72), (4, 2, 74), (6, 1, 71), (7, 1, 67)]
    onset, duration, pitch = zip(*tune, (0, 4, 48), (0, 4, 52), (4, 4, 50), (4, 4, 53), strict=True)
    voices = [0] * len(tune) + [1] * 4
    notes = make_notes(np.array(onset) * 8, np.array(duration) * 8, pitch, voice=np.array(voices))
    return arrange(Score(notes, 8, (TimeSignature(0, 4, 4),), voices=("melody", "chords")), "melody")


def test_a_clamped_melody_is_kept_exactly_and_damage_is_seen() -> None:
    original = setting()
    nothing = np.zeros_like(original.melody.cells)
    alone = Arrangement(original.melody, original.melody.with_notes(nothing, nothing, nothing))
    found = evaluate_melody([original, original], [alone, original], groups=[0, 1])
    names = (*MELODY_SCORES, *MELODY_METRICS, *MELODY_AUXILIARY)
    assert {name: found[name] for name in names} == dict.fromkeys(names, 1.0)
    # the second bar a tone higher: 32 of 64 cells
    cells, onsets = original.melody.cells.copy(), original.melody.onsets.copy()
    cells[32:], onsets[32:] = np.roll(cells[32:], 2, axis=1), np.roll(onsets[32:], 2, axis=1)
    higher = Arrangement(original.melody.with_notes(cells, onsets, nothing), original.accompaniment)
    damaged = evaluate_melody([original], [higher], per_item=True)
    assert damaged["melody_cell_recall"] == 0.5
    assert damaged["melody_onset_recall"] == pytest.approx(4 / 7)
    assert damaged["raw_pitch_accuracy"] == pytest.approx(0.5, abs=0.03)
    assert damaged["interval_lcs"] < 1
    assert damaged["per_item"][0]["melody_cell_recall"] == 0.5


def test_cells_count_whichever_voice_has_them() -> None:
    original = setting()
    nothing = np.zeros_like(original.melody.cells)
    silent = original.melody.with_notes(nothing, nothing, nothing)
    assert melody_scores(original.melody, original.merged) == dict.fromkeys(MELODY_SCORES, 1.0)
    assert melody_scores(original.melody, silent) == dict.fromkeys(MELODY_SCORES, 0.0)
    assert all(math.isnan(value) for value in melody_scores(silent, original.merged).values())


def test_outputs_must_pair_up_and_share_the_grid() -> None:
    original = setting()
    with pytest.raises(PairCountError):
        evaluate_melody([original], [])
    with pytest.raises(NoDataError):
        evaluate_melody([], [])
    with pytest.raises(InvalidInputError, match="share one grid"):
        melody_scores(original.melody, roll_of([(0, 4, 60)]))


@pytest.mark.parametrize(("place", "share"), [(("jsb_chorales", "style"), 0.0), (("swing_synth", "swing_synth"), 1.0)])
def test_the_shipped_classifier_knows_held_out_pieces_and_its_limits(place: tuple[str, str], share: float) -> None:
    """What its card says: right on held-out pieces, wrong on noise, and on a single line of Bach."""
    rows = load_dataset(str(DATASETS / place[0]), place[1], split="test").select(range(4))
    rolls = [piano_roll(score_of_row(row)) for row in rows]
    classifier = load_style_classifier("bach_swing")
    assert classifier.styles == ("bach", "swing")
    given = [style_probabilities(roll, classifier) > 0.5 for roll in rolls]
    assert all((one == bool(share)).all() for one in given)
    noise = np.random.default_rng(0).random(rolls[0].cells.shape) < rolls[0].cells.mean()
    silent = np.zeros_like(noise)
    assert (style_probabilities(rolls[0].with_notes(noise, noise, silent), classifier) < 0.5).all()


def test_a_classifier_that_is_not_there_or_broken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="bach_swing"):
        load_style_classifier("bach_swin")
    file = tmp_path / "broken.json"
    for text, message in (("{", "not JSON"), ("[]", "no classifier"), ("{}", "no style classifier")):
        file.write_text(text)
        with pytest.raises(InvalidInputError, match=message):
            load_style_classifier(file)
    others = {**load_style_classifier("bach_swing").to_dict(), "features": [str(n) for n in range(41)]}
    file.write_text(json.dumps(others))
    with pytest.raises(InvalidInputError, match="other features"):
        load_style_classifier(file)
