"""Weights of RefinPaint from files: our own folder, or the ten parts that its authors publish."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch

from music_evals.editing._loading import first_lines, hub_options, read_tensors
from music_evals.editing._refinpaint_networks import RefinPaintNetworks
from music_evals.errors import ModelUnavailableError, UnreadableFileError, hub_errors
from music_evals.files import parse_json

__all__ = ["N_PARTS", "load"]

N_PARTS: Final = 5
"""Each network is published as one set of tensors in five files."""
MOST_BYTES: Final = 256 * 2**20  # of one part; the larger network has 187 MB in all
NAMES: Final = "names.json"
_NETWORKS: Final = {"inpainter": ("inpainting", "transformer."), "feedback": ("feedback", "")}
_BUFFERS: Final = {"pos_weight"}  # of the loss, used in training only


def load(source: Path | str, revision: str | None) -> RefinPaintNetworks:
    """Return the networks of a folder, or of a repository of the Hub at a commit.

    The authors' parts are merged, and their tensors must have our names, those of PyTorch's own layers, or
    ``names.json`` beside them must give, for ``inpainter`` and ``feedback``, our name -> their name, or a list of names
    whose tensors are stacked. The names in the published files were not seen when this was written.

    Raises
    ------
    InvalidInputError
        An id without a revision.
    ModelUnavailableError
        Files are missing.
    FileTooLargeError, UnreadableFileError
        A part is larger than all of them should be, is no set of tensors, or tensors are missing, left over or of
        another shape.

    """
    if isinstance(source, Path) and (source / "inpainting_part1.pth").exists():
        return _from_parts(source)
    if isinstance(source, Path):
        for name in ("config.json", "model.safetensors"):
            if not (source / name).exists():
                raise ModelUnavailableError(
                    f"{source} holds neither {name} nor inpainting_part1.pth; RefinPaint's weights are in "
                    "github.com/ta603/RefinPaint, folder checkpoints, licence CC-BY-NC-SA-4.0"
                )
    options = hub_options(source, revision)
    from safetensors import SafetensorError

    try:
        return RefinPaintNetworks.from_pretrained(str(source), **options, strict=True)
    except (SafetensorError, RuntimeError, TypeError) as error:
        raise UnreadableFileError(
            f"the weights in {source} do not fit its config.json ({first_lines(error)})"
        ) from error
    except hub_errors() as error:
        raise ModelUnavailableError(f"{source} at {revision}: RefinPaint cannot be loaded ({error})") from error


def _from_parts(folder: Path) -> RefinPaintNetworks:
    config, names = (_json(folder / name) for name in ("config.json", NAMES))
    networks = RefinPaintNetworks(**config)
    for ours, (stem, prefix) in _NETWORKS.items():
        theirs = {name.removeprefix(prefix): tensor for name, tensor in _merged(folder, stem).items()}
        theirs = {name: tensor for name, tensor in theirs.items() if name not in _BUFFERS}
        network = getattr(networks, ours)
        wanted = list(network.state_dict())
        found, used = {}, set()
        for name in wanted:
            asked = names.get(ours, {}).get(name, name)
            sources = [asked] if isinstance(asked, str) else list(asked)
            missing = [one for one in sources if one not in theirs]
            if missing:
                raise UnreadableFileError(
                    f"{folder}: {stem} parts hold no tensor {missing[0]!r} for {ours}.{name}; say in {NAMES} what it "
                    f"is called there; they hold {', '.join(sorted(theirs)[:5])}, ..."
                )
            used.update(sources)
            found[name] = torch.cat([theirs[one] for one in sources]).float()
        left = sorted(set(theirs) - used)
        if left:
            raise UnreadableFileError(f"{folder}: {stem} parts hold tensors without a place: {', '.join(left[:5])}")
        try:
            network.load_state_dict(found, strict=True)
        except RuntimeError as error:
            raise UnreadableFileError(f"{folder}: {stem} parts do not fit ({first_lines(error)})") from error
    return networks


def _merged(folder: Path, stem: str) -> dict[str, torch.Tensor]:
    """Return the tensors of all parts of a network; nothing but tensors is read from them."""
    merged: dict[str, torch.Tensor] = {}
    for part in range(1, N_PARTS + 1):
        file = folder / f"{stem}_part{part}.pth"
        if not file.exists():
            raise ModelUnavailableError(f"{folder} holds no {file.name}; all {N_PARTS} parts of {stem} are needed")
        tensors = read_tensors(file, MOST_BYTES)
        if double := set(tensors) & set(merged):
            raise UnreadableFileError(f"{file} repeats {min(double)!r} of an earlier part")
        merged.update(tensors)
    return merged


def _json(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        values = parse_json(file.read_bytes(), str(file))
    except ValueError as error:
        raise UnreadableFileError(f"{file} is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise UnreadableFileError(f"{file} holds no values by name")
    return values
