"""Anticipation-RNN: a recurrent network that knows what is still to come.

One LSTM reads the constraints from right to left, so that its output at a step sums up everything after it. A second
LSTM writes from left to right; at each step it is given the note before and the output of the first. Inpainting is the
case where past and future are constraints and the middle has none.

Sources: Hadjeres & Nielsen, "Anticipation-RNN: enforcing unary constraints in sequence generation, with application to
interactive music generation" (Neural Computing and Applications, 2018, doi 10.1007/s00521-018-3868-4), for the two
LSTMs, there Constraint-RNN and Token-RNN; Pati, Lerch & Hadjeres, "Learning to traverse latent spaces for musical score
inpainting" (2019), whose baseline it is, for the sizes; Araneda et al., "MUSIB: musical score inpainting benchmark",
for vocabulary, layout and the 1,992,413 parameters. As in MUSIB the two metadata inputs are there and are fed with
zeros.

Deviations: the head runs on the middle only and the second LSTM stops where the middle ends (the loss never saw more);
forget gates start with a bias of 1; decoding feeds back its own tokens. MUSIB's own scores feed the true ones: that is
the mode ``"teacher_forced"``, a leak, kept to reproduce them.
"""

import dataclasses

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import MASK, MUSIB_LAYOUT, VOCABULARY_SIZE
from music_evals.models.layers.networks import TokenConfig, TokenNetwork

__all__ = ["DECODINGS", "AnticipationRNN", "AnticipationRNNConfig"]

DECODINGS = ("argmax", "sample", "two_stage", "teacher_forced")
"""How tokens are chosen; only ``"teacher_forced"`` reads the true middle."""

# 130 tokens and "no constraint" = MASK = 130 as outputs; one more row in the embedding is never used. Both as MUSIB.
_N_OUTPUTS = VOCABULARY_SIZE + 1
_N_EMBEDDINGS = VOCABULARY_SIZE + 2
# MUSIB's metadata: the tick in the beat (4 values) and the voice (1 value), both always 0.
_METADATA_VALUES = (4, 1)


@dataclasses.dataclass(frozen=True)
class AnticipationRNNConfig(TokenConfig):
    """Sizes of the network and its default decoding; the defaults are the published ones.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

    Parameters
    ----------
    model_type
        Always ``"anticipation_rnn"``; tells a reader of config.json which class to load.
    note_embedding_size, metadata_embedding_size
        Length of one note's and of one metadata value's vector.
    hidden_size, n_layers
        Of both LSTMs.
    linear_size
        Of the layer between the second LSTM and the output.
    dropout
        Between the layers of each LSTM, 0..1.
    note_dropout
        Share of steps at which the note before is hidden while training, 0..1.
    decoding
        One of the network's decodings, except those that read the true middle: a leak is never a default.
    temperature
        Of all that draw: 1 samples the network's own distribution, 0 takes the most likely.
    kind_temperature
        For ``"two_stage"``: the temperature at which onset, hold or rest is drawn; None: that of the pitches. Below 1
        rests, which are rare, are hardly ever drawn: with 1 the output has as many as the network expects.
    top_p
        Of all that draw: the most likely that together reach this probability are kept, above 0 and at most 1; of
        ``"two_stage"`` those are pitches.
    """

    model_type: str = "anticipation_rnn"
    note_embedding_size: int = 20
    metadata_embedding_size: int = 2
    hidden_size: int = 256
    n_layers: int = 2
    linear_size: int = 256
    dropout: float = 0.2
    note_dropout: float = 0.2
    decoding: str = "two_stage"

    def __post_init__(self) -> None:
        sizes = ("note_embedding_size", "metadata_embedding_size", "hidden_size", "n_layers", "linear_size")
        self._check(AnticipationRNN, at_least_one=sizes, shares=("dropout", "note_dropout"))


class AnticipationRNN(TokenNetwork, tags=["music", "symbolic-music", "inpainting"]):
    """Anticipation-RNN over NoteSeq contexts of 6 + 4 + 6 measures; a `protocols.LikelihoodInpainter`.

    Constraint LSTM (right to left) -> generation LSTM (left to right) -> linear, ReLU, linear.

    Parameters
    ----------
    config
        `AnticipationRNNConfig`: sizes and default decoding; None is its defaults.
    decoding
        Overrides `config.decoding`. ``"argmax"`` takes the most likely token (and tends to collapse into holds, the
        most frequent one), ``"sample"`` draws a token, ``"two_stage"`` first decides among onset, hold and rest and
        then, for an onset, the pitch; at temperature 1 the last two have the same distribution, below 1 the second
        does not thin out onsets because their probability is spread over pitches. ``"teacher_forced"`` leaks.
    temperature, top_p
        Override those of the config. All of them, and `kind_temperature`, may also be set as attributes, at any time.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A decoding or temperature that does not exist.
    """

    config: AnticipationRNNConfig
    config_class = AnticipationRNNConfig
    decodings = DECODINGS
    leaking = frozenset({"teacher_forced"})
    fixed = frozenset({"argmax", "teacher_forced"})
    _numbers = (MUSIB_LAYOUT.middle_steps, 2)

    def _build(self, config: AnticipationRNNConfig) -> None:
        size = config.hidden_size
        self.note_embedding = nn.Embedding(_N_EMBEDDINGS, config.note_embedding_size)
        self.metadata_embeddings = nn.ModuleList(
            nn.Embedding(values, config.metadata_embedding_size) for values in _METADATA_VALUES
        )
        metadata_size = len(_METADATA_VALUES) * config.metadata_embedding_size
        self.constraint_state = nn.Parameter(torch.zeros(2, config.n_layers, size))  # learnt first h and c
        self.constraint_lstm = self._lstm(metadata_size + config.note_embedding_size)
        self.note_dropout = nn.Dropout1d(config.note_dropout)  # hides whole steps, not single numbers
        self.generation_state = nn.Parameter(torch.zeros(2, config.n_layers, size))
        self.generation_lstm = self._lstm(config.note_embedding_size + size)
        self.head = nn.Sequential(
            nn.Linear(size, config.linear_size), nn.ReLU(), nn.Linear(config.linear_size, _N_OUTPUTS)
        )

    def _lstm(self, input_size: int) -> nn.LSTM:
        # PyTorch warns of a dropout that has no second layer to act on.
        dropout = self.config.dropout if self.config.n_layers > 1 else 0.0
        size = self.config.hidden_size
        lstm = nn.LSTM(input_size, size, self.config.n_layers, batch_first=True, dropout=dropout)
        for layer in range(self.config.n_layers):
            # PyTorch keeps the gates in the order input, forget, cell, output. A forget gate that starts open carries
            # gradients over whole measures from the first step on (Jozefowicz et al., 2015).
            nn.init.ones_(getattr(lstm, f"bias_ih_l{layer}").data[size : 2 * size])
        return lstm

    def forward(self, contexts: Tensor) -> Tensor:
        """Return the logits (batch, 96, 131) of every middle step, given the true tokens before it (teacher forcing).

        Of whole contexts (batch, 384), int64, values 0..129; the constraint LSTM gets the middle masked. The last class
        is "no constraint" and never a target.
        """
        middle = MUSIB_LAYOUT.middle
        hidden = self._read_and_write(contexts, _middle_mask(contexts))  # (batch, 240, hidden)
        logits: Tensor = self.head(hidden[:, middle])  # (batch, 96, 131)
        return logits

    def _read_and_write(self, contexts: Tensor, masked: Tensor) -> Tensor:
        """Run both LSTMs over true tokens up to the end of the middle; where `masked` there is no constraint."""
        stop = MUSIB_LAYOUT.middle.stop
        constraints = contexts.masked_fill(masked, MASK)  # (batch, 384)
        plan = self.anticipate(constraints)[:, :stop]  # (batch, 240, hidden)
        hidden, _ = self._write(contexts[:, : stop - 1], plan)  # (batch, 240, hidden)
        return hidden

    def anticipate(self, constraints: Tensor) -> Tensor:
        """Return what is demanded from each step on, (batch, steps, hidden): the Constraint-RNN of the paper.

        Constraints are read from right to left: (batch, steps), int64, tokens, or `MASK` where there is none.
        """
        zeros = torch.zeros_like(constraints)
        parts = [embedding(zeros) for embedding in self.metadata_embeddings]  # 2 x (batch, steps, 2)
        x = torch.cat([*parts, self.note_embedding(constraints)], dim=-1)  # (batch, steps, 24)
        state = _repeat(self.constraint_state, len(x))
        hidden, _ = self.constraint_lstm(x.flip(1), state)  # (batch, steps, hidden)
        plan: Tensor = hidden.flip(1)
        return plan

    def _write(self, previous: Tensor, plan: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Run the Token-RNN of the paper from the first step on; `previous` is one step shorter than `plan`."""
        notes = self.note_embedding(previous)  # (batch, steps - 1, 20)
        notes = functional.pad(notes, (0, 0, 1, 0))  # (batch, steps, 20): no note stands before the first step
        x = torch.cat([self.note_dropout(notes), plan], dim=-1)  # (batch, steps, 20 + hidden)
        hidden, state = self.generation_lstm(x, _repeat(self.generation_state, len(x)))  # (batch, steps, hidden)
        return hidden, state

    def training_loss(self, contexts: Tensor, *, varied: bool = False) -> Tensor:
        """Return the cross-entropy over all 131 outputs of whole contexts (batch, 384), nats a step of the middle.

        The middle is masked and predicted, which is the task. Varied, other steps are masked too (`_varied_masks`; the
        baseline of Pati et al. is trained with random masks as well) and every step up to the end of the middle is
        predicted, masked or not: copying what is not masked teaches the network to listen to its constraints, which it
        is slow to do when the nearest ones are up to 96 masked steps away. The result, (batch,), is the sum over
        predicted steps divided by 96, the length of the middle.
        """
        masked = _varied_masks(contexts) if varied else _middle_mask(contexts)
        steps = slice(0 if varied else MUSIB_LAYOUT.middle.start, MUSIB_LAYOUT.middle.stop)
        hidden = self._read_and_write(contexts, masked)  # (batch, 240, hidden)
        logits = self.head(hidden[:, steps]).float().transpose(1, 2)  # (batch, 131, steps)
        losses = functional.cross_entropy(logits, contexts[:, steps], reduction="none")  # (batch, steps)
        return losses.sum(1) / MUSIB_LAYOUT.middle_steps

    def _decode(self, contexts: Tensor, uniform: Tensor) -> Tensor:
        """Write the middle step by step, each token fed back into the next step; `uniform` is (batch, 96, 2)."""
        if self.sees_reference:  # MUSIB's evaluation: the most likely token given the true one before it
            return self(contexts)[..., :VOCABULARY_SIZE].argmax(-1)  # type: ignore[no-any-return]
        middle = MUSIB_LAYOUT.middle
        plan = self.anticipate(contexts)  # (batch, 384, hidden)
        # The step that writes the first middle token is fed the last past one: steps 0..144 run at once.
        hidden, state = self._write(contexts[:, : middle.start], plan[:, : middle.start + 1])
        logits = self.head(hidden[:, -1])[:, :VOCABULARY_SIZE]  # (batch, 130)
        tokens = [self._choose(logits, uniform[:, 0])]  # (batch,)
        for step in range(1, MUSIB_LAYOUT.middle_steps):
            x = torch.cat([self.note_embedding(tokens[-1]), plan[:, middle.start + step]], dim=-1)
            hidden, state = self.generation_lstm(x[:, None], state)  # (batch, 1, hidden)
            tokens.append(self._choose(self.head(hidden[:, 0])[:, :VOCABULARY_SIZE], uniform[:, step]))
        return torch.stack(tokens, dim=1)  # (batch, 96)


def _middle_mask(contexts: Tensor) -> Tensor:
    """Mark the middle: True where a step is masked, shape of `contexts`."""
    masked = torch.zeros_like(contexts, dtype=torch.bool)
    masked[:, MUSIB_LAYOUT.middle] = True
    return masked


def _varied_masks(contexts: Tensor) -> Tensor:
    """Mark other steps: the middle in half of the rows, in the others a span between any two steps before its end."""
    # In half of both, each marked step is shown after all with a probability that is drawn for the row.
    middle, (rows, steps) = MUSIB_LAYOUT.middle, contexts.shape
    ends = torch.randint(middle.stop + 1, (rows, 2)).sort(1).values  # (rows, 2)
    ends[torch.rand(rows) < 0.5] = torch.tensor([middle.start, middle.stop])
    step = torch.arange(steps)
    span = (step >= ends[:, :1]) & (step < ends[:, 1:])  # (rows, steps)
    share = torch.rand(rows, 1) * (torch.rand(rows, 1) < 0.5)
    return (span & (torch.rand(rows, steps) >= share)).to(contexts.device)


def _repeat(state: Tensor, batch: int) -> tuple[Tensor, Tensor]:
    """Turn a learnt state (2, layers, hidden) into h and c of shape (layers, batch, hidden)."""
    h, c = state[:, :, None].expand(-1, -1, batch, -1).contiguous()
    return h, c
