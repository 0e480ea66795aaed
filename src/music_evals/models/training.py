"""One training loop for every network of this room that learns from notes, driven by a recipe (`models.recipe`).

Taggers learn from recordings and tags, and language models are tuned on words, with loops of their own: `tag_training`
and `text_training`; `train_from_file` starts each of them.

A network takes part by having `training_loss(batch, *, varied)` and `save_pretrained(folder)`. The loop draws batches
of examples (`models.examples`), transposes each at random, lets the learning rate follow a schedule and keeps the
weights of the best validation epoch, or their moving average. A network that has `validation_losses(batch)` is
evaluated by these.
After every epoch it writes one file, `CHECKPOINT`, that holds all it needs to go on: weights, optimiser, random states
and history. A run that is killed and started again therefore ends with the same weights, bit for bit, on the same
machine with the same number of threads.

A network that is trained in stages names them (`stages`) and freezes what a stage leaves alone (`begin_stage`). Each
stage is a run with a checkpoint of its own, and starts from the best weights of the stage before.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from music_evals.annotations import Tokens
from music_evals.errors import InvalidInputError, OtherRunError, OutputError
from music_evals.lyrics.model_files import choose_device
from music_evals.models._checkpoints import (
    give_weights,
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    section,
    seeded,
    starting_weights,
    write_checkpoint,
    write_rows,
)
from music_evals.models._schedules import learning_rate, with_begun_cycles
from music_evals.models._tracking import Log, tracking
from music_evals.models._training_data import recipe_examples
from music_evals.models.examples import Examples, TokenExamples, hash_arrays
from music_evals.models.recipe import Recipe, build_recipe, find_recipe, from_mapping, read_sections
from music_evals.protocols import INPAINTERS, STYLE_TRANSFERS, TAGGERS, TUNED_WRITERS, load_plugin

if TYPE_CHECKING:
    from music_evals.models.tag_training import TaggerTrainingResult
    from music_evals.models.text_training import TextTrainingResult

__all__ = ["TrainingResult", "fit", "learning_rate", "train_from_file"]

# Beside the model, in a folder of their own that is not published and that git ignores; those of a stage lie one folder
# deeper, such as run/vae/log.csv.
CHECKPOINT = "run/checkpoint.safetensors"
LOG = "run/log.csv"


class TrainingResult(NamedTuple):
    """What a run left behind.

    `validation_loss` is the best one, of epoch `best_epoch` (counted from 1; 0 is what it started from, where that was
    another model): nats a step, unless the network says what it is evaluated by. After a training in stages both are of
    the last one; `epochs` and `seconds` are of all.
    """

    folder: Path
    epochs: int
    best_epoch: int
    validation_loss: float
    seconds: float


def train_from_file(
    path: str | Path,
    *,
    changes: Iterable[str] = (),
    out: str | Path | None = None,
    resume: bool = True,
    device: str | None = None,
    progress: bool = False,
    trackio: str | None = None,
    start: str | Path | None = None,
    trust_remote_code: bool = False,
) -> TrainingResult | TaggerTrainingResult | TextTrainingResult:
    """Train the network of a recipe; what ``music-evals train <path>`` does.

    After each epoch it writes `LOG` (one row an epoch) and `CHECKPOINT`; at the end, and not before, config.json and
    model.safetensors with the best weights: a run that is cut short spoils no model. For a tagger
    see `tag_training.train_tagger`, for a language model `text_training.train_text_model`.

    Parameters
    ----------
    path
        The recipe, e.g. ``models/anticipation_rnn/train.yaml``; looked up as `recipe.find_recipe` does.
    changes
        Settings that replace those of the recipe, as ``"data.audio=songs"`` or, of a stage,
        ``"stages.vae.cycles=[20]"``; see `recipe.read_sections`.
    out
        Folder that is written to; by default that of the recipe, and for one named ``train-folk.yaml`` the folder
        ``folk`` there. Must be given for a recipe that the package came with.
    resume
        Go on from the checkpoint if there is one; a finished run returns at once, unless the recipe has more cycles
        now or lets it run longer. False starts again.
    device
        PyTorch device; by default a GPU if there is one.
    progress
        Show a bar on stderr.
    trackio
        Project of trackio, a dashboard, that the curves of an inpainter are logged to as well, epoch by epoch.
    start
        Folder, name or id on the Hub of a model whose weights a network that learns from notes starts from, in place
        of random ones: to go on with a finished training, or to tune a model to other music. They are evaluated first,
        and kept where no epoch is better. Another ``training.seed`` draws another order than the first training had.
    trust_remote_code
        Whether code in the repository of a tagger's encoder may run here; no recipe can say so.

    Returns
    -------
    TrainingResult
        With the best validation loss; for a tagger a `tag_training.TaggerTrainingResult`, for a language model a
        `text_training.TextTrainingResult`.

    Raises
    ------
    UnreadableFileError
        The recipe is missing or not YAML.
    UnknownNameError
        It names a network, a dataset or a setting that does not exist.
    InvalidInputError
        A setting is outside its range, the dataset has no windows, torch has no such device, `out` is missing, the
        weights of `start` are of other sizes than the recipe's or lie in `out`, or the loss is no longer a finite
        number.
    NoDataError
        A split is missing or empty; or `start` holds no weights.
    UnreadableFileError, ModelUnavailableError
        The weights of `start` are damaged or of another class, or not to be had from the Hub.
    CorruptRecordsError
        The checkpoint is damaged, or belongs to another recipe, other data or another start.
    OutputError
        The folder cannot be written to.
    MissingBackendError
        `trackio` is given and not installed.

    """
    path, folder = find_recipe(path, out)
    values = read_sections(path, changes)
    known = {**TAGGERS, **INPAINTERS, **STYLE_TRANSFERS, **TUNED_WRITERS}
    network = load_plugin(known, str(values.get("model_type", "")), "model")
    if start is not None and values["model_type"] in {**TUNED_WRITERS, **TAGGERS}:
        raise InvalidInputError(f"start is for networks that learn from notes; leave it out for {values['model_type']}")
    how: dict[str, Any] = {"resume": resume, "device": device, "progress": progress}
    if values["model_type"] in TUNED_WRITERS:
        from music_evals.models.text_training import train_text_model

        if trackio is not None or out is None:
            raise InvalidInputError(
                "a tuned language model is a large folder of its own: `out` says where it goes; its curves are files "
                "alone, leave trackio out"
            )
        return train_text_model(values, path.parent, folder, **how, trust_remote_code=trust_remote_code)
    if values["model_type"] in TAGGERS:
        from music_evals.models.tag_training import train_tagger

        if trackio is not None:
            raise InvalidInputError("the curves of a tagger are files alone; leave trackio out")
        return train_tagger(values, path.parent, folder, **how, trust_remote_code=trust_remote_code)
    if trust_remote_code:
        raise InvalidInputError(
            f"trust_remote_code is for the encoder of a tagger; {values['model_type']} has none, leave it out"
        )
    recipe = build_recipe(values)
    settings = {"model_type": recipe.model_type, **recipe.model}
    config = from_mapping(network.config_class, settings, "model setting")
    if tuple(stage.name for stage in recipe.stages) != tuple(network.stages):
        raise InvalidInputError(
            f"{recipe.model_type} is trained in the stages {', '.join(network.stages) or '(none)'}; the recipe has "
            f"{', '.join(stage.name for stage in recipe.stages) or '(none)'}: name them all, in this order"
        )
    weights = None if start is None else starting_weights(network, start, folder)
    train, validation = recipe_examples(recipe.model_type, config, recipe.data, path.parent)
    with seeded(recipe.training.seed, recipe.training.threads):
        model = network(config)
        if weights is not None:
            give_weights(model, weights)
        with tracking(trackio, recipe.key()) as log:
            return fit(model, train, validation, recipe, folder, **how, log=log, started=weights is not None)


def fit(
    model: Any,
    train: Tokens | Examples,
    validation: Tokens | Examples,
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool = True,
    device: str | None = None,
    progress: bool = False,
    log: Log | None = None,
    clock: Callable[[], float] = time.monotonic,
    started: bool = False,
) -> TrainingResult:
    """Train a network on examples in memory; see `train_from_file` for the files that it writes.

    Parameters
    ----------
    model
        A `torch.nn.Module` with ``training_loss(batch, *, varied)``, from a batch of examples to the loss of each
        (batch,), and with ``save_pretrained(folder)``. Where it has ``validation_losses(batch)``, of the same shape,
        epochs are evaluated by these. It is trained in place and ends with the weights of the best epoch.
        Before each step its attribute `training_step` is set to the steps so far; where the recipe has stages,
        ``begin_stage(name)`` is called before each.
    train, validation
        Contexts, shape (n, steps), values 0..129, which come to the network as int64 (batch, steps); or other examples.
    recipe
        Its `training` is obeyed, all of it is compared with a checkpoint's, and so are the examples.
    folder
        Where the files go.
    resume, device, progress
        As in `train_from_file`.
    log
        Is given each row of the log as well, names after the stage: ``vae/validation_loss``.
    clock
        Seconds that epochs are timed by.
    started
        Whether the weights that the network comes with are those of another training: they are evaluated too, and a
        checkpoint is held to them.

    Raises
    ------
    InvalidInputError
        The loss is no longer a finite number, or torch has no such device.
    CorruptRecordsError, OutputError
        As in `train_from_file`.

    """
    device = str(choose_device(device))
    model.to(device)
    train, validation = (TokenExamples(part) if isinstance(part, np.ndarray) else part for part in (train, validation))
    data = {"train": train.content_hash(), "validation": validation.content_hash()}
    if started:
        data["start"] = hash_arrays(value.cpu().numpy() for value in model.state_dict().values())
    history: list[dict[str, float]] = []
    for stage in recipe.stages or (None,):
        if stage is not None:
            model.begin_stage(stage.name)
        own = recipe if stage is None else recipe.until(stage)
        run = _Run(model, own, folder, device, data=data, stage=stage.name if stage else "")
        if resume and run.checkpoint.exists():
            run.restore()
        elif started:
            run.evaluate_start(validation)
        while not run.finished:
            began = clock()
            train_loss = run.train_epoch(train, progress=progress)
            run.end_epoch(train_loss, run.validation_loss(validation), clock() - began)
            if log is not None:
                prefix = f"{stage.name}/" if stage else ""
                log({f"{prefix}{name}": value for name, value in run.history[-1].items()})
        run.take_best()
        history += run.history
    try:
        model.save_pretrained(folder)
    except OSError as error:
        raise OutputError(
            f"cannot write {folder}: {error}; free some space or allow writing, and run again: it goes on from there"
        ) from error
    seconds = sum(row["seconds"] for row in history)
    return TrainingResult(folder, len(history), run.best_epoch, run.best_loss, seconds)


class _Run:
    """A run in progress, or a stage of one: everything that changes from epoch to epoch, and its checkpoint."""

    def __init__(
        self, model: Any, recipe: Recipe, folder: Path, device: str, *, data: Mapping[str, str], stage: str = ""
    ) -> None:
        self.model = model
        self.recipe = recipe
        self.data = data
        self.settings = recipe.training
        self.title = f"{stage}, epoch" if stage else "epoch"
        self.checkpoint, self.log = ((folder / name).parent / stage / Path(name).name for name in (CHECKPOINT, LOG))
        self.device = device
        self.rng = np.random.default_rng(self.settings.seed)
        self.trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.trained, lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )
        self.history: list[dict[str, float]] = []
        self.start_loss = float("inf")  # of weights that another training has left; epoch 0
        self.best: dict[str, Tensor] = {}
        self.average: dict[str, Tensor] = {}
        if self.settings.average:
            self.average = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @property
    def best_epoch(self) -> int:
        losses = self._epoch_losses()
        return losses.index(min(losses))

    @property
    def best_loss(self) -> float:
        return min(self._epoch_losses())

    @property
    def _best_trained(self) -> int:
        # patience leaves the start alone: a cycle begins at its peak learning rate, which may spoil what was learnt
        losses = [row["validation_loss"] for row in self.history]
        return 1 + losses.index(min(losses))

    def _epoch_losses(self) -> list[float]:
        return [self.start_loss, *(row["validation_loss"] for row in self.history)]

    @property
    def finished(self) -> bool:
        if not self.history:
            return False
        minutes = sum(row["seconds"] for row in self.history) / 60
        return (
            len(self.history) >= self.settings.n_epochs
            or len(self.history) - self._best_trained >= self.settings.patience
            or (self.settings.max_minutes is not None and minutes >= self.settings.max_minutes)
        )

    def train_epoch(self, examples: Examples, *, progress: bool) -> float:
        """Pass over the examples of an epoch, in random order and transposed at random; return the mean loss."""
        from tqdm import tqdm

        settings, epoch = self.settings, len(self.history)
        shifts = examples.draw_transpositions(
            settings.transpose_low,
            settings.transpose_high,
            self.rng,
            pitch_range=getattr(self.model, "pitch_range", (0, 127)),
        )
        n = settings.epoch_contexts or len(examples)
        passes = [self.rng.permutation(len(examples)) for _ in range(-(-n // len(examples)))]
        order = np.concatenate(passes)[:n]
        batches = [order[start : start + settings.batch_size] for start in range(0, len(order), settings.batch_size)]
        total, n_trained = 0.0, 0
        self.model.train()
        bar = tqdm(batches, desc=f"{self.title} {epoch + 1}/{settings.n_epochs}", disable=not progress, leave=False)
        for index, rows in enumerate(bar):
            step = epoch * len(batches) + index
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate(step, len(batches), settings)
            self.model.training_step = step
            total += self._step(examples.batch(rows, shifts[rows], self.device)) * len(rows)
            n_trained += len(rows)
            bar.set_postfix(loss=f"{total / n_trained:.4f}", refresh=False)
        return total / n

    def _step(self, batch: Any) -> float:
        plain = self.settings.plain_epochs
        loss = self._losses(batch, varied=plain is not None and len(self.history) >= plain).mean()
        if not torch.isfinite(loss):
            raise InvalidInputError(
                f"the loss is {loss.item()} in epoch {len(self.history) + 1}; lower learning_rate and start again"
            )
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if self.settings.max_gradient_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.trained, self.settings.max_gradient_norm)
        self.optimizer.step()
        self._move_average()
        return float(loss.detach())

    @torch.no_grad()
    def _move_average(self) -> None:
        """Bring the average, where there is one, nearer to the weights; the first steps soon forget the start."""
        step = self.model.training_step
        weights = self.model.state_dict() if self.average else {}
        for name, value in self.average.items():
            if value.is_floating_point():
                value.lerp_(weights[name], 1 - min(self.settings.average, (1 + step) / (10 + step)))
            else:
                value.copy_(weights[name])

    @contextlib.contextmanager
    def _averaged(self) -> Iterator[None]:
        """Give the network the averaged weights, where there are any, and its own ones back afterwards."""
        own = {name: value.detach().clone() for name, value in self.model.state_dict().items()} if self.average else {}
        if own:
            self.model.load_state_dict(self.average)
        try:
            yield
        finally:
            if own:
                self.model.load_state_dict(own)

    def _losses(self, batch: Any, *, varied: bool = False) -> Tensor:
        mixed = self.settings.precision == "bfloat16"
        with torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16, enabled=mixed):
            losses: Tensor = self.model.training_loss(batch, varied=varied)
        return losses

    def validation_loss(self, examples: Examples) -> float:
        """Return the mean loss over examples as they are, without dropout, and of the averaged weights."""
        size = self.settings.batch_size
        validation_losses = getattr(self.model, "validation_losses", None)
        self.model.eval()
        with torch.no_grad(), self._averaged():
            parts = [np.arange(start, min(start + size, len(examples))) for start in range(0, len(examples), size)]
            batches = (examples.batch(rows, np.zeros_like(rows), self.device) for rows in parts)
            losses = [
                (self._losses(batch) if validation_losses is None else validation_losses(batch)).cpu()
                for batch in batches
            ]
        return float(torch.cat(losses).double().mean())

    def end_epoch(self, train_loss: float, validation_loss: float, seconds: float) -> None:
        """Write down the epoch; keep its weights where they are the best so far."""
        self.history.append(
            {
                "epoch": len(self.history) + 1,
                "train_loss": train_loss,
                "validation_loss": validation_loss,
                "learning_rate": self.optimizer.param_groups[0]["lr"],
                "seconds": round(seconds, 3),
            }
        )
        if self.best_epoch == len(self.history):
            self._keep()
        write_rows(self.log, [*self._start_row(), *self.history])
        self._write_checkpoint()

    def _start_row(self) -> list[dict[str, Any]]:
        """Return the row of epoch 0: the validation loss of a start that another training has left, if there is one."""
        if math.isinf(self.start_loss):
            return []
        return [dict.fromkeys(self.history[0], "") | {"epoch": 0, "validation_loss": self.start_loss}]

    def evaluate_start(self, validation: Examples) -> None:
        """Take the weights that are there for the best so far."""
        self.start_loss = self.validation_loss(validation)
        self._keep()

    def _keep(self) -> None:
        best = self.average or self.model.state_dict()
        self.best = {name: value.detach().cpu().clone() for name, value in best.items()}

    def take_best(self) -> None:
        """Give the network the weights of the best epoch."""
        self.model.load_state_dict(self.best)
        self.model.eval()

    def _write_checkpoint(self) -> None:
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        tensors |= {f"average.{name}": value for name, value in self.average.items()}
        tensors |= optimizer_tensors(self.optimizer)
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.startswith("cuda"):
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        state = {
            "recipe": self.recipe.key(),
            "data": self.data,
            "history": self.history,
            "start_loss": None if math.isinf(self.start_loss) else self.start_loss,
            "random": self.rng.bit_generator.state,
        }
        write_checkpoint(self.checkpoint, tensors, state)

    def restore(self) -> None:
        """Go back to the end of the last finished epoch."""
        advice = f"delete {self.checkpoint}, or start again without resuming"
        state, tensors = read_checkpoint(self.checkpoint, advice)
        epochs = len(state.get("history", ()))
        theirs, ours = state.get("recipe"), self.recipe.key()  # of a tuned language model there is no recipe
        if theirs is None or with_begun_cycles(theirs, epochs) != with_begun_cycles(ours, epochs):
            raise OtherRunError(f"the checkpoint was written by another recipe; {advice}")
        older = {name: value for name, value in self.data.items() if name != "start"}  # than this entry, or than starts
        if state.get("data", older) != self.data:
            raise OtherRunError(
                "the checkpoint was written by a training on other data, or from another start; name another folder "
                f"as `out`, {advice}"
            )
        self.history = state["history"]
        self.start_loss = float("inf") if state.get("start_loss") is None else state["start_loss"]
        self.rng.bit_generator.state = state["random"]
        self.best = section(tensors, "best.")
        self.average = {name: value.to(self.device) for name, value in section(tensors, "average.").items()}
        self.model.load_state_dict(section(tensors, "model."))
        restore_optimizer(self.optimizer, tensors)
        torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors and self.device.startswith("cuda"):
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)
