"""Writing that is held to a sketch: what the user gave stands in the measure, the network chooses the rest."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from music_evals.annotations import HOLD, REST
from music_evals.models._measures import BEATS, STEPS, TICKS, HierarchicalDecoder
from music_evals.models._network import draw
from music_evals.models._sketches import SketchTensors
from music_evals.symbolic import factorized

__all__ = ["place_pitches", "write_sketched"]

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
