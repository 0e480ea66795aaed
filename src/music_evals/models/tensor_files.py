"""Tensors in safetensors files that are written whole or not at all, without a second copy in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from music_evals.errors import OutputError
from music_evals.files import written_whole

__all__ = ["save_tensors"]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors to a file whole or not at all; the folder is made. Raises `OutputError`."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    copies = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with written_whole(path, parents=True) as part:
        try:
            save_file(copies, part, metadata=dict(metadata))
        except SafetensorError as error:
            raise OutputError(
                f"cannot write {path}: {error}; make room or allow writing, and run again: it goes on"
            ) from error
