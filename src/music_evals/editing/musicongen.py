"""MusiConGen (Lan et al., ISMIR 2024): a description, along the chords and beats of the source.

The melody model of MusicGen, fine-tuned so that it is told the chords and beats of each frame. They come with the
request as values; who hears them is not the metrics' own extractor (`pipelines.edit_conditions`).

Deviations from the authors' code: chords that are not known are told as none, not as -1; what is told are 30 s in any
case, a shorter source repeated, but only as much as the source lasts is generated.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, Self

from music_evals.annotations import EditorInfo, EditRequest, Weights
from music_evals.editing._musicgen import TEXTS, MusicGenModel, text_of
from music_evals.editing._musicongen import MusiConGenModel, mapped_tensors, read_checkpoint, repeated
from music_evals.editing.memory import weight_bytes
from music_evals.editing.musicgen import MusicGen
from music_evals.editing.system import Edited, Seeds
from music_evals.errors import InvalidInputError, ModelUnavailableError, hub_errors

__all__ = ["MusiConGen", "from_checkpoint"]

WEIGHTS: Final = "Cyan0731/MusiConGen"
BASE: Final = "facebook/musicgen-melody"
CHECKPOINT: Final = "state_dict.bin"


class MusiConGen(MusicGen):
    """Makes music for a description along the chords and beats of the source.

    Parameters
    ----------
    model
        `from_pretrained` loads it.
    text, guidance, top_k, temperature, weights
        As of `MusicGen`.

    Raises
    ------
    ModelUnavailableError
        No weights are given; the message says which there are, and under what licence.
    InvalidInputError
        A number out of range.

    """

    _name, _title, _where = "musicongen", "MusiConGen, with the chords and beats of the source", WEIGHTS

    _model: MusiConGenModel

    def to(self, device: str) -> Self:
        """Move the model to a device."""
        self._model.to(device)
        return self

    @classmethod
    def from_pretrained(
        cls,
        source: str | os.PathLike[str],
        *,
        revision: str | None = None,
        device: str = "cpu",
        precision: str = "fp32",
        base: str | os.PathLike[str] = BASE,
        base_revision: str | None = None,
        **parameters: Any,
    ) -> MusiConGen:
        """Load the published checkpoint over the melody model of MusicGen.

        Parameters
        ----------
        source, revision
            A folder with ``state_dict.bin``; or an id of the Hub with its commit.
        device, precision
            Where, and in what, it computes.
        base, base_revision
            The melody model, whose text encoder, codec, tokenizer and sizes it has: a folder, or an id with its commit.
        **parameters
            Of the system.

        Raises
        ------
        InvalidInputError
            An id without its commit; a precision that the device does not have.
        ModelUnavailableError
            Files are not there, or tensors are missing, too many or of another shape.
        UnreadableFileError, FileTooLargeError
            The checkpoint is none.

        """
        path = _checkpoint(source, revision)
        held = MusicGenModel.from_pretrained(
            "MusicgenMelodyForConditionalGeneration", base, revision=base_revision, device=device, precision=precision
        )
        model = from_checkpoint(held, path)
        return cls(model, weights=Weights(os.fspath(source), revision or "", cls.licence, (CHECKPOINT,)), **parameters)

    def memory(self, seconds: float) -> tuple[int, int]:
        """Return the bytes of the weights, and about how many an edit takes besides."""
        weights, working = super().memory(seconds)
        return weights + weight_bytes(self._model.chord_proj, self._model.beat_proj), working

    @property
    def info(self) -> EditorInfo:
        """What it is, what it needs, and the parameters that it was made with."""
        return EditorInfo(
            name=self._name,
            title=self._title,
            paper="Lan et al. (2024), MusiConGen: Rhythm and chord control for text-to-music generation",
            weights=(self._weights,) if self._weights else (),
            needs=(*TEXTS[self._parameters["text"]], "conditions"),
            sample_rate=self._model.sample_rate,
            mono=True,
            max_seconds=30.0,
            deterministic=False,
            parameters=self._parameters,
            backbone="autoregressive",
        )

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        assert request.conditions is not None  # `needs` says so
        chords, beats = repeated(request.conditions, request.duration_sec)
        told = text_of(request.instruction, self._parameters["text"])
        made = self._model.generate_told(
            told, request.duration_sec, seeds.item, self._parameters, chords=chords, beats=beats
        )
        return Edited(made, self._model.sample_rate)


def _checkpoint(source: str | os.PathLike[str], revision: str | None) -> Path:
    if Path(source).is_dir():
        path = Path(source, CHECKPOINT)
        if not path.is_file():
            raise ModelUnavailableError(
                f"{source} holds no {CHECKPOINT}, which {WEIGHTS} publishes; fetch it from there"
            )
        return path
    if not revision:
        raise InvalidInputError(f"{source}: weights from the Hub need `revision`, a commit, so that they stay the same")
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(os.fspath(source), CHECKPOINT, revision=revision))
    except hub_errors() as error:
        raise ModelUnavailableError(f"{source} at {revision}: {CHECKPOINT} cannot be fetched ({error})") from error


def from_checkpoint(base: MusicGenModel, path: Path) -> MusiConGenModel:
    """Return MusiConGen: the tensors of its checkpoint in place of those of the melody model.

    Parameters
    ----------
    base
        Melody model, which is changed; its text encoder and codec are kept.
    path
        ``state_dict.bin``.

    Raises
    ------
    ModelUnavailableError
        Tensors are missing, too many or of another shape.
    UnreadableFileError, FileTooLargeError
        The file is no such checkpoint.

    """
    import torch

    tensors = mapped_tensors(read_checkpoint(path))
    model = base.model
    width = model.decoder.config.hidden_size
    chord, beat = torch.nn.Linear(12, width), torch.nn.Linear(1, width)
    projections = torch.nn.ModuleDict({"chord_proj": chord, "beat_proj": beat})
    places = {name: value for name, value in model.state_dict().items() if _is_replaced(name)}
    places |= projections.state_dict()
    wrong = {
        "missing": sorted(places.keys() - tensors.keys()),
        "too many": sorted(tensors.keys() - places.keys()),
        "of another shape": sorted(
            name for name in places.keys() & tensors.keys() if places[name].shape != tensors[name].shape
        ),
    }
    wrong = {what: names[:5] for what, names in wrong.items() if names}
    if wrong:
        raise ModelUnavailableError(f"{path}: the weights are not those of MusiConGen: {wrong}")
    for name, place in places.items():
        place.copy_(tensors[name])
    projections.load_state_dict({name: tensors[name].float() for name in projections.state_dict()})
    return MusiConGenModel(model, base.tokenizer, chord_proj=chord, beat_proj=beat, precision=base.precision)


def _is_replaced(name: str) -> bool:
    return name.startswith(("decoder.", "enc_to_dec_proj."))
