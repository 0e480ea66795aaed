"""What the systems of the MusicGen family (Copet et al., 2023) share: loading, texts, sampling, numbers of an item."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditInstruction
from music_evals.editing._loading import check_loading_info, hub_options, load_tensors
from music_evals.editing.conversion import convert
from music_evals.editing.memory import check_stored
from music_evals.editing.precision import dtype_of
from music_evals.errors import ModelUnavailableError, hub_errors, importing

if TYPE_CHECKING:
    import torch

__all__ = ["LICENCE", "MAX_SECONDS", "TEXTS", "MusicGenModel", "checkpoint", "lay_over", "text_of"]

LICENCE: Final = "CC-BY-NC-4.0"
MAX_SECONDS: Final = 30.0  # the models were trained on
TEXTS_KEPT: Final = 1024  # encoded, about 100 kB each
TEXTS: Final = {"target_caption": ("target_caption",), "source_prompt": ("source_prompt",), "instruction": ()}
"""Option `text`, the part of the instruction that becomes the prompt -> the fields that it needs."""


def text_of(instruction: EditInstruction, text: str) -> str:
    """Return the prompt for the model: the text that one of `TEXTS` names."""
    return {
        "target_caption": instruction.target_caption(),
        "source_prompt": instruction.source_prompt,
        "instruction": instruction.text,
    }[text]


class MusicGenModel:
    """A model of the family in transformers with its tokenizer, in evaluation mode; a text is encoded once.

    Parameters
    ----------
    model
        `transformers.MusicgenForConditionalGeneration`, or the one for melodies.
    tokenizer
        Of its text encoder.
    precision
        What it computes in, for records.

    """

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
        """Load a folder, or a repository of the Hub at a revision: every tensor of the model, and no other.

        Parameters
        ----------
        kind
            Name of the class in transformers.
        source, revision
            A folder; or an id with its commit.
        device, precision
            Where, and in what, it computes.

        Raises
        ------
        InvalidInputError
            An id without a revision: its weights could change; a precision that the device does not have.
        ModelUnavailableError
            The weights are not there, or have tensors missing or too many.

        """
        options = hub_options(source, revision)
        with importing("editing", "MusicGen"):
            import transformers
        dtype = dtype_of(precision, device)
        check_stored(source, device)
        try:
            model, loading_info = getattr(transformers, kind).from_pretrained(
                os.fspath(source), use_safetensors=True, output_loading_info=True, dtype=dtype, **options
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(os.fspath(source), **options)
        except hub_errors() as error:
            raise ModelUnavailableError(
                f"{source}: MusicGen cannot be loaded ({error}); needed are config.json, the weights as safetensors "
                f"and the files of the tokenizer, at the revision that is named, licence {LICENCE}"
            ) from error
        check_loading_info(str(source), kind, loading_info, LICENCE)
        return cls(model.to(device), tokenizer, precision=precision)

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
    """Return the checkpoint of a folder, or that of a repository of the Hub, which is converted where it was fetched.

    Raises
    ------
    InvalidInputError
        An id without a revision.
    ModelUnavailableError
        It is not there, or a folder holds it as a pickled file.
    UnreadableFileError, FileTooLargeError, ParserCrashError
        As `conversion.convert` raises them.

    """
    options = hub_options(source, revision)
    folder = Path(source)
    if options:
        from huggingface_hub import hf_hub_download

        try:
            folder = Path(hf_hub_download(os.fspath(source), PICKLED, **options)).parent
        except hub_errors() as error:
            raise ModelUnavailableError(f"{source} at {revision}: {PICKLED} cannot be fetched ({error})") from error
        convert(folder)
    if not (folder / CHECKPOINT).is_file():
        raise ModelUnavailableError(f"{source} holds no {PICKLED}, which {published} publishes; fetch it from there")
    return folder / CHECKPOINT


def lay_over(model: Any, path: Path, added: Mapping[str, torch.nn.Linear] | None = None) -> None:
    """Put the tensors of a checkpoint of audiocraft in place of those of a model of transformers.

    Parameters
    ----------
    model
        It is changed; its text encoder and codec are kept.
    path
        ``state_dict.safetensors``.
    added
        Layers that the model lacks and the checkpoint has, which stand in place of its melody's; they are changed too.

    Raises
    ------
    ModelUnavailableError
        Tensors are missing, too many or of another shape.
    UnreadableFileError
        The file is no such checkpoint.

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
