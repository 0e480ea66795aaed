"""VLI: the core against XLNet, notes and their grid, onsets, leaks, the published oddities, and whether it learns."""

import dataclasses

import numpy as np
import pytest
import torch

from music_evals.annotations import HOLD, REST
from music_evals.errors import InvalidInputError, InvalidNotesError, PairCountError, RoundedNotesWarning
from music_evals.models import vli
from music_evals.models.training import fit
from music_evals.models.training.recipe import DataConfig, Recipe, TrainingConfig
from music_evals.models.vli import (
    AFTER_NEXT,
    END,
    NEXT,
    SAME,
    VLI,
    Batch,
    Here,
    VLIConfig,
    middle_span,
    note_ids,
    pad,
    random_span,
    relative_bars,
    to_tokens,
)
from music_evals.symbolic.encodings import remi

from .tiny_networks import MIDDLE, TINY, build

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")

SIXTEENTHS = np.array([0, 2, 3, 5])  # steps of the sixteenths in a quarter, as NoteSeq rounds them


def network(decoding: str = "argmax", **changes) -> VLI:
    model = build(VLI, **{"top_p": 1.0, **changes})
    model.decoding = decoding
    return model


def melodies(n: int, seed: int = 5) -> np.ndarray:
    """Contexts of sixteenths and longer notes and some rests, with an onset at the first step of every measure."""
    rng = np.random.default_rng(seed)
    contexts = np.full((n, 384), HOLD, dtype=np.uint8)
    steps = (np.arange(64)[:, None] * 6 + SIXTEENTHS).flatten()
    for row in contexts:
        starts = np.union1d(steps[rng.random(256) < 0.3], np.arange(0, 384, 24))
        for start, stop in zip(starts, [*starts[1:], 384], strict=True):
            if start % 24 and rng.random() < 0.1:
                row[start:stop] = REST
            else:
                row[start] = rng.integers(50, 81)
    return contexts


@pytest.fixture
def contexts() -> np.ndarray:
    return melodies(6)


def fill(model: VLI, contexts: np.ndarray, seed: int = 0, **options) -> np.ndarray:
    return model.inpaint(contexts, rng=np.random.default_rng(seed), **options)


def spans(model: VLI, contexts: np.ndarray, *, with_notes: bool = True) -> list:
    how = {"with_notes": with_notes, "long_jumps": model.config.long_jumps}
    return [middle_span(context, row, **how) for row, context in enumerate(contexts)]


def side_by_side(known: list) -> Batch:
    return pad(known, torch.device("cpu"))


def onsets_of(middles: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(row < HOLD).tolist() for row in middles]


# --- the core


def xlnet(**sizes):
    from transformers import XLNetConfig, XLNetModel

    settings = {"vocab_size": 1, "dropout": 0.0, "ff_activation": "gelu", "untie_r": True, "layer_norm_eps": 1e-12}
    return XLNetModel(XLNetConfig(**settings, **sizes)).eval()


def test_the_core_is_that_of_xlnet():
    """With one note a bar, bars are the token distances of XLNet; its own two streams give the same numbers."""
    theirs = xlnet(d_model=16, n_layer=2, n_head=2, d_inner=24)
    ours = network(dropout=0.0)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
        for mine, layer in zip(ours.blocks, theirs.layer, strict=True):
            attention, feed_forward = layer.rel_attn, layer.ff
            for name, tensor in zip(
                ("query", "key", "value", "relative"), (attention.q, attention.k, attention.v, attention.r), strict=True
            ):
                getattr(mine, name).weight.copy_(tensor.flatten(1).T)
            mine.out.weight.copy_(attention.o.flatten(1))
            mine.content_bias.copy_(attention.r_w_bias[:, None])
            mine.position_bias.copy_(attention.r_r_bias[:, None])
            mine.attention_norm.load_state_dict(attention.layer_norm.state_dict())
            mine.inner.load_state_dict(feed_forward.layer_1.state_dict())
            mine.outer.load_state_dict(feed_forward.layer_2.state_dict())
            mine.norm.load_state_dict(feed_forward.layer_norm.state_dict())
        n, targets = 9, [3, 4, 7]
        h = torch.randn(2, n, 16)
        seen = torch.ones(2, n, n, dtype=torch.bool)
        seen[:, :, targets] = False  # what is to be predicted is seen by later targets alone
        for index, target in enumerate(targets):
            seen[:, target, targets[:index]] = True
        mapping = torch.zeros(2, len(targets), n)
        mapping[:, range(len(targets)), targets] = 1
        expected = theirs(inputs_embeds=h, perm_mask=(~seen).float(), target_mapping=mapping).last_hidden_state
        g = theirs.mask_emb.expand(2, len(targets), -1)
        bars = -torch.arange(n).expand(2, -1)
        h_seen = seen | torch.eye(n, dtype=torch.bool)
        result = ours.streams(h, g, (bars, bars[:, targets]), (h_seen, seen[:, targets]))
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


def test_the_core_has_19200_parameters_less_than_xlnet():
    """Segment embeddings and the mask vector, which notes do not use; its word embedding of one row left out."""
    with torch.device("meta"):
        theirs = xlnet(d_model=768, n_layer=12, n_head=8, d_inner=3072)
        ours = VLI(VLIConfig())
    count = [sum(p.numel() for p in module.parameters()) for module in (theirs, theirs.word_embedding, ours.layers)]
    assert count[0] - count[1] - count[2] == 19_200


def test_a_query_sees_neither_its_note_nor_a_later_one(contexts):
    model = network()
    with torch.no_grad():
        batch = side_by_side(spans(model, contexts))
        notes = batch.notes.clone()
        notes[:, 5, remi.PITCH] = (notes[:, 5, remi.PITCH] + 7) % 86
        plain, changed = (torch.cat(model(x), dim=-1) for x in (batch, batch._replace(notes=notes)))
    differs = (plain != changed).any(-1).any(0)
    assert not differs[:7].any()  # the start, notes 0..4, and note 5 itself
    assert differs[7:].all()


def test_how_many_bars_lie_between_matters(contexts):
    model = network()
    with torch.no_grad():
        batch = side_by_side(spans(model, contexts))
        moved = batch._replace(known_bars=batch.known_bars // 2)
        assert not torch.allclose(model(batch)[remi.PITCH], model(moved)[remi.PITCH])


# --- notes


def test_what_is_read_can_be_written_again(contexts):
    for context in contexts:
        ids = note_ids(context[MIDDLE], 6, 0)
        np.testing.assert_array_equal(to_tokens(ids), context[MIDDLE])


def test_ids_by_hand():
    """A quarter, then a sixteenth in the next bar but one; past and future around them."""
    context = np.full(384, REST, dtype=np.uint8)
    context[0:6] = 60, HOLD, HOLD, HOLD, HOLD, HOLD
    context[144:150] = 62, HOLD, HOLD, HOLD, HOLD, HOLD
    context[144 + 48 + 2] = 64  # bar 8, second sixteenth; it lasts one step, which is a sixteenth here
    context[240] = context[288] = 65
    span = middle_span(context, 0, with_notes=True, long_jumps=True)
    assert span.notes.tolist() == [[23, NEXT, 0, 40, 7, 16], [23, AFTER_NEXT, 1, 42, 1, 16]]
    assert (span.bars.tolist(), span.before) == ([6, 8], 5)
    assert span.known[:, remi.BAR].tolist() == [SAME, NEXT, AFTER_NEXT]
    assert span.known_bars.tolist() == [0, 10, 12]
    published = middle_span(context, 0, with_notes=True, long_jumps=False)
    assert published.notes[:, remi.BAR].tolist() == [NEXT, NEXT]


def test_the_known_notes_say_nothing_of_the_middle(contexts):
    """The first note after it might: how far it is from the last one of the middle."""
    other = contexts.copy()
    other[:, MIDDLE] = REST
    for first, second in zip(spans(network(), contexts), spans(network(), other), strict=True):
        np.testing.assert_array_equal(first.known, second.known)
        np.testing.assert_array_equal(first.known_bars, second.known_bars)


def test_triplets_are_rounded_and_said():
    """Thirds of a quarter stand on the steps 0, 2 and 4; the last is no sixteenth and goes to the third of four."""
    context = np.full((1, 384), HOLD, dtype=np.uint8)
    context[0, [0, 2, 4]] = 60, 62, 64
    assert note_ids(context[0, :144], 0, 0)[:, remi.POSITION].tolist() == [0, 1, 3]
    with pytest.warns(RoundedNotesWarning, match="1 of 3 onsets lie off VLI's grid of sixteenths"):
        fill(network(), context)
    context[0, 4], context[0, 148] = HOLD, 70
    fill(network(), context)  # what stands in the middle is not read


def test_pitches_outside_of_the_vocabulary_are_named(contexts):
    for pitch in (21, 108):
        broken = contexts.copy()
        broken[2, 0] = pitch
        for call in (lambda x: fill(network(), x), network().note_nll):
            with pytest.raises(
                InvalidNotesError, match=rf"context 2 has the pitch {pitch}, and VLI knows 22\.\.107 alone"
            ):
                call(broken)
    hidden = contexts.copy()
    hidden[:, 144] = 5
    assert fill(network(), hidden).shape == (6, 96)  # the middle is not read
    with pytest.raises(InvalidNotesError):
        fill(network("first_onset"), hidden)
    edges = contexts.copy()
    edges[:, 0], edges[:, 24] = 22, 107
    assert fill(network(), edges).shape == (6, 96)


# --- writing


def test_writing_note_by_note_agrees_with_the_whole_pass(contexts):
    """Greedy: the pass over all that was written takes the same ids at every note."""
    model = network()
    known = spans(model, contexts, with_notes=False)
    with torch.no_grad():
        written = model._decode(side_by_side(known), torch.zeros(6, 64, 4), None)
        assert min(map(len, written)) >= 1
        whole = [
            span._replace(notes=relative_bars(notes, 5, long_jumps=True), bars=notes[:, remi.BAR])
            for span, notes in zip(known, written, strict=True)
        ]
        batch = side_by_side(whole)
        logits = model(batch)
    for column in (remi.PITCH, remi.DURATION):
        chosen = logits[column][:, 1:, : remi.N_VALUES[column]].argmax(-1)
        assert (chosen == batch.notes[..., column])[batch.is_note].all()


@pytest.mark.slow
def test_sampling_has_the_networks_distribution(contexts):
    """First onset: 500 draws against the probabilities of the 64 places and the end, within 5 standard errors."""
    model = network("sample")
    middles = fill(model, np.repeat(contexts[:1], 500, axis=0))
    with torch.no_grad():
        start = side_by_side(spans(model, contexts[:1], with_notes=False))
        logits = [column[:, 0] for column in model(start)]
        here = Here(start.before, torch.full_like(start.before, 15))
        by_bar, by_position = model._onset_log_p(logits[remi.BAR], logits[remi.POSITION], here)
    p = np.zeros(64)
    for jump, bar in ((NEXT, 0), (AFTER_NEXT, 1)):
        p[bar * 16 : bar * 16 + 16] = (by_bar[0, jump] + by_position[0, jump, :16]).exp().numpy()
    steps = (np.arange(16)[:, None] * 6 + SIXTEENTHS).flatten()
    first = [steps.tolist().index(onsets[0]) for onsets in onsets_of(middles) if onsets]
    share = np.bincount(first, minlength=64) / 500
    assert p.sum() + by_bar[0, END].exp().item() == pytest.approx(1)
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / 500) + 1e-9).all()


@pytest.mark.slow
def test_onsets_come_in_order_and_stay_inside(contexts):
    model = network("sample", long_jumps=False)
    draws = torch.from_numpy(np.random.default_rng(0).random((6, 64, 4)))
    known = spans(model, contexts, with_notes=False)
    with torch.no_grad():
        for notes in model._decode(side_by_side(known), draws, None):
            places = notes[:, remi.BAR] * 16 + notes[:, remi.POSITION]
            assert (np.diff(places) > 0).all()
            assert ((places >= 96) & (places < 160)).all()
        free = network("sample", free_onsets=True)
        lifted = free._decode(side_by_side(known * 20), torch.rand(120, 64, 4).double(), None)
    assert any((np.diff(notes[:, remi.BAR] * 16 + notes[:, remi.POSITION]) <= 0).any() for notes in lifted)


@pytest.mark.slow
def test_an_empty_bar_can_be_written_only_with_long_jumps(contexts):
    model = network("sample")
    many = np.repeat(contexts, 20, axis=0)
    for long_jumps in (True, False):
        model = network("sample", long_jumps=long_jumps)
        bars = [np.unique(np.array(onsets, dtype=int) // 24) for onsets in onsets_of(fill(model, many))]
        assert any((np.diff(row, prepend=-1) > 1).any() for row in bars) == long_jumps


@pytest.mark.parametrize("n_notes", [0, 1, 17, 64])
@pytest.mark.parametrize("decoding", ["argmax", "sample"])
def test_the_number_of_notes_may_be_known(contexts, decoding, n_notes):
    middles = fill(network(decoding), contexts, n_notes=n_notes)
    assert [len(onsets) for onsets in onsets_of(middles)] == [n_notes] * 6


def test_each_context_may_have_its_own_number_of_notes(contexts):
    wanted = [3, 0, np.int64(40), 1, 2, 8]
    assert [len(onsets) for onsets in onsets_of(fill(network(), contexts, n_notes=wanted))] == wanted


@pytest.mark.parametrize(
    ("model", "n_notes", "error", "message"),
    [
        (network, 65, InvalidInputError, r"room for 0\.\.64 notes, got 65"),
        (network, [3.5] * 6, InvalidInputError, r"room for 0\.\.64 notes, got 3.5"),
        (network, [3], PairCountError, "expected one number of notes a context, 6, or one for all; got 1"),
        (lambda: network("true_length"), 3, InvalidInputError, "takes no number of notes; choose argmax or sample"),
        (lambda: network(free_onsets=True), 3, InvalidInputError, "takes no number of notes"),
    ],
)
def test_numbers_of_notes_are_checked(contexts, model, n_notes, error, message):
    with pytest.raises(error, match=message):
        fill(model(), contexts, n_notes=n_notes)


def test_leaks_give_what_their_names_say(contexts):
    true = onsets_of(contexts[:, MIDDLE])
    first, length, all_of_them = (
        onsets_of(fill(network(decoding), contexts)) for decoding in ("first_onset", "true_length", "true_onsets")
    )
    assert [row[0] for row in first] == [row[0] for row in true]
    assert [len(row) for row in length] == [len(row) for row in true]
    assert all_of_them == true


def test_an_empty_middle_has_no_first_onset_to_leak(contexts):
    contexts[:, MIDDLE] = REST
    for decoding in ("first_onset", "true_length", "true_onsets"):
        assert (fill(network(decoding), contexts) == REST).all()


# --- likelihood


def test_likelihood_of_an_empty_middle_is_that_of_the_end(contexts):
    contexts[:, MIDDLE] = REST
    model = network()
    nats, n_notes = model.note_nll(contexts)
    with torch.no_grad():
        logits = model(side_by_side(spans(model, contexts)))[remi.BAR][:, 0].double()
    logits[:, SAME] = -torch.inf  # no onset is left in the bar before the middle
    np.testing.assert_allclose(nats, -logits.log_softmax(-1)[:, END].numpy())
    assert n_notes.tolist() == [0] * 6


def test_likelihood_of_one_note_by_hand(contexts):
    """Bar, position, pitch and duration of a note on the last sixteenth, and the end, which is certain there."""
    contexts[:, MIDDLE] = REST
    contexts[:, 239] = 60
    model = network()
    nats, n_notes = model.note_nll(contexts)
    with torch.no_grad():
        logits = [column.double() for column in model(side_by_side(spans(model, contexts)))]
    bar = logits[remi.BAR][:, 0].clone()
    bar[:, SAME] = -torch.inf
    expected = bar.log_softmax(-1)[:, AFTER_NEXT]  # three bars on count as two
    expected = expected + logits[remi.POSITION][:, 0, :16].log_softmax(-1)[:, 15]
    expected = expected + logits[remi.PITCH][:, 1, :86].log_softmax(-1)[:, 38]
    expected = expected + logits[remi.DURATION][:, 1, :64].log_softmax(-1)[:, 1]
    np.testing.assert_allclose(nats, -expected.numpy())
    assert n_notes.tolist() == [1] * 6


def test_likelihood_does_not_depend_on_the_batch(contexts):
    model = network()
    alone = np.concatenate([model.note_nll(contexts[row : row + 1]).nats for row in range(6)])
    np.testing.assert_allclose(model.note_nll(contexts).nats, alone, rtol=1e-5)


# --- training


def test_the_loss_is_a_mean_over_columns(contexts):
    """Of weights at zero: ln 4 for bars, ln 19 for positions, ln 89 for pitches, ln 67 for durations."""
    tensor = torch.from_numpy(contexts.astype(np.int64))
    for constant, sizes in ((False, (4, 19, 89, 67)), (True, (4, 19, 89, 67, 49, 35))):
        model = network(constant_columns=constant)
        with torch.no_grad():
            for parameter in model.heads.parameters():
                parameter.zero_()
            np.testing.assert_allclose(model.training_loss(tensor), np.log(sizes).mean(), rtol=1e-5)


def test_long_jumps_change_the_loss_where_a_bar_is_empty(contexts):
    contexts[:, 168:192] = HOLD
    tensor = torch.from_numpy(contexts.astype(np.int64))
    with torch.no_grad():
        first, second = (network(long_jumps=switch).training_loss(tensor) for switch in (True, False))
    assert not torch.allclose(first, second)


def test_random_spans_have_an_eighth_to_a_quarter_of_the_notes(contexts):
    n = len(note_ids(contexts[0], 0, 0))
    drawn = [random_span(contexts[0], 0, long_jumps=True) for _ in range(300)]
    lengths = [len(span.notes) for span in drawn]
    assert (min(lengths), max(lengths)) == (n // 8, n // 4)
    assert {len(span.notes) + len(span.known) for span in drawn} == {n}
    assert len({span.before for span in drawn}) > 8


@pytest.mark.slow
def test_varied_spans_are_a_share(contexts, monkeypatch):
    seen = []
    model = network(varied_spans=0.25)
    monkeypatch.setattr(vli, "random_span", lambda *of, **how: seen.append(of[1]) or random_span(*of, **how))
    tensor = torch.from_numpy(np.repeat(contexts, 40, axis=0).astype(np.int64))
    with torch.no_grad():
        model.training_loss(tensor, varied=False)
        assert not seen
        model.training_loss(tensor, varied=True)
    assert len(seen) / 240 == pytest.approx(0.25, abs=0.09)  # 3 sigma


@pytest.mark.slow
def test_a_batch_can_be_learnt_by_heart(tmp_path):
    """Four tunes of quarter and half notes, each on a pitch of its own, then written without their middles."""
    contexts = np.full((4, 384), HOLD, dtype=np.uint8)
    contexts[:2, ::6], contexts[2:, ::12] = [[50], [60]], [[70], [80]]
    sizes = {"model_size": 32, "n_layers": 2, "n_heads": 2, "inner_size": 64, "embedding_size": 8}
    model = VLI(VLIConfig(**sizes, dropout=0.0, decoding="argmax"))
    with torch.no_grad():
        before = model.training_loss(torch.from_numpy(contexts.astype(np.int64))).mean()
    training = TrainingConfig(batch_size=4, epoch_contexts=40, cycles=(8,), learning_rate=0.015)
    result = fit(model, contexts, contexts, Recipe("vli", DataConfig("nowhere", "none"), {}, training), tmp_path)
    assert before > 2
    assert result.validation_loss < 0.2
    np.testing.assert_array_equal(fill(model, contexts), contexts[:, MIDDLE])
    assert (model.note_nll(contexts).nats / model.note_nll(contexts).n_notes < 0.5).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_layers": -1}, "n_layers must be at least 1, got -1"),
        ({"n_heads": 3}, r"model_size must be a multiple of twice n_heads \(6\), got 16"),
        ({"varied_spans": 1.5}, r"varied_spans must lie in \[0, 1\], got 1.5"),
    ],
)
def test_configs_are_checked(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        dataclasses.replace(TINY[VLI], **changes)


def test_every_setting_is_documented():
    documented = VLIConfig.__doc__ or ""
    assert all(field.name in documented for field in dataclasses.fields(VLIConfig))
