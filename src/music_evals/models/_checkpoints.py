"""What training leaves on the disk from epoch to epoch: checkpoints and logs, each whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from music_evals.errors import CorruptRecordsError
from music_evals.files import write_atomically
from music_evals.models.tensor_files import save_tensors

__all__ = [
    "optimizer_tensors",
    "read_checkpoint",
    "restore_optimizer",
    "section",
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
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode(), parents=True)
