"""What a user sketches for SketchNet, and pitches and rhythm of a measure apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST
from music_evals.errors import ContextLengthError, InvalidInputError
from music_evals.models._measures import BEATS, STEPS, TICKS, HierarchicalDecoder
from music_evals.models._network import draw
from music_evals.symbolic.encodings import factorized
from music_evals.symbolic.noteseq import check_tokens

__all__ = ["Sketch", "SketchTensors", "factorize", "place_pitches", "sketch_tensors", "write_sketched"]

_N_MIDDLE = MUSIB_LAYOUT.middle_measures


@dataclasses.dataclass(frozen=True)
class Sketch:
    """What a user wants of the four measures of the middle; what is None is left to the network.

    `SketchNet` writes what is sketched as it stands here, unless its `obey_sketches` is off: then it may miss it.

    Parameters
    ----------
    pitches
        One entry a measure: None, or MIDI numbers 0..127 in the order in which they are to sound, 1 to 24 of them.
    rhythms
        One entry a measure: None, or 24 steps, each 1 onset, 2 hold or 3 rest.

    Raises
    ------
    InvalidInputError
        Not four entries, an entry of another form, or a measure with other numbers of pitches and of onsets.

    Examples
    --------
    >>> Sketch(pitches=((60, 62, 64), None, None, None)).pitches[0]
    (60, 62, 64)

    """

    pitches: tuple[tuple[int, ...] | None, ...] = (None,) * _N_MIDDLE
    rhythms: tuple[tuple[int, ...] | None, ...] = (None,) * _N_MIDDLE

    def __post_init__(self) -> None:
        rules = {
            "pitches": (self.pitches, range(128), range(1, STEPS + 1), "1 to 24 MIDI numbers 0..127"),
            "rhythms": (self.rhythms, range(1, 4), (STEPS,), "24 steps of 1 onset, 2 hold or 3 rest"),
        }
        for name, (entries, values, lengths, wanted) in rules.items():
            if not isinstance(entries, Sequence) or len(entries) != _N_MIDDLE:
                got = len(entries) if isinstance(entries, Sequence) else repr(entries)
                raise InvalidInputError(f"{name} needs one entry a measure of the middle, {_N_MIDDLE}; got {got}")
            for measure, entry in enumerate(entries):
                fits = (
                    isinstance(entry, Sequence)
                    and len(entry) in lengths
                    and all(isinstance(value, int | np.integer) and value in values for value in entry)
                )
                if entry is not None and not fits:
                    raise InvalidInputError(f"{name} of measure {measure} must be {wanted}, or None; got {entry}")
        for measure, (notes, steps) in enumerate(zip(self.pitches, self.rhythms, strict=True)):
            if notes is not None and steps is not None and len(notes) != steps.count(1):
                raise InvalidInputError(
                    f"measure {measure} has {len(notes)} pitches and a rhythm of {steps.count(1)} onsets; give as many "
                    "of both, or leave one to the network (None)"
                )

    @classmethod
    def from_tokens(cls, middle: npt.ArrayLike, *, pitch: bool = True, rhythm: bool = True) -> Self:
        """Take pitches, rhythm or both from a middle that is there, such as one that a user has edited.

        Parameters
        ----------
        middle
            NoteSeq tokens, shape (96,). A measure without an onset sketches no pitches.
        pitch, rhythm
            What to take.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not the tokens of a middle.

        """
        tokens = check_tokens(middle)
        if tokens.shape != (MUSIB_LAYOUT.middle_steps,):
            raise ContextLengthError(f"expected a middle of shape ({MUSIB_LAYOUT.middle_steps},), got {tokens.shape}")
        parts = factorized.encode(tokens)
        pitches = [tuple(row[:n].tolist()) or None for row, n in zip(parts.px, parts.len_x, strict=True)]
        rhythms = [tuple(row.tolist()) for row in parts.rx]
        nothing = (None,) * _N_MIDDLE
        return cls(tuple(pitches) if pitch else nothing, tuple(rhythms) if rhythm else nothing)


class SketchTensors(NamedTuple):
    """Sketches side by side, with a filler for what is not sketched."""

    pitches: Tensor  # (batch, 4, 24), packed to the left
    lengths: Tensor  # (batch, 4), how many pitches there are
    rhythms: Tensor  # (batch, 4, 24): 0 onset, 1 hold, 2 rest
    given: Tensor  # (batch, 4, 2), bool: whether pitch and rhythm are sketched


def sketch_tensors(sketches: Sequence[Sketch]) -> SketchTensors:
    """Lay sketches side by side."""
    pitches = torch.full((len(sketches), _N_MIDDLE, STEPS), factorized.PAD)
    lengths = torch.ones(len(sketches), _N_MIDDLE, dtype=torch.int64)
    rhythms = torch.zeros_like(pitches)
    given = torch.zeros(len(sketches), _N_MIDDLE, 2, dtype=torch.bool)
    for row, sketch in enumerate(sketches):
        for measure, (notes, steps) in enumerate(zip(sketch.pitches, sketch.rhythms, strict=True)):
            given[row, measure] = torch.tensor([notes is not None, steps is not None])
            if notes is not None:
                pitches[row, measure, : len(notes)] = torch.tensor(notes)
                lengths[row, measure] = len(notes)
            if steps is not None:
                rhythms[row, measure] = torch.tensor(steps) - 1
    return SketchTensors(pitches, lengths, rhythms, given)


def factorize(measures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cut measures (n, 24) into packed pitches (n, 24), their number (n,) and rhythm classes (n, 24).

    The same as `symbolic.encodings.factorized.encode`, which counts the rhythm from 1.
    """
    onsets = measures < HOLD
    order = (~onsets).to(torch.uint8).argsort(dim=1, stable=True)  # onsets first, in their order
    lengths = onsets.sum(1)
    steps = torch.arange(STEPS, device=measures.device)
    pitches = measures.gather(1, order).masked_fill(steps >= lengths[:, None], factorized.PAD)
    return pitches, lengths, (measures - HOLD + 1).clamp(min=0)


# Writing that is held to a sketch: what the user gave stands in the measure, the network chooses the rest.


_OPEN = -1  # a token that is not known
_COLDEST = 1e-6  # temperature: a lower one would overflow, and chooses the same


def write_sketched(
    decoder: HierarchicalDecoder,
    z: Tensor,
    sketch: SketchTensors,
    choose: Callable[[Tensor, int], Tensor],
    *,
    uniform: Tensor,
    temperature: float,
) -> Tensor:
    """Return measures (batch * 4, 24) from latents (batch * 4, latent), in which all that is sketched stands.

    A rhythm says what is an onset, a hold and a rest: `choose` finds a pitch for each onset. Pitches without a rhythm
    are placed by `place_pitches`, with uniform numbers (batch * 4, 24); with one nothing is left to choose.
    """
    pitches, lengths, rhythm = (part.flatten(0, 1).to(z.device) for part in sketch[:3])
    has_pitch, has_rhythm = sketch.given.to(z.device).flatten(0, 1).unbind(-1)  # (batch * 4,) each
    onset = rhythm == factorized.ONSET
    known = pitches.gather(1, (onset.cumsum(1) - 1).clamp(min=0))  # (batch * 4, 24): the pitch of each onset
    known = torch.where(onset, known.where(has_pitch[:, None], _OPEN), HOLD - 1 + rhythm)
    known = known.where(has_rhythm[:, None], _OPEN)
    onset &= has_rhythm[:, None]

    def choose_open(logits: Tensor, tick: int) -> Tensor:
        no_onset = logits[:, HOLD:].masked_fill(onset[:, tick, None], -torch.inf)
        tokens = choose(torch.cat([logits[:, :HOLD], no_onset], dim=-1), tick)
        return torch.where(known[:, tick] == _OPEN, tokens, known[:, tick])

    tokens: Tensor = decoder(z, choose=choose_open)[1]
    rows = (has_pitch & ~has_rhythm).nonzero().squeeze(-1)
    if len(rows):
        tokens[rows] = place_pitches(
            decoder, z[rows], pitches[rows], lengths[rows], uniform=uniform[rows], temperature=temperature
        )
    return tokens


def place_pitches(
    decoder: HierarchicalDecoder, z: Tensor, pitches: Tensor, lengths: Tensor, *, uniform: Tensor, temperature: float
) -> Tensor:
    """Return measures (n, 24) that have the given pitches, in their order, and no others.

    Of all such measures one is drawn by the decoder's probability to the power of 1 / temperature; at 0 the most likely
    one is taken. Side by side it writes one draft for each number of pitches that may have been used before a tick.
    Where drafts meet at the same number, one goes on, drawn by its share of the probability, or the likelier one at 0.
    That is exact as far as the decoder remembers no more of a draft than tick and number, and close to it elsewhere:
    what it remembers otherwise are the notes of the same beat, and the one before it.

    Parameters
    ----------
    z
        Latents, shape (n, latent).
    pitches, lengths
        Pitches, shape (n, 24), packed to the left, and how many there are, shape (n,), 1 to 24.
    uniform
        A number in [0, 1) for each tick, shape (n, 24).

    """
    n, n_counts = len(z), int(lengths.max()) + 1
    first = torch.arange(n, device=z.device)[:, None] * n_counts  # (n, 1): the row of each measure's first draft
    count = torch.arange(n_counts, device=z.device)  # pitches used, (counts,)
    following = functional.pad(pitches, (0, 1), value=factorized.PAD)[:, :n_counts]  # (n, counts): the next pitch
    total = torch.zeros(n, n_counts, dtype=torch.float64, device=z.device).masked_fill(count > 0, -torch.inf)
    tokens = torch.zeros(n * n_counts, STEPS, dtype=torch.int64, device=z.device)
    note = decoder.first_note.expand(n * n_counts, -1)
    beats = decoder.beats(z)  # (n, 4, size)
    for tick in range(BEATS * TICKS):
        if tick % TICKS == 0:
            plan, state = decoder.begin_beat(beats[:, tick // TICKS])
            plan, state = plan.repeat_interleave(n_counts, dim=0), state.repeat_interleave(n_counts, dim=1)
        logits, state = decoder.step(note, plan, state)
        log_p = logits.double().log_softmax(-1).view(n, n_counts, -1) / max(temperature, _COLDEST)
        missing = lengths[:, None] - count  # (n, counts)
        possible = (missing >= 0) & (missing < STEPS - tick)
        ways = _ways(total, log_p, following).masked_fill(~possible[..., None], -torch.inf)
        if temperature == 0:
            way, total = ways.argmax(-1), ways.amax(-1)
        else:
            way = draw(ways.flatten(0, 1), 1.0, uniform[:, tick].repeat_interleave(n_counts)).view(n, n_counts)
            total = ways.logsumexp(-1)
        source = (count - (way == factorized.ONSET).long()).clamp(min=0)  # (n, counts): the draft that goes on here
        token = torch.where(way == factorized.ONSET, following.gather(1, source), HOLD - 1 + way).flatten()
        drafts = (first + source).flatten()
        tokens, state = tokens[drafts], state[:, drafts]
        tokens[:, tick] = token
        note = decoder.note_embedding(token)
    return tokens[first.squeeze(-1) + lengths]


def _ways(total: Tensor, log_p: Tensor, following: Tensor) -> Tensor:
    """Return how likely a number of pitches is reached by an onset, a hold and a rest, (n, counts, 3) logarithms."""
    onset = total + log_p.gather(-1, following[..., None]).squeeze(-1)
    onset = functional.pad(onset[:, :-1], (1, 0), value=-torch.inf)  # from one pitch fewer
    return torch.stack([onset, total + log_p[..., HOLD], total + log_p[..., REST]], dim=-1)
