"""How a training starts, and what it leaves on the disk from epoch to epoch.

Seed, threads and, for notes, the weights of another model; checkpoints and logs, each whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from music_evals.csv_files import csv_text
from music_evals.errors import CorruptRecordsError, InvalidInputError
from music_evals.files import write_atomically
from music_evals.models.tensor_files import save_tensors
from music_evals.repositories import MODELS, find_repository

__all__ = [
    "give_weights",
    "on_threads",
    "optimizer_tensors",
    "read_checkpoint",
    "restore_optimizer",
    "section",
    "seeded",
    "starting_weights",
    "write_checkpoint",
    "write_rows",
]


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors, and a state of JSON values."""
    # copies, for networks may share storage between tensors, which the format does not allow
    copies = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    save_tensors(path, copies, {"state": json.dumps(state)})


def read_checkpoint(path: Path, advice: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return state and tensors; the error for a damaged file ends with the advice."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise CorruptRecordsError(f"the checkpoint is damaged ({error}); {advice}") from error
    return state, tensors


def section(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose name starts with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the state of an optimiser as tensors named ``optimizer.<parameter>.<name>``."""
    states = optimizer.state_dict()["state"]
    return {f"optimizer.{index}.{name}": value for index, values in states.items() for name, value in values.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser the state that `optimizer_tensors` returned."""
    values = optimizer.state_dict()
    for key, tensor in section(tensors, "optimizer.").items():
        index, _, name = key.partition(".")
        values["state"].setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict(values)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a log, one row an epoch, as CSV."""
    write_atomically(path, csv_text(rows[0], rows).encode(), parents=True)


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
    place, local = find_repository(os.fspath(start), MODELS, "model")
    if local and Path(place).resolve() == folder.resolve():
        raise InvalidInputError(
            f"{start} would be replaced by the model that starts from it; name another folder as `out`"
        )
    with torch.random.fork_rng():  # a network draws its first weights, which those of the file replace
        weights: dict[str, Tensor] = network.from_pretrained(start).state_dict()
    return weights


def give_weights(model: Any, weights: Mapping[str, Tensor]) -> None:
    """Load weights into a network of the same sizes."""
    theirs, ours = ({(name, value.shape) for name, value in state.items()} for state in (weights, model.state_dict()))
    if theirs != ours:
        raise InvalidInputError(
            f"the weights of `start` are of other sizes than the recipe's network ({min(theirs ^ ours)[0]}); set the "
            "sizes of `model` as the config.json beside them has them, or start from other weights"
        )
    model.load_state_dict(weights)
