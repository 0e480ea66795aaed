"""AudioLDM 2 with random weights, small enough to run in seconds; the classes are those of the real one.

Sizes are those of the window `models/zeta`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONFIG = Path(__file__).resolve().parents[2] / "models/zeta/config.json"

WORDS = ("a", "rock", "jazz", "song", "with", "piano", "calm")


def tiny_pipeline(seed: int = 0) -> Any:
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
    parts = json.loads(CONFIG.read_text(encoding="utf-8"))["parts"]
    return AudioLDM2Pipeline(
        vae=AutoencoderKL(**parts["vae"]),
        text_encoder=ClapModel(clap),
        text_encoder_2=T5EncoderModel(T5Config(**parts["text_encoder_2"])),
        projection_model=AudioLDM2ProjectionModel(text_encoder_dim=16, text_encoder_1_dim=16, langauge_model_dim=16),
        language_model=GPT2LMHeadModel(GPT2Config(**parts["language_model"])),
        tokenizer=roberta,
        tokenizer_2=t5_tokenizer,
        feature_extractor=ClapFeatureExtractor(feature_size=8),
        unet=AudioLDM2UNet2DConditionModel(**parts["unet"]),
        scheduler=DDIMScheduler(**parts["scheduler"]),
        vocoder=SpeechT5HifiGan(SpeechT5HifiGanConfig(**parts["vocoder"])),
    )
