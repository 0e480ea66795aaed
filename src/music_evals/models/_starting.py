"""How a training starts: its seed and threads, and for notes the weights of another model."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from music_evals.errors import InvalidInputError
from music_evals.windows import MODELS, find_window

__all__ = ["give_weights", "on_threads", "seeded", "starting_weights"]


@contextlib.contextmanager
def on_threads(threads: int | None) -> Iterator[None]:
    """Set PyTorch's threads, where a number is given, for a run; put them back afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def seeded(seed: int, threads: int | None) -> Iterator[None]:
    """Seed PyTorch and set its threads for a run; put both back afterwards."""
    with torch.random.fork_rng(), on_threads(threads):
        torch.manual_seed(seed)
        yield


def starting_weights(network: Any, start: str | Path, folder: Path) -> dict[str, Tensor]:
    """Return the weights of a model of a class; `folder` is what the training writes to, and may not be the model's."""
    place, local = find_window(os.fspath(start), MODELS, "model")
    if local and Path(place).resolve() == folder.resolve():
        raise InvalidInputError(
            f"{start} would be replaced by the model that starts from it; name another folder as `out`"
        )
    with torch.random.fork_rng():  # a network draws its first weights, which those of the file replace
        weights: dict[str, Tensor] = network.from_pretrained(start).state_dict()
    return weights


def give_weights(model: Any, weights: Mapping[str, Tensor]) -> None:
    """Load weights into a network of the same sizes."""
    theirs, ours = ({(name, value.shape) for name, value in one.items()} for one in (weights, model.state_dict()))
    if theirs != ours:
        raise InvalidInputError(
            f"the weights of `start` are of other sizes than the recipe's network ({min(theirs ^ ours)[0]}); set the "
            "sizes of `model` as the config.json beside them has them, or start from other weights"
        )
    model.load_state_dict(weights)
