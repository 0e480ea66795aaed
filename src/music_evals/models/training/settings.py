"""What the sections of a recipe hold: data, training and model, one dataclass for each kind of training.

All of them raise `InvalidInputError` for a value outside its range, and `UnknownNameError` for a name or a setting that
does not exist.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Final, TypeVar

from music_evals.annotations import GROUPS
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.lyrics.prompts import LANGUAGES
from music_evals.protocols.settings import check_rules, check_types

__all__ = [
    "SCHEDULES", "TASKS", "CommonTraining", "DataConfig", "MoreData", "Stage", "TaggerData", "TaggerTraining",
    "TextData", "TextModel", "TextTraining", "TrainingConfig", "from_mapping",
]  # fmt: skip

Settings = TypeVar("Settings")

SCHEDULES: Final = ("cosine", "constant", "exponential", "noam")
"""What `TrainingConfig.schedule` may be."""

TASKS: Final = ("lyrics", "themes")
"""What a language model learns: theme and structure in, lyrics out; or lyrics in, theme out."""

_COUNTS = ("batch_size", "at_once", "epoch_contexts", "epochs", "patience", "checkpoint_every", "threads")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommonTraining:
    """What every training has.

    Parameters
    ----------
    seed
        Of all that is drawn: weights, batches, transpositions, dropout.
    batch_size
        Examples a step; the last, smaller batch of an epoch is used too.
    learning_rate
        Of AdamW, at its peak.
    weight_decay
        Of AdamW; with 0 it is Adam.
    max_gradient_norm
        Longer gradients are scaled down to it. None: they stay.
    precision
        ``"float32"``, or ``"bfloat16"`` for mixed precision.
    threads
        CPU threads; None leaves PyTorch's setting.

    Raises
    ------
    InvalidInputError
        A value outside its range.
    """

    unkeyed: ClassVar[tuple[str, ...]] = ("threads",)
    """Fields that a run may change and still go on from its checkpoint."""
    seed: int = 0
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    max_gradient_norm: float | None = 1.0
    precision: str = "float32"
    threads: int | None = None

    def __post_init__(self) -> None:
        check_types(self)
        counts = {name: getattr(self, name) for name in _COUNTS if hasattr(self, name)}
        rules = {f"{name} must be at least 1": count is None or count >= 1 for name, count in counts.items()}
        rules |= {
            "seed must not be negative": self.seed >= 0,
            "learning_rate must be above 0": self.learning_rate > 0,
            "weight_decay must not be negative": self.weight_decay >= 0,
            "max_gradient_norm must be above 0": self.max_gradient_norm is None or self.max_gradient_norm > 0,
            "precision must be float32 or bfloat16": self.precision in {"float32", "bfloat16"},
        }
        check_rules(self, rules)

    def key(self) -> dict[str, Any]:
        """Return the settings that a checkpoint must agree with."""
        values = dataclasses.asdict(self)
        return {name: value for name, value in values.items() if name not in self.unkeyed}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig(CommonTraining):
    """How a network of notes is trained; `CommonTraining` documents the other settings.

    Parameters
    ----------
    cycles
        Epochs of each cycle, one or more; an epoch is a pass over the training contexts. In a cycle the learning rate
        follows half a cosine down, and the next one starts from the peak again (Loshchilov and Hutter, SGDR, 2017).
    epoch_contexts
        Contexts, or steps of piano rolls, of an epoch in place of all, drawn anew for each; where there are fewer, they
        are passed over again. Runs on data sets of any size then have equally many steps. None: all.
    plain_epochs
        Epochs at the start in which the network trains on the very task it is evaluated on; after them it may vary the
        task (see its `training_loss`). None: all. Validation is always plain.
    max_minutes
        Training time after which no epoch is started; a run stopped so depends on the machine's speed. None: no bound.
    patience
        Epochs without a better validation loss before the run stops.
    schedule
        How the learning rate goes: ``"cosine"``, ``"constant"``, ``"exponential"`` or ``"noam"``; see
        `loop.learning_rate`.
    final_learning_rate
        End of the cosine; the exponential schedule goes no lower.
    decay
        Of the exponential schedule: what each step multiplies the learning rate by, above 0 and at most 1.
    warmup_steps
        Steps of linear rise to the peak, at the start of the run; the schedule of Noam needs some.
    transpose_low, transpose_high
        Bounds in semitones of the random transposition of training contexts; 0 and 0 switch it off. Validation
        contexts are never transposed.
    average
        Share of the old that a moving average of the weights keeps at each step, fewer at the start of the run. It is
        the average that is validated and kept. 0: the weights themselves.
    """

    unkeyed = ("threads", "max_minutes")

    cycles: tuple[int, ...] = (100,)
    epoch_contexts: int | None = None
    plain_epochs: int | None = None
    max_minutes: float | None = None
    patience: int = 10
    schedule: str = "cosine"
    final_learning_rate: float = 0.0
    decay: float = 0.9999
    warmup_steps: int = 0
    transpose_low: int = 0
    transpose_high: int = 0
    average: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cycles", tuple(self.cycles))  # YAML and JSON hold lists
        rules = {
            "cycles must hold at least one epoch each": bool(self.cycles) and min(self.cycles) >= 1,
            "plain_epochs must not be negative": self.plain_epochs is None or self.plain_epochs >= 0,
            "max_minutes must be above 0": self.max_minutes is None or self.max_minutes > 0,
            "final_learning_rate must lie in [0, learning_rate]": 0 <= self.final_learning_rate <= self.learning_rate,
            f"schedule must be one of {', '.join(SCHEDULES)}": self.schedule in SCHEDULES,
            "decay must lie above 0 and be at most 1": 0 < self.decay <= 1,
            "warmup_steps must not be negative": self.warmup_steps >= 0,
            "warmup_steps must be at least 1 for the schedule noam": self.schedule != "noam" or self.warmup_steps >= 1,
            "transpose_low must be at most 0": self.transpose_low <= 0,
            "transpose_high must be at least 0": self.transpose_high >= 0,
            "average must lie in [0, 1)": 0 <= self.average < 1,
        }
        check_rules(self, rules)

    @property
    def n_epochs(self) -> int:
        """Epochs of the whole run."""
        return sum(self.cycles)

    def key(self) -> dict[str, Any]:
        """Return the settings that a checkpoint must agree with."""
        # as JSON will give it back; checkpoints that are older than the two settings stay good
        values = {**super().key(), "cycles": list(self.cycles)}
        return {name: value for name, value in values.items() if value or name not in {"epoch_contexts", "average"}}


@dataclasses.dataclass(frozen=True)
class MoreData:
    """Training contexts of another dataset: where it is, and the name of its config and of the split."""

    dataset: str
    config: str
    train: str = "train"


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """What a network is trained on: a dataset with a column `tokens`, or one of whole pieces.

    Parameters
    ----------
    dataset
        Folder, relative to the recipe, a name as `repositories.find_repository` finds it, or an id on the Hub.
    config, train, validation
        Names of the dataset's config and of the two splits.
    stride_steps
        Where it is given, the windows of the training split are put together into whole voices again, and contexts are
        cut out of these at every so many steps: 6 are all that start on a quarter. Wants the columns `song`, `voice`
        and `start`. None: the windows as they are.
    validation_stride_steps
        Of piano rolls, the stride in steps at which the validation split is evaluated; a stride coprime with the steps
        per bar covers every position. None: every step.
    also
        More training data, each a mapping with `dataset`, `config` and `train`; all examples are drawn alike.
    """

    dataset: str
    config: str
    train: str = "train"
    validation: str = "validation"
    stride_steps: int | None = None
    validation_stride_steps: int | None = None
    also: tuple[MoreData, ...] = ()

    def __post_init__(self) -> None:
        names = ("stride_steps", "validation_stride_steps")
        check_rules(
            self,
            {f"{name} must be at least 1": getattr(self, name) is None or getattr(self, name) >= 1 for name in names},
        )
        if not isinstance(self.also, list | tuple) or not all(isinstance(more, dict | MoreData) for more in self.also):
            raise InvalidInputError(f"also must be a list of mappings with dataset and config, got {self.also!r}")
        more = (m if isinstance(m, MoreData) else from_mapping(MoreData, m, "setting of more data") for m in self.also)
        object.__setattr__(self, "also", tuple(more))


@dataclasses.dataclass(frozen=True)
class TaggerData:
    """Which songs a tagger learns from, and which part of them.

    Parameters
    ----------
    dataset
        Rows in the schema of caimd: a folder or a file of JSON lines, relative to the recipe or to the working folder,
        a name as `repositories.find_repository` finds it, or an id on the Hub.
    audio
        Folder of recordings that are named by song id, e.g. ``s_0001.mp3``; for precomputed features of their files.
        Sub-folders are searched too, as by `audio.io.recordings`.
    audio_column
        Column of the rows that holds the recordings, in place of `audio`.
    config
        Name of the dataset's config; None where it has one only, or a default.
    train, test
        Splits. The songs of `test` are scored after training; None scores none.
    encoder
        Fields of `encoders.music.EncoderSettings`, or a name alone.
    groups
        Groups of annotators; each gets a network of its own.
    min_count
        Training songs that a tag must occur in to be learnt.
    clusters
        JSON file of names that stand for tags (`tag_vocabulary.read_clusters`); None learns the tags as they are.
    max_songs
        The first so many usable songs are trained on; None takes all. MuChin: 4,499.
    missing
        What a song without recording is: ``"error"`` or ``"skip"``.
    features_cache
        Folder of stored features; None is the user's own.
    """

    dataset: str
    audio: str | None = None
    audio_column: str | None = None
    config: str | None = None
    train: str = "train"
    test: str | None = None
    encoder: dict[str, Any] = dataclasses.field(default_factory=lambda: {"name": "mert-95m"})
    groups: tuple[str, ...] = GROUPS
    min_count: int = 1
    clusters: str | None = None
    max_songs: int | None = None
    missing: str = "error"
    features_cache: str | None = None

    def __post_init__(self) -> None:
        encoder: Any = self.encoder  # YAML holds names and lists
        object.__setattr__(self, "encoder", {"name": encoder} if isinstance(encoder, str) else dict(encoder))
        groups: Any = self.groups
        object.__setattr__(self, "groups", (groups,) if isinstance(groups, str) else tuple(groups))
        if self.missing not in {"error", "skip"}:
            raise UnknownNameError("way to treat missing recordings", str(self.missing), {"error", "skip"})
        rules = {
            "dataset must be a folder, a file or an id on the Hub (setting data.dataset)": bool(self.dataset),
            "min_count must be at least 1": self.min_count >= 1,
            "max_songs must be at least 1": self.max_songs is None or self.max_songs >= 1,
            "audio or audio_column must say where the recordings are, one of both (settings of data)": (
                (self.audio is None) != (self.audio_column is None)
            ),
        }
        check_rules(self, rules)


@dataclasses.dataclass(frozen=True)
class TextModel:
    """Which language model is tuned, and how much of it.

    Parameters
    ----------
    base
        Folder or Hub id of a causal language model of transformers with safetensors weights.
    revision
        Commit, tag or branch on the Hub.
    tuning
        ``"full"``, all weights; or ``"lora"``, matrices of low rank beside them (Hu et al., ICLR 2022) by the package
        peft, which are added to the weights at the end: the tuned model is read without peft.
    rank, alpha, dropout
        Of LoRA.
    targets
        Layers that LoRA stands beside: ``"all-linear"``, all but the last, or a list of their names.
    """

    base: str
    revision: str | None = None
    tuning: str = "lora"
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.05
    targets: str | tuple[str, ...] = "all-linear"

    def __post_init__(self) -> None:
        if self.tuning not in {"full", "lora"}:
            raise UnknownNameError("way to tune", str(self.tuning), {"full", "lora"})
        if not isinstance(self.targets, str):
            object.__setattr__(self, "targets", tuple(self.targets))  # YAML holds lists
        rules = {
            "base must be a folder or Hub id of a language model (setting model.base)": bool(self.base),
            "rank must be at least 1": self.rank >= 1,
            "alpha must be at least 1": self.alpha >= 1,
            "dropout must lie in [0, 1)": 0 <= self.dropout < 1,
        }
        check_rules(self, rules)


@dataclasses.dataclass(frozen=True)
class TextData:
    """Which songs are learnt from, and which are kept out.

    Parameters
    ----------
    dataset
        As of `TaggerData`.
    config, train
        Name of the dataset's config, and split.
    judged
        Dataset of the songs that the model will be evaluated on; None is `dataset`. None of them, nor a near copy
        (`lyrics.near_copies`), nor a song of the same title and performers, is trained on.
    judged_config, judged_split
        Its config, None for that of `config` where the dataset is the same, and split.
    validation
        Share of the training songs that decide when to stop, at least one song.
    task
        One of `TASKS`.
    language
        Of the prompt's instructions.
    theme_from
        Group of annotators whose text is the theme; None takes the professional's, or the amateur's where there is
        none.
    """

    dataset: str
    config: str | None = None
    train: str = "train"
    judged: str | None = None
    judged_config: str | None = None
    judged_split: str = "test"
    validation: float = 0.05
    task: str = "lyrics"
    language: str = "zh"
    theme_from: str | None = None

    def __post_init__(self) -> None:
        for setting, value, known in (
            ("task of a tuned model", self.task, TASKS),
            ("language of prompts", self.language, LANGUAGES),
            ("group of annotators", self.theme_from, (None, *GROUPS)),
        ):
            if value not in known:
                raise UnknownNameError(setting, str(value), filter(None, known))
        rules = {
            "dataset must be a folder, a file or an id on the Hub (setting data.dataset)": bool(self.dataset),
            "validation must lie above 0 and below 1": 0 < self.validation < 1,
        }
        check_rules(self, rules)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggerTraining(CommonTraining):
    """How a tagger is trained; `CommonTraining` documents the other settings. The defaults are MuChin's.

    Parameters
    ----------
    batch_size
        Songs a step.
    learning_rate
        Constant.
    epochs
        Passes over the songs. MuChin trains 20,000 and tests the weights of its epoch 19,980.
    checkpoint_every
        Epochs between two checkpoints.
    """

    unkeyed = ("threads", "epochs", "checkpoint_every")

    batch_size: int = 1024
    epochs: int = 20000
    checkpoint_every: int = 20
    learning_rate: float = 1e-5
    max_gradient_norm: float | None = None

    def key(self) -> dict[str, Any]:
        """Return the settings that a checkpoint must agree with."""
        # checkpoints that are older than the other settings stay good
        plain = {field.name: field.default for field in dataclasses.fields(self)}
        newer = {"weight_decay", "max_gradient_norm", "precision"}
        return {name: value for name, value in super().key().items() if name not in newer or value != plain[name]}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextTraining(CommonTraining):
    """How a language model is tuned; `CommonTraining` documents the other settings.

    Parameters
    ----------
    at_once
        Songs that are computed together, at most `batch_size`; fewer need less memory and change the result by
        rounding only, where no dropout draws.
    epochs
        Passes over the songs, at most.
    patience
        Epochs without a better validation loss before the run stops.
    learning_rate
        Peak, reached after `warmup` and falling along half a cosine to 0 at the end of `epochs`.
    warmup
        Share of all steps, 0 to below 1.
    max_tokens
        Longest prompt and answer together; longer songs are left out and counted. None: what the model reads.
    checkpoint_every
        Steps between two checkpoints; there is one after each epoch besides.
    precision
        With LoRA and ``"bfloat16"`` the frozen weights are held in it.
    gradient_checkpointing
        Work the layers out again on the way back in place of keeping them: slower, and less memory.
    """

    unkeyed = ("threads", "patience", "checkpoint_every")

    batch_size: int = 8
    at_once: int = 1
    epochs: int = 3
    patience: int = 2
    learning_rate: float = 2e-4
    warmup: float = 0.03
    max_tokens: int | None = None
    checkpoint_every: int = 100
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        rules = {
            "at_once must lie in 1..batch_size": 1 <= self.at_once <= self.batch_size,
            "warmup must lie in [0, 1)": 0 <= self.warmup < 1,
            "max_tokens must be at least 2": self.max_tokens is None or self.max_tokens >= 2,
        }
        check_rules(self, rules)


@dataclasses.dataclass(frozen=True)
class Stage:
    """One stage of a training: its name, as the network knows it, and all of its settings."""

    name: str
    training: TrainingConfig


def from_mapping(kind: type[Settings], values: Mapping[str, Any], noun: str) -> Settings:
    """Build a dataclass from a mapping, refusing names that it does not have."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in names:
            raise UnknownNameError(noun, str(name), names)
    try:
        return kind(**values)
    except TypeError as error:
        raise InvalidInputError(f"{noun}s are incomplete or of the wrong type: {error}") from error
