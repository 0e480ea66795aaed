"""Conditions and weights of MusiConGen (Lan et al., 2024): chords and beats as frames, and where they are added."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chords, EditConditions
from music_evals.editing._musicgen import MusicGenModel
from music_evals.errors import FileTooLargeError, UnreadableFileError

if TYPE_CHECKING:
    import torch

__all__ = [
    "FRAME_RATE",
    "N_FRAMES",
    "MusiConGenModel",
    "beat_frames",
    "chord_frames",
    "mapped_tensors",
    "read_checkpoint",
    "repeated",
]

FRAME_RATE: Final = 50  # Hz, that of the codec's tokens
N_FRAMES: Final = 1500  # 30 s, which the model is always told in whole
PULSE: Final = (0.05, 0.1, 0.3, 0.9, 0.3, 0.1, 0.05)  # around each beat (authors' code)
EVERY: Final = 4  # layers; the conditions are added before each fourth one of the first three quarters
MOST_BYTES: Final = 8 * 2**30  # of the checkpoint; the published one has 2.8 GB

Frames = npt.NDArray[np.float32]


def chord_frames(chords: Chords, n_frames: int = N_FRAMES) -> Frames:
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


def beat_frames(beats_sec: npt.ArrayLike, downbeats_sec: npt.ArrayLike = (), n_frames: int = N_FRAMES) -> Frames:
    """Return a pulse around each beat, 0.9 high, and 1 more on a downbeat, shape (`n_frames`,)."""
    pulses, downbeats = np.zeros(n_frames), np.zeros(n_frames)
    for frames, times in ((pulses, beats_sec), (downbeats, downbeats_sec)):
        places = (FRAME_RATE * np.asarray(times, dtype=np.float64)).astype(int)
        frames[places[places < n_frames]] = 1
    return (np.convolve(pulses, PULSE, mode="same") + downbeats).astype(np.float32)


def repeated(conditions: EditConditions, seconds: float) -> tuple[Frames, Frames]:
    """Return chords and beats of a source as the 30 s that the model is told: a shorter one is repeated."""
    n = min(max(round(FRAME_RATE * seconds), 1), N_FRAMES)
    chords = chord_frames(conditions.chords, n)
    beats = beat_frames(conditions.beats.times_sec, conditions.downbeats_sec, n)
    places = np.arange(N_FRAMES) % n
    return chords[:, places], beats[places]


class MusiConGenModel(MusicGenModel):
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
"""Name in audiocraft -> name here; queries, keys and values are stacked there (`mapped_tensors`)."""


def mapped_tensors(published: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
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


def read_checkpoint(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of ``state_dict.bin``; nothing but tensors and texts is read from it.

    Raises
    ------
    FileTooLargeError
        The file is larger than such a model is.
    UnreadableFileError
        It holds something else than tensors by name under ``best_state``.

    """
    import torch

    if (size := path.stat().st_size) > MOST_BYTES:
        raise FileTooLargeError(
            f"{path}: {size} bytes are more than MusiConGen has",
            name=str(path),
            unit="bytes",
            limit=MOST_BYTES,
            found=size,
        )
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
        tensors = dict(held["best_state"])
    except Exception as error:  # the unpickler raises whatever the file makes it raise
        first = " ".join(str(error).split())[:200]
        raise UnreadableFileError(f"{path} holds no tensors under best_state ({first})") from error
    if not all(isinstance(value, torch.Tensor) for value in tensors.values()):
        raise UnreadableFileError(f"{path} holds something else than tensors under best_state")
    return tensors
