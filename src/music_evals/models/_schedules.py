"""How the learning rate goes from step to step, and which cycles of it a run has seen."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_evals.models.recipe import TrainingConfig

__all__ = ["SCHEDULES", "learning_rate", "with_begun_cycles"]

SCHEDULES = ("cosine", "constant", "exponential", "noam")
"""What `TrainingConfig.schedule` may be."""


def learning_rate(step: int, epoch_steps: int, training: TrainingConfig) -> float:
    """Return the learning rate of a step, after the schedule of the settings.

    In all of them it rises linearly over `warmup_steps` to the peak, `learning_rate`. Then

    - ``"cosine"`` follows half a cosine from the peak to `final_learning_rate`, which it would reach at the end of the
      first cycle. There the next half cosine starts from the peak, without a rise;
    - ``"constant"`` stays at the peak;
    - ``"exponential"`` multiplies by `decay` at every step, down to `final_learning_rate`;
    - ``"noam"`` falls with the root of the step (Vaswani et al., "Attention is all you need", 2017). Its peak is
      1 / sqrt(model size x warm-up), that is 0.000699 for the size 512 and a warm-up of 4000.

    Parameters
    ----------
    step
        From 0.
    epoch_steps
        Steps of one epoch; only ``"cosine"`` depends on it.
    training
        The settings; the first cycle includes the rise.

    """
    peak, warmup = training.learning_rate, training.warmup_steps
    if step < warmup:
        return peak * (step + 1) / warmup
    if training.schedule == "constant":
        return peak
    if training.schedule == "exponential":
        return max(peak * training.decay ** (step - warmup), training.final_learning_rate)
    if training.schedule == "noam":
        return peak * math.sqrt(warmup / (step + 1))
    ends = [epoch_steps * epochs for epochs in itertools.accumulate(training.cycles)]
    cycle = bisect.bisect_right(ends, step)
    start = ends[cycle - 1] if cycle else warmup
    swing = (1 + math.cos(math.pi * (step - start) / (ends[cycle] - start))) / 2
    return training.final_learning_rate + (peak - training.final_learning_rate) * swing


def with_begun_cycles(key: Mapping[str, Any], epochs: int) -> dict[str, Any]:
    """Return the key of a recipe, or of its last stage, without the cycles that begin only after these epochs."""
    cycles = key["training"]["cycles"]
    starts = itertools.accumulate(cycles, initial=0)
    begun = [cycle for cycle, start in zip(cycles, starts, strict=False) if start < epochs]
    training = {**key["training"], "cycles": begun}
    if "stages" not in key:
        return {**key, "training": training}
    *earlier, own = key["stages"]
    return {**key, "training": training, "stages": [*earlier, {**own, "training": training}]}
