"""Tensors in safetensors files that are written whole or not at all, without a second copy in memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from music_evals.errors import OutputError

__all__ = ["save_tensors"]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors beside their place and, once they are on the disk, move them there; the folder is made.

    Raises
    ------
    OutputError
        The folder is full or not writable. Nothing is left behind, and a file that was there is kept.

    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        copies = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(copies, part, metadata=dict(metadata))
        with part.open("r+b") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except (OSError, SafetensorError) as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        msg = f"cannot write {path}: {error}; free some space or allow writing, and run again: it goes on from there"
        raise OutputError(msg) from error
