"""LPAPS beside the code of its authors: four windows of 10 s through one tiny CLAP, and the distances between them.

Theirs is `evals/lpaps.py` of their repository, over the audio network of CLAP that lies there too. Both have equal
weights. The windows are whole: what fills a shorter one is not compared.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import torch
from benchmarks.parity.side_by_side import Authors, Recorder, importable
from tests.models.encoders.tiny_clap import save_tiny_clap

from music_evals.metrics.text_audio import lpaps
from music_evals.models.encoders.text_audio import ClapEncoder, load_text_audio_encoder

__all__ = ["AUTHORS", "measure"]

AUTHORS = Authors("HilaManor/AudioEditingCode", "f324c19")
RATE, SECONDS = 48_000, 10  # theirs are fixed
RENAMED = {
    "attn.proj": "attention.output.dense", "attn.relative": "attention.self.relative", "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense", "norm1": "layernorm_before", "norm2": "layernorm_after", "bn0": "batch_norm",
}  # fmt: skip
"""Part of a name of theirs -> that of transformers."""


def measure(checkout: Path, recorder: Recorder) -> None:
    """Compare the layers of each window, and the distances of all pairs."""
    with tempfile.TemporaryDirectory() as folder:
        saved = save_tiny_clap(Path(folder), rate=RATE, window_sec=SECONDS, hop=4800)
        ours = load_text_audio_encoder(str(saved), device="cpu")
    assert isinstance(ours, ClapEncoder)
    windows = [_sound(seed) for seed in range(4)]
    layers = [next(ours.layers(window)) for window in windows]
    pairs = [(first, second) for first in range(4) for second in range(first)]
    with _their_code(checkout) as (module, network), torch.no_grad():
        theirs = _their_distance(module, network(ours.model.audio_model.audio_encoder))
        rates = torch.tensor([RATE])
        given = [torch.from_numpy(window)[None, None] for window in windows]
        for place, (window, known) in enumerate(zip(given, layers, strict=True)):
            for stage, (one_layer, other) in enumerate(zip(known, theirs.net(window, rates), strict=True)):
                recorder.stage(f"window {place + 1}, stage {stage + 1}", one_layer, other[0])
        distances = [float(theirs(given[first], given[second], rates, rates)) for first, second in pairs]
    recorder.stage("distances of windows", [lpaps(layers[a], layers[b]) for a, b in pairs], distances)
    recorder.keep(distance=np.array(distances[0]))  # of the first two windows
    for place, stage in itertools.product(range(2), range(4)):
        recorder.keep(**{f"window {place + 1}, stage {stage + 1}": layers[place][stage]})


def _sound(seed: int) -> npt.NDArray[np.float32]:
    rng, seconds = np.random.default_rng(seed), np.arange(RATE * SECONDS) / RATE
    tones = np.sin(2 * np.pi * rng.uniform(80, 4000, 6)[:, None] * seconds).sum(axis=0)
    samples: npt.NDArray[np.float32] = (0.1 * tones + 0.01 * rng.standard_normal(len(seconds))).astype(np.float32)
    return samples


@contextlib.contextmanager
def _their_code(checkout: Path) -> Iterator[tuple[Any, Any]]:
    """Import their distance and their network, past the packages around them, which fetch models when imported."""
    package, networks = types.ModuleType("networks_of_clap"), checkout / "code/audioldm/clap/open_clip"
    package.__path__ = [str(networks)]
    data, misc = types.ModuleType("laion_clap.training.data"), types.ModuleType("torchvision.ops.misc")
    data.get_audio_features = lambda into, audio, *_, **__: into | {"waveform": audio}  # type: ignore[attr-defined]
    misc.FrozenBatchNorm2d = torch.nn.BatchNorm2d  # type: ignore[attr-defined]  # of networks that are not used
    training = types.ModuleType("laion_clap.training")
    training.data = data  # type: ignore[attr-defined]
    names = ("laion_clap", "torchvision", "torchvision.ops", "h5py")
    stand_ins = {name: types.ModuleType(name) for name in names}
    stand_ins |= {module.__name__: module for module in (package, data, misc, training)}
    with importable(checkout), mock.patch.dict(sys.modules, stand_ins):
        module, htsat = importlib.import_module("evals.lpaps"), importlib.import_module("networks_of_clap.htsat")
        yield module, lambda encoder: _their_network(htsat, encoder)


def _their_network(htsat: Any, encoder: Any) -> Any:
    """Return their network with the weights of ours."""
    config = encoder.config
    audio = types.SimpleNamespace(
        sample_rate=RATE, window_size=1024, hop_size=4800, fmin=50, fmax=14_000, mel_bins=config.num_mel_bins,
        enable_fusion=False,
    )  # fmt: skip
    network = htsat.HTSAT_Swin_Transformer(
        spec_size=config.spec_size, patch_size=config.patch_size, patch_stride=tuple(config.patch_stride),
        num_classes=2, embed_dim=config.patch_embeds_hidden_size, depths=list(config.depths),
        num_heads=list(config.num_attention_heads), window_size=config.window_size, config=audio,
    )  # fmt: skip
    known, weights = encoder.state_dict(), network.state_dict()
    for name in weights:
        renamed = name
        for theirs, ours in RENAMED.items():
            renamed = renamed.replace(theirs, ours)
        if ".attn.qkv." in name:
            start, _, end = renamed.partition("attn.qkv.")
            parts = [f"{start}attention.self.{part}.{end}" for part in ("query", "key", "value")]
            weights[name] = torch.cat([known[part] for part in parts])
        elif renamed in known:
            weights[name] = known[renamed]
        elif not name.startswith(("spectrogram_", "logmel_", "tscam_conv", "head")) and "attn_mask" not in name:
            raise KeyError(name)
    network.load_state_dict(weights)
    return network.eval()


def _their_distance(module: Any, network: Any) -> Any:
    """Return their distance over a network, where its own start would read the weights of the whole CLAP."""
    clap = object.__new__(module.pn.CLAP_base)
    torch.nn.Module.__init__(clap)
    clap.enable_fusion, clap.model_sample_rate, clap.requires_grad = False, RATE, False
    network.enable_fusion = False
    whole: Any = torch.nn.Module()
    whole.model, whole.enable_fusion, whole.model_cfg = torch.nn.Module(), False, {"audio_cfg": {}}
    whole.model.audio_branch = network
    clap.model = whole
    with mock.patch.object(module.pn, "CLAP_base", return_value=clap):
        return module.LPAPS(net_kwargs={})
