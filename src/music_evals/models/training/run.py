"""A training run: batches, a learning rate, a log, the best weights, and a checkpoint that it goes on from.

After every epoch a run writes one file that holds all it needs to go on: weights, optimiser, random states and history.
A run that is killed and started again therefore ends with the same weights, bit for bit, on the same machine with the
same number of threads. Its kinds say what is learnt from, what a batch costs and how an epoch is evaluated: networks of
notes (`loop`), `taggers` and `writers`.
"""

from __future__ import annotations

import abc
import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from music_evals.csv_files import csv_text
from music_evals.errors import CorruptRecordsError, InvalidInputError, OtherRunError
from music_evals.files import write_atomically
from music_evals.models.layers.saving import save_tensors
from music_evals.models.training.settings import CommonTraining

# Beside the model, in a folder of their own that is not published and that git ignores; those of a stage lie one folder
# deeper, such as run/vae/log.csv.
CHECKPOINT = "run/checkpoint.safetensors"
LOG = "run/log.csv"

Log = Callable[[Mapping[str, Any]], None]
"""Takes one row of values, an epoch."""


@contextlib.contextmanager
def seeded(seed: int, threads: int | None) -> Iterator[None]:
    """Seed PyTorch and set its threads, where a number is given, for a run; put both back afterwards."""
    before = torch.get_num_threads()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        torch.set_num_threads(threads or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)


class Run(abc.ABC):
    """A run in progress: all that changes from step to step, and its checkpoint.

    The checkpoint holds `tensors`, those of the optimiser and of the best epoch, `state` and history.
    """

    title: str = "training"
    prefix: str = ""  # of the names that are logged
    section: str  # of the weights in a checkpoint: what their names begin with
    n_epochs: int
    patience: int | None = None
    save_steps: int | None = None  # steps between two checkpoints within an epoch; None: epochs alone have them
    save_epochs: int = 1  # epochs between two checkpoints
    start_loss: float = math.inf  # validation loss of weights that another training has left; epoch 0

    def __init__(
        self, model: Any, settings: CommonTraining, n_examples: int, files: tuple[Path, Path], key: Mapping[str, Any]
    ) -> None:
        self.model, self.settings, self.key = model, settings, key
        self.checkpoint, self.log = files
        self.trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self.optimizer = torch.optim.AdamW(
            list(self.trained.values()), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.device = next(iter(self.trained.values())).device
        self.epoch_steps = -(-n_examples // settings.batch_size)
        self.step = 0  # of the whole run
        self.sums = [0.0, 0.0, 0.0]  # of an epoch that is under way: loss, examples or tokens, seconds
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] = {}

    @abc.abstractmethod
    def order(self) -> npt.NDArray[np.int64]:
        """Return the examples of the epoch that begins, in the order of their batches."""

    @abc.abstractmethod
    def losses(self, rows: npt.NDArray[np.int64]) -> Iterator[Tensor]:
        """Yield the loss of a batch in parts, one or more, that are added up."""

    @abc.abstractmethod
    def row(self, loss: float) -> dict[str, Any]:
        """Return what the log says of an epoch with a mean loss: `validation_loss`, if it is evaluated."""

    def rate(self) -> float:
        """Return the learning rate of the step."""
        return self.settings.learning_rate

    def weights(self) -> Mapping[str, Tensor]:
        """Return what is kept of the best epoch."""
        weights: Mapping[str, Tensor] = self.model.state_dict()
        return weights

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint holds besides optimiser and best epoch."""
        return {f"{self.section}{name}": value for name, value in self.weights().items()}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:  # noqa: ARG002 - of other kinds
        """Take what `state` and `tensors` returned, read from a checkpoint."""
        self.model.load_state_dict(section(tensors, self.section))

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint holds as JSON besides the history."""
        return {"key": self.key}

    def check(self, state: Mapping[str, Any], advice: str) -> None:
        """Raise where a checkpoint is another run's."""
        if state.get("key") != self.key or len(state["history"]) > self.n_epochs:
            raise OtherRunError(
                f"the checkpoint is of another recipe, another model, other songs or a later epoch; {advice}"
            )

    def weigh(self, rows: npt.NDArray[np.int64]) -> int:
        """Return what a batch counts in the mean loss."""
        return len(rows)

    @property
    def seconds(self) -> float:
        """Seconds of all epochs."""
        return math.fsum(row["seconds"] for row in self.history)

    def _epoch_losses(self) -> list[float]:
        """Return the validation losses of the start and of each epoch; what is not finite is as bad as can be."""
        losses = [self.start_loss, *(row["validation_loss"] for row in self.history)]
        return [loss if math.isfinite(loss) else math.inf for loss in losses]

    @property
    def best_loss(self) -> float:
        """Validation loss of the best epoch."""
        return min(self._epoch_losses())

    @property
    def best_epoch(self) -> int:
        """Number of the best epoch, from 1; 0 is the start."""
        return self._epoch_losses().index(self.best_loss)

    @property
    def finished(self) -> bool:
        """Whether no epoch is to follow."""
        if not self.history or self.patience is None:
            return len(self.history) >= self.n_epochs
        # patience leaves the start alone: a cycle begins at its peak learning rate, which may spoil what was learnt
        trained = self._epoch_losses()[1:]
        since_best = len(trained) - 1 - trained.index(min(trained))
        return len(trained) >= self.n_epochs or since_best >= self.patience

    def fit(
        self,
        *,
        resume: bool,
        progress: bool,
        clock: Callable[[], float] = time.monotonic,
        log: Log | None = None,
        started: bool = False,
    ) -> None:
        """Run to the end, from the checkpoint where there is one; the model ends with the best weights."""
        from tqdm import tqdm

        if resume and self.checkpoint.exists():
            self._restore()
        elif started:
            loss = float(self.row(0.0)["validation_loss"])
            if math.isfinite(loss):
                self.start_loss = loss
                self._keep()
        total = self.n_epochs * self.epoch_steps
        with tqdm(total=total, initial=self.step, desc=self.title, unit="step", disable=not progress) as bar:
            while not self.finished:
                began = clock() - self.sums[2]
                order, size = self.order(), self.settings.batch_size
                self.model.train()
                for place in range(self.step - len(self.history) * self.epoch_steps, self.epoch_steps):
                    self._take_step(order[place * size : (place + 1) * size])
                    bar.set_postfix(epoch=len(self.history) + 1, loss=self.sums[0] / self.sums[1], refresh=False)
                    bar.update()
                    if self.save_steps and place + 1 < self.epoch_steps and self.step % self.save_steps == 0:
                        self.sums[2] = clock() - began
                        self._save()
                row = self.row(self.sums[0] / self.sums[1])
                self._end_epoch({"epoch": len(self.history) + 1, **row, "seconds": round(clock() - began, 4)})
                if log is not None:
                    log({f"{self.prefix}{name}": value for name, value in self.history[-1].items()})
        if self.best:
            self.model.load_state_dict(self.best, strict=False)
            self.model.eval()
        elif self.patience is not None:
            raise InvalidInputError(
                "the validation loss was never a finite number; lower learning_rate and start again"
            )

    def _take_step(self, rows: npt.NDArray[np.int64]) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.zero_grad(set_to_none=True)
        loss = 0.0
        for part in self.losses(rows):
            torch.autograd.backward(part)
            loss += float(part.detach())
        if not math.isfinite(loss):
            raise InvalidInputError(
                f"the loss is {loss} in epoch {len(self.history) + 1}; lower learning_rate and start again"
            )
        if self.settings.max_gradient_norm is not None:
            torch.nn.utils.clip_grad_norm_(list(self.trained.values()), self.settings.max_gradient_norm)
        self.optimizer.step()
        n = self.weigh(rows)
        self.sums[0], self.sums[1] = self.sums[0] + loss * n, self.sums[1] + n
        self.after_step()
        self.step += 1

    def after_step(self) -> None:  # noqa: B027 - most do nothing
        """Do what follows a step, before the next one is counted."""

    def _end_epoch(self, row: dict[str, Any]) -> None:
        """Write down the epoch; keep its weights where they are the best so far."""
        self.history.append(row)
        self.sums = [0.0, 0.0, 0.0]
        if "validation_loss" in row and self.best_epoch == len(self.history):
            self._keep()
        if len(self.history) % self.save_epochs == 0 or self.finished:
            start = dict.fromkeys(self.history[0], "") | {"epoch": 0, "validation_loss": self.start_loss}
            write_rows(self.log, [*([] if math.isinf(self.start_loss) else [start]), *self.history])
            self._save()

    def _keep(self) -> None:
        self.best = {name: value.detach().cpu().clone() for name, value in self.weights().items()}

    def _save(self) -> None:
        tensors = self.tensors() | {f"best.{name}": value for name, value in self.best.items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in values.items()}
        write_checkpoint(self.checkpoint, tensors, {**self.state(), "history": self.history})

    def _restore(self) -> None:
        """Go back to where the checkpoint was written."""
        advice = f"delete {self.checkpoint}, or start again without resuming (`resume=False`)"
        state, tensors = read_checkpoint(self.checkpoint, advice)
        self.check(state, advice)
        self.history = state["history"]
        self.step = len(self.history) * self.epoch_steps
        self.best = section(tensors, "best.")
        if self.best and self.best.keys() != self.weights().keys():
            raise CorruptRecordsError(f"the checkpoint is damaged: its best weights are of another model; {advice}")
        self.load(state, tensors)
        values = self.optimizer.state_dict()
        for name, tensor in section(tensors, "optimizer.").items():
            index, _, entry = name.partition(".")
            values["state"].setdefault(int(index), {})[entry] = tensor
        self.optimizer.load_state_dict(values)


# --- checkpoints and logs, each whole or not at all


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write tensors, and a state of JSON values."""
    # copies, for networks may share storage between tensors, which the format does not allow
    copies = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    save_tensors(path, copies, {"state": json.dumps(state)})


def read_checkpoint(path: Path, advice: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return state and tensors; the error for a damaged file ends with the advice."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise CorruptRecordsError(f"the checkpoint is damaged ({error}); {advice}") from error
    return state, tensors


def section(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose name starts with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a log, one row an epoch, as CSV."""
    write_atomically(path, csv_text(rows[0], rows).encode(), parents=True)
