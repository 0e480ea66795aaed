"""Memory by formula: weights are counted, and what a system works with lies above what is counted while it works."""

from __future__ import annotations

from typing import Any

import pytest

from music_evals.editing.memory import audioldm2_bytes, codec_bytes, musicgen_bytes, weight_bytes

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")
from tests.editing.live_bytes import LiveBytes  # noqa: E402
from tests.editing.tiny_audioldm2 import tiny_pipeline  # noqa: E402
from tests.editing.tiny_musicgen import tiny_musicgen  # noqa: E402

from music_evals.editing.audioldm2 import AudioLDM2  # noqa: E402
from music_evals.editing.musicgen import MusicGen  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def model() -> AudioLDM2:
    return AudioLDM2(tiny_pipeline())


def test_weights_are_counted() -> None:
    layer = torch.nn.Linear(10, 3)
    assert weight_bytes(layer, "no module") == 33 * 4
    assert weight_bytes(layer.half()) == 33 * 2
    norm = torch.nn.BatchNorm1d(4)  # weight, bias, mean, variance, and a counter of 8 bytes
    assert weight_bytes(norm) == 4 * 4 * 4 + 8


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2.56, 10.24])
@pytest.mark.parametrize("gradient", [False, True])
def test_audioldm2_takes_less_than_planned_and_not_much_less(model: AudioLDM2, seconds: float, gradient: bool) -> None:
    pipeline, frames = model.pipeline, round(100 * seconds)
    latent = torch.randn(1, 4, frames // 2, 32).requires_grad_(gradient)
    with torch.no_grad():
        condition = model.condition("a rock song")
    with torch.set_grad_enabled(gradient), LiveBytes() as unet:
        model.noise(latent, 10, condition)
    with torch.no_grad(), LiveBytes() as decoder:
        mel = pipeline.vae.decode(latent.detach()).sample
    with torch.no_grad(), LiveBytes() as vocoder:
        pipeline.mel_spectrogram_to_waveform(mel)
    widest = max(unet.peak, decoder.peak, vocoder.peak)
    planned = audioldm2_bytes(pipeline, seconds, n_kept=0, gradient=gradient)
    assert widest <= planned <= 4 * widest
    kept = audioldm2_bytes(pipeline, seconds, n_kept=10, gradient=gradient) - planned
    assert 10 * latent.numel() * 4 <= kept <= 10 * latent.numel() * 4 * 1.02


@pytest.mark.parametrize("n_frames", [50, 200])
def test_a_codec_takes_less_than_planned_and_not_much_less(n_frames: int) -> None:
    codec = tiny_musicgen("musicgen").model.audio_encoder
    codes = torch.zeros(1, 1, 4, n_frames, dtype=torch.long)
    with torch.no_grad(), LiveBytes() as counted:
        codec.decode(codes, [None])
    assert counted.peak <= codec_bytes(codec.config, n_frames / 50) <= 1.5 * counted.peak


def test_keys_and_values_of_musicgen_are_those_of_the_formula() -> None:
    """The oracle: the cache that transformers fills, of a text without the words that the formula leaves room for."""
    made = tiny_musicgen("musicgen_melody")
    caches: list[Any] = []
    decoder = made.model.decoder.model.decoder
    hook = decoder.register_forward_pre_hook(lambda *call: caches.append(call[2]["past_key_values"]), with_kwargs=True)
    with torch.no_grad():
        made.generate("a song", 1.0, 0, {"guidance": 3.0, "top_k": 250, "temperature": 1.0})
    hook.remove()
    cache = caches[-1].self_attention_cache
    kept = sum(part.numel() * 4 for layer in cache.layers for part in (layer.keys, layer.values))
    positions = cache.get_seq_length()
    assert positions == 235 + made.tokenizer("a song", return_tensors="pt").input_ids.shape[1] + 50 + 3
    config = made.model.config.decoder
    assert kept == 2 * 2 * config.num_hidden_layers * config.hidden_size * positions * 4
    made.model.config.audio_encoder.num_filters = 0  # the codec aside
    planned = musicgen_bytes(made.model, 1.0, 235)
    assert kept <= planned <= 2 * kept


def test_a_longer_recording_takes_more(model: AudioLDM2) -> None:
    system = MusicGen(tiny_musicgen("musicgen"))
    short, long = system.memory(1.0), system.memory(30.0)
    assert short[0] == long[0] == weight_bytes(system._model.model)
    assert long[1] > 20 * short[1]
    shorter, longer = (audioldm2_bytes(model.pipeline, seconds, n_kept=401) for seconds in (3.0, 30.0))
    assert longer == pytest.approx(10 * shorter, rel=0.01)
