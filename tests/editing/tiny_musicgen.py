"""Models of the MusicGen family with random weights, of the sizes in their windows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from music_evals.editing._musicgen import MusicGenModel

MODELS = Path(__file__).resolve().parents[2] / "models"
WORDS = ("a", "rock", "jazz", "song", "with", "piano", "calm")


def tiny_codec(sizes: dict[str, Any], seed: int = 0) -> Any:
    import torch
    from transformers import EncodecConfig, EncodecModel

    torch.manual_seed(seed)
    codec = EncodecModel(EncodecConfig(**sizes)).eval()
    for layer in codec.quantizer.layers:  # an untrained codebook is all zeros
        layer.codebook.embed.copy_(torch.randn_like(layer.codebook.embed))
    return codec


def tiny_musicgen(name: str, seed: int = 0) -> MusicGenModel:
    import torch
    import transformers as hf

    sizes = json.loads((MODELS / name / "config.json").read_text(encoding="utf-8"))
    family = "MusicgenMelody" if name != "musicgen" else "Musicgen"
    torch.manual_seed(seed)
    others = {key: sizes[key] for key in ("chroma_length", "num_chroma") if key in sizes}
    config = getattr(hf, f"{family}Config")(
        text_encoder=hf.T5Config(**sizes["text_encoder"]),
        audio_encoder=hf.EncodecConfig(**sizes["audio_encoder"]),
        decoder=getattr(hf, f"{family}DecoderConfig")(**sizes["decoder"]),
        **others,
    )
    model = getattr(hf, f"{family}ForConditionalGeneration")(config)
    model.audio_encoder.load_state_dict(tiny_codec(sizes["audio_encoder"]).state_dict())
    with torch.no_grad():  # weights as small as they are drawn hardly let a condition be heard
        for part in (model.decoder, model.text_encoder, model.enc_to_dec_proj):
            for weights in part.parameters():
                weights.mul_(10 if weights.ndim > 1 else 1)
    for key in ("decoder_start_token_id", "pad_token_id", "bos_token_id"):
        setattr(model.generation_config, key, sizes["decoder"]["pad_token_id"])
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((f"▁{word}", -1.0) for word in WORDS)]
    letters = [*(chr(code) for code in range(97, 123)), "▁"]
    tokenizer = hf.T5Tokenizer(vocab=[*pieces, *((letter, -9.0) for letter in letters)], extra_ids=0)
    return MusicGenModel(model, tokenizer)


def save(model: MusicGenModel, folder: Path) -> Path:
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder
