"""MusiConGen (Lan et al., ISMIR 2024): a description, along the chords and beats of the source.

The melody model of MusicGen, fine-tuned on the chords and beats of each frame as conditions. They come with the request
as values; they are not extracted by the metrics' own extractor (`pipelines.edit_conditions`).

Deviations from the authors' code: the conditions always last 30 s, a shorter source is repeated, and only the length of
the source is generated; their conditions of a shorter source stay short and have no chords in the prefix.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chords, EditConditions, EditorInfo, EditRequest
from music_evals.editing.musicgen import TEXTS, MusicGen, MusicGenModel, lay_over
from music_evals.errors import InvalidInputError

if TYPE_CHECKING:
    import torch

__all__ = ["MusiConGen", "chord_classes"]

SYSTEMS = {"musicongen": "MusiConGen"}

WEIGHTS: Final = "Cyan0731/MusiConGen"
BASE: Final = "facebook/musicgen-melody"


class MusiConGen(MusicGen):
    """Makes music for a description along the chords and beats of the source; parameters are those of `MusicGen`."""

    _name, _title, _where = "musicongen", "MusiConGen, with the chords and beats of the source", WEIGHTS

    _kind = "MusicgenMelodyForConditionalGeneration"
    _base = BASE

    @staticmethod
    def _laid_over(base: MusicGenModel, path: Path) -> _MusiConGenModel:
        """Return MusiConGen: the tensors of its checkpoint in place of those of the melody model."""
        import torch

        width = base.model.decoder.config.hidden_size
        chord, beat = torch.nn.Linear(12, width), torch.nn.Linear(1, width)
        lay_over(base.model, path, {"chord_proj": chord, "beat_proj": beat})
        return _MusiConGenModel(base.model, base.tokenizer, chord_proj=chord, beat_proj=beat, precision=base.precision)

    @property
    def info(self) -> EditorInfo:
        """What it is, what it needs, and the parameters that it was made with."""
        return dataclasses.replace(
            super().info,
            paper="Lan et al. (2024), MusiConGen: Rhythm and chord control for text-to-music generation",
            needs=(*TEXTS[self._parameters["text"]], "conditions"),
        )

    def _conditions(self, request: EditRequest) -> dict[str, Any]:
        assert request.conditions is not None  # `needs` says so
        return dict(zip(("chords", "beats"), _repeated(request.conditions, request.duration_sec), strict=True))


# Chords and beats as frames, and where they are added.

FRAME_RATE: Final = 50  # Hz, that of the codec's tokens
N_FRAMES: Final = 1500  # 30 s, the length of all conditions
PULSE: Final = (0.05, 0.1, 0.3, 0.9, 0.3, 0.1, 0.05)  # around each beat (authors' code)
EVERY, BELOW = 4, 36  # the conditions are added before each fourth layer below the 36th (authors' code)

_QUALITIES: Final = """
maj=1,3,5 min=1,b3,5 dim=1,b3,b5 aug=1,3,#5 sus2=1,2,5 sus4=1,4,5 1=1 4=1,4 5=1,5 6=1,6 maj6=1,3,5,6 min6=1,b3,5,6
7=1,3,5,b7 maj7=1,3,5,7 min7=1,b3,5,b7 minmaj7=1,b3,5,7 dim7=1,b3,b5,bb7 hdim7=1,b3,b5,b7 aug7=1,3,#5,b7
7sus2=1,2,5,b7 7sus4=1,4,5,b7 add9=1,3,5,9 9=1,3,5,b7,9 maj9=1,3,5,7,9 min9=1,b3,5,b7,9 b9=1,3,5,b7,b9 #9=1,3,5,b7,#9
11=1,3,5,b7,9,11 maj11=1,3,5,7,9,11 min11=1,b3,5,b7,9,11 #11=1,3,5,b7,9,#11
13=1,3,5,b7,13 maj13=1,3,5,7,13 min13=1,b3,5,b7,13 b13=1,3,5,b7,b13
"""
QUALITIES: Final = {
    name: degrees.split(",") for name, _, degrees in (entry.partition("=") for entry in _QUALITIES.split())
}
"""Quality of a chord -> its degrees, as in the authors' code, which cannot read aug7, maj11, b9, #9, #11 and b13."""
STEPS: Final = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
CHORD: Final = re.compile(
    r"(?P<root>[A-G][b#]*)((:|(?=min|7/))(?P<quality>[#\w]*)(\((?P<degrees>[^()]+)\))?(?<!:))?(/(?P<bass>[b#]*\d+))?"
)

Frames = npt.NDArray[np.float32]


def chord_classes(label: str) -> Frames:
    """Return a 1 at each pitch class of a chord, shape (12,), C first; ``"N"`` has none, ``"X"`` is -1 throughout.

    Labels are in Harte syntax: a root, one of `QUALITIES`, degrees that are added or left out (``*``), a bass that
    sounds too. Others raise `InvalidInputError`.
    """
    if label in ("N", "X"):
        return np.full(12, -1.0 if label == "X" else 0.0, np.float32)
    parts = CHORD.fullmatch(label)
    quality = None if parts is None else "maj" if parts["quality"] is None else parts["quality"]
    if parts is None or not (quality in QUALITIES or (quality == "" and parts["degrees"])):
        raise InvalidInputError(f"{label!r} is no chord in Harte syntax, such as C:maj, A:min7, G:9/3, N or X")
    classes = np.zeros(12, np.float32)
    degrees = [*QUALITIES.get(quality or "", ()), *(parts["degrees"] or "").split(","), parts["bass"] or "1"]
    for degree in filter(None, map(str.strip, degrees)):
        classes[_semitones(degree.lstrip("*"), label)] = not degree.startswith("*")
    root = STEPS[label[0]] + parts["root"].count("#") - parts["root"].count("b")
    return np.roll(classes, root)


def _semitones(degree: str, label: str) -> int:
    number = degree.lstrip("b#")
    if not (number.isdecimal() and 1 <= int(number) <= 13):
        raise InvalidInputError(f"{label!r} holds {degree!r}, and a degree is 1 to 13, such as b3 or #11")
    return ([*STEPS.values()][(int(number) - 1) % 7] + degree.count("#") - degree.count("b")) % 12


def _chord_frames(chords: Chords, n_frames: int = N_FRAMES) -> Frames:
    """Return the pitch classes of the chord of each frame, shape (12, `n_frames`)."""
    frames = np.zeros((12, n_frames), np.float32)
    for (start, end), label in zip(chords.intervals_sec, chords.labels, strict=True):
        frames[:, int(FRAME_RATE * start) : int(FRAME_RATE * end)] = chord_classes(label)[:, None]
    return frames


def _beat_frames(beats_sec: npt.ArrayLike, downbeats_sec: npt.ArrayLike = (), n_frames: int = N_FRAMES) -> Frames:
    """Return a pulse around each beat, 0.9 high, and 1 more on a downbeat, shape (`n_frames`,)."""
    pulses, downbeats = np.zeros(n_frames), np.zeros(n_frames)
    for frames, times in ((pulses, beats_sec), (downbeats, downbeats_sec)):
        places = (FRAME_RATE * np.asarray(times, dtype=np.float64)).astype(int)
        frames[places[places < n_frames]] = 1
    return (np.convolve(pulses, PULSE, mode="same") + downbeats).astype(np.float32)


def _repeated(conditions: EditConditions, seconds: float) -> tuple[Frames, Frames]:
    """Return chords and beats of a source as conditions of 30 s: a shorter source is repeated."""
    n = min(max(round(FRAME_RATE * seconds), 1), N_FRAMES)
    chords = _chord_frames(conditions.chords, n)
    beats = _beat_frames(conditions.beats.times_sec, conditions.downbeats_sec, n)
    places = np.arange(N_FRAMES) % n
    return chords[:, places], beats[places]


class _MusiConGenModel(MusicGenModel):
    """A melody model conditioned on chords in place of the melody, and on chords and beats at each frame.

    `chord_proj` and `beat_proj` are linear layers from 12 and from 1 to the width of the decoder.
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

    @property
    def parts(self) -> tuple[Any, ...]:
        """All modules of torch."""
        return (self.model, self.chord_proj, self.beat_proj)

    def condition_states(self, chords: Frames, beats: Frames) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the chords of the prefix, shape (prefix, width), and the condition of each step, (N_FRAMES, width)."""
        import torch

        device, dtype, n = self.model.device, self.model.dtype, self.model.config.chroma_length
        chord_states = self.chord_proj(torch.from_numpy(chords.T.copy()).to(device, dtype))
        places = torch.round(torch.arange(n, device=device) * (len(chord_states) / n)).long()
        places = places.clamp(max=len(chord_states) - 1)
        steps = chord_states + self.beat_proj(torch.from_numpy(beats[:, None].copy()).to(device, dtype))
        return chord_states[places], steps

    def generate(
        self, text: str, seconds: float, seed: int, chosen: dict[str, Any], **conditions: Any
    ) -> npt.NDArray[np.float32]:
        """Return music for a text and the conditions `chords` (12, N_FRAMES) and `beats` (N_FRAMES,)."""
        import torch

        with torch.no_grad():
            prefix, steps = self.condition_states(conditions["chords"], conditions["beats"])
            words = self.text_states(text)
            whole = torch.cat([prefix, words])[None]  # (1, prefix + words, width)
            if chosen["guidance"] > 1:  # the other half is unconditional: zeros, where a melody has a class of its own
                whole = torch.cat([whole, torch.zeros_like(whole)])
            with fused(self.model, steps, whole.shape[1]):
                return super().generate(text, seconds, seed, chosen, encoder_hidden_states=whole)

    def text_states(self, text: str) -> torch.Tensor:
        """Return the states of a text for the decoder, shape (words, width)."""
        model = self.model
        encoded = self.tokenizer([text], return_tensors="pt", return_token_type_ids=False).to(model.device)
        states = model.text_encoder(**encoded).last_hidden_state
        if hasattr(model, "enc_to_dec_proj"):
            states = model.enc_to_dec_proj(states)
        masked: torch.Tensor = (states * encoded["attention_mask"][..., None])[0]
        return masked


@contextlib.contextmanager
def fused(model: Any, steps: torch.Tensor, n_prefix: int) -> Iterator[None]:
    """Add the condition of each step to the first row of the decoder's input and before every fourth layer.

    Positions are additive, so that the input is the first of these layers. The first pass holds the prefix, those
    after it are one step each; steps behind the last frame have no condition.
    """
    layers = model.decoder.model.decoder.layers
    n_frames, frames = 0, slice(0, 0)

    def add(layer_index: int) -> Any:
        def hook(_: Any, given: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            nonlocal n_frames, frames
            states, *rest = given  # (rows, length, width)
            if layer_index == 0:
                length = states.shape[1] - (n_prefix if n_frames == 0 else 0)
                frames, n_frames = slice(n_frames, n_frames + length), n_frames + length
            conditions = steps[frames]
            states = states.clone()
            if len(conditions):
                first = states.shape[1] - (frames.stop - frames.start)
                states[0, first : first + len(conditions)] += conditions
            return (states, *rest), options

        return hook

    places = range(0, min(BELOW, len(layers)), EVERY)
    hooks = [layers[index].register_forward_pre_hook(add(index), with_kwargs=True) for index in places]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
