"""MusicMagus: attention in sight changes nothing, the maps pull, the words move, the inversion comes back."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.editing.house import ASK, audio_request

from music_evals.annotations import EditInstruction
from music_evals.benchmark.tasks.edits.work import make_editor
from music_evals.errors import (
    FileTooLargeError,
    InvalidAudioError,
    InvalidInputError,
    ModelUnavailableError,
    UnknownNameError,
    UnsupportedEditError,
)
from music_evals.protocols import EditingSystem

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from safetensors.torch import load_file  # noqa: E402
from tests.editing.test_zeta import scheduler  # noqa: E402
from tests.editing.tiny_audioldm2 import (  # noqa: E402
    CHANGE,
    CONFIG,
    NEGATIVE,
    SEED,
    SENTENCES,
    edit_from,
    named_pipeline,
    tiny_pipeline,
)

from music_evals.editing import audioldm2  # noqa: E402
from music_evals.editing.audioldm2 import AudioLDM2, Condition  # noqa: E402
from music_evals.editing.musicmagus import SENTENCES as TABLE  # noqa: E402
from music_evals.editing.musicmagus import (  # noqa: E402
    VARIANTS,
    MusicMagus,
    _AttentionMaps,
    ddim_step,
    direction,
    invert_ddim,
    regularised,
    sentences_about,
)
from music_evals.editing.system import Seeds  # noqa: E402
from music_evals.editing.zeta import Schedule  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

GOLDEN = Path(__file__).parents[1] / "golden" / "parity"
ROCK = EditInstruction(text="x", source_prompt="a rock song", before="rock", after="jazz")
WORDS = {"rock": ["rock song"], "jazz": ["jazz song"], "calm": ["calm song"]}
QUICK: dict[str, Any] = {"steps": 2, "sentences": WORDS, "regulariser_rounds": 1}


@pytest.fixture(scope="module")
def model() -> AudioLDM2:
    return AudioLDM2(tiny_pipeline())


@pytest.fixture(scope="module")
def start() -> Any:
    return torch.randn(1, 4, 8, 16, generator=torch.Generator().manual_seed(0))


def test_processors_are_equal_to_the_default_ones(model: AudioLDM2, start: Any) -> None:
    unet = model.pipeline.unet
    before = dict(unet.attn_processors)
    told = model.condition("a rock song with piano")
    masked = told._replace(mask=torch.tensor([[1, 1, 1, 0, *[1] * (told.mask.shape[1] - 4)]]))
    with torch.no_grad():
        for condition in (told, masked):
            plain = model.noise(start, 500, condition)
            with _AttentionMaps(unet) as maps, maps.collected() as found:
                ours = model.noise(start, 500, condition)
            assert float((ours - plain).abs().max()) < 1e-6
            assert all(torch.allclose(one.sum(-1), torch.ones_like(one.sum(-1))) for one in found)
            hidden = [one[..., 3] for one in found if one.shape[-1] == told.mask.shape[1]]
            assert all((one.max() == 0) == (condition is masked) for one in hidden)
    assert unet.attn_processors == before, "they are put back"
    # a layer for each of the two streams of text in each stage
    layers = [m for m in unet.modules() if getattr(m, "is_cross_attention", False)]
    assert len(found) == len(layers) > 0
    assert {one.shape[-1] for one in found} == {told.generated.shape[1], told.words.shape[1]}


def test_without_a_pull_and_a_direction_the_edit_is_the_source(model: AudioLDM2, start: Any) -> None:
    empty, source = model.condition("low quality"), model.condition("a rock song")
    with torch.no_grad():
        first, second = MusicMagus(model, **QUICK, pull=0)._run(start, (empty, source), (empty, source))
        assert torch.equal(first, second)
        schedule, plain = Schedule.of(model.pipeline.scheduler, QUICK["steps"]), start
        for step, alpha, after in zip(*schedule, strict=True):
            free, told = (model.noise(plain, step, one) for one in (empty, source))
            plain = ddim_step(plain, free + 3.5 * (told - free), alpha, after)
    assert torch.allclose(plain, first, atol=1e-5 * float(plain.abs().max()))


def test_the_pull_brings_the_maps_nearer(model: AudioLDM2, start: Any) -> None:
    source, other = model.condition("a rock song"), model.condition("calm jazz piano")
    other = Condition(other.generated, other.words[:, : source.words.shape[1]], source.mask)

    def distance(latent: Any) -> Any:
        with _AttentionMaps(model.pipeline.unet) as maps, maps.compared(wanted) as far:
            model.noise(latent, 900, other)
        return sum(far)

    with torch.no_grad(), _AttentionMaps(model.pipeline.unet) as maps, maps.collected() as wanted:
        model.noise(start, 900, source)
    moving = start.clone().requires_grad_()
    far = distance(moving)
    (gradient,) = torch.autograd.grad(far, moving)
    assert float(gradient.abs().max()) > 0
    with torch.no_grad():
        assert float(distance(start - 0.04 / float(gradient.abs().max()) * gradient)) < float(far)
        # by hand: squares summed over a map, mean over heads, half of it, summed over layers
        with _AttentionMaps(model.pipeline.unet) as maps, maps.collected() as found:
            model.noise(start, 900, other)
    by_hand = sum(((a - b) ** 2).sum() / (2 * a.shape[1]) for a, b in zip(found, wanted, strict=True))
    assert float(by_hand) == pytest.approx(float(far), rel=1e-5)


@pytest.fixture(scope="module")
def authors() -> tuple[AudioLDM2, dict[str, Any]]:
    """The model that the authors' code ran with, and what it gave (benchmarks/parity)."""
    return AudioLDM2(named_pipeline()), load_file(GOLDEN / "musicmagus.safetensors")


def official(model: AudioLDM2, **options: Any) -> MusicMagus:
    return MusicMagus(model, steps=5, negative_prompt=NEGATIVE, sentences=SENTENCES, variant="official", **options)


def distance(ours: Any, theirs: Any) -> float:
    """Return the largest difference as a part of the largest value of theirs."""
    return float((ours - theirs).abs().max() / theirs.abs().max())


def test_the_regulariser_is_that_of_the_authors(authors: Any) -> None:
    _, golden = authors
    white = torch.randn(1, 4, 32, 16, generator=torch.Generator().manual_seed(SEED))
    assert torch.equal(golden["noise"], white + white.roll(1, 2) + 0.3)
    ours = {
        variant: regularised(golden["noise"], 5, torch.Generator().manual_seed(SEED), variant) for variant in VARIANTS
    }
    assert distance(ours["official"], golden["regularised noise"]) < 1e-4
    assert distance(ours["corrected"], golden["regularised noise"]) > 0.1


def test_texts_and_direction_are_those_of_the_authors(authors: Any) -> None:
    model, golden = authors
    prompt = CHANGE.source_prompt
    with torch.no_grad():
        moved = official(model)._direction(CHANGE, model.condition(prompt))
        assert distance(moved, golden["word direction"]) < 1e-4
        for told, name in ((model.condition(prompt), "prompt"), (model.condition(NEGATIVE, prompt), "negative prompt")):
            assert distance(told.generated[0], golden[f"generated vectors of the {name}"]) < 1e-4


@pytest.mark.slow
def test_the_inversion_is_that_of_the_authors(authors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, golden = authors
    monkeypatch.setattr(audioldm2, "log_mel", lambda _: golden["mel"].numpy())
    with torch.no_grad():
        inverted = official(model)._start(audio_request(CHANGE), Seeds(0, SEED), model.condition(CHANGE.source_prompt))
    assert distance(inverted, golden["inverted noise"]) < 1e-3


@pytest.mark.slow
def test_both_halves_move_as_those_of_the_authors(authors: Any) -> None:
    model, golden = authors
    source, edit, gradients = edit_from(official(model), golden["inverted noise"])
    assert len(gradients) == 2 * 5, "one for the latent of each pass and step"
    assert distance(source, golden["latent of the source"]) < 1e-3
    assert distance(edit, golden["edited latent"]) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 1])
def test_without_the_pull_of_one_latent_it_is_another_edit(
    authors: Any, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, golden = authors
    pulled, calls = MusicMagus._pulled, iter(range(2 * 5))

    def without(self: Any, latent: Any, *given: Any) -> Any:
        return latent if next(calls) % 2 == left else pulled(self, latent, *given)

    monkeypatch.setattr(MusicMagus, "_pulled", without)
    assert distance(edit_from(official(model), golden["inverted noise"])[1], golden["edited latent"]) > 0.01


@pytest.mark.slow
def test_the_default_moves_one_latent_and_goes_on_with_it(model: AudioLDM2, start: Any) -> None:
    pair = (model.condition("low quality"), model.condition("a rock song"))
    edit = (pair[0], model.condition("a jazz song"))
    for variant, n_moved in (("corrected", 1), ("official", 2)):
        system = MusicMagus(model, **{**QUICK, "steps": 1}, variant=variant)
        moved: list[Any] = []
        pulled = system._pulled

        def seen(latent: Any, *given: Any) -> Any:
            moved.append(pulled(latent, *given))  # noqa: B023
            return moved[-1]  # noqa: B023

        with pytest.MonkeyPatch.context() as patch, torch.no_grad():
            patch.setattr(system, "_pulled", seen)
            _, found = system._run(start, pair, edit)
            halves = (moved[0], moved[-1])
            free, asked = (
                model.noise(half, system._schedule.steps[0], told) for half, told in zip(halves, edit, strict=True)
            )
            alphas = system._schedule.alphas[0], system._schedule.alphas_after[0]
            expected = ddim_step(halves[0], free + 3.5 * (asked - free), *alphas)
        assert len(moved) == n_moved
        assert distance(found, expected) < 1e-5
        assert system.network_calls(1.0) == (8 if n_moved == 1 else 11)


def test_the_direction_of_a_word_pair(model: AudioLDM2) -> None:
    with torch.no_grad():
        encode = model.word_vectors
        rock, jazz = encode("rock song"), encode("jazz song")
        to_jazz = direction(encode, ["rock song"], ["jazz song"], 6)
        assert to_jazz.shape == (6, 16)
        assert torch.allclose(rock + to_jazz[: len(rock)], jazz, atol=1e-6)
        assert not to_jazz[len(rock) :].any()
        assert torch.equal(to_jazz, -direction(encode, ["jazz song"], ["rock song"], 6))
        assert not direction(encode, ["rock song"], ["rock song"], 6).any()
        mean = direction(encode, ["rock song"], ["jazz song", "calm song"], 6)
        to_calm = direction(encode, ["rock song"], ["calm song"], 6)
        assert torch.allclose(mean, (to_jazz + to_calm) / 2, atol=1e-6)
        # a sentence that is shorter does not count where it has no word
        uneven = direction(encode, ["song"], ["jazz song", "a calm jazz song"], 6)
        assert torch.allclose(uneven[4], encode("a calm jazz song")[4], atol=1e-6)
        assert torch.equal(direction(encode, ["rock song"], ["jazz song"], 2), to_jazz[:2])


def test_the_table_has_24_sentences_with_the_word() -> None:
    assert len(set(TABLE)) == 24
    assert all(" bossa nova " in f" {sentence} " for sentence in sentences_about("bossa nova"))


def round_trip(steps: int, deviation: float) -> float:
    """Return the error of a round trip, where the noise is known: sqrt(1 - a) x / (a s^2 + 1 - a) for Gaussian data."""
    schedule = Schedule.of(scheduler(), steps)
    alpha_at = dict(zip(schedule.steps, schedule.alphas, strict=True))

    def noise(latent: Any, step: Any) -> Any:
        alpha = alpha_at[step]
        return math.sqrt(1 - alpha) * latent / (alpha * deviation**2 + 1 - alpha)

    source = deviation * torch.randn(1000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    latent = invert_ddim(source, noise, schedule)
    assert float(latent.std()) == pytest.approx(1, abs=0.15)
    for step, alpha, after in zip(*schedule, strict=True):
        latent = ddim_step(latent, noise(latent, step), alpha, after)
    return float((latent - source).norm() / source.norm())


@pytest.mark.parametrize("deviation", [0.5, 2.0])
def test_a_ddim_round_trip_with_an_analytic_denoiser(deviation: float) -> None:
    errors = [round_trip(steps, deviation) for steps in (20, 100, 200, 500)]
    assert errors == sorted(errors, reverse=True)
    assert errors[1] < 0.025
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.1), "of the first order in the size of a step"
    assert 0 < errors[3] < 0.006


def test_steps_are_those_of_the_schedulers() -> None:
    """The oracles: `DDIMScheduler` and `DDIMInverseScheduler` of diffusers."""
    from diffusers import DDIMInverseScheduler

    theirs = scheduler()
    inverse = DDIMInverseScheduler.from_config(theirs.config)
    schedule = Schedule.of(theirs, 20)
    inverse.set_timesteps(20)
    source = torch.randn(1, 2, 8, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def noise(latent: Any, step: Any) -> Any:
        return torch.tanh(latent + int(step) / 500)

    latent = source
    for step in inverse.timesteps:
        latent = inverse.step(noise(latent, step), step, latent).prev_sample
    ours = invert_ddim(source, noise, schedule)
    assert [int(step) for step in inverse.timesteps] == list(reversed(schedule.steps))
    assert float((ours - latent).abs().max()) < 1e-5
    place = 7
    stepped = theirs.step(noise(latent, schedule.steps[place]), schedule.steps[place], latent).prev_sample
    mine = ddim_step(latent, noise(latent, schedule.steps[place]), schedule.alphas[place], schedule.alphas_after[place])
    assert float((mine - stepped).abs().max()) < 1e-5


def test_regularised_noise_is_more_like_noise() -> None:
    generator = torch.Generator().manual_seed(0)
    white = torch.randn(1, 4, 32, 16, generator=generator)
    smooth = white + white.roll(1, 2) + white.roll(2, 2) + 0.5

    def correlation(noise: Any) -> float:
        return float((noise * noise.roll(1, 2)).mean().abs())

    repaired = regularised(smooth, 5, generator)
    assert correlation(repaired) < correlation(smooth)
    assert abs(float(repaired.var()) - 1) < abs(float(smooth.var()) - 1)
    assert torch.equal(regularised(smooth, 0, generator), smooth)


@pytest.mark.slow
@pytest.mark.parametrize("noise_seed", [None, 42])
def test_a_recording_is_edited_and_repeatable(model: AudioLDM2, noise_seed: int | None) -> None:
    system = MusicMagus(model, **QUICK, noise_seed=noise_seed)
    assert isinstance(system, EditingSystem)
    assert system.info.deterministic == (noise_seed is not None)
    requests = [
        audio_request(ROCK, seconds=0.5),
        audio_request(dataclasses.replace(ROCK, after="calm"), seconds=0.6),
        audio_request(ROCK, seconds=0.5, seed=1),
    ]
    batch = system.edit(requests)
    for request, result in zip(requests, batch, strict=True):
        assert result.audio is not None
        assert result.audio.shape == request.audio.shape
        (alone,) = MusicMagus(model, **QUICK, noise_seed=noise_seed).edit([request])
        assert np.array_equal(alone.audio, result.audio)
    assert np.array_equal(batch[0].audio, batch[2].audio) == (noise_seed is not None)


@pytest.mark.slow
def test_the_inversion_is_shared_and_texts_are_encoded_once(model: AudioLDM2, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = AudioLDM2(model.pipeline)
    calls, texts = [], []
    noise, encode = fresh.noise, fresh.pipeline.encode_prompt
    monkeypatch.setattr(fresh, "noise", lambda *given: calls.append(1) or noise(*given))
    monkeypatch.setattr(fresh.pipeline, "encode_prompt", lambda text, *rest: texts.append(text) or encode(text, *rest))
    system = MusicMagus(fresh, **QUICK)
    system.edit([audio_request(ROCK, seconds=0.5)])
    assert len(calls) == 2 + 2 * (2 + 1 + 2)
    system.edit([audio_request(dataclasses.replace(ROCK, after="calm"), seconds=0.5), audio_request(ROCK, seconds=0.5)])
    assert len(calls) == 2 + 2 * 3 * 5
    assert sorted(texts) == ["a calm song", "a jazz song", "a rock song", "low quality"]


@pytest.mark.slow
def test_no_more_than_the_maps_of_one_pass_are_kept(model: AudioLDM2, monkeypatch: pytest.MonkeyPatch) -> None:
    import weakref

    seen: list[Any] = []
    peaks: list[int] = []
    see = _AttentionMaps.see

    def watched(self: _AttentionMaps, weights: Any) -> None:
        see(self, weights)
        seen.append(weakref.ref(weights))
        peaks.append(sum(one() is not None for one in seen))

    monkeypatch.setattr(_AttentionMaps, "see", watched)
    MusicMagus(model, **QUICK, noise_seed=0).edit([audio_request(ROCK, seconds=0.5)])
    n_layers = sum(getattr(m, "is_cross_attention", False) for m in model.pipeline.unet.modules())
    assert len(seen) == 2 * 5 * n_layers
    assert max(peaks) <= 3 * n_layers


@pytest.mark.slow
def test_the_words_decide(model: AudioLDM2) -> None:
    jazz, calm = (
        MusicMagus(model, **QUICK).edit([audio_request(dataclasses.replace(ROCK, after=word), seconds=0.5)])[0].audio
        for word in ("jazz", "calm")
    )
    assert not np.array_equal(jazz, calm)
    (by_table,) = MusicMagus(model, steps=2, regulariser_rounds=1).edit([audio_request(ROCK, seconds=0.5)])
    assert not np.array_equal(jazz, by_table.audio)


@pytest.mark.slow
def test_weights_are_loaded_from_a_folder(model: AudioLDM2, tmp_path: Path) -> None:
    model.pipeline.save_pretrained(tmp_path / "tiny")
    loaded = make_editor("musicmagus", QUICK, {"source": str(tmp_path / "tiny")})
    (theirs,), (ours,) = (
        system.edit([audio_request(ROCK, seconds=0.5)]) for system in (loaded, MusicMagus(model, **QUICK))
    )
    assert theirs.audio is not None
    assert ours.audio is not None
    assert np.abs(theirs.audio - ours.audio).max() < 1e-4
    assert theirs.provenance["weights"][0]["id"] == str(tmp_path / "tiny")


def test_what_it_cannot_edit_is_refused(model: AudioLDM2) -> None:
    system = MusicMagus(model, **QUICK)
    for instruction, why in (
        (ASK, "`source_prompt`.*`before` and `after`"),
        (dataclasses.replace(ROCK, source_prompt="a folk song", target_prompt="a jazz song"), "does not hold 'rock'"),
    ):
        with pytest.raises(UnsupportedEditError, match=why):
            system.edit([audio_request(instruction, seconds=0.5)])
    with pytest.raises(InvalidAudioError, match="one channel"):
        system.edit([audio_request(ROCK, seconds=0.5, channels=2)])
    with pytest.raises(InvalidAudioError, match="silent"):
        system.edit([audio_request(ROCK, audio=np.zeros((1, 22050), np.float32))])
    with pytest.raises(FileTooLargeError, match="30 s"):
        system.edit([audio_request(ROCK, audio=np.full((1, 31 * 1000), 0.1, np.float32), sample_rate=1000)])
    with pytest.raises(ModelUnavailableError, match=r"cvssp/audioldm2.*CC-BY-NC-SA"):
        make_editor("musicmagus", {}, {})
    with pytest.raises(InvalidInputError, match="`revision`"):
        make_editor("musicmagus", {}, {"source": "cvssp/audioldm2"})
    with pytest.raises(InvalidInputError, match="`pull`"):
        MusicMagus(model, pull=-1)
    with pytest.raises(UnknownNameError, match="variant"):
        MusicMagus(model, variant="paper")


def test_the_window_has_the_tiny_model() -> None:
    window = CONFIG.parents[1] / "musicmagus" / "config.json"
    config = json.loads(window.read_text(encoding="utf-8"))
    assert config == {"model_type": "musicmagus", "parts": json.loads(CONFIG.read_text(encoding="utf-8"))["parts"]}


@pytest.mark.skipif(not os.environ.get("RUN_HUB_TESTS"), reason="RUN_HUB_TESTS=1 fetches the real weights")
def test_the_real_weights() -> None:
    from huggingface_hub import model_info

    commit = model_info("cvssp/audioldm2").sha
    system = MusicMagus.from_pretrained("cvssp/audioldm2", revision=commit, steps=2)
    (result,) = system.edit([audio_request(ROCK)])
    assert result.audio is not None
    assert np.isfinite(result.audio).all()
