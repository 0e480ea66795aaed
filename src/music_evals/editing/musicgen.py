"""MusicGen (Copet et al., 2023) by text alone, the row "Vanilla" of MuseCPBench, and what its family shares.

By text alone the source gives the length and nothing else. What a metric finds in common between both is therefore
chance, and what their descriptions share.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditorInfo, EditRequest, Weights
from music_evals.editing.conversion import (
    check_loading_info,
    convert,
    dtype_of,
    hub_options,
    load_tensors,
    loading,
    without_weights,
)
from music_evals.editing.memory import check_stored, musicgen_bytes, weight_bytes
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.errors import InvalidInputError, ModelUnavailableError, UnknownNameError, importing
from music_evals.protocols.settings import check_parameters

if TYPE_CHECKING:
    import torch

__all__ = ["MusicGen"]

SYSTEMS = {"musicgen": "MusicGen"}

WEIGHTS: Final = "facebook/musicgen-small"
LICENCE: Final = "CC-BY-NC-4.0"
MAX_SECONDS: Final = 30.0  # the models were trained on
TEXTS_KEPT: Final = 1024  # encoded, about 100 kB each
TEXTS: Final = {"target_caption": ("target_caption",), "source_prompt": ("source_prompt",), "instruction": ()}
"""Option `text`, the part of the instruction that becomes the prompt -> the fields that it needs."""


class MusicGenModel:
    """A model of the family in transformers with its tokenizer, in evaluation mode; a text is encoded once."""

    def __init__(self, model: Any, tokenizer: Any, *, precision: str = "fp32") -> None:
        self.model = model.eval().requires_grad_(requires_grad=False)
        encoder = self.model.text_encoder
        encoder.forward = _cached_encoder(encoder.forward)
        self.tokenizer, self.precision = tokenizer, precision

    @classmethod
    def from_pretrained(
        cls,
        kind: str,
        source: str | os.PathLike[str],
        *,
        revision: str | None = None,
        device: str = "cpu",
        precision: str = "fp32",
    ) -> MusicGenModel:
        """Load a class of transformers from a folder, or from the Hub at a commit: all of its tensors, and no other."""
        options = hub_options(source, revision)
        with importing("editing", "MusicGen"):
            import transformers
        dtype = dtype_of(precision, device)
        check_stored(source, device)
        with loading(
            "MusicGen", source, "config.json, the weights as safetensors, the files of the tokenizer", LICENCE
        ):
            model, loading_info = getattr(transformers, kind).from_pretrained(
                os.fspath(source), use_safetensors=True, output_loading_info=True, dtype=dtype, **options
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(os.fspath(source), **options)
        check_loading_info(str(source), kind, loading_info, LICENCE)
        return cls(model.to(device), tokenizer, precision=precision)

    @property
    def parts(self) -> tuple[Any, ...]:
        """All modules of torch."""
        return (self.model,)

    def to(self, device: str) -> None:
        """Move all of it to a device."""
        for part in self.parts:
            part.to(device)

    @property
    def sample_rate(self) -> int:
        """Of its codec in Hz."""
        return int(self.model.config.audio_encoder.sampling_rate)

    def generate(
        self, text: str, seconds: float, seed: int, chosen: dict[str, Any], **conditions: Any
    ) -> npt.NDArray[np.float32]:
        """Return music for a text, shape (channels, samples), at least `seconds` long by less than a frame more.

        The generator of torch is seeded for this item alone and left as it was: MusicGen takes no generator.
        """
        import torch

        model, device = self.model, self.model.device
        n_frames = int(np.ceil(round(seconds * model.config.audio_encoder.frame_rate, 6)))
        delay = model.decoder.config.num_codebooks // model.decoder.config.audio_channels - 1
        encoded = self.tokenizer([text], return_tensors="pt", return_token_type_ids=False).to(device)
        gpus = [device.index or 0] if device.type == "cuda" else []
        with torch.no_grad(), torch.random.fork_rng(gpus):
            torch.manual_seed(seed)
            generated = model.generate(
                **encoded,
                **conditions,
                do_sample=True,
                guidance_scale=chosen["guidance"],
                top_k=chosen["top_k"],
                temperature=chosen["temperature"],
                max_new_tokens=n_frames + delay,
            )
        samples: npt.NDArray[np.float32] = generated[0].float().cpu().numpy()
        return samples


def _cached_encoder(encode: Callable[..., Any]) -> Callable[..., Any]:
    """Return an encoder with a cache of the last texts, each on the device of its ids."""
    cache: dict[Any, Any] = {}

    @functools.wraps(encode)
    def encoded(*args: Any, **options: Any) -> Any:
        ids, mask = options.get("input_ids"), options.get("attention_mask")
        if args or ids is None or mask is None:
            return encode(*args, **options)
        key = (str(ids.device), tuple(ids.shape), tuple(ids.flatten().tolist()), tuple(mask.flatten().tolist()))
        if key not in cache:
            cache[key] = encode(**options)
            while len(cache) > TEXTS_KEPT:
                del cache[next(iter(cache))]
        return type(cache[key])(**cache[key])  # the caller may write to what it gets

    return encoded


# Checkpoints in the form of the authors' package, audiocraft.

PICKLED: Final = "state_dict.bin"  # as audiocraft exports it
CHECKPOINT: Final = "state_dict.safetensors"  # as `conversion.convert` makes it of that
_NAMES: Final = {
    r"transformer\.layers": "decoder.model.decoder.layers",
    r"cross_attention\.": "encoder_attn.",
    r"norm_cross\.": "encoder_attn_layer_norm.",
    r"norm1\.": "self_attn_layer_norm.",
    r"norm2\.": "final_layer_norm.",
    r"linear([12])\.": r"fc\1.",
    r"^emb\.": "decoder.model.decoder.embed_tokens.",
    r"^linears\.": "decoder.lm_heads.",
    r"^out_norm\.": "decoder.model.decoder.layer_norm.",
    r"^condition_provider\.conditioners\.description\.output_proj": "enc_to_dec_proj",
    r"^condition_provider\.conditioners\.self_wav\.output_proj": "audio_enc_to_dec_proj",
    r"^condition_provider\.conditioners\.(chord|beat)\.output_proj": r"\1_proj",
}
"""Part of a name in audiocraft -> the same in transformers, or in a system of ours."""
_STACKED: Final = ".in_proj_weight"  # queries, keys and values
_DERIVED: Final = "condition_provider.conditioners.self_wav.chroma.spec.window"  # Hann's


def checkpoint(source: str | os.PathLike[str], revision: str | None, published: str) -> Path:
    """Return the checkpoint of a folder, or that of a repository of the Hub, converted where it was fetched."""
    options = hub_options(source, revision)
    folder = Path(source)
    if options:
        from huggingface_hub import hf_hub_download

        with loading("MusicGen", source, PICKLED, LICENCE):
            folder = Path(hf_hub_download(os.fspath(source), PICKLED, **options)).parent
        convert(folder)
    if not (folder / CHECKPOINT).is_file():
        raise ModelUnavailableError(f"{source} holds no {PICKLED}, which {published} publishes; fetch it from there")
    return folder / CHECKPOINT


def lay_over(model: Any, path: Path, added: Mapping[str, torch.nn.Linear] | None = None) -> None:
    """Put the tensors of a checkpoint of audiocraft in place of a model's own, but for text encoder and codec.

    `added` are layers that the model lacks and the checkpoint has, which stand in place of its melody's.
    """
    tensors: dict[str, torch.Tensor] = {}
    for name, tensor in load_tensors(path).items():
        place = name
        for theirs, ours in _NAMES.items():
            place = re.sub(theirs, ours, place)
        if place.endswith(_STACKED) and tensor.ndim:
            parts = zip("qkv", tensor.chunk(3), strict=False)
            tensors |= {place.replace(_STACKED, f".{kind}_proj.weight"): part for kind, part in parts}
        elif name != _DERIVED:
            tensors[place] = tensor
    replaced = ("decoder.", "enc_to_dec_proj.", *(() if added else ("audio_enc_to_dec_proj.",)))
    places = {name: value for name, value in model.state_dict().items() if name.startswith(replaced)}
    for part, layer in (added or {}).items():
        places |= {f"{part}.{name}": value for name, value in layer.state_dict().items()}
    wrong = {
        "missing": places.keys() - tensors.keys(),
        "too many": tensors.keys() - places.keys(),
        "of another shape": {
            name for name in places.keys() & tensors.keys() if places[name].shape != tensors[name].shape
        },
    }
    if mismatches := {problem: sorted(names)[:5] for problem, names in wrong.items() if names}:
        raise ModelUnavailableError(f"{path}: the weights do not fit the model below them: {mismatches}")
    for name, place_of in places.items():
        place_of.copy_(tensors[name])


class MusicGen(Editor):
    """Makes music for a description, as long as the source.

    `text` is the prompt: ``"target_caption"``, ``"source_prompt"``, or the ``"instruction"`` in its own words.
    `guidance` is how strongly it counts; this, `top_k` and `temperature` of sampling are by default those of the
    authors' code. `weights` says where the model comes from, for records; several where it has parts.
    `from_pretrained` loads the model; without one it is a `ModelUnavailableError`.
    """

    _name, _title, _where = "musicgen", "MusicGen, by text alone", WEIGHTS
    _kind = "MusicgenForConditionalGeneration"
    _base: ClassVar[str | None] = None

    _model: MusicGenModel
    licence = LICENCE
    BOUNDS: ClassVar = {"guidance": (1, 100), "top_k": (1, 100_000), "temperature": (0.001, 100)}

    def __init__(
        self,
        model: MusicGenModel | None = None,
        *,
        text: str = "target_caption",
        guidance: float = 3.0,
        top_k: int = 250,
        temperature: float = 1.0,
        weights: Weights | tuple[Weights, ...] = (),
    ) -> None:
        if model is None:
            raise without_weights(self._name, "MusicGen", self._where, LICENCE)
        self._model, self._weights = model, (weights,) if isinstance(weights, Weights) else weights
        if text not in TEXTS:
            raise UnknownNameError("text of an instruction", text, TEXTS)
        sampling = {"guidance": guidance, "top_k": top_k, "temperature": temperature}
        check_parameters(type(self), sampling)
        self._parameters: dict[str, Any] = {"text": text, **sampling, "precision": model.precision}

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str],
        *,
        revision: str | None = None,
        device: str = "cpu",
        precision: str = "fp32",
        base: str | os.PathLike[str] | None = None,
        base_revision: str | None = None,
        **parameters: Any,
    ) -> Self:
        """Load the model, from files of transformers or, with a base, from a checkpoint of audiocraft.

        Each is a folder, or an id of the Hub with its commit. The base is a model of equal sizes in the form of
        transformers, whose text encoder, codec and tokenizer the checkpoint (``state_dict.bin``) is used with. The
        precision is one of `conversion.PRECISIONS`, which the device must have, and an id needs its commit
        (`InvalidInputError`). Files that are not there or not converted, or that hold other tensors than the model has,
        are a `ModelUnavailableError`, an `UnreadableFileError` or a `FileTooLargeError`.
        """
        base = base or cls._base
        load = functools.partial(MusicGenModel.from_pretrained, cls._kind, device=device, precision=precision)
        if base is None:
            if base_revision:
                raise InvalidInputError(f"{cls._name}: `base_revision` is the commit of a `base`; name that, too")
            weights = Weights(os.fspath(source), revision or "", LICENCE)
            return cls(load(source, revision=revision), weights=weights, **parameters)
        path = checkpoint(source, revision, cls._where)
        both = (
            Weights(os.fspath(source), revision or "", LICENCE, (PICKLED,)),
            Weights(os.fspath(base), base_revision or "", LICENCE),
        )
        return cls(cls._laid_over(load(base, revision=base_revision), path), weights=both, **parameters)

    @staticmethod
    def _laid_over(base: MusicGenModel, path: Path) -> MusicGenModel:
        """Return a model with the tensors of a checkpoint of audiocraft in place of its own."""
        lay_over(base.model, path)
        return base

    def memory(self, seconds: float) -> tuple[int, int]:
        """Return the bytes of the weights, and about how many an edit takes besides."""
        model = self._model.model
        n_prefix = getattr(model.config, "chroma_length", 0)
        return weight_bytes(*self._model.parts), musicgen_bytes(model, seconds, n_prefix)

    def network_calls(self, seconds: float) -> int:
        """Return how often an edit calls the language model: once a frame, and once a codebook for their delays."""
        config = self._model.model.config
        return round(seconds * float(config.audio_encoder.frame_rate)) + int(config.decoder.num_codebooks)

    @property
    def info(self) -> EditorInfo:
        """What it is, what it needs, and the parameters that it was made with."""
        return EditorInfo(
            name=self._name,
            title=self._title,
            paper="Copet et al. (2023), Simple and controllable music generation",
            weights=self._weights,
            needs=TEXTS[self._parameters["text"]],
            sample_rate=self._model.sample_rate,
            mono=True,
            max_seconds=MAX_SECONDS,
            deterministic=False,
            parameters=self._parameters,
            backbone="autoregressive",
        )

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        instruction = request.instruction
        texts = {
            "target_caption": instruction.target_caption(),
            "source_prompt": instruction.source_prompt,
            "instruction": instruction.text,
        }
        samples = self._model.generate(
            texts[self._parameters["text"]],
            request.duration_sec,
            seeds.item,
            self._parameters,
            **self._conditions(request),
        )
        return Edited(samples, self._model.sample_rate)

    def _conditions(self, request: EditRequest) -> dict[str, Any]:  # noqa: ARG002 (the source is ignored)
        """Return what the model is given beside the text."""
        return {}
