"""MusicGen by text alone (Copet et al., 2023): the row "Vanilla" of MuseCPBench, which ignores its source.

The source gives the length and nothing else. What a metric finds in common between both is therefore chance, and
what their descriptions share.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from music_evals.annotations import EditorInfo, EditRequest, Weights
from music_evals.editing._loading import without_weights
from music_evals.editing._musicgen import (
    LICENCE,
    MAX_SECONDS,
    PICKLED,
    TEXTS,
    MusicGenModel,
    checkpoint,
    lay_over,
    text_of,
)
from music_evals.editing.memory import musicgen_bytes, weight_bytes
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.protocols.settings import check_parameters

__all__ = ["MusicGen"]

SYSTEMS = {"musicgen": "MusicGen"}

WEIGHTS: Final = "facebook/musicgen-small"


class MusicGen(Editor):
    """Makes music for a description, as long as the source.

    Parameters
    ----------
    model
        `from_pretrained` loads it.
    text
        The prompt: ``"target_caption"``, ``"source_prompt"``, or the ``"instruction"`` in its own words.
    guidance
        How strongly the text counts (3, authors' code).
    top_k, temperature
        Of sampling (250 and 1, authors' code).
    weights
        Where the model comes from, for records; several where it has parts.

    Raises
    ------
    ModelUnavailableError
        No weights are given; the message says which there are, and under what licence.
    InvalidInputError
        A number out of range.

    """

    _name, _title, _where = "musicgen", "MusicGen, by text alone", WEIGHTS
    _kind = "MusicgenForConditionalGeneration"
    _base: ClassVar[str | None] = None

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

    def to(self, device: str) -> Self:
        """Move the model to a device."""
        self._model.model.to(device)
        return self

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
        """Load the model.

        Parameters
        ----------
        source, revision
            A folder, or an id of the Hub with its commit: files of transformers or, with a base, one of audiocraft.
        device, precision
            Where, and in what, it computes; the latter is one of `precision.PRECISIONS`.
        base, base_revision
            A model of equal sizes in the form of transformers, whose text encoder, codec and tokenizer a checkpoint of
            audiocraft (``state_dict.bin``) is used with: a folder, or an id with its commit.
        **parameters
            Of the system.

        Raises
        ------
        InvalidInputError
            An id without its commit; a precision that the device does not have.
        ModelUnavailableError
            Files are not there or not converted (`conversion`), or tensors are missing, too many or of another shape.
        UnreadableFileError, FileTooLargeError
            Not an audiocraft checkpoint.

        """
        base = base or cls._base
        if base is None:
            if base_revision:
                raise InvalidInputError(f"{cls._name}: `base_revision` is the commit of a `base`; name that, too")
            model = MusicGenModel.from_pretrained(
                cls._kind, source, revision=revision, device=device, precision=precision
            )
            return cls(model, weights=Weights(os.fspath(source), revision or "", LICENCE), **parameters)
        path = checkpoint(source, revision, cls._where)
        below = MusicGenModel.from_pretrained(
            cls._kind, base, revision=base_revision, device=device, precision=precision
        )
        weights = (
            Weights(os.fspath(source), revision or "", LICENCE, (PICKLED,)),
            Weights(os.fspath(base), base_revision or "", LICENCE),
        )
        return cls(cls._laid_over(below, path), weights=weights, **parameters)

    @staticmethod
    def _laid_over(base: MusicGenModel, path: Path) -> MusicGenModel:
        """Return a model with the tensors of a checkpoint of audiocraft in place of its own."""
        lay_over(base.model, path)
        return base

    def memory(self, seconds: float) -> tuple[int, int]:
        """Return the bytes of the weights, and about how many an edit takes besides."""
        model = self._model.model
        return weight_bytes(model), musicgen_bytes(model, seconds, getattr(model.config, "chroma_length", 0))

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
        prompt = text_of(request.instruction, self._parameters["text"])
        samples = self._model.generate(
            prompt, request.duration_sec, seeds.item, self._parameters, **self._conditions(request)
        )
        return Edited(samples, self._model.sample_rate)

    def _conditions(self, request: EditRequest) -> dict[str, Any]:  # noqa: ARG002 (the source is ignored)
        """Return what the model is given beside the text."""
        return {}
