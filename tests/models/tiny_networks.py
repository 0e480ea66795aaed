"""Tiny inpainting networks, and contexts for them."""

import dataclasses
from typing import Any

import numpy as np
import torch

from music_evals.annotations import HOLD, REST
from music_evals.models.anticipation_rnn import AnticipationRNN, AnticipationRNNConfig
from music_evals.models.infill_transformer import InfillTransformer, InfillTransformerConfig
from music_evals.models.inpaintnet import InpaintNet, InpaintNetConfig
from music_evals.models.sketchnet import SketchNet, SketchNetConfig
from music_evals.models.vli import END, VLI, VLIConfig
from music_evals.symbolic.encodings import remi

MIDDLE = slice(144, 240)
TINY: dict[type, Any] = {
    AnticipationRNN: AnticipationRNNConfig(
        note_embedding_size=4, metadata_embedding_size=1, hidden_size=12, linear_size=8
    ),
    InpaintNet: InpaintNetConfig(note_embedding_size=4, measure_size=12, latent_size=8, context_size=10),
    SketchNet: SketchNetConfig(
        note_embedding_size=4, measure_size=12, latent_size=6, context_size=10, connector_size=16, connector_layers=2
    ),
    InfillTransformer: InfillTransformerConfig(
        model_size=24, n_layers=2, n_heads=2, inner_size=24, step_size=16, embedding_size=6, pair_size=6
    ),
    VLI: VLIConfig(model_size=16, n_layers=2, n_heads=2, inner_size=24, embedding_size=4),
}


def build(kind: Any, **changes: Any) -> Any:
    """Build a tiny network with weights large enough that its inputs matter."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = kind(dataclasses.replace(TINY[kind], **changes))
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.copy_(torch.randn_like(parameter) * (0.7 if kind is AnticipationRNN else 0.5))
            if kind is InfillTransformer:
                network.head.gates.bias[0] = 4  # so that it writes more than the holds that it would copy
                network.head.tokens.bias[HOLD:] = -3
            if kind is VLI:
                network.heads[remi.BAR].bias[END] = -3  # so that it writes some notes before the end
                for layer in network.blocks:
                    layer.out.weight *= 8  # what is looked at outweighs what is known of the note itself
    return network.eval()


def melodies(n: int, seed: int = 5) -> np.ndarray:
    """Contexts of notes of 3 to 12 steps and some rests, pitches 50..80."""
    rng = np.random.default_rng(seed)
    contexts = np.full((n, 384), HOLD, dtype=np.uint8)
    for row in contexts:
        onsets = np.cumsum(rng.choice([0, 3, 6, 12], 150, p=[0, 0.2, 0.5, 0.3]))
        onsets = np.append(0, onsets[onsets < 384])
        row[onsets] = np.where(rng.random(len(onsets)) < 0.1, REST, rng.integers(50, 81, len(onsets)))
    return contexts


def noise(n: int = 6) -> np.ndarray:
    """Contexts of any tokens."""
    return np.random.default_rng(5).integers(0, 130, (n, 384)).astype(np.uint8)


def tensor(contexts: np.ndarray) -> torch.Tensor:
    """Tokens as a network reads them."""
    return torch.from_numpy(contexts.astype(np.int64))


def losses(network: Any, contexts: np.ndarray, stage: str, *, training: bool = True) -> torch.Tensor:
    """The losses of a stage, what is drawn from one seed."""
    network.begin_stage(stage)
    network.train(training)
    torch.manual_seed(0)
    with torch.no_grad():
        return network.training_loss(tensor(contexts))
