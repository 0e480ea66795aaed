"""The recipe of a tuned language model: a YAML file that decides the weights.

::

    model_type: lyric_writer
    model: {base: Qwen/Qwen3-0.6B, tuning: lora, rank: 16}        # fields of `TextModel`
    data: {dataset: caimd_v2, task: lyrics, judged: caimd_v2}      # fields of `TextData`
    training: {seed: 0, epochs: 3, learning_rate: 0.0002}          # fields of `TextTraining`

No recipe can allow that foreign code runs: that is said where training is started.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from music_evals.annotations import GROUPS
from music_evals.errors import UnknownNameError
from music_evals.lyrics.prompts import LANGUAGES
from music_evals.models.recipe import from_sections
from music_evals.protocols.settings import check_rules

__all__ = ["TASKS", "TextData", "TextModel", "TextRecipe", "TextTraining", "build_text_recipe"]

TASKS: Final = ("lyrics", "themes")
"""What is learnt: theme and structure in, lyrics out; or lyrics in, theme out."""


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


@dataclasses.dataclass(frozen=True)
class TextTraining:
    """How a language model is tuned.

    Parameters
    ----------
    seed
        Of batches, dropout, LoRA's first weights, and which songs are held out.
    batch_size
        Songs a step.
    at_once
        Songs that are computed together, at most `batch_size`; fewer need less memory and change the result by
        rounding only, where no dropout draws.
    epochs
        Passes over the songs, at most.
    patience
        Epochs without a better validation loss before the run stops.
    learning_rate
        Peak of AdamW, reached after `warmup` and falling along half a cosine to 0 at the end of `epochs`.
    warmup
        Share of all steps, 0 to below 1.
    weight_decay, max_gradient_norm
        Of AdamW; longer gradients are scaled down.
    max_tokens
        Longest prompt and answer together; longer songs are left out and counted. None: what the model reads.
    checkpoint_every
        Steps between two checkpoints; there is one after each epoch besides.
    precision
        ``"float32"``, or ``"bfloat16"`` for mixed precision; with LoRA the frozen weights are held in it.
    gradient_checkpointing
        Work the layers out again on the way back in place of keeping them: slower, and less memory.
    threads
        CPU threads; None leaves PyTorch's setting.

    Raises
    ------
    InvalidInputError
        A value outside its range.

    """

    seed: int = 0
    batch_size: int = 8
    at_once: int = 1
    epochs: int = 3
    patience: int = 2
    learning_rate: float = 2e-4
    warmup: float = 0.03
    weight_decay: float = 0.0
    max_gradient_norm: float = 1.0
    max_tokens: int | None = None
    checkpoint_every: int = 100
    precision: str = "float32"
    gradient_checkpointing: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        check_rules(
            self,
            {
                "seed must not be negative": self.seed >= 0,
                "batch_size must be at least 1": self.batch_size >= 1,
                "at_once must lie in 1..batch_size": 1 <= self.at_once <= self.batch_size,
                "epochs must be at least 1": self.epochs >= 1,
                "patience must be at least 1": self.patience >= 1,
                "learning_rate must be above 0": self.learning_rate > 0,
                "warmup must lie in [0, 1)": 0 <= self.warmup < 1,
                "weight_decay must not be negative": self.weight_decay >= 0,
                "max_gradient_norm must be above 0": self.max_gradient_norm > 0,
                "max_tokens must be at least 2": self.max_tokens is None or self.max_tokens >= 2,
                "checkpoint_every must be at least 1": self.checkpoint_every >= 1,
                "precision must be float32 or bfloat16": self.precision in {"float32", "bfloat16"},
                "threads must be at least 1": self.threads is None or self.threads >= 1,
            },
        )


@dataclasses.dataclass(frozen=True)
class TextRecipe:
    """All that decides the weights: model, data and training."""

    model_type: str
    model: TextModel
    data: TextData
    training: TextTraining = dataclasses.field(default_factory=TextTraining)

    def key(self) -> dict[str, Any]:
        """Return what a checkpoint must agree with, besides model and songs themselves."""
        model, training = dataclasses.asdict(self.model), dataclasses.asdict(self.training)
        del model["base"], model["revision"]  # the identity of what they name is compared
        for name in ("patience", "checkpoint_every", "threads"):
            del training[name]
        return {"model": model, "task": self.data.task, "training": training}


def build_text_recipe(values: Mapping[str, Any]) -> TextRecipe:
    """Check the sections of a tuned model's recipe, as `recipe.read_sections` gives them.

    Raises
    ------
    UnknownNameError
        A setting that does not exist.
    InvalidInputError
        A setting is missing or outside its range.

    """
    recipe: TextRecipe = from_sections(TextRecipe, values, model=TextModel, data=TextData, training=TextTraining)
    return recipe
