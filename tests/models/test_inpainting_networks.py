"""What every inpainting network keeps: size, causality, seeds, batches, files; on one tiny network of each."""

import dataclasses
import functools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from music_evals.annotations import HOLD, MASK, REST
from music_evals.benchmark.tasks.inpainting.systems import load_model
from music_evals.errors import (
    ContextLengthError,
    InvalidInputError,
    InvalidNotesError,
    InvalidTokensError,
    ModelUnavailableError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.models.anticipation_rnn import AnticipationRNN
from music_evals.models.inpaintnet import InpaintNet
from music_evals.models.layers import networks
from music_evals.models.layers.measures import MeasureNetwork
from music_evals.models.sketchnet import SketchNet
from music_evals.models.training import train_from_file
from music_evals.models.training.recipe import read_recipe
from music_evals.models.vli import VLI
from music_evals.protocols import (
    INPAINTERS,
    Inpainter,
    LikelihoodInpainter,
    NoteLikelihood,
    NoteLikelihoodInpainter,
    load_plugin,
)

from .tiny_networks import MIDDLE, TINY, build, melodies, tensor

pytestmark = pytest.mark.usefixtures("one_thread")

# The published number of parameters of every part, counted on MUSIB's code with its defaults.
PUBLISHED = {
    InpaintNet: {"vae": 17_710_261, "vae.decoder": 6_653_345, "latent_rnn": 41_468_160, "": 59_178_421},
    VLI: {"": 93_573_127},
    SketchNet: {"vae": 78_447_797, "inpainter": 79_266_048, "connector": 12_865_280, "": 170_579_125},
}
SIZED = pytest.mark.parametrize("kind", list(PUBLISHED), ids=[kind.__name__ for kind in PUBLISHED])
TOKENS = pytest.mark.parametrize("kind", [AnticipationRNN, InpaintNet, SketchNet])
NETWORKS = pytest.mark.parametrize("kind", list(TINY), ids=[kind.__name__ for kind in TINY])
DECODINGS = [(kind, decoding) for kind in TINY for decoding in kind.decodings]
HONEST = [(kind, decoding) for kind, decoding in DECODINGS if decoding not in kind.leaking]
LEAKING = [(kind, decoding) for kind, decoding in DECODINGS if decoding in kind.leaking]


def cases(pairs: list[tuple[Any, str]]) -> Any:
    ids = [f"{kind.__name__}-{decoding}" for kind, decoding in pairs]
    return pytest.mark.parametrize(("kind", "decoding"), pairs, ids=ids)


@pytest.fixture
def contexts() -> np.ndarray:
    return melodies(4)


def inpaint(network: Any, contexts: np.ndarray, decoding: str, seed: int = 0) -> np.ndarray:
    network.decoding = decoding
    return network.inpaint(contexts, rng=np.random.default_rng(seed))


@functools.cache
def middles(kind: Any, decoding: str) -> np.ndarray:
    """Return what a network writes into `contexts` from seed 0."""
    return inpaint(build(kind), melodies(4), decoding)


def with_other_middles(contexts: np.ndarray) -> np.ndarray:
    other = contexts.copy()
    other[:, MIDDLE] = melodies(len(contexts), seed=77)[:, :96]
    return other


# --- size


def count(network: torch.nn.Module, part: str = "") -> int:
    return sum(parameter.numel() for parameter in network.get_submodule(part).parameters())


@SIZED
def test_the_paper_size_has_the_published_number_of_parameters(kind):
    with torch.device("meta"):
        network = kind(kind.config_class(size="paper"))
    assert {part: count(network, part) for part in PUBLISHED[kind]} == PUBLISHED[kind]


@SIZED
def test_the_small_size_is_small(kind):
    with torch.device("meta"):
        assert count(kind(kind.config_class(size="small"))) <= 2_500_000


@SIZED
def test_sizes_may_be_changed_one_by_one_and_must_exist(kind):
    small, paper = kind.config_class(size="small"), kind.config_class()
    assert paper.size == "paper"
    differing = [name for name, value in dataclasses.asdict(small).items() if value != getattr(paper, name)]
    assert set(differing) > {"size"}
    name = differing[1]
    assert getattr(kind.config_class(size="small", **{name: 24}), name) == 24
    with pytest.raises(UnknownNameError, match="'smaller'"):
        kind.config_class(size="smaller")


# --- decoding


@cases(DECODINGS)
def test_decodings_obey_the_protocol(kind, decoding, contexts):
    network, before = build(kind), contexts.copy()
    first, other = middles(kind, decoding), inpaint(network, contexts, decoding, seed=2)
    assert isinstance(network, Inpainter)
    assert isinstance(network, LikelihoodInpainter) == hasattr(network, "nll")
    assert first.shape == (4, 96)
    assert first.dtype == np.uint8
    assert first.max() <= REST
    np.testing.assert_array_equal(contexts, before)
    assert np.array_equal(first, other) == network.deterministic
    assert network.sees_reference == (decoding in kind.leaking)
    default = decoding == network.config.decoding
    assert network.name == network.config.model_type + ("" if default else f":{decoding}")


@cases(HONEST)
def test_honest_decodings_do_not_see_the_middle(kind, decoding, contexts):
    """The first two have other middles, the last two none."""
    changed = with_other_middles(contexts)
    changed[2:, MIDDLE] = MASK
    np.testing.assert_array_equal(middles(kind, decoding), inpaint(build(kind), changed, decoding))


@cases(LEAKING)
def test_leaking_decodings_see_the_middle(kind, decoding, contexts):
    other = inpaint(build(kind), with_other_middles(contexts), decoding)
    assert not np.array_equal(middles(kind, decoding), other)


@cases(HONEST)
def test_past_and_future_matter(kind, decoding):
    network, contexts, other = build(kind), melodies(6), melodies(6, seed=8)
    result = inpaint(network, contexts, decoding)
    for part in (slice(0, 144), slice(240, 384)):
        changed = contexts.copy()
        changed[:, part] = other[:, part]
        assert not np.array_equal(inpaint(network, changed, decoding), result), part


@cases(DECODINGS)
def test_an_item_does_not_depend_on_the_items_after_it(kind, decoding, contexts):
    """Its random numbers are its own, and it is decoded alone as in a batch; training mode is left as it was."""
    network = build(kind).train()
    np.testing.assert_array_equal(middles(kind, decoding)[:1], inpaint(network, contexts[:1], decoding))
    assert network.training


@NETWORKS
def test_greedy_items_do_not_depend_on_their_batch(kind, contexts, monkeypatch):
    """More rows than are decoded at once; each row is what it is in another batch, and alone."""
    network, together = build(kind), middles(kind, "argmax")
    np.testing.assert_array_equal(inpaint(network, contexts[3:], "argmax"), together[3:])
    monkeypatch.setattr(networks, "_ROWS_AT_ONCE", 3)
    np.testing.assert_array_equal(inpaint(network, contexts[::-1], "argmax"), together[::-1])


@NETWORKS
def test_temperature_0_and_a_tiny_nucleus_are_greedy(kind, contexts):
    network, greedy = build(kind), middles(kind, "argmax")[:2]
    network.top_p = 1e-9
    np.testing.assert_array_equal(inpaint(network, contexts[:2], "sample"), greedy)
    assert not network.deterministic
    network.top_p, network.temperature = 1.0, 0
    np.testing.assert_array_equal(inpaint(network, contexts[:2], "sample"), greedy)
    assert network.deterministic


def test_nucleus_by_hand():
    """0.5, 0.3, 0.15, 0.05: a nucleus of 0.6 holds the first two, 5/8 and 3/8."""
    log_p = torch.tensor([[0.15, 0.5, 0.05, 0.3]]).double().log().repeat(4, 1)
    uniform = torch.tensor([0.0, 0.62, 0.63, 0.999])
    assert networks.draw(log_p, 1.0, uniform, top_p=0.6).tolist() == [1, 1, 3, 3]
    assert networks.draw(log_p, 1.0, uniform).tolist() == [0, 1, 1, 3]


@NETWORKS
def test_no_contexts_give_no_middles(kind, contexts):
    network = build(kind)
    assert inpaint(network, contexts[:0], "sample").shape == (0, 96)
    assert network.note_nll(contexts[:0]).nats.shape == (0,)
    if isinstance(network, LikelihoodInpainter):
        assert network.nll(contexts[:0]).shape == (0, 96)


def decoder(kind: type) -> str:
    """Return the method of a network that works out one part."""
    return "_decode" if hasattr(kind, "_decode") else "_chain"


@NETWORKS
def test_threads_change_no_digit(kind, monkeypatch):
    """Two parts on one thread and on two; each part on one thread of PyTorch, whatever the program has set."""
    monkeypatch.setattr(networks, "_ROWS_AT_ONCE", 1)
    network, many = build(kind), melodies(2)
    seen: dict[int, set[tuple[int, int]]] = {}
    results = []
    for n in (1, 2):
        monkeypatch.setattr(networks, "n_threads", lambda n=n: n)
        seen[n] = set()
        forward = getattr(kind, decoder(kind))

        def decode(*arguments: Any, n: int = n, forward: Any = forward) -> Any:
            seen[n].add((threading.get_ident(), torch.get_num_threads()))
            return forward(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(kind, decoder(kind), decode)
            torch.set_num_threads(3)
            result = [inpaint(network, many, "sample")]
        result.append(network.nll(many) if hasattr(network, "nll") else network.note_nll(many).nats)
        results.append(result)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    assert {threads for idents in seen.values() for _, threads in idents} == {1}
    assert {ident for ident, _ in seen[1]} == {threading.get_ident()}
    assert threading.get_ident() not in {ident for ident, _ in seen[2]}


@NETWORKS
def test_a_part_that_fails_fails_all_and_leaves_the_network_as_it_was(kind, monkeypatch):
    network = build(kind).train()
    monkeypatch.setattr(networks, "n_threads", lambda: 2)
    monkeypatch.setattr(kind, decoder(kind), lambda *_: (_ for _ in ()).throw(MemoryError("no room")))
    with pytest.raises(MemoryError, match="no room"):
        inpaint(network, melodies(150), "argmax")
    assert network.training


# --- likelihood


@NETWORKS
def test_all_networks_say_how_likely_whole_middles_are(kind, contexts):
    network = build(kind)
    assert isinstance(network, NoteLikelihoodInpainter)
    likelihood = network.note_nll(contexts)
    nats, n_notes = likelihood
    assert nats.shape == n_notes.shape == (4,)
    assert (nats > 0).all()
    assert likelihood.bits_per_note == pytest.approx(nats.sum() / np.log(2) / n_notes.sum())
    np.testing.assert_allclose(nats[3:], network.note_nll(contexts[3:]).nats, rtol=1e-5)
    if isinstance(network, LikelihoodInpainter):
        np.testing.assert_allclose(nats, network.nll(contexts).sum(1), rtol=1e-12)
        np.testing.assert_array_equal(n_notes, (contexts[:, MIDDLE] < HOLD).sum(1))
    with pytest.raises(InvalidTokensError):  # a masked middle has no likelihood
        network.note_nll(np.where(np.isin(np.arange(384), np.arange(144, 240)), MASK, contexts))


def test_bits_per_note_by_hand():
    """3 nats of ln 2 and 5 of them over 4 notes are 2 bits a note; no note, no number."""
    assert NoteLikelihood(np.array([3, 5]) * np.log(2), np.array([4, 0])).bits_per_note == pytest.approx(2)
    assert np.isnan(NoteLikelihood(np.array([3.0]), np.array([0])).bits_per_note)


@TOKENS
@pytest.mark.parametrize("step", [144, 200])
def test_the_likelihoods_of_a_step_sum_to_one_over_the_tokens(kind, step, contexts):
    candidates = np.repeat(contexts[:1], 130, axis=0)
    candidates[:, step] = np.arange(130)
    log_p = -build(kind).nll(candidates)
    assert log_p.dtype == np.float64
    assert (log_p <= 0).all()
    assert np.exp(log_p[:, step - 144]).sum() == pytest.approx(1)


@TOKENS
def test_the_likelihood_of_a_step_does_not_depend_on_what_comes_after_it(kind, contexts):
    network = build(kind)
    plain = network.nll(contexts)
    for step in (144, 167, 168, 200, 239):
        changed = contexts.copy()
        changed[:, step] = np.where(contexts[:, step] == 70, 71, 70)
        np.testing.assert_allclose(network.nll(changed)[:, : step - 144], plain[:, : step - 144], atol=1e-5)


# --- two stages


@pytest.mark.slow
@TOKENS
def test_kinds_may_be_drawn_at_a_temperature_of_their_own(kind, contexts):
    """First token of 256: onset, hold and rest as likely as the network says, though the pitch is the likeliest."""
    network = build(kind, decoding="two_stage", temperature=0.0, kind_temperature=1.0)
    assert not network.deterministic
    candidates = np.repeat(contexts[:1], 130, axis=0)
    candidates[:, 144] = np.arange(130)
    p = np.exp(-network.nll(candidates)[:, 0])
    expected = np.array([p[:HOLD].sum(), p[HOLD], p[REST]])
    drawn = inpaint(network, np.repeat(contexts[:1], 256, axis=0), "two_stage")[:, 0]
    share = np.array([(drawn < HOLD).mean(), (drawn == HOLD).mean(), (drawn == REST).mean()])
    assert (np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / 256) + 1e-9).all()
    assert set(drawn[drawn < HOLD]) <= {p[:HOLD].argmax()}
    network.kind_temperature = 0.0
    assert network.deterministic
    one = inpaint(network, contexts[:1], "two_stage")
    assert one[0, 0] == (p[:HOLD].argmax() if expected.argmax() == 0 else HOLD - 1 + expected.argmax())


@TOKENS
def test_kinds_have_the_temperature_of_the_pitches_unless_another_is_given(kind, contexts):
    apart = build(kind, kind_temperature=1.0)
    np.testing.assert_array_equal(middles(kind, "two_stage"), inpaint(apart, contexts, "two_stage"))
    with pytest.raises(InvalidInputError, match="kind_temperature"):
        dataclasses.replace(TINY[kind], kind_temperature=-1.0)


# --- training


@NETWORKS
def test_losses_are_one_for_each_context_and_reach_what_is_trained(kind, contexts):
    network, tokens = build(kind), tensor(melodies(3))
    for stage in kind.stages or ("",):
        if stage:
            network.begin_stage(stage)
        for varied in (False, True):
            network.train().zero_grad()
            losses = network.training_loss(tokens, varied=varied)
            assert losses.shape == (3,)
            losses.sum().backward()
            moved = {
                name.split(".")[0] for name, p in network.named_parameters() if p.grad is not None and p.grad.any()
            }
            assert moved == set(
                kind.stages[stage] if stage else {name.split(".")[0] for name, _ in network.named_parameters()}
            )


@NETWORKS
def test_every_stage_trains_in_mixed_precision(kind, contexts):
    network = build(kind, kl_weight=0.0) if kind.stages else build(kind)
    tokens = tensor(contexts[:2])
    for stage in kind.stages or ("",):
        if stage:
            network.begin_stage(stage)
        network.train()
        for _ in range(3):  # with forcing and without
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = network.training_loss(tokens).mean()
            loss.backward()
            assert torch.isfinite(loss)


@NETWORKS
def test_validation_losses_repeat(kind, contexts):
    network, tokens = build(kind), tensor(contexts)
    for stage in kind.stages or ("",):
        if stage:
            network.begin_stage(stage)
        with torch.no_grad():
            torch.testing.assert_close(network.training_loss(tokens), network.training_loss(tokens), rtol=0, atol=0)


@NETWORKS
def test_what_a_stage_leaves_alone_is_frozen_and_has_no_dropout(kind):
    network = build(kind)
    for stage, trained in kind.stages.items():
        network.begin_stage(stage)
        network.train()
        for name, child in network.named_children():
            assert child.training == (name in trained)
            assert all(parameter.requires_grad == (name in trained) for parameter in child.parameters())
    with pytest.raises(UnknownNameError, match="stage"):
        network.begin_stage("first")


# --- files


@NETWORKS
def test_a_loaded_network_writes_what_the_saved_one_wrote(kind, contexts, tmp_path):
    """Weights are stored in half precision, so the second generation equals the first bit for bit."""
    build(kind).save_pretrained(tmp_path / "first")
    first = kind.from_pretrained(tmp_path / "first")
    first.save_pretrained(tmp_path / "second")
    second = kind.from_pretrained(tmp_path / "second", decoding="sample", temperature=0.5, top_p=0.9)
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert (second.decoding, second.temperature, second.top_p) == ("sample", 0.5, 0.9)
    assert first.config == TINY[kind]
    assert {parameter.dtype for parameter in first.parameters()} == {torch.float32}
    np.testing.assert_array_equal(inpaint(first, contexts[:1], "argmax"), inpaint(second, contexts[:1], "argmax"))


@NETWORKS
def test_a_saved_network_is_a_system_of_the_benchmark(kind, tmp_path):
    build(kind).save_pretrained(tmp_path)
    assert load_model(str(tmp_path)).role == "model"
    for decoding in kind.decodings:
        system = load_model(str(tmp_path), decoding=decoding)
        assert (system.role == "leaking") == (decoding in kind.leaking) == system.name.endswith("(leaks)")


@pytest.mark.slow
@NETWORKS
def test_a_recipe_trains_it(kind, tmp_path, tiny_dataset, write_recipe):
    """All stages, one epoch each, from a file, as the command line does it; then it is loaded and fills a gap."""
    sizes = {name: value for name, value in dataclasses.asdict(TINY[kind]).items() if name.endswith("_size")}
    stages = {"stages": json.dumps([{"name": stage} for stage in kind.stages])} if kind.stages else {}
    path = write_recipe(
        tmp_path,
        model_type=kind.config_class().model_type,
        model=json.dumps({**({"size": "small"} if kind in PUBLISHED else {}), **sizes}),
        data=json.dumps({"dataset": str(tiny_dataset), "config": "musib"}),
        training="{batch_size: 12, cycles: [1], plain_epochs: 0, transpose_low: -6, transpose_high: 6, threads: 1}",
        **stages,
    )
    result = train_from_file(path)
    assert result.epochs == max(1, len(kind.stages))
    network = kind.from_pretrained(result.folder)
    assert inpaint(network, melodies(2), "sample").shape == (2, 96)


@NETWORKS
def test_the_shipped_recipe_and_config_belong_together(kind):
    """The recipe names the stages of the network, and makes the network that config.json describes.

    How that one decodes is chosen after the training.
    """
    model_type = kind.config_class().model_type
    folder = Path(__file__).parents[2] / "models" / model_type
    recipe = read_recipe(folder / "train.yaml")
    assert recipe.model_type == model_type
    assert [stage.name for stage in recipe.stages] == list(kind.stages)
    config = kind.config_class(**json.loads((folder / "config.json").read_text()))
    decoding = {name: getattr(config, name) for name in ("decoding", "temperature", "top_p")}
    if hasattr(config, "kind_temperature"):
        decoding["kind_temperature"] = config.kind_temperature
    assert dataclasses.replace(kind.config_class(**recipe.model), **decoding) == config
    assert getattr(config, "size", "small") == "small"


@pytest.mark.parametrize("base", [networks.InpaintingNetwork, networks.TokenNetwork, MeasureNetwork])
def test_what_networks_share_is_no_network(base):
    with pytest.raises(TypeError, match="abstract"):
        base()


@NETWORKS
def test_the_registry_names_the_class(kind):
    assert load_plugin(INPAINTERS, kind.config_class().model_type, "model") is kind


def spoil(change: dict[str, Any]) -> Callable[[Any], None]:
    def rewrite(folder: Any) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    return rewrite


@NETWORKS
@pytest.mark.parametrize(
    ("break_it", "error", "message"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), NoDataError, "holds no model.safetensors; train it"),
        (lambda folder: (folder / "config.json").unlink(), NoDataError, "holds no config.json"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"12"), UnreadableFileError, "damaged"),
        (lambda folder: (folder / "config.json").write_text("{"), UnreadableFileError, "config.json is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), UnreadableFileError, "holds no settings by name"),
        (spoil({"dropout": 0.5, "future_switch": 1}), UnreadableFileError, "future_switch.*another version"),
        (spoil({"model_type": "somebody_elses"}), InvalidInputError, "load the model with the class of its type"),
    ],
)
def test_what_cannot_be_loaded_is_named(kind, break_it, error, message, tmp_path):
    build(kind).save_pretrained(tmp_path)
    break_it(tmp_path)
    with pytest.raises(error, match=message):
        kind.from_pretrained(tmp_path)


@NETWORKS
@pytest.mark.parametrize("other", list(TINY), ids=[kind.__name__ for kind in TINY])
def test_weights_of_another_model_are_named(kind, other, tmp_path):
    build(other).save_pretrained(tmp_path)
    if kind is other:
        kind.from_pretrained(tmp_path)
        return
    with pytest.raises((UnreadableFileError, InvalidInputError), match=r"another model|class of its type"):
        kind.from_pretrained(tmp_path)


@NETWORKS
def test_weights_of_another_size_are_named(kind, tmp_path):
    build(kind).save_pretrained(tmp_path)
    other = kind.config_class(**({"size": "small"} if kind in PUBLISHED else {}))
    (tmp_path / "config.json").write_text(json.dumps(dataclasses.asdict(other)))
    with pytest.raises(UnreadableFileError, match=r"config\.json"):
        kind.from_pretrained(tmp_path)


@NETWORKS
@pytest.mark.parametrize("name", ["./models/nowhere", "models/nowhere", "a/b/c", "nowhere at all"])
def test_what_is_neither_a_folder_nor_an_id_is_named(kind, name):
    with pytest.raises(UnknownNameError, match=rf"unknown model '{name}'.*a folder or a Hub id \(owner/name\)"):
        kind.from_pretrained(name)


@NETWORKS
def test_an_id_that_cannot_be_fetched_is_named(kind, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailableError, match="there is no folder someone/nothing, and it cannot be fetched"):
        kind.from_pretrained("someone/nothing", cache_dir=tmp_path)


# --- bad input


@cases(DECODINGS)
def test_contexts_are_checked(kind, decoding, contexts):
    network = build(kind)
    with pytest.raises(ContextLengthError):
        inpaint(network, contexts[:, :96], decoding)
    broken = contexts.copy()
    broken[0, 0] = 130
    with pytest.raises(InvalidTokensError, match="130"):
        inpaint(network, broken, decoding)


@NETWORKS
def test_every_pitch_is_read_or_refused_by_name(kind, contexts):
    """Low and high pitches before the gap, in the true middle and after it, and no onset at all.

    Never a KeyError, nor an index out of range; the middle is not read to be filled.
    """
    network, steps = build(kind), (0, 150, 300)
    low, high = network.pitch_range
    odd = {pitch: np.repeat(contexts[:1], 3, axis=0) for pitch in (0, 21, 108, 127)}
    read, refused = [contexts[:1]], []
    filled = [np.full((1, 384), token, dtype=np.uint8) for token in (REST, HOLD)]
    for pitch, rows in odd.items():
        rows[[0, 1, 2], steps] = pitch
        if low <= pitch <= high:
            read.append(rows)
            filled.append(rows)
        else:
            refused.append(pitch)
            filled.append(rows[1:2])
    assert np.isfinite(network.note_nll(np.concatenate(read)).nats).all()
    assert len(inpaint(network, np.concatenate(filled), "argmax")) == sum(map(len, filled))
    for pitch in refused:
        for row in (0, 1, 2):
            here = np.concatenate([contexts[:2], odd[pitch][row : row + 1]])
            with pytest.raises(InvalidNotesError, match=f"context 2 has the pitch {pitch}"):
                network.note_nll(here)
            if row != 1:
                with pytest.raises(InvalidNotesError, match=f"context 2 has the pitch {pitch}"):
                    inpaint(network, here, "argmax")


@NETWORKS
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"dropout": 1.0}, InvalidInputError, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"temperature": -1.0}, InvalidInputError, "temperature must be 0 or more"),
        ({"top_p": 0.0}, InvalidInputError, "top_p must lie above 0 and be at most 1, got 0.0"),
        ({"decoding": "greedy"}, UnknownNameError, "unknown decoding 'greedy'"),
        ({"dropout": "half"}, InvalidInputError, "dropout must be a number, got 'half'"),
        ({"temperature": None}, InvalidInputError, "temperature must be a number, got None"),
        ({"decoding": ["argmax"]}, InvalidInputError, r"decoding must be a text, got \['argmax'\]"),
        ({"model_type": 3}, InvalidInputError, "model_type must be a text, got 3"),
    ],
)
def test_configs_are_checked(kind, changes, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(TINY[kind], **changes)


@NETWORKS
def test_every_setting_of_another_type_is_named(kind):
    for field in dataclasses.fields(TINY[kind]):
        with pytest.raises(InvalidInputError, match=f"^{field.name} must be "):
            dataclasses.replace(TINY[kind], **{field.name: {1}})
    with pytest.raises(InvalidInputError, match=f"config must be a {kind.config_class.__name__}, got 'small'"):
        kind("small")


@NETWORKS
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": "hot"}, "temperature must be a number, got 'hot'"),
        ({"temperature": True}, "temperature must be a number, got True"),
        ({"top_p": "0.9"}, "top_p must be a number, got '0.9'"),
        ({"decoding": 3}, "decoding must be a text, got 3"),
    ],
)
def test_decoding_of_another_type_is_named(kind, options, message, tmp_path):
    build(kind).save_pretrained(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        kind.from_pretrained(tmp_path, **options)


@cases(LEAKING)
def test_a_leak_is_never_a_default(kind, decoding):
    with pytest.raises(InvalidInputError, match="reads the true middle and cannot be a default; ask for it by name"):
        dataclasses.replace(TINY[kind], decoding=decoding)


@TOKENS
def test_who_asks_for_temperature_0_gets_the_most_likely_kinds_too(kind, tmp_path):
    tiny = build(kind)
    config = dataclasses.replace(tiny.config, decoding="two_stage", temperature=0.5, kind_temperature=0.75)
    kind(config).save_pretrained(tmp_path)
    assert kind.from_pretrained(tmp_path).kind_temperature == 0.75
    assert not kind.from_pretrained(tmp_path).deterministic
    assert kind.from_pretrained(tmp_path, temperature=0).deterministic
    assert kind.from_pretrained(tmp_path, temperature=0.25).kind_temperature == 0.75
