"""Models of the MusicGen family with random weights, of the sizes in their folders under models/."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Beats, Chords, EditConditions
from music_evals.editing.musicgen import MusicGenModel

PARITY = Path(__file__).resolve().parents[1] / "golden" / "parity"
MODELS = Path(__file__).resolve().parents[2] / "models"
TEXT = "a calm jazz song with piano"
GREEDY = {"guidance": 3.0, "top_k": 1, "temperature": 1.0}
"""The strongest token of each step is taken."""
RATE = 32000
LAYERS = {"musicongen": 37, "musicgen": 4, "musicgen_melody": 4}
"""Of the models whose computations by the authors' code are recorded; MusiConGen conditions all but the 37th."""
WORDS = ("a", "rock", "jazz", "song", "with", "piano", "calm")


def tiny_codec(sizes: Mapping[str, Any], seed: int = 0) -> Any:
    import torch
    from transformers import EncodecConfig, EncodecModel

    torch.manual_seed(seed)
    codec = EncodecModel(EncodecConfig(**sizes)).eval()
    for layer in codec.quantizer.layers:  # an untrained codebook is all zeros
        layer.codebook.embed.copy_(torch.randn_like(layer.codebook.embed))
    return codec


def tiny_musicgen(name: str, seed: int = 0, sizes: Mapping[str, Any] | None = None) -> MusicGenModel:
    """Return the model of a folder with random weights; `sizes` are other ones than its own."""
    import torch
    import transformers as hf

    sizes = sizes or json.loads((MODELS / name / "config.json").read_text(encoding="utf-8"))
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
    with torch.no_grad():  # with weights as small as they are drawn a condition has hardly any effect
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


def recorded_sizes(name: str) -> dict[str, Any]:
    """Return the sizes of a model whose computations by the authors' code are recorded."""
    sizes: dict[str, Any] = json.loads((MODELS / name / "config.json").read_text(encoding="utf-8"))
    sizes["decoder"] |= {"num_hidden_layers": LAYERS[name], "vocab_size": 32, "pad_token_id": 32, "bos_token_id": 32}
    return sizes


def tune(seconds: float) -> npt.NDArray[np.float32]:
    """Return tones of half a second with a bass and some noise, shape (n,), at `RATE`."""
    draw = np.random.default_rng(0)
    time = np.arange(round(seconds * RATE)) / RATE
    notes = draw.integers(48, 84, size=int(2 * seconds) + 1)[(2 * time).astype(int)]
    bass = draw.integers(36, 48, size=int(seconds) + 1)[time.astype(int)]
    tones = [0.3 * np.sin(2 * np.pi * 440 * 2 ** ((pitch - 69) / 12) * time) for pitch in (notes, bass)]
    samples: npt.NDArray[np.float32] = (sum(tones) + 0.02 * draw.standard_normal(len(time))).astype(np.float32)
    return samples


def song(seconds: float) -> EditConditions:
    """Return chords of many kinds at 96 a minute, four beats a bar; some are none, and some are not known."""
    beats = np.arange(0, seconds, 60 / 96)
    edges = np.append(beats[::4], seconds)
    names = ("C:maj", "A:min7/b3", "F#:hdim7", "N", "Bb:13", "X", "E:sus4(b7,9)", "D:min6/5", "G:9")
    labels = tuple(itertools.islice(itertools.cycle(names), len(edges) - 1))
    return EditConditions(Chords(np.array([edges[:-1], edges[1:]]).T, labels), Beats(beats, 96.0), beats[::4])


def recorded(file: str, model_name: str, folder: Path) -> tuple[dict[str, Any], Path]:
    """Return what the authors' code gave for a tiny model, and a folder with its checkpoint and its base."""
    import torch
    from safetensors.torch import load_file, save_file

    prefix = f"{model_name}."
    all_held = load_file(PARITY / f"{file}.safetensors")
    held = {name.removeprefix(prefix): value for name, value in all_held.items() if name.startswith(prefix)}
    weights = {name: held.pop(name) for name in list(held) if "." in name}
    base = tiny_musicgen(model_name, sizes=recorded_sizes(model_name))
    text = "text_encoder."
    base.model.text_encoder.load_state_dict(
        {name.removeprefix(text): weights.pop(name).float() for name in list(weights) if name.startswith(text)}
    )
    save(base, folder / "base")
    torch.save({"best_state": weights, "xp.cfg": ""}, folder / "state_dict.bin")
    save_file(weights, folder / "state_dict.safetensors")
    return {name: value.numpy() for name, value in held.items()}, folder


@contextlib.contextmanager
def without(module: Any, name: str) -> Iterator[None]:
    """Take a part out of a network for a while."""
    import torch

    part = getattr(module, name)
    setattr(module, name, torch.nn.Identity())
    try:
        yield
    finally:
        setattr(module, name, part)


def furthest(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> float:
    """Return the largest difference as a part of the largest value of theirs."""
    our_values, their_values = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert our_values.shape == their_values.shape
    return float(np.abs(our_values - their_values).max() / np.abs(their_values).max())


class Steps(NamedTuple):
    """What a generation computed; its two rows are conditional and unconditional."""

    given: npt.NDArray[np.float32]
    """To the first layer in the first pass, shape (rows, prefix + 1, width)."""
    logits: npt.NDArray[np.float32]
    """Of each step, shape (steps, rows, codebooks, card)."""
    tokens: npt.NDArray[np.int64]
    """What the codec is given, shape (codebooks, frames)."""

    def golden(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is recorded: each fifth position of the prefix, logits after guidance by 3, and the tokens."""
        conditional, unconditional = self.logits[:, 0], self.logits[:, 1]
        return {
            "given": self.given[:, ::5],
            "logits": unconditional + 3 * (conditional - unconditional),
            "tokens": self.tokens,
        }


def steps_of(held: MusicGenModel, make: Callable[[], Any]) -> Steps:
    """Return what the model computes while `make` lets it generate for one text."""
    model, given, logits, tokens = held.model, [], [], []
    codebooks, decode = model.decoder.config.num_codebooks, model.audio_encoder.decode

    def decoded(codes: Any, *rest: Any, **options: Any) -> Any:
        tokens.append(codes)
        return decode(codes, *rest, **options)

    norm = model.decoder.model.decoder.layers[0].self_attn_layer_norm
    hooks = [
        norm.register_forward_pre_hook(lambda _, args: given.append(args[0].numpy().copy())),
        model.decoder.register_forward_hook(lambda _, __, made: logits.append(made.logits[:, -1].numpy().copy())),
    ]
    model.audio_encoder.decode = decoded
    try:
        make()
    finally:
        del model.audio_encoder.decode
        for hook in hooks:
            hook.remove()
    codes = tokens[0].numpy().reshape(codebooks, -1)
    steps = np.stack(logits[-codes.shape[1] - codebooks + 1 :])  # transformers passes MusicGen's first step twice
    return Steps(given[0], steps.reshape(len(steps), -1, codebooks, steps.shape[-1]), codes)
