"""The infill transformer: what it reads, what it never reads, any gap, its chain and its likelihood."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from music_evals.annotations import HOLD, MASK, REST
from music_evals.errors import ContextLengthError, InvalidInputError, InvalidTokensError
from music_evals.metrics.inpainting import note_f1
from music_evals.models.infill_transformer import (
    DECODINGS,
    FEATURES,
    LIMITS,
    InfillTransformer,
    InfillTransformerConfig,
    Sources,
    StepHead,
    agreement,
    draw_gaps,
    gap_quarters,
    middle_gaps,
    pitches_beside,
    step_one_hot,
)
from music_evals.models.layers.lag_votes import LAG_VOTE, lag_marginals
from music_evals.protocols import GapInpainter, LikelihoodInpainter

from .tiny_networks import MIDDLE, TINY, build, melodies, tensor

pytestmark = pytest.mark.usefixtures("one_thread")

EVERY_DECODING = pytest.mark.parametrize("decoding", DECODINGS)


def stretches(n: int, n_steps: int, seed: int = 3) -> np.ndarray:
    return melodies(2 * n, seed).reshape(n, -1)[:, :n_steps]


def gaps(n: int, n_steps: int, seed: int = 3) -> np.ndarray:
    """Hidden steps: in each row a span of its own, of which some steps are kept."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros((n, n_steps), dtype=bool)
    for row in hidden:
        start = rng.integers(n_steps - 30)
        row[start : start + rng.integers(4, 60)] = True
    return hidden & (rng.random((n, n_steps)) < 0.9)


def middle(contexts: np.ndarray) -> np.ndarray:
    """Hide the middle of the benchmark."""
    hidden = np.zeros(contexts.shape, dtype=bool)
    hidden[:, MIDDLE] = True
    return hidden


def network(decoding: str = "best", **changes: object) -> InfillTransformer:
    built: InfillTransformer = build(InfillTransformer, **changes)
    built.decoding = decoding
    return built


@functools.cache
def filled_stretches(decoding: str) -> np.ndarray:
    """Return what is written into the gaps of four stretches."""
    return network(decoding).infill(stretches(4, 240), gaps(4, 240), rng=rng())


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- what it reads


def plain_agreement(tokens: list[int], visible: list[bool], here: int, there: int, feature: str) -> float:
    """Dice over all notes of quarters that lie as far apart as `here` and `there`, by their distance from `here`."""
    what, reach, side = feature.split()
    shared = notes = 0.0
    for quarter in range(len(tokens) // 6):
        distance = quarter - here
        if (side == "before" and distance > 0) or (side == "after" and distance < 0):
            continue
        for a in range(6 * quarter, 6 * quarter + 6):
            b = a + 6 * (there - here)
            if 0 <= b < len(tokens) and visible[a] and visible[b]:
                weight = math.exp(-abs(distance) / float(reach))
                both = tokens[a] < HOLD and tokens[b] < HOLD
                notes += weight * ((tokens[a] < HOLD) + (tokens[b] < HOLD))
                shared += weight * (both and (what == "rhythm" or tokens[a] == tokens[b]))
    return 2 * shared / (notes + 0.25)


def test_agreement_is_what_plain_loops_find():
    tokens = stretches(2, 60)
    tokens[:, ::12] = 60
    hidden = gaps(2, 60)
    features = agreement(tensor(np.where(hidden, MASK, tokens)), torch.from_numpy(~hidden))
    assert features.shape == (2, 10, 10, len(FEATURES))
    for row, here, there in [(0, 0, 0), (0, 3, 7), (0, 9, 0), (1, 4, 5), (1, 5, 4), (1, 0, 9)]:
        for index, feature in enumerate(FEATURES[:-1]):
            expected = plain_agreement(tokens[row].tolist(), (~hidden[row]).tolist(), here, there, feature)
            assert features[row, here, there, index] == pytest.approx(expected, abs=1e-5), feature


def test_the_first_pointer_starts_out_as_the_lag_vote():
    """Before any training it copies what the baseline votes for; only the reach is counted in whole quarters."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        untrained = InfillTransformer(dataclasses.replace(TINY[InfillTransformer], n_pointers=1)).eval()
    with torch.no_grad():
        untrained.pairs.out.weight.zero_()
        contexts = melodies(4)
        contexts[:, MIDDLE] = contexts[:, 24:120]
        masked = tensor(contexts)
        masked[:, MIDDLE] = MASK
        reading, asked = untrained.read(masked), torch.arange(24, 40).expand(4, -1)
        nothing = torch.full((4, 16, 6), MASK)
        copied = untrained.head.copies(untrained.point(reading, asked), nothing, reading.sources)
    votes = lag_marginals(contexts, dataclasses.replace(LAG_VOTE, farthest_quarters=39))
    same = copied.reshape(4, 96, 130).argmax(-1).numpy() == votes.argmax(-1)
    assert same.mean() > 0.9
    assert np.abs(copied.reshape(4, 96, 130).numpy() - votes).sum(-1).mean() < 0.2


def test_a_pointer_goes_on_copying_what_it_copies():
    head = StepHead(8, 8, 4, 1, 0.0).eval()
    quarters = torch.tensor([[60, 128, 128, 62, 128, 128], [67, 128, 128, 71, 128, 128], [MASK] * 6])
    sources = Sources(
        step_one_hot(quarters.view(1, 18), quarters.view(1, 18) != MASK), torch.tensor([[True, True, False]])
    )
    pointed = torch.tensor([0.25, 0.75, 0.0]).log().view(1, 1, 1, 3)
    with torch.no_grad():
        blind = head.copies(pointed, torch.full((1, 1, 6), MASK), sources)[0, 0, 0]
        told = head.copies(pointed, torch.tensor([[[60, 128, 128, MASK, MASK, MASK]]]), sources)[0, 0, 0]
        slip = head.slip.sigmoid().item()
    assert blind[3, [62, 71]].tolist() == pytest.approx([0.25, 0.75])
    assert told[0, [60, 67]].tolist() == pytest.approx([0.25, 0.75])  # a step is told of those before it alone
    # the first quarter agrees with all three steps before; the second with the two holds, and slipped once
    assert told[3, 62].item() == pytest.approx(0.25 / (0.25 + 0.75 * slip), rel=1e-5)


def test_pitches_beside_a_quarter_by_hand():
    tokens = [60, 128, 128, 62, 128, 128, *[129] * 6, *[MASK] * 6, 70, *[MASK] * 5, 128, 128, 72, 128, 128, 128]
    # after a hidden step nobody knows what sounded last; what comes after is looked for beyond it
    assert pitches_beside(torch.tensor([tokens])).tolist() == [[[-1, 70], [62, 70], [62, 70], [-1, 72], [-1, -1]]]


def test_tokens_are_weighed_by_their_interval_from_the_pitch_before():
    """What a table says of an interval decides between pitches, and of nothing else."""
    head = StepHead(8, 8, 4, 0, 0.0).eval()
    states, before, beside = (
        torch.zeros(1, 1, 8),
        torch.tensor([[[64, 128, MASK, MASK, MASK, MASK]]]),
        torch.tensor([[[60, -1]]]),
    )
    sources = Sources(torch.zeros(1, 1, 6 * 130), torch.zeros(1, 1, dtype=torch.bool))
    with torch.no_grad():
        plain = head(states, before, None, sources, beside)[0, 0]
        head.leaps.bias[24 + 2] = 3.0  # two semitones up
        weighed = head(states, before, None, sources, beside)[0, 0]
    assert weighed.sum(-1) == pytest.approx(torch.ones(6))
    assert (weighed[0] / plain[0]).argmax() == 62
    assert (weighed[1] / plain[1]).argmax() == 66
    ratio = weighed[1] / plain[1]
    assert ratio[66] / ratio[129] == pytest.approx(np.exp(3.0), rel=1e-4)
    assert ratio[60] == pytest.approx(ratio[129].item(), rel=1e-4)


@pytest.mark.parametrize("changes", [{"n_pointers": 0}, {"votes": False}, {"n_pointers": 0, "votes": False}])
def test_votes_and_pointers_can_be_left_out(changes):
    contexts, plain = melodies(3), network(**changes)
    assert plain.inpaint(contexts, rng=rng()).shape == (3, 96)
    assert np.isfinite(plain.nll(contexts)).all()
    assert not any(
        ("query" in name) != ("n_pointers" not in changes) for name, _ in plain.named_parameters() if "query" in name
    )


def test_without_votes_agreement_is_of_no_account():
    tokens = tensor(melodies(2))
    assert network(votes=False).read(tokens).features.abs().sum() == 0
    assert network().read(tokens).features.abs().sum() > 0


def test_what_is_shipped_is_small():
    with torch.device("meta"):
        shipped = InfillTransformer(InfillTransformerConfig())
    n = sum(parameter.numel() for parameter in shipped.parameters())
    assert n <= 6_000_000
    assert 2 * n < 12 * 2**20


# --- any gap


@EVERY_DECODING
def test_what_is_hidden_is_never_read(decoding):
    """Neither what stands there in the first two rows, nor that the last two are masked."""
    tokens, hidden = stretches(4, 240), gaps(4, 240)
    other = np.where(hidden, np.random.default_rng(1).integers(0, 256, tokens.shape), tokens).astype(np.uint8)
    other[2:][hidden[2:]] = MASK
    np.testing.assert_array_equal(network(decoding).infill(other, hidden, rng=rng()), filled_stretches(decoding))


@EVERY_DECODING
def test_what_is_not_hidden_stays_and_matters(decoding):
    tokens, hidden, filled = stretches(4, 240), gaps(4, 240), filled_stretches(decoding)
    assert filled.dtype == np.uint8
    assert filled.max() <= REST
    np.testing.assert_array_equal(filled[~hidden], tokens[~hidden])
    changed = np.where(hidden, tokens, stretches(4, 240, seed=9))
    before = changed.copy()
    assert (network(decoding).infill(changed, hidden, rng=rng()) != filled)[hidden].any()
    np.testing.assert_array_equal(changed, before)


def test_a_note_between_hidden_steps_matters_for_those_next_to_it():
    tokens = np.repeat(stretches(3, 96), 2, axis=0)
    tokens[::2, 46], tokens[1::2, 46] = 50, 64
    hidden = np.zeros(tokens.shape, dtype=bool)
    hidden[:, 36:60] = True
    hidden[:, 46] = False
    likely = network().gap_log_likelihood(tokens, hidden)
    assert (likely[::2] != likely[1::2]).all()


@EVERY_DECODING
def test_gaps_of_any_length_are_filled_as_each_alone(decoding):
    """Rows whose gaps have different lengths; each has numbers of its own."""
    tokens, hidden, together = stretches(4, 240), gaps(4, 240), filled_stretches(decoding)
    hidden[1] = False
    fewer = network(decoding).infill(tokens[:3], hidden[:3], rng=rng())
    np.testing.assert_array_equal(fewer[[0, 2]], together[[0, 2]])
    np.testing.assert_array_equal(fewer[1], tokens[1])
    if decoding != "sample":
        alone = network(decoding).infill(tokens[3:], hidden[3:], rng=rng())
        np.testing.assert_array_equal(alone, together[3:])


@EVERY_DECODING
def test_the_middle_of_the_benchmark_is_one_gap_among_others(decoding):
    contexts = melodies(2)
    middles = network(decoding).inpaint(contexts, rng=rng())
    np.testing.assert_array_equal(network(decoding).infill(contexts, middle(contexts), rng=rng())[:, MIDDLE], middles)


def test_the_likelihood_of_the_middle_is_that_of_a_gap():
    contexts = melodies(2)
    log_p = network().gap_log_likelihood(contexts, middle(contexts))
    np.testing.assert_allclose(log_p, -network().nll(contexts).sum(1))
    assert isinstance(network(), GapInpainter)
    assert isinstance(network(), LikelihoodInpainter)


@pytest.mark.parametrize("n_steps", [6, 48, LIMITS.steps])
def test_the_longest_and_the_shortest_are_filled(n_steps):
    """Also where nothing at all is visible."""
    tokens = stretches(1, n_steps)
    hidden = np.zeros(tokens.shape, dtype=bool)
    hidden[:, : LIMITS.hidden_steps] = True
    for decoding in ("best", "sample"):
        assert network(decoding).infill(tokens, hidden, rng=rng()).max() <= REST
    assert np.isfinite(network().gap_log_likelihood(tokens, hidden)).all()


@EVERY_DECODING
def test_nothing_hidden_and_nothing_at_all(decoding):
    tokens = stretches(2, 48)
    nothing = np.zeros(tokens.shape, dtype=bool)
    np.testing.assert_array_equal(network(decoding).infill(tokens, nothing, rng=rng()), tokens)
    np.testing.assert_array_equal(network().gap_log_likelihood(tokens, nothing), [0, 0])
    assert network(decoding).infill(tokens[:0], nothing[:0], rng=rng()).shape == (0, 48)
    assert network().gap_log_likelihood(tokens[:0], nothing[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("tokens", "hidden", "error", "message"),
    [
        (
            np.zeros((1, 510)),
            slice(0, 6),
            ContextLengthError,
            "at most 504 steps, in whole quarters of 6 steps; got 510",
        ),
        (np.zeros((1, 50)), slice(0, 6), ContextLengthError, "whole quarters of 6 steps; got 50"),
        (np.zeros((1, 0)), slice(0, 6), ContextLengthError, "got 0"),
        (np.zeros((1, 384)), slice(0, 193), ContextLengthError, "fills at most 192 steps .* got 193: fill the gap in"),
        (np.zeros((1, 384)), [3, 200], ContextLengthError, "got 198"),
        (np.zeros(384), slice(0, 6), InvalidInputError, r"expected tokens \(n, steps\)"),
        (np.full((1, 384), 130), slice(0, 6), InvalidTokensError, "token 130"),
    ],
)
def test_what_it_cannot_take_is_refused_with_the_limit(tokens, hidden, error, message):
    tokens = tokens.astype(np.uint8)
    asked = np.zeros(tokens.shape, dtype=bool)
    asked[..., hidden] = True
    for call in (
        lambda: network().infill(tokens, asked, rng=rng()),
        lambda: network().gap_log_likelihood(tokens, asked),
    ):
        with pytest.raises(error, match=message):
            call()


def test_hidden_must_say_yes_or_no():
    with pytest.raises(InvalidInputError, match=r"true where a step is to be filled; got \(2, 48\) and int64"):
        network().infill(stretches(2, 48), np.zeros((2, 48), dtype=np.int64), rng=rng())


# --- the chain


def test_the_likelihood_of_all_fillings_is_one():
    """Two steps in different quarters: 130 tokens of the first, and of the second after each of three of these."""
    tokens = stretches(1, 24)
    every = np.repeat(tokens, 4 * 130, axis=0).reshape(4, 130, 24)
    every[0, :, 7] = every[1:, :, 20] = np.arange(130)
    every[1:, :, 7] = np.array([[60], [HOLD], [REST]])
    hidden = np.zeros((4 * 130, 24), dtype=bool)
    hidden[:, [7, 20]] = True
    nats = network()._nats(every.reshape(-1, 24), hidden)
    assert nats[hidden].min() > 0
    assert not nats[~hidden].any()
    p = np.exp(-nats).reshape(4, 130, 24)
    np.testing.assert_allclose([p[0, :, 7].sum(), *p[1:, :, 20].sum(axis=1)], 1, atol=1e-6)
    np.testing.assert_allclose(p[1:, 0, 7], p[0, [60, HOLD, REST], 7], rtol=1e-5)
    log_p = network().gap_log_likelihood(every[0], hidden[:130])
    np.testing.assert_allclose(log_p, -nats[:130].sum(axis=1), rtol=1e-5)


def test_samples_have_the_likelihood_that_they_are_told_to_have():
    tokens = stretches(1, 24)
    hidden = np.zeros(tokens.shape, dtype=bool)
    hidden[0, 9:11] = True
    drawn = network("sample").infill(np.repeat(tokens, 1500, 0), np.repeat(hidden, 1500, 0), rng=rng())
    kinds, counts = np.unique(drawn[:, 9:11], axis=0, return_counts=True)
    filled = np.repeat(tokens, len(kinds), axis=0)
    filled[:, 9:11] = kinds
    p = np.exp(network().gap_log_likelihood(filled, np.repeat(hidden, len(kinds), axis=0)))
    assert len(kinds) > 5
    often = 1500 * p >= 5  # what is rarer is not normal
    assert often.sum() > 5
    assert (np.abs(counts / 1500 - p) <= 5 * np.sqrt(p * (1 - p) / 1500))[often].all()


def test_the_likelihood_of_a_step_is_not_told_by_what_comes_after_it():
    """One context, changed at another step in each row; the second step of a quarter depends on the first."""
    contexts, steps = np.repeat(melodies(1), 6, axis=0), (144, 147, 168, 200, 239)
    contexts[np.arange(5), steps] = np.where(contexts[0, steps] == 70, 71, 70)
    *changed, plain = network().nll(contexts)
    for step, nats in zip(steps, changed, strict=True):
        np.testing.assert_allclose(nats[: step - 144], plain[: step - 144], atol=1e-5)
        assert (nats[step - 144 :] != plain[step - 144 :]).any()
    assert changed[0][1] != plain[1]


# --- training


@settings(deadline=None)
@given(st.integers(0, 1000), st.sampled_from([96, 240, 384]), st.floats(0, 1), st.floats(0, 1))
def test_gaps_are_hidden_in_their_quarters(seed, n_steps, varied, shown):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        drawn = draw_gaps(5, n_steps, varied, shown)
    assert drawn.hidden.shape == (5, n_steps)
    assert drawn.hidden.any(1).all()
    inside = torch.zeros(5, n_steps // 6, dtype=torch.bool).scatter(1, drawn.quarters, value=True)
    assert not (drawn.hidden.view(5, -1, 6).any(-1) & ~inside).any()
    assert (drawn.quarters.diff(dim=1) == 1).all()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        torch.testing.assert_close(draw_gaps(5, n_steps, varied, shown), drawn)


def test_without_variety_the_gap_is_the_middle():
    drawn, middle = draw_gaps(4, 384, 0, 0), middle_gaps(4, 384)
    assert torch.equal(drawn.hidden, middle.hidden)
    assert torch.equal(drawn.quarters, middle.quarters)
    assert middle.hidden[0].nonzero().flatten().tolist() == list(range(144, 240))


def test_the_quarters_of_gaps_by_hand():
    hidden = torch.zeros(3, 24, dtype=torch.bool)
    hidden[0, [1, 2, 19]] = True
    hidden[2, 12] = True
    assert gap_quarters(hidden).tolist() == [[0, 3], [-1, -1], [2, -1]]


@pytest.mark.slow
def test_it_learns_one_batch_by_heart():
    """Both distributions have little left to pay for, and the notes are there."""
    contexts = melodies(2)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        learner = InfillTransformer(InfillTransformerConfig(size="tiny", dropout=0.0))
        optimizer = torch.optim.AdamW(learner.parameters(), lr=0.004)
        for _ in range(80):
            loss = learner.train().training_loss(tensor(contexts)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert loss < 0.05
    assert note_f1(contexts[:, MIDDLE], learner.inpaint(contexts, rng=rng())).mean() > 0.9
    assert learner.validation_losses(tensor(contexts)).mean() < 0.1


def test_epochs_are_judged_by_the_notes_that_are_written():
    contexts = melodies(5)
    contexts[4] = REST  # no note in the middle
    judged = network()
    with torch.no_grad():
        losses = judged.validation_losses(tensor(contexts)).numpy()
    written = judged.inpaint(contexts, rng=rng())
    np.testing.assert_allclose(1 - losses, note_f1(contexts[:, MIDDLE], written), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_size": 25}, r"model_size must be a multiple of n_heads \(2\), got 25"),
        ({"n_pointers": -1}, "n_pointers must not be negative"),
        ({"chain_weight": -0.5}, "chain_weight must not be negative, got -0.5"),
        ({"shown": 1.5}, r"shown must lie in \[0, 1\], got 1.5"),
        ({"pair_size": 0}, "pair_size must be at least 1"),
    ],
)
def test_its_config_is_checked(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        dataclasses.replace(TINY[InfillTransformer], **changes)
