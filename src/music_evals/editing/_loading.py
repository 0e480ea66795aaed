"""How weights that others publish are loaded: at a commit, every tensor of a model and no other, tensors alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from music_evals.errors import FileTooLargeError, InvalidInputError, ModelUnavailableError, UnreadableFileError

__all__ = ["check_found", "first_lines", "hub_options", "read_tensors", "without_weights"]


def without_weights(system: str, model: str, where: str, licence: str) -> ModelUnavailableError:
    """Return the error of a system that was given no weights."""
    return ModelUnavailableError(
        f"{system} needs the weights of {model}: {where} on the Hub, licence {licence}, not for commercial use; name a "
        "folder or an id with `weights`, and with an id its commit with `weights_revision`"
    )


def hub_options(source: str | os.PathLike[str], revision: str | None) -> dict[str, Any]:
    """Return the revision as an option of the Hub, none for a folder; raise for an id without, which could change."""
    if Path(source).is_dir():
        return {}
    if not revision:
        raise InvalidInputError(f"{source}: weights from the Hub need `revision`, a commit, so that they stay the same")
    return {"revision": revision}


def check_found(place: str, kind: str, found: Mapping[str, Any], licence: str) -> None:
    """Raise where what `from_pretrained` found names tensors that are missing, too many or of another shape."""
    wrong = {what: sorted(map(str, keys)) for what, keys in found.items() if keys and what != "error_msgs"}
    if wrong:
        terms = f"; licence {licence}" if licence else ""
        raise ModelUnavailableError(f"{place}: the weights are not those of {kind}: {wrong}{terms}")


def read_tensors(file: Path, most_bytes: int, key: str = "") -> dict[str, Any]:
    """Return the tensors of a file of PyTorch, by name; where a key is given, those under it.

    Nothing but tensors and texts is read. Raises `FileTooLargeError` and `UnreadableFileError`.
    """
    import torch

    if (size := file.stat().st_size) > most_bytes:
        message = f"{file}: {size} bytes are more than such a file has"
        raise FileTooLargeError(message, name=str(file), unit="bytes", limit=most_bytes, found=size)
    nothing = f"no tensors under {key}" if key else "something else than tensors"
    try:
        held = torch.load(file, map_location="cpu", weights_only=True)
        tensors = dict(held[key] if key else held)
    except Exception as error:  # the unpickler raises whatever the file makes it raise
        raise UnreadableFileError(f"{file} holds {nothing} ({first_lines(error)})") from error
    if not all(isinstance(value, torch.Tensor) for value in tensors.values()):
        raise UnreadableFileError(f"{file} holds something else than tensors by name")
    return tensors


def first_lines(error: Exception) -> str:
    """Return the first two lines of an error, as PyTorch goes on to name every tensor."""
    return " ".join(line.strip() for line in str(error).splitlines()[:2])
