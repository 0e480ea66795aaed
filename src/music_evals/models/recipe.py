"""The recipe of a network: a YAML file beside its config.json that decides the weights.

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

That is the recipe of an inpainter or of a network of piano rolls; `tag_recipe` tells the sections of a tagger.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.models._schedules import SCHEDULES
from music_evals.protocols.settings import check_rules, check_types
from music_evals.repositories import MODELS, folders, shipped
from music_evals.yaml_files import check_tree, load_yaml, yaml_text

__all__ = [
    "SECTIONS",
    "DataConfig",
    "MoreData",
    "Recipe",
    "Stage",
    "TrainingConfig",
    "build_recipe",
    "find_recipe",
    "from_mapping",
    "from_sections",
    "read_recipe",
    "read_sections",
]

SECTIONS: Final = ("data", "training", "model")
"""Sections of every recipe that are mappings."""

RECIPE: Final = "train.yaml"
"""File in the folder of a model."""

_STEM = "train"  # of the recipes beside it: train-folk.yaml

# Settings that may be paths: on the command line they are meant from where the command runs, not from the recipe.
_PATHS = {"dataset", "audio", "clusters", "features_cache", "model", "processor"}


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained.

    Parameters
    ----------
    seed
        Of weights, batches, transpositions and dropout.
    batch_size
        Examples a step; the last, smaller batch of an epoch is used too.
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
        `training.learning_rate`.
    learning_rate, final_learning_rate
        Peak, and end of the cosine; the exponential schedule goes no lower.
    decay
        Of the exponential schedule: what each step multiplies the learning rate by, above 0 and at most 1.
    warmup_steps
        Steps of linear rise to the peak, at the start of the run; the schedule of Noam needs some.
    weight_decay
        Of AdamW; with 0 it is Adam.
    max_gradient_norm
        Longer gradients are scaled down to it. None: they stay.
    transpose_low, transpose_high
        Bounds in semitones of the random transposition of training contexts; 0 and 0 switch it off. Validation
        contexts are never transposed.
    average
        Share of the old that a moving average of the weights keeps at each step, fewer at the start of the run. It is
        the average that is validated and kept. 0: the weights themselves.
    precision
        ``"float32"``, or ``"bfloat16"`` for mixed precision.
    threads
        CPU threads; None leaves PyTorch's setting.

    Raises
    ------
    InvalidInputError
        A value outside its range.

    """

    seed: int = 0
    batch_size: int = 32
    cycles: tuple[int, ...] = (100,)
    epoch_contexts: int | None = None
    plain_epochs: int | None = None
    max_minutes: float | None = None
    patience: int = 10
    schedule: str = "cosine"
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.0
    decay: float = 0.9999
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_gradient_norm: float | None = 1.0
    transpose_low: int = 0
    transpose_high: int = 0
    average: float = 0.0
    precision: str = "float32"
    threads: int | None = None

    def __post_init__(self) -> None:
        check_types(self)
        object.__setattr__(self, "cycles", tuple(self.cycles))  # YAML and JSON hold lists
        rules = {
            "batch_size must be at least 1": self.batch_size >= 1,
            "cycles must hold at least one epoch each": bool(self.cycles) and min(self.cycles) >= 1,
            "epoch_contexts must be at least 1": self.epoch_contexts is None or self.epoch_contexts >= 1,
            "plain_epochs must not be negative": self.plain_epochs is None or self.plain_epochs >= 0,
            "max_minutes must be above 0": self.max_minutes is None or self.max_minutes > 0,
            "patience must be at least 1": self.patience >= 1,
            "learning_rate must be above 0": self.learning_rate > 0,
            "final_learning_rate must lie in [0, learning_rate]": 0 <= self.final_learning_rate <= self.learning_rate,
            f"schedule must be one of {', '.join(SCHEDULES)}": self.schedule in SCHEDULES,
            "decay must lie above 0 and be at most 1": 0 < self.decay <= 1,
            "warmup_steps must not be negative": self.warmup_steps >= 0,
            "warmup_steps must be at least 1 for the schedule noam": self.schedule != "noam" or self.warmup_steps >= 1,
            "weight_decay must not be negative": self.weight_decay >= 0,
            "max_gradient_norm must be above 0": self.max_gradient_norm is None or self.max_gradient_norm > 0,
            "transpose_low must be at most 0": self.transpose_low <= 0,
            "transpose_high must be at least 0": self.transpose_high >= 0,
            "average must lie in [0, 1)": 0 <= self.average < 1,
            "precision must be float32 or bfloat16": self.precision in {"float32", "bfloat16"},
            "threads must be at least 1": self.threads is None or self.threads >= 1,
        }
        check_rules(self, rules)

    @property
    def n_epochs(self) -> int:
        """Epochs of the whole run."""
        return sum(self.cycles)


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
class Stage:
    """One stage of a training: its name, as the network knows it, and all of its settings."""

    name: str
    training: TrainingConfig


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All that decides the weights: network, data and training, in one go or in stages."""

    model_type: str
    data: DataConfig
    model: dict[str, Any] = dataclasses.field(default_factory=dict)
    training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)
    stages: tuple[Stage, ...] = ()

    def key(self) -> dict[str, Any]:
        """Return what a checkpoint must agree with: everything but where and how long the run may go."""
        values = dataclasses.asdict(self)
        del values["data"]["dataset"], values["stages"]
        for name in ("stride_steps", "validation_stride_steps", "also"):
            if not getattr(self.data, name):
                del values["data"][name]  # checkpoints that are older than this setting stay good
        if self.data.also:
            values["data"]["also"] = [{"config": more.config, "train": more.train} for more in self.data.also]
        values["training"] = _training_key(self.training)
        if self.stages:
            values["stages"] = [
                {"name": stage.name, "training": _training_key(stage.training)} for stage in self.stages
            ]
        return values

    def until(self, stage: Stage) -> Recipe:
        """Return the recipe of a stage: its settings, after those of the stages before it, which it depends on."""
        stages = self.stages[: self.stages.index(stage) + 1]
        return dataclasses.replace(self, training=stage.training, stages=stages)


def _training_key(training: TrainingConfig) -> dict[str, Any]:
    values = dataclasses.asdict(training)
    values["cycles"] = list(training.cycles)  # as JSON will give it back
    del values["max_minutes"], values["threads"]
    for name in ("epoch_contexts", "average"):
        if not values[name]:
            del values[name]  # checkpoints that are older than this setting stay good
    return values


def read_recipe(path: str | Path) -> Recipe:
    """Read and check a recipe that is no tagger's.

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
    """Read a recipe of any kind as it stands.

    Parameters
    ----------
    path
        A YAML file.
    changes
        Settings that replace those of the file, as ``"data.audio=songs"`` or ``"training.epochs=20"``; those of a stage
        as ``"stages.vae.cycles=[20]"``. The value is read as YAML. A path that exists is meant from the working
        folder, not from the recipe's.

    Returns
    -------
    dict
        With the sections of the file; `SECTIONS` are mappings where they are there.

    Raises
    ------
    UnreadableFileError
        Missing or not YAML.
    InvalidInputError
        Not a mapping of sections, a base that is not beside the recipe or has one itself, or a change of another form.
    UnknownNameError
        A stage that the base, or the recipe, does not have.

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
    if isinstance(value, str):
        value = _number(value)
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


def _number(text: str) -> str | float:
    """Read what YAML 1.1 takes for text though it is a number: ``1e-5``."""
    try:
        return float(text) if text[:1].isdigit() else text
    except ValueError:
        return text


def build_recipe(values: Mapping[str, Any]) -> Recipe:
    """Check the sections of a recipe that is no tagger's.

    Raises
    ------
    UnknownNameError, InvalidInputError
        As `read_recipe`.

    """
    if "stages" in values:
        values = {**values, "stages": _build_stages(values["stages"], values.get("training", {}))}
    recipe: Recipe = from_sections(Recipe, values, data=DataConfig, training=TrainingConfig)
    return recipe


def _build_stages(entries: Any, shared: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Check the stages; each takes the shared settings of training and replaces some."""
    stages = []
    for entry in _check_stages(entries):
        training = from_mapping(TrainingConfig, {**shared, **entry.get("training", {})}, "training setting")
        stages.append(from_mapping(Stage, {**entry, "training": training}, "stage setting"))
    return tuple(stages)


def from_sections(recipe: Any, values: Mapping[str, Any], **kinds: Any) -> Any:
    """Build a recipe from its sections, those that are named as the dataclasses that they are named with."""
    built = {key: from_mapping(kind, values[key], f"{key} setting") for key, kind in kinds.items() if key in values}
    return from_mapping(recipe, {**values, **built}, "recipe section")


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
