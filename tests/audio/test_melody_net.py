"""The network's input, its run in pieces, and the path through what it says."""

import hashlib
import itertools
import json
from importlib import resources

import numpy as np
import pytest

from music_evals.audio import melody_net
from music_evals.audio.io import Audio
from music_evals.audio.melody_net import LOWEST_PITCH, N_PITCHES, MelodyActivations, decode, levels, run_networks

from .sounds import audio, tone


def test_levels_count_down_from_the_loud_bins() -> None:
    magnitudes = np.full((288, 100), 1e-9, dtype=np.float32)
    magnitudes[:100] = 2.0  # more than one bin in 200: the reference
    magnitudes[200, 0] = 0.02  # 40 dB below it, of 80
    magnitudes[201, 0] = 20.0  # 20 dB above it
    values = levels(magnitudes)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values[:100], 1.0, atol=1e-6)
    assert values[200, 0] == pytest.approx(0.5, abs=1e-6)
    assert values[201, 0] == pytest.approx(1.25, abs=1e-6)
    assert np.abs(values[202:]).max() < 1e-6


def test_levels_do_not_depend_on_the_gain(rng: np.random.Generator) -> None:
    magnitudes = rng.exponential(1, (288, 50)).astype(np.float32)
    np.testing.assert_allclose(levels(magnitudes * np.float32(0.125)), levels(magnitudes), atol=1e-6)


def test_levels_of_a_single_click_are_finite() -> None:
    magnitudes = np.zeros((288, 1000), dtype=np.float32)
    magnitudes[10, 5] = 1.0  # the percentile itself is zero
    assert np.isfinite(levels(magnitudes)).all()


class _Local:
    """A session whose outputs are functions of their own frame: cutting into pieces must not show."""

    def run(self, names: list[str], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        assert names == ["classes", "onsets"]
        x = inputs["levels"]
        assert x.shape[2] % melody_net.MULTIPLE == 0
        return [x[:, :62], x[:, 62:123]]


class _Other(_Local):
    """A session that says something else."""

    def run(self, names: list[str], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        classes, onsets = super().run(names, inputs)
        return [classes[:, ::-1], 1 - onsets]


@pytest.mark.parametrize("n_frames", [1, 7, 40, 41, 83])
def test_a_long_recording_is_run_in_pieces(
    n_frames: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    values = rng.normal(0, 1, (288, n_frames)).astype(np.float32)
    monkeypatch.setattr(melody_net, "PIECE", 20)
    monkeypatch.setattr(melody_net, "MARGIN", 6)
    said = run_networks([_Local()], values)
    assert said.classes.shape == (62, n_frames)
    np.testing.assert_allclose(np.exp(said.classes).sum(axis=0), 1.0, atol=1e-5)
    np.testing.assert_allclose(said.classes - said.classes[:1], values[:62] - values[:1], atol=1e-5)
    np.testing.assert_allclose(said.onsets, 1 / (1 + np.exp(-values[62:123])), atol=1e-6)


@pytest.mark.slow
def test_the_networks_hear_nearly_the_same_in_pieces_as_in_the_whole(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Pieces have another average sound of the lead than the whole; at their seams nothing else may show."""
    monkeypatch.setattr(melody_net, "PIECE", 1024)  # half of what it is
    notes = [
        tone(melody, 0.4) * (place % 7 > 0) + tone(bass, 0.4) / 2  # rests in the melody, every 2.8 s
        for place, (melody, bass) in enumerate(zip(rng.integers(60, 80, 120), rng.integers(43, 55, 120), strict=True))
    ]
    values = melody_net.levels_of(audio(np.concatenate(notes)))
    values = values[:, : values.shape[1] // melody_net.MULTIPLE * melody_net.MULTIPLE]
    assert values.shape[1] > 2 * melody_net.PIECE
    said = run_networks(melody_net.load_sessions(), values)
    monkeypatch.setattr(melody_net, "PIECE", values.shape[1])
    whole = run_networks(melody_net.load_sessions(), values)
    assert (said.classes.argmax(axis=0) != whole.classes.argmax(axis=0)).mean() < 0.005
    assert np.abs(np.exp(said.classes) - np.exp(whole.classes)).max() < 0.15
    assert np.abs(said.onsets - whole.onsets).max() < 0.15


def test_networks_are_averaged(rng: np.random.Generator) -> None:
    values = rng.normal(0, 1, (288, 9)).astype(np.float32)
    one, other, both = (run_networks(sessions, values) for sessions in ([_Local()], [_Other()], [_Local(), _Other()]))
    product = np.exp(one.classes + other.classes) ** 0.5
    np.testing.assert_allclose(np.exp(both.classes), product / product.sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(both.onsets, (one.onsets + other.onsets) / 2, atol=1e-6)


def test_a_recording_is_run_once_and_what_was_said_is_kept_with_it(rng: np.random.Generator) -> None:
    audio = Audio(rng.normal(0, 0.1, 4 * 22050).astype(np.float32))
    said = melody_net.melody_activations(audio)
    assert said.classes.shape == (62, 173)
    assert said.onsets.shape == (61, 173)
    assert melody_net.melody_activations(audio) is said


def _activations(text: str, struck: dict[tuple[int, int], float]) -> MelodyActivations:
    """Certain classes: a letter a frame, ``a`` = the lowest pitch, ``-`` = a rest; onsets at (pitch, frame)."""
    classes = np.full((62, len(text)), np.log(0.01 / 61), dtype=np.float32)
    for t, letter in enumerate(text):
        classes[N_PITCHES if letter == "-" else ord(letter) - ord("a"), t] = np.log(0.99)
    onsets = np.full((61, len(text)), 0.01, dtype=np.float32)
    for (pitch, frame), probability in struck.items():
        onsets[pitch, frame] = probability
    return MelodyActivations(classes, onsets)


def test_notes_rests_and_repeated_notes_are_found() -> None:
    path = decode(_activations("--aaaabbbbbb--", {(0, 2): 0.9, (1, 6): 0.9, (1, 9): 0.9}))
    assert path.voiced.tolist() == [False] * 2 + [True] * 10 + [False] * 2
    assert path.pitches[2:12].tolist() == [LOWEST_PITCH] * 4 + [LOWEST_PITCH + 1] * 6
    assert np.flatnonzero(path.attacks).tolist() == [2, 6, 9]


def test_one_doubtful_frame_changes_nothing() -> None:
    said = _activations("aaaabaaa", {(0, 0): 0.9})
    said.classes[0, 4] = np.log(0.3)
    path = decode(said)
    assert path.pitches.tolist() == [LOWEST_PITCH] * 8
    assert path.voiced.all()


def test_a_rest_holds_the_most_likely_pitch() -> None:
    said = _activations("----", {})
    said.classes[17] = np.log(0.005)
    path = decode(said)
    assert not path.voiced.any()
    assert path.pitches.tolist() == [LOWEST_PITCH + 17] * 4


def test_the_path_is_the_best_of_all(rng: np.random.Generator) -> None:
    # every path over two pitches, attacked (0, 1) or sustained (2, 3), and a rest (4); the other pitches are shut out
    change, rest = 0.7, 0.4
    for _ in range(20):
        classes = np.full((62, 5), -1000.0, dtype=np.float32)
        classes[[0, 1, 61]] = np.log(rng.dirichlet(np.ones(3), 5).T)
        onsets = np.full((61, 5), 0.5, dtype=np.float32)
        onsets[:2] = rng.uniform(0.05, 0.95, (2, 5))
        said = MelodyActivations(classes, onsets)
        best, found = -np.inf, None
        for states in itertools.product(range(5), repeat=5):
            if states[0] in {2, 3}:
                continue  # a note begins with an attack
            score = 0.0
            for t, state in enumerate(states):
                if state == 4:
                    score += classes[61, t] - (rest if t and states[t - 1] != 4 else 0)
                else:
                    p = onsets[state % 2, t]
                    score += classes[state % 2, t] + (np.log(p) - change if state < 2 else np.log(1 - p))
                if state in {2, 3} and states[t - 1] not in {state - 2, state}:
                    score = -np.inf  # sustained from another note, or from a rest
            if score > best:
                best, found = score, states
        assert found is not None
        path = decode(said, change_cost=change, rest_cost=rest)
        assert path.voiced.tolist() == [state != 4 for state in found]
        assert path.attacks.tolist() == [state < 2 for state in found]
        sounding = [state % 2 for state in found if state != 4]
        assert (path.pitches[path.voiced] - LOWEST_PITCH).tolist() == sounding


@pytest.mark.parametrize("name", melody_net.WEIGHTS)
def test_the_receipt_is_that_of_the_weights(name: str) -> None:
    folder = resources.files("music_evals.audio") / "weights"
    weights = (folder / name).read_bytes()
    receipt = json.loads((folder / name).with_suffix(".json").read_text(encoding="utf-8"))
    assert receipt["sha256"] == hashlib.sha256(weights).hexdigest()
    assert len(weights) < 5_000_000
    assert receipt["best"]["raw_pitch_accuracy"] > 0.8
