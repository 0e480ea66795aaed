"""AudioLDM 2 with random weights, small enough to run in seconds; the classes are those of the real one.

Sizes are those of the folder `models/zeta`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from music_evals.annotations import EditInstruction, EditRequest

CONFIG = Path(__file__).resolve().parents[2] / "models/zeta/config.json"

WORDS = ("a", "rock", "jazz", "song", "with", "piano", "calm")

# What the authors' code and ours were both given. The edit has a word more than the source, the negative prompt fewer.
SEED = 42
CHANGE = EditInstruction(text="x", source_prompt="a calm rock song with a rock piano", before="rock", after="calm jazz")
NEGATIVE = "a song"
SENTENCES = {
    "rock": ["a rock song", "calm rock with piano"],
    "calm jazz": ["a calm jazz song with a jazz piano", "jazz"],
}


def tiny_pipeline(seed: int = 0, parts: Mapping[str, Any] | None = None) -> Any:
    """Return the pipeline with random weights; `parts` are other sizes than those of the folder."""
    import torch
    from diffusers import (
        AudioLDM2Pipeline,
        AudioLDM2ProjectionModel,
        AudioLDM2UNet2DConditionModel,
        AutoencoderKL,
        DDIMScheduler,
    )
    from transformers import (
        ClapAudioConfig,
        ClapConfig,
        ClapFeatureExtractor,
        ClapModel,
        ClapTextConfig,
        GPT2Config,
        GPT2LMHeadModel,
        RobertaTokenizer,
        SpeechT5HifiGan,
        SpeechT5HifiGanConfig,
        T5Config,
        T5EncoderModel,
        T5Tokenizer,
    )

    torch.manual_seed(seed)
    letters = [chr(code) for code in range(97, 123)] + ["Ġ"]
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    roberta = RobertaTokenizer(vocab={word: place for place, word in enumerate([*special, *letters])}, merges=[])
    roberta.model_max_length = 16
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((f"▁{word}", -1.0) for word in WORDS)]
    t5_tokenizer = T5Tokenizer(vocab=[*pieces, *((letter, -9.0) for letter in [*letters, "▁"])], extra_ids=0)
    t5_tokenizer.model_max_length = 16
    text = ClapTextConfig(
        hidden_size=8, intermediate_size=16, num_attention_heads=1, num_hidden_layers=1, vocab_size=64,
        projection_dim=8, pad_token_id=1, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    audio = ClapAudioConfig(
        spec_size=8, window_size=4, num_mel_bins=8, depths=[1, 1], num_attention_heads=[1, 1], num_hidden_layers=1,
        hidden_size=192, projection_dim=8, patch_size=2, patch_stride=2, patch_embed_input_channels=4,
    )  # fmt: skip
    clap = ClapConfig(text_config=text.to_dict(), audio_config=audio.to_dict(), projection_dim=16)
    parts = parts or json.loads(CONFIG.read_text(encoding="utf-8"))["parts"]
    words, vectors = parts["text_encoder_2"]["d_model"], parts["language_model"]["n_embd"]
    return AudioLDM2Pipeline(
        vae=AutoencoderKL(**parts["vae"]),
        text_encoder=ClapModel(clap),
        text_encoder_2=T5EncoderModel(T5Config(**parts["text_encoder_2"])),
        projection_model=AudioLDM2ProjectionModel(16, text_encoder_1_dim=words, langauge_model_dim=vectors),
        language_model=GPT2LMHeadModel(GPT2Config(**parts["language_model"])),
        tokenizer=roberta,
        tokenizer_2=t5_tokenizer,
        feature_extractor=ClapFeatureExtractor(feature_size=8),
        unet=AudioLDM2UNet2DConditionModel(**parts["unet"]),
        scheduler=DDIMScheduler(**parts["scheduler"]),
        vocoder=SpeechT5HifiGan(SpeechT5HifiGanConfig(**parts["vocoder"])),
    )


def named_pipeline() -> Any:
    """The tiny pipeline with weights that follow from their names and shapes alone, whatever draws them elsewhere."""
    import torch

    pipeline = tiny_pipeline()
    for part in pipeline.components.values():
        if not isinstance(part, torch.nn.Module):
            continue
        for name, weights in sorted(part.named_parameters()):
            values = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(tuple(weights.shape))
            is_matrix = weights.ndim > 1  # all others are biases, and factors of norms
            values = values / np.sqrt(values[0].size) if is_matrix else values / 10 + name.endswith("weight")
            weights.data.copy_(torch.as_tensor(values))
    return pipeline


def edit_from(system: Any, start: Any) -> tuple[Any, Any, list[Any]]:
    """Return what `MusicMagus` makes of a noise: latents of source and edit, and its gradients in their order."""
    import torch

    gradients: list[Any] = []
    grad, run, latents = torch.autograd.grad, system._run, []
    silent = EditRequest(source_id="song", instruction=CHANGE, audio=np.zeros((1, 160), np.float32), sample_rate=16000)

    def recorded(*given: Any) -> Any:
        gradients.append(grad(*given)[0])
        return (gradients[-1],)

    def run_and_record(*args: Any) -> Any:
        latents.append(run(*args))
        return latents[-1]

    with (
        mock.patch.object(system, "_start", return_value=start),
        mock.patch.object(system, "_run", run_and_record),
        mock.patch.object(torch.autograd, "grad", recorded),
    ):
        system._edited(silent, None)
    return (*latents[0], gradients)
