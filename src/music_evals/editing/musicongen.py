"""MusiConGen (Lan et al., ISMIR 2024): a description, along the chords and beats of the source.

The melody model of MusicGen, fine-tuned so that it is told the chords and beats of each frame. They come with the
request as values; who hears them is not the metrics' own extractor (`pipelines.edit_conditions`).

Deviations from the authors' code: chords that are not known are told as none, not as -1; what is told are 30 s in any
case, a shorter source repeated, but only as much as the source lasts is generated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chords, EditConditions, EditorInfo, EditRequest, Weights
from music_evals.editing._loading import hub_options, read_tensors
from music_evals.editing._musicgen import TEXTS, MusicGenModel, text_of
from music_evals.editing.memory import weight_bytes
from music_evals.editing.musicgen import MusicGen
from music_evals.editing.system import Edited, Seeds
from music_evals.errors import ModelUnavailableError, UnreadableFileError, hub_errors

if TYPE_CHECKING:
    import torch

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

    _model: _MusiConGenModel

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
        return dataclasses.replace(
            super().info,
            paper="Lan et al. (2024), MusiConGen: Rhythm and chord control for text-to-music generation",
            needs=(*TEXTS[self._parameters["text"]], "conditions"),
        )

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        assert request.conditions is not None  # `needs` says so
        chords, beats = _repeated(request.conditions, request.duration_sec)
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
    options = hub_options(source, revision)
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(os.fspath(source), CHECKPOINT, **options))
    except hub_errors() as error:
        raise ModelUnavailableError(f"{source} at {revision}: {CHECKPOINT} cannot be fetched ({error})") from error


def from_checkpoint(base: MusicGenModel, path: Path) -> _MusiConGenModel:
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

    tensors = _mapped_tensors(read_tensors(path, MOST_BYTES, "best_state"))
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
    return _MusiConGenModel(model, base.tokenizer, chord_proj=chord, beat_proj=beat, precision=base.precision)


def _is_replaced(name: str) -> bool:
    return name.startswith(("decoder.", "enc_to_dec_proj."))


# Chords and beats as frames, and where they are added.

FRAME_RATE: Final = 50  # Hz, that of the codec's tokens
N_FRAMES: Final = 1500  # 30 s, which the model is always told in whole
PULSE: Final = (0.05, 0.1, 0.3, 0.9, 0.3, 0.1, 0.05)  # around each beat (authors' code)
EVERY: Final = 4  # layers; the conditions are added before each fourth one of the first three quarters
MOST_BYTES: Final = 8 * 2**30  # of the checkpoint; the published one has 2.8 GB

Frames = npt.NDArray[np.float32]


def _chord_frames(chords: Chords, n_frames: int = N_FRAMES) -> Frames:
    """Return a 1 at each pitch class of the chord of a frame, shape (12, `n_frames`), C first.

    No chord and an unknown one are 0 throughout; the authors' code has -1 for the latter.
    """
    from mir_eval.chord import encode

    frames = np.zeros((12, n_frames), np.float32)
    for (start, end), label in zip(chords.intervals_sec, chords.labels, strict=True):
        root, classes, _ = encode(label)
        if root >= 0:
            frames[:, int(FRAME_RATE * start) : int(FRAME_RATE * end)] = np.roll(classes > 0, root)[:, None]
    return frames


def _beat_frames(beats_sec: npt.ArrayLike, downbeats_sec: npt.ArrayLike = (), n_frames: int = N_FRAMES) -> Frames:
    """Return a pulse around each beat, 0.9 high, and 1 more on a downbeat, shape (`n_frames`,)."""
    pulses, downbeats = np.zeros(n_frames), np.zeros(n_frames)
    for frames, times in ((pulses, beats_sec), (downbeats, downbeats_sec)):
        places = (FRAME_RATE * np.asarray(times, dtype=np.float64)).astype(int)
        frames[places[places < n_frames]] = 1
    return (np.convolve(pulses, PULSE, mode="same") + downbeats).astype(np.float32)


def _repeated(conditions: EditConditions, seconds: float) -> tuple[Frames, Frames]:
    """Return chords and beats of a source as the 30 s that the model is told: a shorter one is repeated."""
    n = min(max(round(FRAME_RATE * seconds), 1), N_FRAMES)
    chords = _chord_frames(conditions.chords, n)
    beats = _beat_frames(conditions.beats.times_sec, conditions.downbeats_sec, n)
    places = np.arange(N_FRAMES) % n
    return chords[:, places], beats[places]


class _MusiConGenModel(MusicGenModel):
    """A melody model of transformers that is told chords in place of the melody, and chords and beats at each frame.

    Parameters
    ----------
    model
        `transformers.MusicgenMelodyForConditionalGeneration`.
    tokenizer
        Of its text encoder.
    chord_proj, beat_proj
        Linear layers from 12 and from 1 to the width of the decoder.
    precision
        What it computes in, for records.

    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        chord_proj: torch.nn.Linear,
        beat_proj: torch.nn.Linear,
        precision: str = "fp32",
    ) -> None:
        super().__init__(model, tokenizer, precision=precision)
        self.chord_proj = chord_proj.to(model.device, model.dtype).requires_grad_(requires_grad=False)
        self.beat_proj = beat_proj.to(model.device, model.dtype).requires_grad_(requires_grad=False)

    def to(self, device: str) -> None:
        """Move all of it to a device."""
        for part in (self.model, self.chord_proj, self.beat_proj):
            part.to(device)

    def told(self, chords: Frames, beats: Frames) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the chords of the prefix, shape (prefix, width), and what each step is told, (N_FRAMES, width)."""
        import torch

        device, dtype, n = self.model.device, self.model.dtype, self.model.config.chroma_length
        heard = self.chord_proj(torch.from_numpy(chords.T.copy()).to(device, dtype))
        places = torch.round(torch.arange(n, device=device) * (len(heard) / n)).long().clamp(max=len(heard) - 1)
        steps = heard + self.beat_proj(torch.from_numpy(beats[:, None].copy()).to(device, dtype))
        return heard[places], steps

    def generate_told(
        self, text: str, seconds: float, seed: int, chosen: dict[str, Any], *, chords: Frames, beats: Frames
    ) -> npt.NDArray[np.float32]:
        """Return music for a text, chords (12, N_FRAMES) and beats (N_FRAMES,), as `generate` does."""
        import torch

        with torch.no_grad():
            prefix, steps = self.told(chords, beats)
            words = self.text_states(text)
            whole = torch.cat([prefix, words])[None]  # (1, prefix + words, width)
            if chosen["guidance"] > 1:  # the other half is told nothing: zeros, where a melody has a class of its own
                whole = torch.cat([whole, torch.zeros_like(whole)])
            with fused(self.model, steps, whole.shape[1]):
                return self.generate(text, seconds, seed, chosen, encoder_hidden_states=whole)

    def text_states(self, text: str) -> torch.Tensor:
        """Return what the decoder is told of a text, shape (words, width)."""
        model = self.model
        asked = self.tokenizer([text], return_tensors="pt", return_token_type_ids=False).to(model.device)
        states = model.text_encoder(**asked).last_hidden_state
        if hasattr(model, "enc_to_dec_proj"):
            states = model.enc_to_dec_proj(states)
        found: torch.Tensor = (states * asked["attention_mask"][..., None])[0]
        return found


@contextlib.contextmanager
def fused(model: Any, steps: torch.Tensor, n_prefix: int) -> Iterator[None]:
    """Add what each step is told to the first row of the decoder's input and before every fourth layer.

    Positions are additive, so that the input is the first of these layers. The first pass holds the prefix, those
    after it are one step each; steps behind the last frame are told nothing.
    """
    layers = model.decoder.model.decoder.layers
    seen, now = 0, slice(0, 0)

    def add(layer_index: int) -> Any:
        def hook(_: Any, given: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            nonlocal seen, now
            states, *rest = given  # (rows, length, width)
            if layer_index == 0:
                length = states.shape[1] - (n_prefix if seen == 0 else 0)
                now, seen = slice(seen, seen + length), seen + length
            told = steps[now]
            states = states.clone()
            if len(told):
                first = states.shape[1] - (now.stop - now.start)
                states[0, first : first + len(told)] += told
            return (states, *rest), options

        return hook

    places = range(0, 3 * len(layers) // EVERY, EVERY)
    hooks = [layers[index].register_forward_pre_hook(add(index), with_kwargs=True) for index in places]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


_LAYER: Final = r"transformer\.layers\.(\d+)\."
_NAMES: Final = {
    rf"{_LAYER}self_attn\.out_proj\.weight": r"decoder.model.decoder.layers.\1.self_attn.out_proj.weight",
    rf"{_LAYER}linear([12])\.weight": r"decoder.model.decoder.layers.\1.fc\2.weight",
    rf"{_LAYER}norm1\.(weight|bias)": r"decoder.model.decoder.layers.\1.self_attn_layer_norm.\2",
    rf"{_LAYER}norm2\.(weight|bias)": r"decoder.model.decoder.layers.\1.final_layer_norm.\2",
    r"emb\.(\d+)\.weight": r"decoder.model.decoder.embed_tokens.\1.weight",
    r"linears\.(\d+)\.weight": r"decoder.lm_heads.\1.weight",
    r"out_norm\.(weight|bias)": r"decoder.model.decoder.layer_norm.\1",
    r"condition_provider\.conditioners\.description\.output_proj\.(weight|bias)": r"enc_to_dec_proj.\1",
    r"condition_provider\.conditioners\.(chord|beat)\.output_proj\.(weight|bias)": r"\1_proj.\2",
}
"""Name in audiocraft -> name here; queries, keys and values are stacked there (`_mapped_tensors`)."""


def _mapped_tensors(published: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors of a checkpoint of audiocraft by the names that they have here.

    Raises
    ------
    UnreadableFileError
        A tensor that has no place here.

    """
    found: dict[str, torch.Tensor] = {}
    for name, tensor in published.items():
        stacked = re.fullmatch(rf"{_LAYER}self_attn\.in_proj_weight", name)
        if stacked:
            parts = tensor.chunk(3)
            found |= {
                f"decoder.model.decoder.layers.{stacked[1]}.self_attn.{kind}_proj.weight": part
                for kind, part in zip("qkv", parts, strict=True)
            }
            continue
        places = [re.sub(theirs, ours, name) for theirs, ours in _NAMES.items() if re.fullmatch(theirs, name)]
        if not places:
            raise UnreadableFileError(f"the checkpoint holds {name!r}, which has no place in MusiConGen")
        found[places[0]] = tensor
    return found
