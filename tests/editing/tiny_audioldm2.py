"""AudioLDM 2 with random weights, small enough to run in seconds; the classes are those of the real one."""

from __future__ import annotations

from typing import Any

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
    unet = AudioLDM2UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=8, sample_size=32, in_channels=4,
        out_channels=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=((None, 16, 16), (None, 16, 16)),
    )  # fmt: skip
    vae = AutoencoderKL(
        block_out_channels=[8, 16], in_channels=1, out_channels=1, norm_num_groups=8, latent_channels=4,
        down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2,
    )  # fmt: skip
    vocoder = SpeechT5HifiGanConfig(
        model_in_dim=64, sampling_rate=16000, upsample_initial_channel=16, upsample_rates=[8, 20],
        upsample_kernel_sizes=[16, 40], resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1, 3]],
        normalize_before=False,
    )  # fmt: skip
    return AudioLDM2Pipeline(
        vae=vae,
        text_encoder=ClapModel(clap),
        text_encoder_2=T5EncoderModel(T5Config(vocab_size=64, d_model=16, d_ff=16, d_kv=8, num_heads=1, num_layers=1)),
        projection_model=AudioLDM2ProjectionModel(text_encoder_dim=16, text_encoder_1_dim=16, langauge_model_dim=16),
        language_model=GPT2LMHeadModel(
            GPT2Config(
                bos_token_id=0,
                eos_token_id=0,
                n_embd=16,
                n_head=1,
                n_layer=1,
                n_positions=99,
                n_inner=16,
                vocab_size=64,
                max_new_tokens=4,
            )
        ),
        tokenizer=roberta,
        tokenizer_2=t5_tokenizer,
        feature_extractor=ClapFeatureExtractor(feature_size=8),
        unet=unet,
        scheduler=DDIMScheduler(
            beta_start=0.0015,
            beta_end=0.0195,
            beta_schedule="scaled_linear",
            clip_sample=False,
            set_alpha_to_one=False,
            steps_offset=1,
        ),
        vocoder=SpeechT5HifiGan(vocoder),
    )
