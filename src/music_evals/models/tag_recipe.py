"""The recipe of a tagger: a YAML file that decides the weights.

::

    model_type: music_tagger
    model: {hidden_size: 8192}         # fields of `MusicTaggerConfig` but those that follow from the data
    data: {dataset: caimd_v2, audio: songs, encoder: {name: mert-95m}}      # fields of `TaggerData`
    training: {seed: 0, epochs: 20000, learning_rate: 0.00001}              # fields of `TaggerTraining`

No recipe can allow that foreign code runs: that is said where training is started.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from music_evals.annotations import GROUPS
from music_evals.errors import UnknownNameError
from music_evals.models.recipe import from_sections
from music_evals.protocols.settings import check_rules

__all__ = ["TaggerData", "TaggerRecipe", "TaggerTraining", "build_tagger_recipe"]


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
        Fields of `music_encoders.EncoderSettings`, or a name alone.
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
class TaggerTraining:
    """How a tagger is trained; the defaults are MuChin's.

    Parameters
    ----------
    seed
        Of weights and batches.
    batch_size
        Songs a step; the last, smaller batch of an epoch is used too.
    epochs
        Passes over the songs. MuChin trains 20,000 and tests the weights of its epoch 19,980.
    checkpoint_every
        Epochs between two checkpoints.
    learning_rate
        Of Adam, constant.
    threads
        CPU threads; None leaves PyTorch's setting.

    Raises
    ------
    InvalidInputError
        A value outside its range.

    """

    seed: int = 0
    batch_size: int = 1024
    epochs: int = 20000
    checkpoint_every: int = 20
    learning_rate: float = 1e-5
    threads: int | None = None

    def __post_init__(self) -> None:
        rules = {
            "seed must not be negative": self.seed >= 0,
            "batch_size must be at least 1": self.batch_size >= 1,
            "epochs must be at least 1": self.epochs >= 1,
            "checkpoint_every must be at least 1": self.checkpoint_every >= 1,
            "learning_rate must be above 0": self.learning_rate > 0,
            "threads must be at least 1": self.threads is None or self.threads >= 1,
        }
        check_rules(self, rules)


@dataclasses.dataclass(frozen=True)
class TaggerRecipe:
    """All that decides the weights: network, data and training."""

    model_type: str
    data: TaggerData
    model: dict[str, Any] = dataclasses.field(default_factory=dict)
    training: TaggerTraining = dataclasses.field(default_factory=TaggerTraining)

    def key(self) -> dict[str, Any]:
        """Return what a checkpoint must agree with, besides the features and targets themselves."""
        training = dataclasses.asdict(self.training)
        for name in ("epochs", "checkpoint_every", "threads"):
            del training[name]
        return {"model_type": self.model_type, "model": self.model, "training": training}


def build_tagger_recipe(values: Mapping[str, Any]) -> TaggerRecipe:
    """Check the sections of a tagger's recipe, as `recipe.read_sections` gives them.

    Raises
    ------
    UnknownNameError
        A setting that does not exist.
    InvalidInputError
        A setting is missing or outside its range.

    """
    recipe: TaggerRecipe = from_sections(TaggerRecipe, values, data=TaggerData, training=TaggerTraining)
    return recipe
