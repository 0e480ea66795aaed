"""What MusiConGen and MusicGen share: their package, a tiny model in files such as they publish, a run of it."""

from __future__ import annotations

import contextlib
import copy
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
from benchmarks.parity.side_by_side import importable
from tests.editing.tiny_musicgen import RATE, Steps, recorded_sizes, save, tiny_musicgen

FRAME_RATE, STEPS = 50, 60
_UNUSED = ("audiocraft.solvers", "audiocraft.solvers.compression", "flashy", "flashy.distrib", "spacy")
"""Modules that theirs imports and that no step here uses: training, and another text encoder."""


@contextlib.contextmanager
def package(folder: Path) -> Iterator[Any]:
    """Import their package from a folder, with stand-ins for what it imports and does not use here."""
    import torch

    stand_ins: dict[str, Any] = {name: MagicMock() for name in _UNUSED}
    # built for CUDA; the spectrogram is Python
    stand_ins["torchaudio._extension"] = MagicMock(_IS_TORCHAUDIO_EXT_AVAILABLE=False)
    # of xformers one function is called, which is that of PyTorch
    stand_ins["xformers"] = MagicMock(ops=SimpleNamespace(unbind=torch.unbind))
    stand_ins["xformers.ops"] = MagicMock()
    stand_ins |= _one_stem()
    sys.modules.update(stand_ins)
    try:
        with importable(folder):
            yield importlib.import_module("audiocraft")
    finally:
        for name in stand_ins:
            del sys.modules[name]


def _one_stem() -> dict[str, Any]:
    """Return modules in place of Demucs, whose weights are not here: the whole mixture is one stem."""
    import torch

    model = MagicMock(sources=["drums", "bass", "other", "vocals"], samplerate=RATE, audio_channels=1)
    model.to.return_value = model

    def apply_model(_: Any, wave: torch.Tensor, **options: Any) -> torch.Tensor:  # noqa: ARG001
        nothing = torch.zeros_like(wave)
        return torch.stack([nothing, nothing, wave, nothing], dim=1)

    return {
        "demucs": MagicMock(pretrained=MagicMock(get_model=lambda _: model)),
        "demucs.pretrained": MagicMock(get_model=lambda _: model),
        "demucs.apply": MagicMock(apply_model=apply_model),
        "demucs.audio": MagicMock(convert_audio=lambda wave, *_: wave),
    }


def write(theirs: Any, folder: Path, window: str, conditioner: str) -> dict[str, Any]:
    """Write a base in the form of transformers and a checkpoint in theirs; return the tensors of both.

    Parameters
    ----------
    theirs
        Of `package`.
    folder
        The checkpoint is written into it, the base into ``base`` below it.
    window
        Whose classes of transformers the base has.
    conditioner
        Which of their configurations says what the model is told.

    """
    import torch

    configs = importlib.import_module("omegaconf").OmegaConf
    sizes = recorded_sizes(window)
    base = tiny_musicgen(window, sizes=sizes)
    text, decoder = base.model.text_encoder, sizes["decoder"]
    for values in text.parameters():  # half as large where they are recorded
        values.copy_(values.half())
    settings = Path(theirs.__file__).parents[1] / "config"
    own = {
        "lm_model": "transformer_lm",
        "sample_rate": RATE,
        "device": "cpu",
        "dtype": "float32",
        "dataset": {"segment_duration": 30},
        "transformer_lm": {
            "dim": decoder["hidden_size"],
            "num_heads": decoder["num_attention_heads"],
            "num_layers": decoder["num_hidden_layers"],
            "hidden_scale": decoder["ffn_dim"] // decoder["hidden_size"],
            "n_q": decoder["num_codebooks"],
            "card": decoder["vocab_size"],
        },
    }
    names = ("model/lm/default", "model/lm/musicgen_lm", f"conditioner/{conditioner}")
    config = configs.merge(*(configs.load(settings / f"{name}.yaml") for name in names), own)
    conditioners = theirs.modules.conditioners
    conditioners.T5Conditioner.MODELS_DIMS["t5-base"] = text.config.d_model
    conditioners.T5Tokenizer = MagicMock(from_pretrained=lambda _: base.tokenizer)
    conditioners.T5EncoderModel = MagicMock(from_pretrained=lambda _: copy.deepcopy(text))
    model = theirs.models.builders.get_lm_model(config)
    generator = torch.Generator().manual_seed(0)
    weights = {}
    for name, tensor in model.state_dict().items():
        drawn = torch.randn(tensor.shape, generator=generator) * (0.3 if tensor.ndim > 1 else 0.2)
        kept = "norm" in name and name.endswith("weight")
        weights[name] = tensor if name.endswith("spec.window") else (drawn + kept).half()
    save(base, folder / "base")
    torch.save({"best_state": weights, "xp.cfg": configs.to_yaml(config)}, folder / "state_dict.bin")
    return weights | {f"text_encoder.{name}": value.half() for name, value in text.state_dict().items()}


def load(theirs: Any, folder: Path) -> Any:
    """Return their system with the checkpoint of a folder, which takes the strongest token of each of its steps."""
    codec = MagicMock(sample_rate=RATE, frame_rate=FRAME_RATE, channels=1, decode=lambda codes, _: codes)
    with patch.object(theirs.models.musicgen, "load_compression_model", lambda *_, **__: codec):
        made = theirs.models.musicgen.MusicGen.get_pretrained(str(folder), device="cpu")
    made.set_generation_params(use_sampling=False, duration=STEPS / FRAME_RATE, extend_stride=1)
    return made


def steps_of_theirs(system: Any, make: Callable[[], Any]) -> Steps:
    """Return what their model computes while `make` lets it generate and returns what the codec does: the tokens."""
    given: list[Any] = []
    logits: list[Any] = []
    hooks = [
        system.lm.transformer.layers[0].norm1.register_forward_pre_hook(
            lambda _, args: given.append(args[0].numpy().copy())
        ),
        system.lm.register_forward_hook(lambda _, __, made: logits.append(made[:, :, -1].numpy().copy())),
    ]
    tokens = make()
    for hook in hooks:
        hook.remove()
    return Steps(given[0], np.stack(logits), tokens[0].numpy())
