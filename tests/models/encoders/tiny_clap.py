"""A CLAP of tiny sizes with random weights, of the real classes, saved as the Hub has it."""

from __future__ import annotations

from pathlib import Path

LETTERS = [*"abcdefghijklmnopqrstuvwxyz", "Ġ"]
N_STAGES = 4


def save_tiny_clap(
    folder: Path, *, rate: int = 8000, window_sec: int = 1, hop: int = 160, seed: int = 0, safe: bool = True
) -> Path:
    """Save model, tokenizer and feature extractor into a folder; letters are tokens."""
    import torch
    from transformers import (
        ClapAudioConfig,
        ClapConfig,
        ClapFeatureExtractor,
        ClapModel,
        ClapProcessor,
        ClapTextConfig,
        RobertaTokenizer,
    )

    text = ClapTextConfig(
        hidden_size=16, intermediate_size=16, num_attention_heads=2, num_hidden_layers=2, vocab_size=40,
        max_position_embeddings=120, pad_token_id=1, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    audio = ClapAudioConfig(
        spec_size=64, num_mel_bins=16, patch_size=2, patch_stride=[2, 2], patch_embeds_hidden_size=8, window_size=2,
        depths=[1] * N_STAGES, num_attention_heads=[1, 2, 2, 2], hidden_size=64,
    )  # fmt: skip
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = RobertaTokenizer(vocab={word: place for place, word in enumerate([*special, *LETTERS])}, merges=[])
    extractor = ClapFeatureExtractor(
        feature_size=16, sampling_rate=rate, hop_length=hop, max_length_s=window_sec, fft_window_size=1024,
        frequency_min=50, frequency_max=min(14000, rate // 2), truncation="rand_trunc", padding="repeatpad",
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = ClapModel(ClapConfig(text_config=text.to_dict(), audio_config=audio.to_dict(), projection_dim=12))
        for weights in model.parameters():  # as drawn they are so small that all recordings sound alike
            weights.data.add_(0.2 * torch.randn_like(weights))
    model.save_pretrained(folder)
    ClapProcessor(extractor, tokenizer).save_pretrained(folder)
    if not safe:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder
