"""Recipes cut to equal budgets: equally many steps of equally many contexts, and all else as it was."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

from music_evals.models.training.recipe import Recipe, TrainingConfig

WARMUP: Final = 0.05
"""Share of a stage's steps in which the learning rate rises."""

RECIPE_EPOCH: Final = 79
"""Steps of an epoch of the chorales, which the recipes were made for."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """How far all runs go; a table of runs has one of these."""

    steps: int = 1500
    batch: int = 32
    epoch_steps: int = 50  # steps between two looks at validation
    validation: int = 256  # contexts that a validation looks at, spread over the split
    test: int = 400  # contexts that are judged, spread over the test split
    seeds: int = 5  # samples of what uses randomness
    seed: int = 0


def shortened(recipe: Recipe, limits: Limits) -> Recipe:
    """Return a recipe whose stages share so many steps as its own do, without early stopping."""
    stages = [stage.training for stage in recipe.stages] or [recipe.training]
    epochs = shares([training.n_epochs for training in stages], limits.steps // limits.epoch_steps)
    cut = [_cut(training, n, limits) for training, n in zip(stages, epochs, strict=True)]
    named = tuple(
        dataclasses.replace(stage, training=training) for stage, training in zip(recipe.stages, cut, strict=False)
    )
    model = dict(recipe.model)
    if "forcing_decay" in model:
        model["forcing_decay"] = decay_for(stages[0], epochs[0] * limits.epoch_steps, model["forcing_decay"])
    return dataclasses.replace(recipe, model=model, training=cut[0], stages=named)


def _cut(training: TrainingConfig, epochs: int, limits: Limits) -> TrainingConfig:
    plain = training.plain_epochs
    return dataclasses.replace(
        training,
        seed=limits.seed,
        batch_size=limits.batch,
        epoch_contexts=limits.batch * limits.epoch_steps,
        cycles=(epochs,),
        plain_epochs=None if plain is None else round(epochs * plain / training.n_epochs),
        max_minutes=None,
        patience=epochs,
        warmup_steps=round(WARMUP * epochs * limits.epoch_steps),
    )


def shares(weights: Sequence[int], total: int) -> list[int]:
    """Share a number of epochs out by weights, at least one each, so that they add up."""
    if total < len(weights):
        message = f"{len(weights)} stages need an epoch each, and there are {total}"
        raise ValueError(message)
    exact = [weight * total / sum(weights) for weight in weights]
    found = [max(1, math.floor(value)) for value in exact]
    while sum(found) != total:
        step = 1 if sum(found) < total else -1
        able = [place for place, n in enumerate(found) if n + step >= 1]
        place = max(able, key=lambda place: step * (exact[place] - found[place]))
        found[place] += step
    return found


def decay_for(training: TrainingConfig, steps: int, decay: float) -> int:
    """Return SketchNet's decay of teacher forcing for a shorter stage: a half is reached at the same share of it."""
    # a half is reached at step k ln k
    share = decay * math.log(decay) / (training.n_epochs * RECIPE_EPOCH)
    target = share * steps
    k = 2.0
    while k * math.log(k) < target:
        k += 1
    return int(k)
