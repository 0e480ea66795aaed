"""How much memory edits need, worked out before anything is computed, and how much a device has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.errors import NotEnoughMemoryError

__all__ = ["MemoryPlan", "check_stored", "decoder_bytes", "free_bytes", "weight_bytes"]

WEIGHT_SUFFIXES: Final = (".safetensors", ".bin", ".pth")
GIB: Final = 2**30


class MemoryPlan(NamedTuple):
    """What a run will need on a device, in bytes."""

    device: str
    weights: int
    """Of the model, once a process."""
    working: int
    """What an edit takes besides: an estimate from the sizes of the model, once a process."""
    processes: int = 1
    free: int | None = None
    """What the device has for all of it, the weights that are loaded already included; None where it is not known."""

    @property
    def needed(self) -> int:
        """For all processes."""
        return (self.weights + self.working) * self.processes

    @property
    def text(self) -> str:
        """The plan in one line."""
        free = "unknown" if self.free is None else f"{self.free / GIB:.2f} GiB"
        times = f" in each of {self.processes} processes" if self.processes > 1 else ""
        return (
            f"memory on {self.device}: {self.weights / GIB:.2f} GiB for the weights and about "
            f"{self.working / GIB:.2f} GiB for an edit{times}; free: {free}"
        )

    def check(self) -> None:
        """Raise `NotEnoughMemoryError` where the device has less than is needed."""
        if self.free is not None and self.needed > self.free:
            raise NotEnoughMemoryError(
                f"{self.text}; take a shorter part (`seconds`), fewer workers, a narrower `precision`, or another "
                "device"
            )


def free_bytes(device: str) -> int | None:
    """Return what a device has left, or None where the system does not tell."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def check_stored(folder: str | os.PathLike[str], device: str) -> None:
    """Raise `NotEnoughMemoryError` before weights are loaded that are larger than what is left.

    A folder's files are compared with the memory of this machine, which reads them whatever the device is.
    """
    if not Path(folder).is_dir():
        return  # an id of the Hub: its files are not here yet
    stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.suffix in WEIGHT_SUFFIXES)
    free = free_bytes("cpu")
    if free is not None and stored > free:
        raise NotEnoughMemoryError(
            f"{folder}: the weights have {stored / GIB:.2f} GiB and this machine has {free / GIB:.2f} GiB left, before "
            f"they are moved to {device}; close other programs, or take a smaller model"
        )


def weight_bytes(*networks: Any) -> int:
    """Return the size of the parameters and buffers of networks of torch."""
    tensors = (tensor for network in networks for tensor in (*network.parameters(), *network.buffers()))
    return int(sum(tensor.numel() * tensor.element_size() for tensor in tensors))


def decoder_bytes(config: Any, *, positions: int, rows: int, element_size: int) -> int:
    """Return the size of the keys and values that a decoder keeps of so many positions in so many rows."""
    return int(2 * config.num_hidden_layers * config.hidden_size * positions * rows * element_size)
