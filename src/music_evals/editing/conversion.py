"""Weights that others publish: pickled files made safetensors, and what loads these at a commit, all tensors or none.

The one place where a pickled file is opened. It is read with ``weights_only=True``, which makes nothing but tensors,
texts and numbers, in a process that has an end to its time and memory and neither network nor other programs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    ModelUnavailableError,
    MusicEvalsError,
    UnreadableFileError,
    hub_errors,
)
from music_evals.files import written_whole
from music_evals.lyrics.model_files import PRECISIONS, dtype_of
from music_evals.processes import ReaderProcess

__all__ = ["MOST_BYTES", "PRECISIONS", "convert", "dtype_of", "require_converted"]

MOST_BYTES: Final = 8 * 2**30  # of all files of a model; MusiConGen's has 2.8 GB
TIMEOUT_SEC: Final = 1800.0
_MADE_OF: Final = {
    "model.safetensors": ("pytorch_model.bin", "pytorch_model-*.bin", "inpainting_part?.pth", "feedback_part?.pth"),
    "diffusion_pytorch_model.safetensors": ("diffusion_pytorch_model.bin", "diffusion_pytorch_model-*.bin"),
    "state_dict.safetensors": ("state_dict.bin",),
}
"""File -> the pickled files that it is made of, where they lie in its folder."""
_FORBIDDEN: Final = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")


def convert(folder: str | os.PathLike[str], *, most_bytes: int = MOST_BYTES) -> list[Path]:
    """Write one safetensors file beside the pickled files of each model in a folder and below; return what was written.

    Known are the files of transformers (``pytorch_model.bin``), diffusers (``diffusion_pytorch_model.bin``), both in
    one file or several, of RefinPaint (``inpainting_part1.pth``, ...) and MusiConGen (``state_dict.bin``). A model that
    has its safetensors is left as it is. A file is written whole or not at all, all types of numbers are kept, and the
    pickled files stay. All files of one model have at most `most_bytes`.

    Raises
    ------
    FileTooLargeError, UnreadableFileError
        Files are too large, hold something else than tensors, or name a tensor twice.
    ParserCrashError
        The process needed more than four times the size of the files and 2 GiB of memory, or half an hour.
    OutputError
        The folder cannot be written to.
    """
    written = []
    for target, files in _unconverted(Path(folder)):
        if (size := sum(file.stat().st_size for file in files)) > most_bytes:
            message = f"{target.parent}: {size} bytes are more than such a model has ({most_bytes})"
            raise FileTooLargeError(message, name=str(target.parent), unit="bytes", limit=most_bytes, size=size)
        memory = 4 * size + 2 * 2**30  # about twice the size is used, and PyTorch takes some itself
        process = ReaderProcess(_write, timeout_sec=TIMEOUT_SEC, label="conversion", memory_bytes=memory)
        try:
            with written_whole(target) as part:
                order = json.dumps([*map(str, files), str(part)]).encode()
                if isinstance(error := process.read(order, name=str(target.parent)), MusicEvalsError):
                    raise error
        finally:
            process.close()
        written.append(target)
    return written


def require_converted(folder: Path) -> None:
    """Raise `ModelUnavailableError` where a folder, or one below, holds pickled files and no safetensors beside."""
    for target, files in _unconverted(folder):
        if any(target.parent.glob("*.safetensors")):  # MusicGen's repositories hold a checkpoint of audiocraft, too
            continue
        raise ModelUnavailableError(
            f"{files[0]} is a pickled file, and only safetensors are loaded; make {target.name} of it once, without a "
            f"network: music-evals convert {folder}"
        )


def _unconverted(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield what can be made of pickled files in a folder and below, each with these."""
    for place in sorted({folder, *(path for path in folder.rglob("*") if path.is_dir())}):
        for name, patterns in _MADE_OF.items():
            files = sorted(file for pattern in patterns for file in place.glob(pattern))
            if files and not any(place.glob(name.replace(".", "*."))):  # which may be several files
                yield place / name, files


def _write(order: bytes) -> None:
    """Write the tensors of files into the last one that is named."""
    import torch
    from safetensors.torch import save_file

    sys.addaudithook(_refuse)
    *files, part = json.loads(order)
    tensors: dict[str, torch.Tensor] = {}
    for file in files:
        try:
            checkpoint = torch.load(file, map_location="cpu", weights_only=True)
            state = dict(checkpoint.get("best_state", checkpoint))  # where the checkpoints of audiocraft hold theirs
        except Exception as error:  # the unpickler raises whatever the file makes it raise
            why = next(iter(str(error).splitlines()), "")
            raise UnreadableFileError(f"{file} holds something else than tensors ({why})") from error
        if not state or not all(isinstance(tensor, torch.Tensor) for tensor in state.values()):
            raise UnreadableFileError(f"{file} holds something else than tensors by name")
        if double := state.keys() & tensors.keys():
            raise UnreadableFileError(f"{file} repeats {min(double)!r} of an earlier file")
        # copies: safetensors holds no tensors that share their numbers, as what is published under two names does
        tensors |= {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()}
    save_file(tensors, part, metadata={"format": "pt"})


def _refuse(event: str, _: Any) -> None:
    """Refuse network and other programs to the whole process, as an audit hook of Python."""
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"{event} is not allowed where pickled files are read")


# How systems load them.

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


@contextlib.contextmanager
def loading(title: str, source: str | os.PathLike[str], needed: str, licence: str) -> Iterator[None]:
    """Raise `ModelUnavailableError` where weights cannot be loaded, with the files that are needed."""
    try:
        yield
    except hub_errors() as error:
        terms = f", licence {licence}" if licence else ""
        raise ModelUnavailableError(
            f"{source}: {title} cannot be loaded ({error}); needed: {needed}, at the revision that is named{terms}"
        ) from error


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
