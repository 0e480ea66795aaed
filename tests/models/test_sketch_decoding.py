"""A sketch is obeyed to the letter, the network chooses what it leaves open; and the published way, by switches."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from music_evals.annotations import HOLD, REST
from music_evals.models.layers.measures import MIDDLE, cut, fix_empty
from music_evals.models.sketchnet import Sketch, SketchNet, place_pitches, sketch_tensors
from music_evals.symbolic.encodings import factorized

from .tiny_networks import build, noise, tensor

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")

NONE = (None,) * 4
EIGHTHS = (1, 2, 2) * 8
RAGGED = (3, 2, 1, 1, 2, 3, 2, 1) * 3  # 9 onsets, holds after rests
DRAWN = pytest.mark.parametrize("decoding", ["argmax", "sample", "two_stage"])
KINDS = pytest.mark.parametrize("kind", ["rhythm", "pitches", "both"])


def network(decoding: str = "sample", **changes) -> SketchNet:
    model = build(SketchNet, **changes)
    model.decoding = decoding
    return model


def fill(model: SketchNet, contexts: np.ndarray, sketches=None, seed: int = 0) -> np.ndarray:
    return model.inpaint(contexts, rng=np.random.default_rng(seed), sketches=sketches)


def obeys(middle: np.ndarray, sketch: Sketch) -> bool:
    parts = factorized.encode(middle)
    return all(
        (pitches is None or tuple(px[:n]) == pitches) and (rhythm is None or tuple(rx) == rhythm)
        for pitches, rhythm, px, n, rx in zip(
            sketch.pitches, sketch.rhythms, parts.px, parts.len_x, parts.rx, strict=True
        )
    )


def example(kind: str) -> Sketch:
    pitches = (tuple(range(40, 49)), (60, 60, 62, 55, 60, 64, 60, 60), None, tuple(range(70, 94)))
    rhythms = (RAGGED, EIGHTHS, None, (1,) * 24)
    return Sketch(NONE if kind == "rhythm" else pitches, NONE if kind == "pitches" else rhythms)


@st.composite
def measures(draw) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Pitches and rhythm of a measure; either may be left out."""
    kind = draw(st.sampled_from(["neither", "pitches", "rhythm", "both"]))
    rhythm = draw(st.lists(st.integers(1, 3), min_size=24, max_size=24).map(tuple))
    n_onsets = rhythm.count(1)
    bounds = (n_onsets, n_onsets) if kind == "both" else (1, 24)
    pitches = draw(st.lists(st.integers(0, 127), min_size=bounds[0], max_size=bounds[1]).map(tuple))
    return (pitches or None) if kind in {"pitches", "both"} else None, rhythm if kind in {"rhythm", "both"} else None


# --- obedience


@pytest.mark.slow
@DRAWN
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.lists(measures(), min_size=4, max_size=4), seed=st.integers(0, 99))
def test_every_sketch_is_obeyed(decoding, drawn, seed):
    sketch = Sketch(*zip(*drawn, strict=True))
    for middle in fill(network(decoding), noise(2), sketch, seed):
        assert obeys(middle, sketch)


@KINDS
@pytest.mark.parametrize("temperature", [0.0, 1e-300, 0.5, 50.0])
def test_a_sketch_is_obeyed_at_every_temperature(kind, temperature):
    for decoding, top_p in (("sample", 1.0), ("sample", 0.01), ("two_stage", 1.0)):
        model = network(decoding)
        model.temperature, model.top_p = temperature, top_p
        assert all(obeys(middle, example(kind)) for middle in fill(model, noise(2), example(kind)))


def test_a_measure_can_be_sketched_alone():
    """The others are the network's own: they are not what they are in another context."""
    sketch = Sketch((None, (60, 64, 67), None, None), (None, None, RAGGED, None))
    middles = fill(network("argmax"), noise(), sketch)
    assert all(obeys(middle, sketch) for middle in middles)
    for measure in range(4):
        assert len({middle[24 * measure : 24 * measure + 24].tobytes() for middle in middles}) > 1


def test_with_both_nothing_is_left_to_choose():
    truth = np.random.default_rng(3).choice([60, 64, 67, HOLD, REST], 96).astype(np.uint8)
    for middle in fill(network(), noise(), Sketch.from_tokens(truth)):
        np.testing.assert_array_equal(middle, truth)


def test_pitches_of_a_sketched_rhythm_are_the_networks():
    """At an onset on the first step of a measure: the likeliest of all pitches, however likely a hold is."""
    model, contexts = network("argmax"), tensor(noise())
    with torch.no_grad():
        model.vae.decoder.head.bias[HOLD:] += 100
    sketch = Sketch(rhythms=(EIGHTHS,) * 4)
    with torch.no_grad():
        latents = model._encode_sketches(sketch_tensors([sketch] * len(contexts)), None)
        z = model._plan(cut(contexts), None, latents).flatten(2).flatten(0, 1)
        first = model.vae.decoder(z)[0][:, 0, :HOLD].argmax(-1)
    np.testing.assert_array_equal(fill(model, noise(), sketch).reshape(-1, 24)[:, 0], first)


@KINDS
def test_items_and_seeds_are_by_themselves(kind):
    model, contexts, sketch = network(), noise(), example(kind)
    together = fill(model, contexts, sketch, seed=4)
    np.testing.assert_array_equal(together, fill(model, contexts, sketch, seed=4))
    np.testing.assert_array_equal(together[:2], fill(model, contexts[:2], sketch, seed=4))
    mixed = [sketch, Sketch(((50,), None, None, None)), Sketch()] * 2  # neighbours do not matter
    np.testing.assert_array_equal(together[[0, 3]], fill(model, contexts, mixed, seed=4)[[0, 3]])
    others = fill(model, contexts, sketch, seed=5)
    assert all((one != other).any() for one, other in zip(together, others, strict=True))  # of `both` the third measure


# --- where pitches are placed


def memoryless() -> SketchNet:
    """A network whose probabilities depend on the tick alone, so that all measures can be counted up."""
    model = network()
    with torch.no_grad():
        model.vae.decoder.note_embedding.weight.zero_()
        model.vae.decoder.first_note.zero_()
        model.vae.decoder.head.bias[[60, 67, HOLD, REST]] += torch.tensor([5.0, 4.0, 5.0, 4.0])
    return model


def places(model: SketchNet, z: torch.Tensor, temperature: float, *, best: bool) -> dict[tuple[int, ...], float]:
    """Return the probability of all two places of the pitches 60 and 67, by counting up.

    `best`: of a pair of places the likeliest measure counts, not all together.
    """
    with torch.no_grad():
        log_p = model.vae.decoder(z)[0][0].double().log_softmax(-1).numpy() / temperature  # (24, 130)
    quiet = log_p[:, HOLD:].max(1) if best else np.logaddexp(log_p[:, HOLD], log_p[:, REST])
    pairs = list(itertools.combinations(range(24), 2))
    total = np.array([quiet.sum() - quiet[[a, b]].sum() + log_p[a, 60] + log_p[b, 67] for a, b in pairs])
    p = np.exp(total - total.max())
    return dict(zip(pairs, p / p.sum(), strict=True))


def place(model: SketchNet, z: torch.Tensor, n: int, temperature: float) -> list[tuple[int, ...]]:
    uniform = torch.from_numpy(np.random.default_rng(0).random((n, 24)))
    pitches = torch.full((n, 24), factorized.PAD)
    pitches[:, :2] = torch.tensor([60, 67])
    lengths = torch.full((n,), 2)
    with torch.no_grad():
        tokens = place_pitches(
            model.vae.decoder, z.expand(n, -1), pitches, lengths, uniform=uniform, temperature=temperature
        )
    assert (tokens.sort(1).values[:, :2] == torch.tensor([60, 67])).all()
    return [tuple(np.flatnonzero(row)) for row in (tokens < HOLD).numpy()]


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_places_are_drawn_from_the_networks_measures_with_these_pitches(temperature):
    """2,000 draws against the probabilities of all 276 pairs of places, within 5 standard errors."""
    model, z = memoryless(), torch.randn(1, 12)
    expected = places(model, z, temperature, best=False)
    drawn = place(model, z, 2000, temperature)
    for pair, p in expected.items():
        assert abs(drawn.count(pair) / 2000 - p) <= 5 * np.sqrt(p * (1 - p) / 2000) + 1e-9, pair
    assert max(expected.values()) < 0.9  # there is something to draw


def test_at_zero_the_likeliest_measure_is_taken():
    model, z = memoryless(), torch.randn(1, 12)
    expected = places(model, z, 1.0, best=True)
    assert place(model, z, 3, 0.0) == [max(expected, key=expected.__getitem__)] * 3


# --- the switches


@KINDS
@pytest.mark.parametrize("swapped", [False, True])
def test_without_the_switch_latents_alone_steer(kind, swapped):
    """By the formula: what was sketched goes through the connector, and as published takes its place behind it."""
    model, contexts, sketch = network("argmax", obey_sketches=False, swapped_latents=swapped), noise(), example(kind)
    vae, cut_up = model.vae, cut(tensor(contexts))
    with torch.no_grad():
        known = vae.encode(fix_empty(cut_up))[0]
        past, future = known[:, : MIDDLE.start], known[:, MIDDLE.stop :]
        z = model.inpainter(past, future, 4, ahead=False)
        given = torch.zeros(4, 2, dtype=torch.bool)
        values = torch.zeros(4, 2, 6)
        for measure, (pitches, rhythm) in enumerate(zip(sketch.pitches, sketch.rhythms, strict=True)):
            if pitches:
                given[measure, 0] = True
                values[measure, 0] = vae.encode_pitch(torch.tensor([pitches]), torch.tensor([len(pitches)]))[0]
            if rhythm:
                given[measure, 1] = True
                values[measure, 1] = vae.encode_rhythm(torch.tensor([rhythm]) - 1)[0]
        z = torch.where(given[..., None], values, z)
        z = model.connector(torch.cat([past, z, future], dim=1))[:, MIDDLE]
        if swapped:
            z = torch.where(given[..., None], values, z)
        expected = vae.decoder(z.flatten(2).flatten(0, 1))[1].view(len(contexts), -1)
    found = fill(model, contexts, sketch)
    np.testing.assert_array_equal(found, expected)
    assert not any(obeys(middle, sketch) for middle in found)  # a network that has learnt nothing


def test_the_switches_are_settings_and_attributes():
    model = network(obey_sketches=False, swapped_latents=True)
    assert (model.obey_sketches, model.swapped_latents) == (False, True)
    assert (network().obey_sketches, network().swapped_latents) == (True, False)
    model.obey_sketches = True
    assert all(obeys(middle, example("both")) for middle in fill(model, noise(), example("both")))


@pytest.mark.parametrize("decoding", ["argmax", "sample", "without_connector", "reference_pitch", "reference_rhythm"])
def test_without_a_sketch_of_the_user_the_switches_change_nothing(decoding):
    model, contexts = network(decoding), noise()
    found = []
    for obey, swapped in itertools.product((False, True), repeat=2):
        model.obey_sketches, model.swapped_latents = obey, swapped
        found.append(fill(model, contexts))
        if "reference" not in decoding and decoding != "without_connector":
            found.append(fill(model, contexts, Sketch()))
    assert all(np.array_equal(one, found[0]) for one in found)
