"""Weights of RefinPaint from files: our own folder, or the ten parts that its authors publish, once converted.

The published names are those of the authors' classes at commit 1f3e6b2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import torch

from music_evals.editing._loading import first_lines, hub_options, load_tensors
from music_evals.editing._refinpaint_networks import RefinPaintNetworks
from music_evals.errors import ModelUnavailableError, UnreadableFileError, hub_errors
from music_evals.files import parse_json

__all__ = ["load", "published_names"]

_PLACES: Final = {
    "inpainter.token": "transformer.enc_token_emb",
    "inpainter.position": "transformer.position_emb",
    "inpainter.encoder": "transformer.encoder.layers",
    "inpainter.decoder": "transformer.decoder.decoder.layers",
    "inpainter.norm": "transformer.decoder.decoder.norm",
    "inpainter.head": "transformer.decoder.decoder.generator.proj",
    "feedback.token": "enc_token_emb",
    "feedback.position": "position_emb",
    "feedback.context": "ctx_emb",
    "feedback.layers": "encoder.layers",
    "feedback.head1": "clf.0",
    "feedback.head2": "clf.2",
}
_DECODER_PARTS: Final = {
    "self_attn.in_proj_": "self_attn.head_projs.{}.",
    "self_attn.out_proj.": "self_attn.fc.",
    "multihead_attn.in_proj_": "src_attn.head_projs.{}.",
    "multihead_attn.out_proj.": "src_attn.fc.",
    "linear1.": "pw_ffn.mlp.0.",
    "linear2.": "pw_ffn.mlp.3.",
    "norm1.": "sublayer.0.layer_norm.",
    "norm2.": "sublayer.1.layer_norm.",
    "norm3.": "sublayer.2.layer_norm.",
}
"""Of a layer of the decoder; queries, keys and values, which are one tensor here, are three there."""
_COPIES: Final = {
    "transformer.dec_token_emb.weight": "transformer.enc_token_emb.weight",
    "transformer.decoder.dec_token_emb.weight": "transformer.enc_token_emb.weight",
    "transformer.decoder.position_emb.weight": "transformer.position_emb.weight",
}
"""What is published under two names -> the one that is read; both must be equal."""
_NOT_READ: Final = {"pos_weight"}  # of the loss, used in training only


def published_names(name: str) -> list[str]:
    """Return what a tensor of ours is called in the published files: one name, or three that are stacked."""
    network, part, rest = name.split(".", 2)
    place = _PLACES[f"{network}.{part}"]
    if part != "decoder":
        return [f"{place}.{rest}"]
    layer, rest = rest.split(".", 1)
    start = next(start for start in _DECODER_PARTS if rest.startswith(start))
    there = f"{place}.{layer}.{_DECODER_PARTS[start]}{rest.removeprefix(start)}"
    return [there.format(third) for third in range(3)] if "{}" in there else [there]


def load(source: Path | str, revision: str | None) -> RefinPaintNetworks:
    """Return the networks of a folder, or of a repository of the Hub at a commit.

    A folder holds what `save_pretrained` writes, or ``model.safetensors`` as `conversion.convert` makes it of the ten
    published parts; the sizes are then the published ones, unless config.json gives others.

    Raises
    ------
    InvalidInputError
        An id without a revision.
    ModelUnavailableError
        Files are missing, or were not converted.
    UnreadableFileError
        A file is damaged, or tensors are missing, left over, of another shape or not equal to their copy.

    """
    options = hub_options(source, revision)
    if isinstance(source, Path):
        weights, config = source / "model.safetensors", source / "config.json"
        tensors = load_tensors(weights) if weights.exists() else {}
        if _PLACES["inpainter.token"] + ".weight" in tensors:
            sizes = parse_json(config.read_bytes(), str(config)) if config.exists() else {}
            return _published(tensors, sizes, weights)
        if not tensors or not config.exists():
            raise ModelUnavailableError(
                f"{source} holds neither the ten parts of RefinPaint's weights (github.com/ta603/RefinPaint, folder "
                "checkpoints, licence CC-BY-NC-SA-4.0) nor config.json and model.safetensors"
            )
    from safetensors import SafetensorError

    try:
        return RefinPaintNetworks.from_pretrained(str(source), **options, strict=True)
    except (SafetensorError, RuntimeError, TypeError) as error:
        raise UnreadableFileError(
            f"the weights in {source} do not fit its config.json ({first_lines(error)})"
        ) from error
    except hub_errors() as error:
        raise ModelUnavailableError(f"{source} at {revision}: RefinPaint cannot be loaded ({error})") from error


def _published(tensors: dict[str, torch.Tensor], sizes: dict[str, int], file: Path) -> RefinPaintNetworks:
    """Return networks with the tensors of the authors: all of them, and no other."""
    networks = RefinPaintNetworks(**sizes)
    names = {ours: published_names(ours) for ours in networks.state_dict()}
    known = {name for there in names.values() for name in there}
    if missing := sorted((known | _COPIES.keys()) - tensors.keys()):
        raise UnreadableFileError(f"{file} holds no {missing[0]}; remove it, and convert all ten published parts")
    if left := sorted(tensors.keys() - known - _COPIES.keys() - _NOT_READ):
        raise UnreadableFileError(f"{file} holds tensors that RefinPaint does not have: {', '.join(left[:5])}")
    for copy, name in _COPIES.items():
        if not torch.equal(tensors[copy], tensors[name]):
            raise UnreadableFileError(f"{file}: {copy} is not equal to {name}, as it should be")
    stacked = {ours: torch.cat([tensors[name] for name in there]).float() for ours, there in names.items()}
    try:
        networks.load_state_dict(stacked, strict=True)
    except RuntimeError as error:
        raise UnreadableFileError(f"{file} does not fit ({first_lines(error)})") from error
    return networks
