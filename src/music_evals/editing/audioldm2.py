"""AudioLDM 2 (Liu et al., 2023) as editing systems need it: texts, mel spectrograms, latents, noise, sound, samples.

All of it stands on the classes of diffusers and transformers. The repositories on the Hub name a `GPT2Model`, with
which diffusers fails under transformers 5; the language model is therefore loaded as `GPT2LMHeadModel`, which has its
weights.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import encode_flac
from music_evals.editing.conversion import check_loading_info, dtype_of, hub_options, loading
from music_evals.editing.memory import audioldm2_bytes, check_stored, weight_bytes
from music_evals.errors import importing
from music_evals.files import write_atomically

__all__ = ["HOP", "SAMPLE_RATE", "AudioLDM2", "Condition", "make_samples"]

SAMPLE_RATE: Final = 16000  # Hz
N_FFT: Final = 1024
HOP: Final = 160  # samples between frames
N_MELS: Final = 64
HIGHEST_HZ: Final = 8000.0
FLOOR: Final = 1e-5  # of the magnitude, before the logarithm
SOURCE_PEAK: Final = 0.5  # what the model was trained on
TEXTS_KEPT: Final = 1024  # about 100 kB each

T = TypeVar("T")

_PARTS: Final = {
    "text_encoder": ("transformers", "ClapModel"),
    "text_encoder_2": ("transformers", "T5EncoderModel"),
    "language_model": ("transformers", "GPT2LMHeadModel"),
    "vocoder": ("transformers", "SpeechT5HifiGan"),
    "projection_model": ("diffusers", "AudioLDM2ProjectionModel"),
    "vae": ("diffusers", "AutoencoderKL"),
    "unet": ("diffusers", "AudioLDM2UNet2DConditionModel"),
}
"""Folder of a part with weights -> the library and class that read it."""
_DERIVED: Final = ("position_ids", "token_type_ids", "relative_position_index")


def _part(source: str, name: str, options: dict[str, Any], licence: str) -> Any:
    """Load a part, strictly: the pipeline itself would only warn of tensors that are missing, and draw them."""
    library, kind = _PARTS[name]
    part, loading_info = getattr(importlib.import_module(library), kind).from_pretrained(
        source, subfolder=name, output_loading_info=True, **options
    )
    # not every version of transformers writes the buffers of CLAP that follow from its sizes; the class has them
    derived = {key for key, _ in part.named_buffers() if key.endswith(_DERIVED)}
    loading_info = {**loading_info, "missing_keys": set(loading_info["missing_keys"]) - derived}
    check_loading_info(f"{source}, {name}", kind, loading_info, licence)
    return part


@contextlib.contextmanager
def _without_module_trees() -> Iterator[None]:
    """Drop the warning that diffusers cannot check the parts passed to it: it prints all their layers."""
    log = logging.getLogger("diffusers.pipelines.pipeline_loading_utils")

    def is_relevant(record: logging.LogRecord) -> bool:
        return "non-standard module" not in record.getMessage()

    log.addFilter(is_relevant)
    try:
        yield
    finally:
        log.removeFilter(is_relevant)


class Condition(NamedTuple):
    """A text as the network takes it."""

    generated: Any  # vectors of the language model, (1, 8, its size)
    words: Any  # vectors of T5, (1, words, its size)
    mask: Any  # which words count, (1, words)


def _cached(texts: dict[Any, T], key: Any) -> T:
    """Return what is cached of a text, of the last ones alone."""
    while len(texts) > TEXTS_KEPT:
        del texts[next(iter(texts))]
    return texts[key]


class AudioLDM2:
    """A `diffusers.AudioLDM2Pipeline`, part by part, in evaluation mode; all but its U-Net is in float32."""

    def __init__(self, pipeline: Any, *, precision: str = "fp32") -> None:
        self.pipeline, self.precision = pipeline, precision
        self._conditions: dict[tuple[str, str], Condition] = {}
        self._vectors: dict[tuple[str, int | None], Any] = {}
        for part in pipeline.components.values():
            if hasattr(part, "eval"):
                part.eval().requires_grad_(requires_grad=False)

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str],
        *,
        revision: str | None = None,
        device: str = "cpu",
        precision: str = "fp32",
        licence: str = "",
    ) -> AudioLDM2:
        """Load a folder, or a repository of the Hub at a revision: every tensor of each part, and no other.

        `precision` is that of the U-Net alone: what is added up over many steps stays in float32.
        """
        options = {"use_safetensors": True, **hub_options(source, revision)}
        with importing("editing", "AudioLDM 2"):
            from diffusers import AudioLDM2Pipeline
        dtype = dtype_of(precision, device)
        check_stored(source, device)
        with loading("AudioLDM 2", source, "the folders of its pipeline with safetensors", licence):
            parts = {name: _part(os.fspath(source), name, options, licence) for name in _PARTS}
            with _without_module_trees():
                pipeline = AudioLDM2Pipeline.from_pretrained(os.fspath(source), **parts, **options)
        pipeline.set_progress_bar_config(disable=True)
        pipeline.to(device)
        if pipeline.unet.dtype != dtype:
            pipeline.unet.to(dtype)
        return cls(pipeline, precision=precision)

    def to(self, device: str) -> Self:
        """Move all parts to a device; texts that were encoded are encoded again there."""
        self.pipeline.to(device)
        self._conditions.clear()
        self._vectors.clear()
        return self

    @property
    def device(self) -> Any:
        """Where it computes."""
        return self.pipeline.unet.device

    def condition(self, text: str, pad_to: str = "") -> Condition:
        """Return a text as the network takes it; the last texts are cached, so that each is encoded once.

        With `pad_to` the text is padded to the length of that one, as diffusers pads negative prompts.
        """
        key = (text, pad_to)
        if key not in self._conditions:
            away = {"negative_prompt": text} if pad_to else {}
            parts = self.pipeline.encode_prompt(pad_to or text, self.device, 1, bool(pad_to), **away)
            words, mask, generated = (part[:1] for part in parts)  # the negative prompt comes first
            self._conditions[key] = Condition(generated, words, mask)
        return _cached(self._conditions, key)

    def word_vectors(self, text: str, length: int | None = None) -> Any:
        """Return the vectors of T5 of a text alone, without padding, (words, its size); the last texts are cached.

        With `length` it is cut or padded to that many words.
        """
        key = (text, length)
        if key not in self._vectors:
            fixed: dict[str, Any] = {"padding": "max_length", "max_length": length} if length else {}
            encoded = self.pipeline.tokenizer_2(text, return_tensors="pt", truncation=True, **fixed).to(self.device)
            self._vectors[key] = self.pipeline.text_encoder_2(**encoded)[0][0]
        return _cached(self._vectors, key)

    def memory(self, seconds: float, n_kept: int = 1, *, gradient: bool = False) -> tuple[int, int]:
        """Return the bytes of the weights, and of what an edit works with while so many latents are kept."""
        weights = weight_bytes(*self.pipeline.components.values())
        return weights, audioldm2_bytes(self.pipeline, seconds, n_kept=n_kept, gradient=gradient)

    def noise(self, latent: Any, step: Any, condition: Condition) -> Any:
        """Return the noise that the network sees in a latent, of its shape and type."""
        unet = self.pipeline.unet
        generated, words = (part.to(unet.dtype) for part in (condition.generated, condition.words))
        noise = unet(
            latent.to(unet.dtype),
            step,
            encoder_hidden_states=generated,
            encoder_hidden_states_1=words,
            encoder_attention_mask_1=condition.mask,
            return_dict=False,
        )[0]
        return noise.to(latent.dtype)

    def encode(self, samples: npt.NDArray[np.float32], generator: Any = None) -> Any:
        """Return the latent of one channel at 16 kHz, (1, channels, frames / 4, 16).

        It is the mode of the posterior, or where a generator is given is drawn from it.
        """
        import torch

        mel = torch.from_numpy(log_mel(samples)).to(self.device)  # (frames, mels)
        vae, unet = self.pipeline.vae, self.pipeline.unet
        # both halve the frames between their levels
        multiple = 2 ** (len(vae.config.block_out_channels) + len(unet.config.block_out_channels) - 2)
        mel = torch.nn.functional.pad(mel, (0, 0, 0, -len(mel) % multiple), value=float(np.log(FLOOR)))
        posterior = vae.encode(mel[None, None].to(vae.dtype)).latent_dist
        latent = posterior.mode() if generator is None else posterior.sample(generator)
        return latent * vae.config.scaling_factor

    def decode(self, latent: Any) -> npt.NDArray[np.float32]:
        """Return the sound of a latent, one channel at 16 kHz."""
        vae = self.pipeline.vae
        mel = vae.decode(latent.to(vae.dtype) / vae.config.scaling_factor).sample
        samples: npt.NDArray[np.float32] = self.pipeline.mel_spectrogram_to_waveform(mel).reshape(-1).numpy()
        return samples


def log_mel(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the log-mel spectrogram of one channel at 16 kHz, shape (frames of 10 ms, 64), as AudioLDM 2 has it.

    Frame i is centred on the middle of the samples 160 i to 160 (i + 1), which the vocoder makes of it, as in the code
    that trains the model (`mel_spectrogram_train` of haoheliu/AudioLDM-training-finetuning, 702a638). The authors of
    MusicMagus and ZETA centre it on sample 160 i: 5 ms earlier.
    """
    from transformers.audio_utils import mel_filter_bank

    filters = mel_filter_bank(
        N_FFT // 2 + 1, N_MELS, 0.0, HIGHEST_HZ, SAMPLE_RATE, norm="slaney", mel_scale="slaney"
    )  # (bins, mels)
    n_frames = max(-(-len(samples) // HOP), 1)
    centred = samples - samples.mean()
    scaled = SOURCE_PEAK * centred / max(float(np.abs(centred).max()), 1e-9)
    edge = (N_FFT - HOP) // 2
    padded = np.pad(np.pad(scaled, (0, n_frames * HOP - len(scaled))), edge, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP][:n_frames]
    window = np.hanning(N_FFT + 1)[:-1]
    magnitude = np.abs(np.fft.rfft(frames * window, axis=1))
    mel: npt.NDArray[np.float32] = np.log(np.maximum(magnitude @ filters, FLOOR)).astype(np.float32)
    return mel


def make_samples(model: AudioLDM2, rows: Iterable[Mapping[str, Any]], folder: str | Path) -> list[Path]:
    """Write the sample of each row as FLAC, and return the files; those that are there are left alone.

    Rows have ``audio_file``, ``source_prompt``, ``seed``, ``steps``, ``guidance``, ``seconds`` and ``negative_prompt``.
    """
    import torch

    paths = []
    for row in rows:
        path = Path(folder, row["audio_file"]).with_suffix(".flac")
        if not path.exists():
            generator = torch.Generator().manual_seed(row["seed"])
            sound = model.pipeline(
                row["source_prompt"],
                negative_prompt=row["negative_prompt"],
                num_inference_steps=row["steps"],
                guidance_scale=row["guidance"],
                audio_length_in_s=row["seconds"],
                generator=generator,
            ).audios[0]
            write_atomically(path, encode_flac(sound, SAMPLE_RATE), parents=True)
        paths.append(path)
    return paths
