"""What the systems of the MusicGen family (Copet et al., 2023) share: loading, texts, sampling, numbers of an item."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditInstruction
from music_evals.editing._loading import check_found, hub_options
from music_evals.editing.memory import check_stored
from music_evals.editing.precision import dtype_of
from music_evals.errors import ModelUnavailableError, hub_errors, importing

__all__ = ["LICENCE", "MAX_SECONDS", "TEXTS", "MusicGenModel", "text_of"]

LICENCE: Final = "CC-BY-NC-4.0"
MAX_SECONDS: Final = 30.0  # the models were trained on
TEXTS_KEPT: Final = 1024  # encoded, about 100 kB each
TEXTS: Final = {"target_caption": ("target_caption",), "source_prompt": ("source_prompt",), "instruction": ()}
"""What of an instruction the model is told -> what the instruction must hold for it."""


def text_of(instruction: EditInstruction, text: str) -> str:
    """Return what the model is told: one of `TEXTS`."""
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
        encoder.forward = _remembering(encoder.forward)
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
            model, found = getattr(transformers, kind).from_pretrained(
                os.fspath(source), use_safetensors=True, output_loading_info=True, dtype=dtype, **options
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(os.fspath(source), **options)
        except hub_errors() as error:
            raise ModelUnavailableError(
                f"{source}: MusicGen cannot be loaded ({error}); needed are config.json, the weights as safetensors "
                f"and the files of the tokenizer, at the revision that is named, licence {LICENCE}"
            ) from error
        check_found(str(source), kind, found, LICENCE)
        return cls(model.to(device), tokenizer, precision=precision)

    @property
    def sample_rate(self) -> int:
        """Of its codec in Hz."""
        return int(self.model.config.audio_encoder.sampling_rate)

    def generate(
        self, text: str, seconds: float, seed: int, chosen: dict[str, Any], **conditions: Any
    ) -> npt.NDArray[np.float32]:
        """Return music for a text, shape (channels, samples), at least `seconds` long by less than a frame more.

        The generator of torch is seeded for this item alone and left as it was: MusicGen takes none of its own.
        """
        import torch

        model, device = self.model, self.model.device
        n_frames = int(np.ceil(round(seconds * model.config.audio_encoder.frame_rate, 6)))
        delay = model.decoder.config.num_codebooks // model.decoder.config.audio_channels - 1
        told = self.tokenizer([text], return_tensors="pt", return_token_type_ids=False).to(device)
        gpus = [device.index or 0] if device.type == "cuda" else []
        with torch.no_grad(), torch.random.fork_rng(gpus):
            torch.manual_seed(seed)
            found = model.generate(
                **told,
                **conditions,
                do_sample=True,
                guidance_scale=chosen["guidance"],
                top_k=chosen["top_k"],
                temperature=chosen["temperature"],
                max_new_tokens=n_frames + delay,
            )
        samples: npt.NDArray[np.float32] = found[0].float().cpu().numpy()
        return samples


def _remembering(encode: Callable[..., Any]) -> Callable[..., Any]:
    """Return an encoder of texts that keeps what it made of the last ones, each where it was made."""
    made: dict[Any, Any] = {}

    @functools.wraps(encode)
    def encoded(*given: Any, **options: Any) -> Any:
        ids, mask = options.get("input_ids"), options.get("attention_mask")
        if given or ids is None or mask is None:
            return encode(*given, **options)
        key = (str(ids.device), tuple(ids.shape), tuple(ids.flatten().tolist()), tuple(mask.flatten().tolist()))
        if key not in made:
            made[key] = encode(**options)
            while len(made) > TEXTS_KEPT:
                del made[next(iter(made))]
        return type(made[key])(**made[key])  # the caller may write to what it gets

    return encoded
