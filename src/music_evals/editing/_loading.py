"""How weights that others publish are loaded: at a commit, every tensor of a model and no other, tensors alone."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from music_evals.editing.conversion import require_converted
from music_evals.errors import InvalidInputError, ModelUnavailableError, UnreadableFileError

__all__ = ["check_loading_info", "first_lines", "hub_options", "load_tensors", "without_weights"]

DERIVED: Final = re.compile(r"(?:^|\.)(?:position_ids|relative_position_index|attn\.masked_bias|attn\.bias)$")
"""Buffers that are worked out from a model's sizes, and that files of some versions of transformers hold."""


def without_weights(system: str, model: str, where: str, licence: str) -> ModelUnavailableError:
    """Return the error of a system without weights."""
    return ModelUnavailableError(
        f"{system} needs the weights of {model}: {where} on the Hub, licence {licence}, not for commercial use; name a "
        "folder or an id with `weights`, and with an id its commit with `weights_revision`"
    )


def hub_options(source: str | os.PathLike[str], revision: str | None) -> dict[str, Any]:
    """Return the revision as an option of the Hub, none for a folder; raise for an id without, or pickled weights."""
    if Path(source).is_dir():
        require_converted(Path(source))
        return {}
    if not revision:
        raise InvalidInputError(f"{source}: weights from the Hub need `revision`, a commit, so that they stay the same")
    return {"revision": revision}


def check_loading_info(place: str, kind: str, loading_info: Mapping[str, Any], licence: str) -> None:
    """Raise if the loading info of `from_pretrained` names tensors that are missing, too many or of another shape.

    Derived buffers may be in the file: the class computes them from the sizes of the model.
    """
    wrong = {problem: sorted(map(str, keys)) for problem, keys in loading_info.items() if problem != "error_msgs"}
    wrong["unexpected_keys"] = [key for key in wrong.get("unexpected_keys", ()) if not DERIVED.search(key)]
    if wrong := {problem: keys for problem, keys in wrong.items() if keys}:
        terms = f"; licence {licence}" if licence else ""
        raise ModelUnavailableError(f"{place}: the weights are not those of {kind}: {wrong}{terms}")


def load_tensors(file: Path) -> dict[str, Any]:
    """Return the tensors of a safetensors file by name; raise `UnreadableFileError` if it is invalid."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(file))
    except (SafetensorError, OSError) as error:
        raise UnreadableFileError(f"{file} is no whole safetensors file ({first_lines(error)})") from error


def first_lines(error: Exception) -> str:
    """Return the first two lines of an error, as PyTorch goes on to name every tensor."""
    return " ".join(line.strip() for line in str(error).splitlines()[:2])
