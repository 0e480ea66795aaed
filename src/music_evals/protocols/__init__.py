"""What the benchmark may know of a plug-in, and the registry of those that ship with the package.

A plug-in is any object with the methods below; nothing needs to be inherited. The registry holds import paths as text,
so that looking up a name imports nothing but that plug-in.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Arrangement, Cells, PianoRoll, Tokens
from music_evals.errors import UnknownNameError, importing
from music_evals.protocols._editing import EDIT_STUDIES, EDITORS, INSTRUCTION_WRITERS, EditingSystem

__all__ = [
    "BASELINES",
    "CONTROL",
    "CONTROLS",
    "EDITORS",
    "EDIT_STUDIES",
    "INPAINTERS",
    "INSTRUCTION_WRITERS",
    "MUSIC_ENCODERS",
    "MUSIC_ENCODER_TYPES",
    "NEAR_COPY",
    "PREPARED_DATASETS",
    "RENDERED_DATASETS",
    "RENDERERS",
    "ROLL_BASELINES",
    "STYLE_TRANSFERS",
    "TAGGERS",
    "TUNED_WRITERS",
    "WRITERS",
    "CellPredictor",
    "EditingSystem",
    "GapInpainter",
    "GapLimits",
    "Inpainter",
    "LikelihoodInpainter",
    "LyricWriter",
    "MusicEncoder",
    "NoteLikelihood",
    "NoteLikelihoodInpainter",
    "RenderPair",
    "StyleTransfer",
    "SweptTransfer",
    "Tagger",
    "TextEncoder",
    "TransferState",
    "TransferSweep",
    "Written",
    "load_plugin",
    "prepared_place",
]


@runtime_checkable
class Inpainter(Protocol):
    """A model that fills the middle of a context.

    Attributes
    ----------
    name
        System id in records and tables.
    deterministic
        True when `inpaint` does not use `rng`: one seed is enough.
    sees_reference
        True for a control or a leaking protocol, which gets the true middle; such a system stands outside of all
        comparisons. False for every honest model: the middle that it gets is masked (`annotations.MASK`).

    """

    name: str
    deterministic: bool
    sees_reference: bool

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        """Return middles, shape (n, 96), values 0..129, for contexts of shape (n, 384)."""
        ...


@runtime_checkable
class LikelihoodInpainter(Inpainter, Protocol):
    """An inpainter that can also say how likely each true token is, by the model's own definition of a step's NLL."""

    def nll(self, contexts: Tokens) -> npt.NDArray[np.float64]:
        """Return the negative log-likelihood (nats, >= 0) of each true token, (n, 96), for whole contexts (n, 384)."""
        ...


class NoteLikelihood(NamedTuple):
    """How likely whole true middles are."""

    nats: npt.NDArray[np.float64]
    """Negative log-likelihood of each middle, shape (n,)."""
    n_notes: npt.NDArray[np.int64]
    """Notes of each middle, shape (n,)."""

    @property
    def bits_per_note(self) -> float:
        """Bits of all middles over their notes; NaN where they have none."""
        n = int(self.n_notes.sum())
        return float(self.nats.sum()) / math.log(2) / n if n else math.nan


@runtime_checkable
class NoteLikelihoodInpainter(Inpainter, Protocol):
    """An inpainter that can also say how likely the whole true middle is: what `nll` leaves to each model's definition.

    It is the probability of the middle given past and future alone, under the distribution that the model samples from
    at temperature 1, before anything is cut off; each note or token is given those before it. Divided by the notes it
    is a number that models share, as far as their vocabularies allow: VLI knows sixteenths, 86 pitches and durations
    up to two bars, and middles are rounded to these before they are asked for, so that it has fewer to tell apart than
    a model of tokens with 24 steps a measure.
    """

    def note_nll(self, contexts: Tokens) -> NoteLikelihood:
        """Return the negative log-likelihood of the middles of whole contexts (n, 384), and their notes."""
        ...


class GapLimits(NamedTuple):
    """What gaps a `GapInpainter` can take, in steps of its grid of 24 steps to four quarters."""

    steps: int
    """Of the whole stretch, gap and context, at most; a longer piece is cut around its gap."""
    hidden_steps: int
    """From the first hidden step to the last, at most."""
    quantum: int
    """The stretch and what comes before it in the piece are whole multiples of this."""


@runtime_checkable
class GapInpainter(Inpainter, Protocol):
    """An inpainter that can fill any gap, not only the middle four measures of sixteen.

    Attributes
    ----------
    gap_limits
        What it can take.

    """

    gap_limits: GapLimits

    def infill(self, tokens: Tokens, hidden: npt.NDArray[np.bool_], *, rng: np.random.Generator) -> Tokens:
        """Return the tokens with the hidden steps filled, shape (n, steps), values 0..129.

        Parameters
        ----------
        tokens
            Stretches of a melody, shape (n, steps), values 0..129 where they are not hidden; others are not read.
        hidden
            Which steps to fill, the same shape; what is not hidden stays, also between hidden steps ("keep this note").
        rng
            The only source of randomness; each item has numbers of its own.

        """
        ...

    def gap_log_likelihood(self, tokens: Tokens, hidden: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return how likely what stands at the hidden steps is given all others, shape (n,), nats, at most 0.

        It ranks candidates for one gap: more is better. It need not be a normalised likelihood.
        """
        ...


@runtime_checkable
class TextEncoder(Protocol):
    """A model that turns texts into vectors whose inner products are cosines.

    Attributes
    ----------
    name, revision
        What records say; the revision is empty where the encoder has none.

    """

    name: str
    revision: str

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (n, dimensions), float32, in the order of the texts."""
        ...


class Written(NamedTuple):
    """What a language model answered."""

    text: str
    prompt_tokens: int | None = None
    """Tokens that were read; None where the model does not say."""
    completion_tokens: int | None = None
    """Tokens that were written; None where the model does not say."""
    cut_off: bool | None = None
    """Whether the answer ended because it may be no longer; None where the model does not say."""


@runtime_checkable
class LyricWriter(Protocol):
    """A language model that answers a prompt.

    What else it may have is used where it is there: `batch_size`, prompts in a call; `concurrency`, calls at once, from
    threads; ``close()``, let go what it holds, until it is asked again; ``cancel()``, callable from another thread: do
    not try again what has failed, until it is closed.

    Attributes
    ----------
    name
        System id in records and tables.
    deterministic
        True when `write` does not use the seed: one seed is enough.

    """

    name: str
    deterministic: bool

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        """Return one answer a prompt, in their order."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its answers, for the receipt: model id, revision, decoding settings; never a key."""
        ...


@runtime_checkable
class Tagger(Protocol):
    """A model that describes a recording by tags.

    One that reads files made from recordings has `suffixes`, the endings of these in lower case; they are looked for in
    place of recordings.

    Attributes
    ----------
    name
        System id in records and tables.
    groups
        Groups of annotators that it was trained on, out of `annotations.GROUPS`.

    """

    name: str
    groups: tuple[str, ...]

    def tag(self, path: str | os.PathLike[str]) -> Mapping[str, Mapping[str, list[str]]]:
        """Return group -> dimension -> tags of one recording."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what decides its tags besides its own files, as JSON values: encoder, commit, version, threshold."""
        ...


@runtime_checkable
class MusicEncoder(Protocol):
    """A model that turns a recording into one vector.

    Attributes
    ----------
    name
        What records say.
    size
        Length of the vector.
    about
        What decides the numbers besides the recording, as JSON values: settings, version, commit or hash of the files.

    """

    name: str
    size: int
    about: Mapping[str, Any]

    def features(self, source: str, /) -> npt.NDArray[np.float32]:
        """Return the vector of a recording, float32, shape (size,); raises where it has none."""
        ...


@runtime_checkable
class StyleTransfer(Protocol):
    """A model that rewrites the accompaniment under a melody in the style that it has learnt."""

    @property
    def name(self) -> str:
        """System id in records and tables."""
        ...

    @property
    def style(self) -> str:
        """What it was trained on, such as ``"bach"``."""
        ...

    @property
    def deterministic(self) -> bool:
        """True when `transfer` does not use `rng`: one seed is enough."""
        ...

    @property
    def steps_per_quarter(self) -> int:
        """Grid of the rolls that it takes."""
        ...

    def transfer(self, arrangement: Arrangement, *, rng: np.random.Generator) -> Arrangement:
        """Return the same melody on the same grid over another accompaniment."""
        ...


class TransferState(Protocol):
    """All that a style transfer goes on from, between two sweeps."""

    @property
    def sweeps_done(self) -> int:
        """Sweeps so far."""
        ...

    @property
    def cells(self) -> Cells:
        """The roll of melody and accompaniment, shape (steps, 84)."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file that ends in ``.npz``, whole or not at all."""
        ...


class TransferSweep(Protocol):
    """What a sweep of a style transfer leaves."""

    @property
    def state(self) -> TransferState:
        """What the next sweep starts from."""
        ...


@runtime_checkable
class SweptTransfer(StyleTransfer, Protocol):
    """A style transfer that goes through a piece several times, and can be watched, stopped and resumed in between."""

    @property
    def n_sweeps(self) -> int:
        """Sweeps of `transfer`."""
        ...

    def sweeps(
        self, arrangement: Arrangement, *, seed: int, n_sweeps: int | None = None, start: Any = None
    ) -> Iterator[TransferSweep]:
        """Return the sweeps that are left, equal in the end to `transfer` where that draws the same seed.

        Parameters
        ----------
        arrangement
            Melody and first accompaniment.
        seed
            At least 0; `transfer` takes ``rng.integers(2**63)``.
        n_sweeps
            Sweeps in all; None: those of `transfer`.
        start
            State of an earlier sweep of the same run; one of another piece, seed or setting is refused
            (`OtherResultsError`). None: from the first.

        """
        ...

    def arranged(self, cells: Cells, arrangement: Arrangement) -> Arrangement:
        """Return the roll of a sweep as the given melody over the rest."""
        ...

    def read_state(self, path: str | os.PathLike[str]) -> TransferState:
        """Return what `TransferState.save` wrote; raises `UnreadableFileError` for anything else."""
        ...


@runtime_checkable
class CellPredictor(Protocol):
    """A model that says how likely each cell of a roll sounds, given all others but those above it in its step."""

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> npt.NDArray[np.float64]:
        """Return how likely each cell sounds, shape (steps, 84), 0..1, calibrated.

        Each is told what sounds before and after its step and, in its own step, at all lower pitches: the truth, never
        what the model itself says.

        Parameters
        ----------
        roll
            The true roll.
        hidden
            Steps on either side of the step in question that are not told.

        """
        ...


class RenderPair(Protocol):
    """A function that makes the recordings of a row, or finds them where it made them before."""

    def __call__(
        self, row: Mapping[str, Any], *, renderer: str = "additive", cache: str | os.PathLike[str] | None = None
    ) -> tuple[Path, Path]:
        """Return original and edit; a cache of None is the user's own."""
        ...


INPAINTERS: dict[str, str] = {
    "anticipation_rnn": "music_evals.models.anticipation_rnn:AnticipationRNN",
    "infill_transformer": "music_evals.models.infill_transformer:InfillTransformer",
    "inpaintnet": "music_evals.models.inpaintnet:InpaintNet",
    "sketchnet": "music_evals.models.sketchnet:SketchNet",
    "vli": "music_evals.models.vli:VLI",
}
"""Model type -> ``module:class`` of every inpainter with weights."""

CONTROL = "reference"
"""The baseline that returns the true middle: it must score perfectly and stands outside of all comparisons."""

CONTROLS = (CONTROL, "best_lag")
"""The baselines that see the true middle and stand outside of all comparisons; ``best_lag`` chooses what it copies."""

BASELINES: dict[str, str] = dict.fromkeys(
    (
        "silence",
        "repeat_last_measure",
        "copy_past",
        "interpolation_copy",
        "last_pitch_beats",
        "mode_pitch_beats",
        "lag_vote",
        "markov",
        "corpus_prior",
        "best_lag",
        CONTROL,
    ),
    "music_evals.models.baselines:make_baseline",
)
"""Baseline -> ``module:function``; the function takes the name and the training contexts and returns an `Inpainter`."""

ROLL_BASELINES: dict[str, str] = dict.fromkeys(
    ("silence", "copy_previous", "copy_next", "copy_every_4", "copy_every_2"),
    "music_evals.models.roll_baselines:make_roll_baseline",
)
"""Trivial row of cell prediction -> ``module:function``; the function takes the name and returns a `CellPredictor`."""

STYLE_TRANSFERS: dict[str, str] = {
    "bmst": "music_evals.models.bmst:BMST",
    "full_sequence": "music_evals.models.full_sequence:FullSequence",
    "style_lstm": "music_evals.models.style_lstm:StyleLSTM",
}
"""Model type -> ``module:class`` of every `StyleTransfer` with weights; each has `from_pretrained(folder)`."""

TAGGERS: dict[str, str] = {
    "music_tagger": "music_evals.models.music_tagger:MusicTagger",
}
"""Model type -> ``module:class`` of every `Tagger`; each has `from_pretrained(folder)`."""

MUSIC_ENCODERS: dict[str, str] = {
    "audio-statistics": "music_evals.audio.statistics:make_encoder",
    **dict.fromkeys(
        ("mert-95m", "mert-330m", "music2vec", "encodec"), "music_evals.models.music_encoders:make_encoder"
    ),
}
"""Name -> ``module:function`` of every `MusicEncoder`.

The function takes the name, and by keyword ``model`` (a folder or Hub id in place of the named one), ``revision``,
``device`` and ``trust_remote_code``.
"""

MUSIC_ENCODER_TYPES: dict[str, str] = {
    "hubert": "mert-95m",
    "mert_model": "mert-95m",
    "data2vec-audio": "music2vec",
    "encodec": "encodec",
}
"""Model type of a folder -> the encoder that reads it."""

WRITERS: dict[str, str] = {
    "transformers": "music_evals.models.lyric_writers:TransformersWriter",
    "endpoint": "music_evals.models.lyric_writers:EndpointWriter",
}
"""Kind -> ``module:class`` of every `LyricWriter`."""

TUNED_WRITERS: dict[str, str] = {
    "lyric_writer": "music_evals.models.lyric_writers:TransformersWriter",
}
"""Model type of a recipe -> ``module:class`` that reads what tuning a language model by it leaves."""

NEAR_COPY = 14 / 16
"""From this value of the columns ``near_train`` and ``repeats_in_context`` on, a middle is called a near copy."""

RENDERED_DATASETS: dict[str, str] = {
    "known_edits": "music_evals.datasets.known_edits.build:render_pair",
}
"""Dataset whose rows hold scores -> ``module:function``, a `RenderPair`."""

PREPARED_DATASETS: dict[str, dict[str, str]] = {
    "ailabs_1k7": {"ailabs_1k7": "music_evals.datasets.ailabs_1k7.build:prepare"},
    "irish_folk": dict.fromkeys(
        ("music21_folk", "small", "folk_rnn", "folk_rnn_small"), "music_evals.datasets.irish_folk.build:prepare"
    ),
}
"""Dataset -> its configs that are built on first use -> ``module:function``; the function takes the name of the config
and returns the folder that holds it."""

RENDERERS = ("additive", "fluidsynth")
"""What such rows are rendered with: the first needs nothing but us, the second FluidSynth and a soundfont."""


def load_plugin(registry: dict[str, str], name: str, kind: str) -> Any:
    """Import the object that a registry names.

    Raises
    ------
    UnknownNameError
        The name is not registered; the message offers the nearest.
    MissingBackendError
        It needs a package of the extra ``models``.

    """
    if name not in registry:
        raise UnknownNameError(kind, name, registry)
    module, _, attribute = registry[name].partition(":")
    with importing("models", f"the {kind} {name!r}"):
        return getattr(importlib.import_module(module), attribute)


def prepared_place(place: str, config: str | None) -> str:
    """Return the folder that holds a config of the dataset in a folder, built now where it is built on first use.

    Raises
    ------
    MissingBackendError, NoDataError
        What it is built from is missing; the message says what to do.

    """
    built = PREPARED_DATASETS.get(Path(place).name, {})
    if config is None or config not in built:
        return place
    folder: str = load_plugin(built, config, "config")(config)
    return folder
