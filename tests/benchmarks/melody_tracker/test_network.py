"""The melody network: targets by hand, laws of its shape, augmentation, and its twin in onnxruntime."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.melody_tracker.network import (  # noqa: E402 - after the check for torch
    N_PITCHES,
    UNVOICED,
    MelodyTracker,
    Predictions,
    Targets,
    augment,
    export_onnx,
    inconsistency,
    make_targets,
    tracking_loss,
)

from music_evals.audio.melody_net import MARGIN, MULTIPLE, PIECE  # noqa: E402 - as above

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def tiny() -> MelodyTracker:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = MelodyTracker(
            local_width=8, width=8, dilations=((1,), (2,)), reach=3, window=9, rest_dilations=(1, 2)
        )
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, 0, 0.3)
    return network.eval()


@pytest.mark.slow
def test_a_piece_of_a_recording_sees_what_the_convolutions_reach() -> None:
    # Width does not change how far they reach. The average over the whole input reaches everywhere: it is shut out.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = MelodyTracker(local_width=8, width=8).double().eval()
        levels = torch.rand(1, 288, 704, dtype=torch.float64)
    query = network.lead.query[0]
    with torch.no_grad():
        query.weight[:, query.in_channels // 2 :] = 0
    reach = 0
    for frame in range(352, 352 + MULTIPLE):  # a frame of the context is shared by four
        asked = levels.clone().requires_grad_()
        said = network(asked)
        (said.classes[..., frame].sum() + said.onsets[..., frame].sum()).backward()
        seen = asked.grad.abs().amax(dim=(0, 1)).nonzero().flatten()
        reach = max(reach, frame - int(seen.min()), int(seen.max()) - frame)
    assert MARGIN - MULTIPLE < reach <= MARGIN
    assert MARGIN % MULTIPLE == 0
    assert PIECE % MULTIPLE == 0


def test_targets_of_two_notes_and_a_rest() -> None:
    # hop 1 s: a note of pitch 38 sounds at frames 1, 2 (0.5 to 3 s), one of 36 at frame 4 (4 to 5 s)
    classes, onsets = make_targets(np.array([[0.5, 3.0], [4.0, 5.0]]), np.array([38.0, 36.0]), 7, 1.0)
    assert classes.tolist() == [UNVOICED, 2, 2, UNVOICED, 0, UNVOICED, UNVOICED]
    # a hat of height 1 that reaches 1.5 frames to either side
    np.testing.assert_allclose(onsets[2], [2 / 3, 2 / 3, 0, 0, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(onsets[0], [0, 0, 0, 1 / 3, 1, 1 / 3, 0], atol=1e-6)
    assert onsets.sum() == pytest.approx(3)


def test_targets_leave_out_what_the_network_cannot_say() -> None:
    classes, onsets = make_targets(np.array([[0.0, 2.0], [2.0, 4.0]]), np.array([35.0, 97.0]), 5, 1.0)
    assert classes.tolist() == [-100, -100, -100, -100, UNVOICED]
    assert not onsets.any()


def test_targets_of_a_voice_that_glides_and_closes() -> None:
    # notes of pitch 40 and 43: the voice is within 0.7 semitones of its note, on its way, closed, and goes on after it
    sounding = np.array([40.6, 39.5, 41.2, 42.4, np.nan, 42.6, 43.0, 35.0, np.nan])
    classes, _ = make_targets(np.array([[0.0, 3.0], [3.0, 6.5]]), np.array([40.0, 43.0]), 9, 1.0, sounding)
    assert classes.tolist() == [4, 4, 5, 7, UNVOICED, 7, 7, -100, UNVOICED]


def test_notes_of_which_nothing_sounds_and_those_before_the_excerpt_have_no_onset() -> None:
    silent = np.array([40.0, 40.0, np.nan, np.nan, 43.0, 43.0])
    classes, onsets = make_targets(np.array([[0.5, 2], [2, 4], [4, 6]]), np.array([40.0, 41, 43]), 6, 1.0, silent)
    assert classes.tolist() == [4, 4, UNVOICED, UNVOICED, 7, 7]
    assert onsets.max(axis=1)[[4, 5, 7]].tolist() == pytest.approx([2 / 3, 0, 1])
    classes, onsets = make_targets(np.array([[-3.0, 2.0], [-2.5, -0.5]]), np.array([40.0, 41.0]), 4, 1.0)
    assert classes.tolist() == [4, 4, UNVOICED, UNVOICED]
    assert not onsets.any()


@pytest.mark.parametrize("batch", [1, 2])
def test_the_network_keeps_time(tiny: MelodyTracker, batch: int) -> None:
    said = tiny(torch.rand(batch, 288, 36))
    assert said.classes.shape == (batch, N_PITCHES + 1, 36)
    assert said.onsets.shape == (batch, N_PITCHES, 36)
    assert said.guess.shape == (batch, N_PITCHES + 1, 9)


def test_music_a_semitone_higher_is_heard_a_semitone_higher(tiny: MelodyTracker) -> None:
    levels = torch.zeros(1, 288, 32)
    levels[:, 120:200] = torch.rand(1, 80, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        low, high = tiny(levels).onsets, tiny(levels.roll(3, dims=1)).onsets
    middle = slice(20, 40)  # far from the edges of the range, where there is padding
    np.testing.assert_allclose(high[0, 21:41], low[0, middle], atol=1e-3)
    assert float(low[0, middle].std()) > 1e-2


def test_the_loss_falls_when_the_truth_is_said() -> None:
    truth = Targets(torch.tensor([[3, UNVOICED]]), torch.zeros(1, N_PITCHES, 2))
    wrong = torch.zeros(1, N_PITCHES + 1, 2)
    right = torch.nn.functional.one_hot(truth.classes, N_PITCHES + 1).transpose(1, 2).float() * 10
    silent = torch.full((1, N_PITCHES, 2), -20.0)
    guess = torch.zeros(1, N_PITCHES + 1, 1)
    # uniform over 62 classes: log 62 nats, in the guess too
    lost = Predictions(wrong, silent, guess)
    assert float(tracking_loss(lost, truth, guess_weight=0.0, voicing_weight=0.0)) == pytest.approx(
        np.log(62), abs=1e-4
    )
    guessed = float(tracking_loss(lost, truth, guess_weight=1.0, voicing_weight=0.0))
    assert guessed == pytest.approx(2 * np.log(62), abs=1e-4)
    # voicing alone: 61 of 62 say that there is a melody, where there is one and where there is none
    voiced = float(tracking_loss(lost, truth, guess_weight=0.0, voicing_weight=1.0))
    assert voiced == pytest.approx(np.log(62) - (np.log(61 / 62) + np.log(1 / 62)) / 2, abs=1e-4)
    assert float(tracking_loss(Predictions(right, silent, guess), truth, guess_weight=0.0, voicing_weight=0.0)) < 0.01


def test_equal_answers_are_consistent_and_others_are_not() -> None:
    silent, guess = torch.zeros(1, N_PITCHES, 2), torch.zeros(1, N_PITCHES + 1, 1)
    flat = Predictions(torch.zeros(1, 62, 2), silent, guess)
    louder = Predictions(torch.full((1, 62, 2), 3.0), silent, guess)  # the same probabilities
    # one class has log 3 more: probabilities 3/64 and 1/64 against 1/62; half of (p - q) . (log p - log q) by hand
    sure = Predictions(torch.nn.functional.pad(torch.full((1, 1, 2), np.log(3.0)), (0, 0, 0, 61)), silent, guess)
    assert float(inconsistency(flat, louder)) == pytest.approx(0, abs=1e-6)
    expected = 0.5 * (3 / 64 - 1 / 62) * np.log(3)
    assert float(inconsistency(flat, sure)) == pytest.approx(expected, rel=1e-4)
    assert float(inconsistency(sure, flat)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_a_few_steps_learn_one_excerpt(tiny: MelodyTracker) -> None:
    tiny.train()
    generator = torch.Generator().manual_seed(1)
    levels = torch.rand(2, 288, 32, generator=generator)
    classes = torch.randint(0, 62, (2, 4), generator=generator).repeat_interleave(8, dim=1)
    truth = Targets(classes, torch.zeros(2, N_PITCHES, 32))
    optimizer = torch.optim.Adam(tiny.parameters(), lr=0.01)
    losses = []
    for _ in range(30):
        loss = tracking_loss(tiny(levels), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_augmentation_moves_recordings_of_one_performance_alike(rng: np.random.Generator) -> None:
    levels = np.zeros((2, 288, 40), dtype=np.float32)
    levels[:, 150] = 1.0
    moves, thirds = set(), set()
    for _ in range(60):
        varied, semitones = augment(levels, lowest=38, highest=94, rng=rng)
        moves.add(semitones)
        assert varied.shape == levels.shape
        assert varied.dtype == np.float32
        assert varied.min() >= 0
        # the loudest row, unless noise drowns it: the partial stands 80 dB above silence
        one, other = varied.mean(axis=2).argmax(axis=1)
        assert one == other
        thirds.add(int(one) - 150 - 3 * semitones)
        assert not np.array_equal(*varied)
    assert moves == {-2, -1, 0, 1, 2}  # pitches 36..96 hold the melody
    assert thirds == {-1, 0, 1}  # mistuned by no more than a third of a semitone
    assert levels.sum() == 80  # the input is left alone


def test_augmentation_is_seeded() -> None:
    levels = np.random.default_rng(0).random((2, 288, 20)).astype(np.float32)
    first = augment(levels, lowest=60, highest=72, rng=np.random.default_rng(5))
    second = augment(levels, lowest=60, highest=72, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1] == second[1]


@pytest.mark.slow
def test_the_exported_network_says_the_same(tiny: MelodyTracker, tmp_path: Path, rng: np.random.Generator) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    export_onnx(tiny, tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    for n_frames in (36, 100):
        levels = rng.random((1, 288, n_frames), dtype=np.float32)
        classes, onsets = session.run(["classes", "onsets"], {"levels": levels})
        with torch.no_grad():
            said = tiny(torch.from_numpy(levels))
        np.testing.assert_allclose(classes, said.classes, atol=1e-3, rtol=1e-3)
        # in the loss an onset weighs three times as much as its absence, which the file makes up for
        np.testing.assert_allclose(onsets, said.onsets - np.log(3), atol=1e-3, rtol=1e-3)
