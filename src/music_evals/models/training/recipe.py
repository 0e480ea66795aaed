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

The model type says what the sections hold (`training.settings`): `DataConfig` and `TrainingConfig` for networks of
notes, `TaggerData` and `TaggerTraining` for taggers, `TextModel`, `TextData` and `TextTraining` for language models. No
recipe can allow that foreign code runs: that is said where training is started.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.models.training.settings import (
    SCHEDULES,
    TASKS,
    CommonTraining,
    DataConfig,
    MoreData,
    Stage,
    TaggerData,
    TaggerTraining,
    TextData,
    TextModel,
    TextTraining,
    TrainingConfig,
    from_mapping,
)
from music_evals.protocols import TAGGERS, TUNED_WRITERS
from music_evals.repositories import MODELS, folders, shipped
from music_evals.yaml_files import check_tree, load_yaml, yaml_text

__all__ = [
    "SCHEDULES", "SECTIONS", "TASKS", "CommonTraining", "DataConfig", "MoreData", "Recipe", "Stage", "TaggerData",
    "TaggerTraining", "TextData", "TextModel", "TextTraining", "TrainingConfig", "build_recipe", "find_recipe",
    "from_mapping", "read_recipe", "read_sections",
]  # fmt: skip

SECTIONS: Final = ("data", "training", "model")
"""Sections of every recipe that are mappings."""

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
    UnknownNameError, InvalidInputError
        A setting that does not exist, is missing or is outside its range.
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
    return from_mapping(Recipe, {**values, **built}, "recipe section")


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
        # setting by setting, in stages too
        own, values = values, {**below, **values}
        for name in SECTIONS:
            if isinstance(below.get(name), dict) and isinstance(own.get(name), dict):
                values[name] = {**below[name], **own[name]}
        if "stages" in own:
            stages = _check_stages(below["stages"]) if "stages" in below else []
            values["stages"] = [{**stage, "training": {**stage.get("training", {})}} for stage in stages]
            for stage in _check_stages(own["stages"]):
                _stage(values, stage["name"])["training"].update(stage.get("training", {}))
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
