"""The recipe of a model: a YAML file beside its config.json that decides the weights.

::

    model_type: anticipation_rnn
    model: {hidden_size: 256}          # fields of the network's config
    data: {dataset: ../../datasets_scripts/jsb_chorales, config: musib, train: train, validation: validation}
    training: {seed: 0, batch_size: 16, cycles: [30], learning_rate: 0.003}    # fields of `TrainingConfig`

A network that is trained in stages has one more section. What all stages share stands in `training`, and each stage
replaces some of it::

    stages:
    - {name: vae, training: {cycles: [20]}}
    - {name: latent_rnn, training: {cycles: [30], learning_rate: 0.0003}}

A recipe that differs from another in some settings names that one, which lies beside it, and holds these alone. Stages
are named, and a stage keeps what is not said anew::

    base: train.yaml
    data: {dataset: ../../datasets_scripts/irish_folk, config: music21_folk}
    stages:
    - {name: vae, training: {cycles: [5]}}

The model type says what the sections hold: `DataConfig` and `TrainingConfig` for networks of notes, `TaggerData` and
`TaggerTraining` for taggers, `TextModel`, `TextData` and `TextTraining` for language models. No recipe can allow that
foreign code runs: that is said where training is started.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from music_evals.annotations import GROUPS
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.lyrics.prompts import LANGUAGES
from music_evals.protocols import TAGGERS, TUNED_WRITERS
from music_evals.protocols.settings import check_rules, check_types
from music_evals.repositories import MODELS, folders, shipped
from music_evals.yaml_files import check_tree, load_yaml, yaml_text

__all__ = [
    "SCHEDULES",
    "SECTIONS",
    "TASKS",
    "CommonTraining",
    "DataConfig",
    "MoreData",
    "Recipe",
    "Stage",
    "TaggerData",
    "TaggerTraining",
    "TextData",
    "TextModel",
    "TextTraining",
    "TrainingConfig",
    "build_recipe",
    "find_recipe",
    "from_mapping",
    "read_recipe",
    "read_sections",
]

SECTIONS: Final = ("data", "training", "model")
"""Sections of every recipe that are mappings."""

SCHEDULES: Final = ("cosine", "constant", "exponential", "noam")
"""What `TrainingConfig.schedule` may be."""

TASKS: Final = ("lyrics", "themes")
"""What a language model learns: theme and structure in, lyrics out; or lyrics in, theme out."""

RECIPE: Final = "train.yaml"
"""File in the folder of a model."""

_STEM = "train"  # of the recipes beside it: train-folk.yaml

# Settings that may be paths: on the command line they are meant from where the command runs, not from the recipe.
_PATHS = {"dataset", "audio", "clusters", "features_cache", "model", "processor"}

__getattr__ = module_getattr(
    __name__,
    {
        "TaggerRecipe": "Recipe",
        "TextRecipe": "Recipe",
        "build_tagger_recipe": "build_recipe",
        "build_text_recipe": "build_recipe",
    },
)

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
        are passed over again.
        Runs on data sets of any size then have equally many steps. None: all.
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

    Raises
    ------
    InvalidInputError
        A value outside its range.

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

    Raises
    ------
    InvalidInputError, UnknownNameError
        A value outside its range, or a setting that does not exist.

    """

    dataset: str
    config: str
    train: str = "train"
    validation: str = "validation"
    stride_steps: int | None = None
    validation_stride_steps: int | None = None
    also: tuple[MoreData, ...] = ()

    def __post_init__(self) -> None:
        for name in ("stride_steps", "validation_stride_steps"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InvalidInputError(f"{name} must be at least 1, got {getattr(self, name)!r}")
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

    Raises
    ------
    InvalidInputError, UnknownNameError
        A value outside its range.

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

    Raises
    ------
    InvalidInputError, UnknownNameError
        A value outside its range.

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
        check_rules(
            self,
            {
                "base must be a folder or Hub id of a language model (setting model.base)": bool(self.base),
                "rank must be at least 1": self.rank >= 1,
                "alpha must be at least 1": self.alpha >= 1,
                "dropout must lie in [0, 1)": 0 <= self.dropout < 1,
            },
        )


@dataclasses.dataclass(frozen=True)
class TextData:
    """Which songs are learnt from, and which are kept out.

    Parameters
    ----------
    dataset
        Rows in the schema of caimd: a folder or a file of JSON lines, relative to the recipe or to the working folder,
        a name as `repositories.find_repository` finds it, or an id on the Hub.
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

    Raises
    ------
    InvalidInputError, UnknownNameError
        A value outside its range.

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
        check_rules(
            self,
            {
                "dataset must be a folder, a file or an id on the Hub (setting data.dataset)": bool(self.dataset),
                "validation must lie above 0 and below 1": 0 < self.validation < 1,
            },
        )


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

    Raises
    ------
    InvalidInputError
        A value outside its range.

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

    Raises
    ------
    InvalidInputError
        A value outside its range.

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


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All that decides the weights: model, data and training, in one go or in stages.

    What the sections are depends on the model type; see the head of the module. Of a network and of a tagger `model`
    holds the fields of its config.
    """

    model_type: str
    data: Any
    model: Any = dataclasses.field(default_factory=dict)
    training: Any = None  # by default that of its kind
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.data, TextModel):  # the order of the former `TextRecipe`
            raise InvalidInputError("a recipe takes `data` before `model`; name them")
        if self.training is None:
            kinds: dict[type, type] = {TextData: TextTraining, TaggerData: TaggerTraining}
            object.__setattr__(self, "training", kinds.get(type(self.data), TrainingConfig)())

    def key(self) -> dict[str, Any]:
        """Return what a checkpoint must agree with: everything but where and how long the run may go."""
        training = self.training.key()
        if isinstance(self.data, TextData):  # besides this, what model and songs are
            model = dataclasses.asdict(self.model)
            del model["base"], model["revision"]  # the identity of what they name is compared
            return {"model": model, "task": self.data.task, "training": training}
        if isinstance(self.data, TaggerData):  # besides this, features and targets themselves
            return {"model_type": self.model_type, "model": self.model, "training": training}
        data = dataclasses.asdict(self.data)
        del data["dataset"]
        for name in ("stride_steps", "validation_stride_steps", "also"):
            if not getattr(self.data, name):
                del data[name]  # checkpoints that are older than this setting stay good
        if self.data.also:
            data["also"] = [{"config": more.config, "train": more.train} for more in self.data.also]
        values = {"model_type": self.model_type, "data": data, "model": dict(self.model), "training": training}
        if self.stages:
            values["stages"] = [{"name": stage.name, "training": stage.training.key()} for stage in self.stages]
        return values

    def until(self, stage: Stage) -> Recipe:
        """Return the recipe of a stage: its settings, after those of the stages before it, which it depends on."""
        stages = self.stages[: self.stages.index(stage) + 1]
        return dataclasses.replace(self, training=stage.training, stages=stages)


def read_recipe(path: str | Path) -> Recipe:
    """Read and check a recipe.

    Raises
    ------
    UnreadableFileError
        Missing or not YAML.
    UnknownNameError
        A setting that does not exist.
    InvalidInputError
        A setting is missing or outside its range.

    """
    return build_recipe(read_sections(path))


def build_recipe(values: Mapping[str, Any]) -> Recipe:
    """Check the sections of a recipe, as `read_sections` gives them; raises as `read_recipe` does."""
    kind = str(values.get("model_type", ""))
    if kind in TUNED_WRITERS:
        kinds: dict[str, Any] = {"model": TextModel, "data": TextData, "training": TextTraining}
    elif kind in TAGGERS:
        kinds = {"data": TaggerData, "training": TaggerTraining}
    else:
        kinds = {"data": DataConfig, "training": TrainingConfig}
    built = {key: from_mapping(kind, values.get(key, {}), f"{key} setting") for key, kind in kinds.items()}
    if "stages" in values:
        if kinds["training"] is not TrainingConfig:
            raise UnknownNameError("recipe section", "stages", ("model_type", *SECTIONS))
        stages = []
        for entry in _check_stages(values["stages"]):
            # each takes the shared settings of training and replaces some
            own = {**values.get("training", {}), **entry.get("training", {})}
            stages.append(Stage(entry["name"], from_mapping(TrainingConfig, own, "training setting")))
        built["stages"] = tuple(stages)
    recipe: Recipe = from_mapping(Recipe, {**values, **built}, "recipe section")
    return recipe


def find_recipe(recipe: str | Path, out: str | Path | None) -> tuple[Path, Path]:
    """Return the file of a recipe and the folder that is written to.

    A recipe is a file, the folder of a model, or the name of one that the package came with; only `out` may be written
    to then, for the package's own models stay as they are. By default the folder of ``train.yaml`` is written to, and
    for ``train-folk.yaml`` the folder ``folk`` in it: two recipes of one folder never write the same files.
    """
    path = Path(recipe)
    if path.is_dir():
        path /= RECIPE
    if path.exists():
        own = path.parent / path.stem.removeprefix(f"{_STEM}-") if path.stem.startswith(f"{_STEM}-") else path.parent
        return path, own if out is None else Path(out)
    named = folders(MODELS).get(str(recipe))
    shipped_file = shipped(recipe) if named is None else named / RECIPE
    if shipped_file is None or not shipped_file.is_file():
        return path, Path(out or path.parent)  # reading it says what is wrong
    if out is None:
        raise InvalidInputError(
            f"{recipe} is the recipe of a model that the package came with; `out` says where to write"
        )
    return shipped_file, Path(out)


def read_sections(path: str | Path, changes: Iterable[str] = ()) -> dict[str, Any]:
    """Read a recipe of any kind as it stands, with its base, and replace settings of it.

    A change is a text such as ``"data.audio=songs"``, ``"training.epochs=20"`` or, of a stage,
    ``"stages.vae.cycles=[20]"``. Its value is read as YAML; a path that exists is meant from the working folder, not
    from the recipe's. Raises `UnreadableFileError` for what is missing or not YAML, `InvalidInputError` for another
    form than sections of settings, `UnknownNameError` for a stage that the recipe does not have.
    """
    values = _read(path)
    base = values.pop("base", None)
    if base is not None:
        if not isinstance(base, str) or Path(base).name != base:
            raise InvalidInputError(f"base must be the name of a file beside {path}, such as train.yaml; got {base!r}")
        below = _read(Path(path).parent / base)
        if "base" in below:
            raise InvalidInputError(f"{path} builds on {base}, which has a base itself; build on that one")
        values = _merged(below, values)
    for change in changes:
        _change(values, change)
    return values


def _read(path: str | Path) -> dict[str, Any]:
    """Read one file."""
    place = f"the recipe {path}"
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise UnreadableFileError(
            f"cannot read {place}: {error}; expected a YAML file such as models/anticipation_rnn/train.yaml"
        ) from error
    values = load_yaml(yaml_text(content, place), place, old_booleans=True)
    check_tree(values, place)
    if not isinstance(values, dict) or any(not isinstance(values.get(name, {}), dict) for name in SECTIONS):
        raise InvalidInputError(
            f"the recipe {path} must be a mapping with the sections model_type, model, data and training"
        )
    return values


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a base with what a recipe says anew: setting by setting, in stages too."""
    merged = {**base, **own}
    for name in SECTIONS:
        if isinstance(base.get(name), dict) and isinstance(own.get(name), dict):
            merged[name] = {**base[name], **own[name]}
    if "stages" in own:
        below = _check_stages(base["stages"]) if "stages" in base else []
        merged["stages"] = [{**stage, "training": {**stage.get("training", {})}} for stage in below]
        for stage in _check_stages(own["stages"]):
            _stage(merged, stage["name"])["training"].update(stage.get("training", {}))
    return merged


def _check_stages(entries: Any) -> list[dict[str, Any]]:
    """Return the entries of stages, or raise where they are not mappings with a name."""
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(
            f"stages must be a list of mappings with the settings name and training, at least one; got {entries!r}"
        )
    for entry in entries:
        for setting in entry:
            if setting not in {"name", "training"}:
                raise UnknownNameError("stage setting", str(setting), ["name", "training"])
        if not isinstance(entry.get("name"), str):
            raise InvalidInputError(f"each of the stages must have a name, a text; one has the settings {entry!r}")
        if not isinstance(entry.get("training", {}), dict):
            raise InvalidInputError(
                f"training of the stage {entry['name']!r} must be a mapping, got {entry['training']!r}"
            )
    return entries


def _stage(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the entry of a stage."""
    entries = _check_stages(values["stages"]) if "stages" in values else []
    stages = {entry["name"]: entry for entry in entries}
    if name not in stages:
        raise UnknownNameError("stage", name, stages, "" if stages else "the recipe has no stages")
    entry_of_stage: dict[str, Any] = stages[name]
    return entry_of_stage


def _change(values: dict[str, Any], change: str) -> None:
    """Replace one setting, given as ``section.setting=value``."""
    place, equals, text = change.partition("=")
    *sections, name = place.strip().split(".")
    try:
        value = load_yaml(text, change, old_booleans=True)
    except UnreadableFileError as error:
        raise InvalidInputError(f"the value in {change!r} is not YAML: {error}") from error
    if not equals or not sections or not name:
        raise InvalidInputError(f"expected section.setting=value, as data.audio=songs, got {change!r}")
    if isinstance(value, str) and value[:1].isdigit():
        with contextlib.suppress(ValueError):  # YAML 1.1 takes 1e-5 for text
            value = float(value)
    if name in _PATHS and isinstance(value, str) and Path(value).exists():
        value = str(Path(value).resolve())
    inner: Any = values
    if sections[0] == "stages":
        if len(sections) != 2:
            raise InvalidInputError(f"expected stages.NAME.SETTING=value, as stages.vae.cycles=[20], got {change!r}")
        stage = _stage(values, sections[1])
        inner, sections = stage, ["training"]
    for section in sections:
        inner = inner.setdefault(section, {})
        if not isinstance(inner, dict):
            raise InvalidInputError(f"{change!r}: {section!r} is no section of the recipe; set it as a whole")
    inner[name] = value


def from_mapping(kind: Any, values: Mapping[str, Any], noun: str) -> Any:
    """Build a dataclass from a mapping, refusing names that it does not have."""
    names = [field.name for field in dataclasses.fields(kind)]
    for name in values:
        if name not in names:
            raise UnknownNameError(noun, str(name), names)
    try:
        return kind(**values)
    except TypeError as error:
        raise InvalidInputError(f"{noun}s are incomplete or of the wrong type: {error}") from error
