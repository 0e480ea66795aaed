"""ZETA: the inversion is exact, the edit begins and ends where it should, and the pipeline of diffusers is driven."""

from __future__ import annotations

import dataclasses
import logging
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.editing.house import ASK, audio_request

from music_evals.annotations import EditInstruction
from music_evals.benchmark.tasks.edits.work import make_editor
from music_evals.cli import main
from music_evals.errors import (
    FileTooLargeError,
    InvalidAudioError,
    InvalidInputError,
    ModelUnavailableError,
    UnsupportedEditError,
)
from music_evals.protocols import EDITORS, EditingSystem

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from safetensors.numpy import load_file as numpy_file  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from tests.editing.tiny_audioldm2 import CHANGE, SEED, named_pipeline, tiny_pipeline  # noqa: E402

from music_evals.editing.audioldm2 import SAMPLE_RATE, AudioLDM2, log_mel  # noqa: E402
from music_evals.editing.zeta import Schedule, Zeta, forward, invert  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

GOLDEN = Path(__file__).parents[1] / "golden" / "parity"
ROCK = EditInstruction(text="x", source_prompt="a rock song", before="rock", after="jazz")


def scheduler(**options: Any) -> Any:
    from diffusers import DDIMScheduler

    betas = {"beta_start": 0.0015, "beta_end": 0.0195, "beta_schedule": "scaled_linear"}
    return DDIMScheduler(**betas, clip_sample=False, set_alpha_to_one=False, **{"steps_offset": 1, **options})


def wavy(shift: float) -> Any:
    """A network without weights that depends on all that it is given."""
    return lambda latent, step: torch.tanh(latent * (1 + shift) + latent.roll(1, -1) / 2 + math.sin(step / 100))


SOURCE = torch.randn(1, 2, 8, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def inverted(steps: int = 20, seed: int = 0, **options: Any) -> tuple[Any, Schedule]:
    schedule = Schedule.of(scheduler(), steps)
    return invert(SOURCE, wavy(0.1), schedule, torch.Generator().manual_seed(seed), **options), schedule


@pytest.fixture(scope="module")
def model() -> AudioLDM2:
    return AudioLDM2(tiny_pipeline())


@pytest.mark.parametrize("start", [1, 10, 20])
def test_the_source_is_rebuilt_under_its_own_description(start: int) -> None:
    inversion, schedule = inverted()
    rebuilt = forward(inversion, wavy(0.1), schedule, start)
    assert float((rebuilt - SOURCE).abs().max()) < 1e-8


def test_another_description_changes_more_the_earlier_it_begins() -> None:
    inversion, schedule = inverted()
    assert torch.equal(forward(inversion, wavy(0.3), schedule, 0), inversion.latents[-1])
    moved = [float((forward(inversion, wavy(0.3), schedule, start) - SOURCE).abs().mean()) for start in (0, 5, 12, 20)]
    assert moved[0] < 1e-8
    assert moved == sorted(moved)
    assert moved[1] > 1e-3


def test_the_seed_changes_the_latents_and_not_what_is_rebuilt() -> None:
    (first, schedule), (second, _) = inverted(seed=0), inverted(seed=1)
    assert float((first.latents[0] - second.latents[0]).abs().mean()) > 0.1
    for inversion in (first, second):
        assert float((forward(inversion, wavy(0.1), schedule, 20) - SOURCE).abs().max()) < 1e-8


def test_a_step_is_that_of_the_scheduler() -> None:
    """The oracle: `DDIMScheduler.step` with eta 1 and the noise handed in."""
    theirs = scheduler()
    schedule = Schedule.of(theirs, 20)
    inversion, _ = inverted()
    for place in (0, 7, 19):
        latent = inversion.latents[place]
        noise = wavy(0.2)(latent, schedule.steps[place])
        stepped = theirs.step(
            noise, schedule.steps[place], latent, eta=1.0, variance_noise=inversion.noises[place]
        ).prev_sample
        left = SimpleNamespace(latents=[*[None] * place, latent], noises=inversion.noises)
        part = Schedule(*(column[: place + 1] for column in schedule))
        ours = forward(left, lambda *_, n=noise: n, part, 1)  # type: ignore[arg-type]
        assert float((ours - stepped).abs().max()) < 1e-6


def test_the_last_noise_of_the_authors_costs_exactness() -> None:
    kept, schedule = inverted()
    zeroed, _ = inverted(zero_last=True)
    off = forward(zeroed, wavy(0.1), schedule, 20) - SOURCE
    alpha, after = schedule.alphas[-1], schedule.alphas_after[-1]
    sigma = math.sqrt((1 - after) / (1 - alpha) * (1 - alpha / after))
    assert float((off + sigma * kept.noises[-1]).abs().max()) < 1e-8
    assert float(off.abs().max()) > 1e-3


def test_noised_latents_are_independent_draws() -> None:
    schedule = Schedule.of(scheduler(), 20)
    source = torch.zeros(1, 1, 100, 100, dtype=torch.float64)
    inversion = invert(source, lambda latent, _: latent * 0, schedule, torch.Generator().manual_seed(0))
    first, second = (latent.flatten() for latent in inversion.latents[:2])
    assert float(first.std()) == pytest.approx(math.sqrt(1 - schedule.alphas[0]), rel=0.03)
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 0.05


def test_a_recording_is_edited_and_repeatable(model: AudioLDM2) -> None:
    system = Zeta(model, steps=2, start=1)
    assert isinstance(system, EditingSystem)
    requests = [
        audio_request(ROCK, seconds=0.5),
        audio_request(dataclasses.replace(ROCK, after="calm"), seconds=0.6),
        audio_request(ROCK, seconds=0.5, seed=1),
    ]
    batch = system.edit(requests)
    for request, result in zip(requests, batch, strict=True):
        assert result.audio is not None
        assert result.audio.shape == request.audio.shape
        (alone,) = Zeta(model, steps=2, start=1).edit([request])
        assert np.array_equal(alone.audio, result.audio)
    assert not np.array_equal(batch[0].audio, batch[2].audio), "another seed"
    assert batch[0].log["sample_rate"] == [SAMPLE_RATE, 22050]


@pytest.mark.slow
def test_start_0_is_the_way_through_the_model_alone(model: AudioLDM2) -> None:
    (jazz,), (calm,) = (
        Zeta(model, steps=2, start=0).edit([audio_request(dataclasses.replace(ROCK, after=word), seconds=0.5)])
        for word in ("jazz", "calm")
    )
    assert np.array_equal(jazz.audio, calm.audio)
    (moved,) = Zeta(model, steps=2, start=2).edit([audio_request(ROCK, seconds=0.5)])
    assert not np.array_equal(jazz.audio, moved.audio)


@pytest.mark.slow
def test_weights_are_loaded_from_a_folder(model: AudioLDM2, tmp_path: Path) -> None:
    model.pipeline.save_pretrained(tmp_path / "tiny")
    loaded = make_editor("zeta", {"steps": 2, "start": 1}, {"source": str(tmp_path / "tiny")})
    (theirs,), (ours,) = (
        system.edit([audio_request(ROCK, seconds=0.5)]) for system in (loaded, Zeta(model, steps=2, start=1))
    )
    assert np.abs(theirs.audio - ours.audio).max() < 1e-5
    assert theirs.provenance["weights"][0]["id"] == str(tmp_path / "tiny")


@pytest.mark.slow
def test_the_verb_edits_with_weights(model: AudioLDM2, tmp_path: Path) -> None:
    model.pipeline.save_pretrained(tmp_path / "tiny")
    source = audio_request(ROCK, seconds=0.5)
    assert source.audio is not None
    soundfile.write(tmp_path / "song.wav", source.audio.T, source.sample_rate)
    asked = ["--source-prompt", "a rock song", "--before", "rock", "--after", "jazz"]
    how = ["--system", "zeta", "--weights", str(tmp_path / "tiny"), "--set", "steps=2", "--set", "start=1"]
    assert main(["edit", str(tmp_path / "song.wav"), *how, *asked, "--out", str(tmp_path / "out")]) == 0
    edited, rate = soundfile.read(tmp_path / "out" / "edits" / "song.flac")
    assert (len(edited), rate) == (source.audio.shape[1], source.sample_rate)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match=r"audioldm2-music.*CC-BY-NC-SA"):
        make_editor("zeta", {}, {})
    with pytest.raises(InvalidInputError, match="`revision`"):
        make_editor("zeta", {}, {"source": "cvssp/audioldm2-music"})
    with pytest.raises(ModelUnavailableError, match="CC-BY-NC-SA"):
        make_editor("zeta", {}, {"source": str(tmp_path)})
    with pytest.raises(InvalidInputError, match="needs no weights"):
        make_editor("identity", {}, {"source": str(tmp_path)})


def test_what_it_cannot_edit_is_refused(model: AudioLDM2) -> None:
    system = Zeta(model, steps=2, start=1)
    with pytest.raises(UnsupportedEditError, match="`target_prompt`"):
        system.edit([audio_request(ASK, seconds=1)])
    with pytest.raises(InvalidAudioError, match="one channel"):
        system.edit([audio_request(ROCK, seconds=1, channels=2)])
    with pytest.raises(FileTooLargeError, match="30 s"):
        system.edit([audio_request(ROCK, audio=np.full((1, 31 * 1000), 0.1, np.float32), sample_rate=1000)])
    with pytest.raises(InvalidInputError, match="`start`"):
        Zeta(model, steps=5, start=6)


@pytest.mark.parametrize("steps", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_it_is_that_of_the_authors(steps: int) -> None:
    """What their code gave (benchmarks/parity): noises and latents of every tenth of 50 steps, and edits."""
    golden, model = load_file(GOLDEN / "zeta.safetensors"), AudioLDM2(named_pipeline())
    empty, source, target = (model.condition(text) for text in ("", CHANGE.source_prompt, CHANGE.target_caption()))
    system = Zeta(model, steps=steps, start=steps // 2, zero_last=True)
    told, asked = system._guided(empty, source, 3.0), system._guided(empty, target, 12.0)
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        found = invert(golden["latent"], told, system._schedule, generator, zero_last=True)
        edited = forward(found, asked, system._schedule, steps // 2)
    compared = {f"edited latent, {steps} steps": edited}
    if steps == 50:
        compared["noised latents, 50 steps"] = torch.cat(list(found.latents)[::-10])
        compared["noises, 50 steps"] = torch.cat(list(found.noises)[::-10])
    for name, ours in compared.items():
        assert float((ours - golden[name]).abs().max()) < 1e-4 * float(golden[name].abs().max()), name


def test_the_mel_spectrogram_is_that_of_the_authors_half_a_hop_later() -> None:
    golden = numpy_file(GOLDEN / "audioldm2.safetensors")
    theirs, recording = golden["log-mel, recording 5 ms later"], golden["recording"]
    later = log_mel(np.concatenate([np.zeros(80, np.float32), recording]))[4:96]
    assert np.abs(later - theirs).max() < 1e-4 * np.abs(theirs).max()
    assert np.abs(log_mel(recording)[4:96] - theirs).max() > 0.1, "5 ms are not nothing"


def test_the_mel_spectrogram_has_its_tone_in_the_right_band() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(SAMPLE_RATE) / SAMPLE_RATE).astype(np.float32)
    mel = log_mel(tone)
    assert mel.shape == (100, 64)
    # 64 bands over 0..8000 Hz on Slaney's scale: linear below 1000 Hz (3 mel each 200 Hz), so 1000 Hz is mel 15
    highest = 15 + 27 * math.log(8) / math.log(6.4)
    expected = 15 / (highest / 65) - 1
    assert abs(np.median(mel.argmax(axis=1)) - expected) <= 1
    assert np.allclose(log_mel(tone * 0.1), mel, atol=1e-3), "its peak is scaled"
    assert "zeta" in EDITORS


@pytest.mark.parametrize("derived", ["as saved", "more", "fewer"])
def test_a_saved_pipeline_gives_its_outputs(derived: str, model: AudioLDM2, tmp_path: Path) -> None:
    """Files of other versions of transformers have more, or fewer, of the buffers that follow from sizes."""
    theirs = model.pipeline
    theirs.save_pretrained(tmp_path)
    if derived != "as saved":
        buffers = ("position_ids", "token_type_ids", "relative_position_index")
        more = {"transformer.h.0.attn.masked_bias": torch.tensor(-1e4)}
        part = "language_model" if derived == "more" else "text_encoder"
        path = tmp_path / part / "model.safetensors"
        tensors = load_file(path)
        fewer = {key: value for key, value in tensors.items() if not key.endswith(buffers)}
        save_file(fewer if derived == "fewer" else {**tensors, **more}, path, metadata={"format": "pt"})
    printed: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: printed.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("diffusers.pipelines.pipeline_loading_utils")
    log.addHandler(handler)
    try:
        loaded = AudioLDM2.from_pretrained(tmp_path)
    finally:
        log.removeHandler(handler)
    assert not [text for text in printed if "(conv_in)" in text], "no tree of modules is printed"
    latent = torch.randn(1, 4, 8, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        words, mask, generated = theirs.encode_prompt("a rock song", "cpu", 1, do_classifier_free_guidance=False)
        told = loaded.condition("a rock song")
        noise = theirs.unet(
            latent, 500, encoder_hidden_states=generated, encoder_hidden_states_1=words, encoder_attention_mask_1=mask
        ).sample
        spectrum = theirs.vae.decode(latent / theirs.vae.config.scaling_factor).sample
        pairs = [
            (told.words, words),
            (told.generated, generated),
            (loaded.noise(latent, 500, told), noise),
            (torch.from_numpy(loaded.decode(latent)), theirs.mel_spectrogram_to_waveform(spectrum)[0]),
        ]
    for ours, expected in pairs:
        assert torch.equal(ours, expected)


def test_pickled_parts_are_refused_with_the_command_that_converts_them(model: AudioLDM2, tmp_path: Path) -> None:
    model.pipeline.save_pretrained(tmp_path)
    (tmp_path / "unet" / "diffusion_pytorch_model.safetensors").unlink()
    torch.save(model.pipeline.unet.state_dict(), tmp_path / "unet" / "diffusion_pytorch_model.bin")
    for system in ("zeta", "musicmagus"):
        with pytest.raises(ModelUnavailableError, match="music-evals convert"):
            make_editor(system, {}, {"source": str(tmp_path)})


@pytest.mark.parametrize("part", ["unet", "vae", "text_encoder_2", "language_model", "vocoder", "projection_model"])
def test_every_part_is_loaded_strictly(model: AudioLDM2, part: str, tmp_path: Path) -> None:
    model.pipeline.save_pretrained(tmp_path)
    (path,) = (tmp_path / part).glob("*.safetensors")
    tensors = load_file(path)
    name = next(name for name in sorted(tensors) if tensors[name].ndim >= 2)
    for wrong in ({key: value for key, value in tensors.items() if key != name}, {**tensors, "x": torch.ones(1)}):
        save_file(wrong, path, metadata={"format": "pt"})
        with pytest.raises(ModelUnavailableError, match=f"{part}: the weights are not those of"):
            AudioLDM2.from_pretrained(tmp_path)


def test_a_language_model_without_its_head_is_the_published_one(model: AudioLDM2, tmp_path: Path) -> None:
    """The repositories hold a `GPT2Model`: the head is tied to the embedding and is not missed."""
    model.pipeline.save_pretrained(tmp_path)
    model.pipeline.language_model.transformer.save_pretrained(tmp_path / "language_model")
    loaded = AudioLDM2.from_pretrained(tmp_path)
    theirs, ours = (one.condition("a rock song").generated for one in (loaded, model))
    assert torch.allclose(theirs, ours, atol=1e-6)


@pytest.mark.slow
def test_edits_of_one_source_share_its_inversion(model: AudioLDM2, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    plain = AudioLDM2.noise

    def counted(self: AudioLDM2, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain(self, *given)

    monkeypatch.setattr(AudioLDM2, "noise", counted)
    steps, start = 3, 1
    system = Zeta(model, steps=steps, start=start)
    other = dataclasses.replace(ROCK, source_prompt="a calm song", before="calm")
    first = [audio_request(dataclasses.replace(ROCK, after=word), seconds=0.5) for word in ("jazz", "calm", "piano")]
    second = [audio_request(dataclasses.replace(other, after=word), seconds=0.6) for word in ("jazz", "rock")]
    system.edit([*first, *second])
    # with guidance two calls a step: once a source for the inversion, and once an edit
    assert calls == 2 * (2 * steps + 5 * start)
    system.edit(second[:1])  # the inversion of the last source is kept from one call to the next
    assert calls == 2 * (2 * steps + 6 * start)


@pytest.mark.slow
def test_the_network_may_compute_in_another_type(model: AudioLDM2, tmp_path: Path) -> None:
    model.pipeline.save_pretrained(tmp_path)
    with pytest.raises(InvalidInputError, match="needs a GPU"):
        make_editor("zeta", {"precision": "bf16"}, {"source": str(tmp_path)})
    halved = AudioLDM2.from_pretrained(tmp_path)
    halved.pipeline.unet.to(torch.bfloat16)
    (coarse,), (fine,) = (
        Zeta(one, steps=2, start=1).edit([audio_request(ROCK, seconds=0.5)]) for one in (halved, model)
    )
    assert coarse.audio.dtype == np.float32
    assert 0 < np.abs(coarse.audio - fine.audio).max() < 0.2
