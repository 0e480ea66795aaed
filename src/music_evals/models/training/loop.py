"""Every model of this room is trained from a recipe (`training.recipe`); how networks of notes are, as a `run.Run`.

A network of notes takes part by having `training_loss(batch, *, varied)` and `save_pretrained(folder)`. Each example
(`training.data`) is transposed at random; what is kept may be the moving average of the weights. A network that has
`validation_losses(batch)` is evaluated by these.

A network that is trained in stages names them (`stages`) and freezes what a stage leaves alone (`begin_stage`). Each
stage is a run with a checkpoint of its own, and starts from the best weights of the stage before.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from music_evals.annotations import Tokens
from music_evals.errors import InvalidInputError, MissingBackendError, OtherRunError, OutputError
from music_evals.lyrics.model_files import choose_device
from music_evals.models.training.data import Examples, TokenExamples, hash_arrays, recipe_examples
from music_evals.models.training.recipe import Recipe, build_recipe, find_recipe, read_sections
from music_evals.models.training.run import CHECKPOINT, LOG, Log, Run, section, seeded
from music_evals.models.training.settings import TrainingConfig, from_mapping
from music_evals.protocols import INPAINTERS, STYLE_TRANSFERS, TAGGERS, TUNED_WRITERS, load_plugin
from music_evals.repositories import MODELS, find_repository

if TYPE_CHECKING:
    from music_evals.models.training.taggers import TaggerTrainingResult
    from music_evals.models.training.writers import TextTrainingResult

__all__ = ["TrainingResult", "fit", "learning_rate", "train_from_file"]

_OTHER_TRAININGS = {  # those that build on this loop
    **dict.fromkeys(TAGGERS, "music_evals.models.training.taggers:train_tagger"),
    **dict.fromkeys(TUNED_WRITERS, "music_evals.models.training.writers:train_text_model"),
}


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
    see `taggers.train_tagger`, for a language model `writers.train_text_model`.

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
        Whether code in the repository of a tagger's encoder, or of the language model that is tuned, may run here; no
        recipe can say so.

    Returns
    -------
    TrainingResult
        With the best validation loss; for a tagger a `taggers.TaggerTrainingResult`, for a language model a
        `writers.TextTrainingResult`.

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
    kind = values.get("model_type", "")
    network = load_plugin({**TAGGERS, **INPAINTERS, **STYLE_TRANSFERS, **TUNED_WRITERS}, str(kind), "model")
    if start is not None and kind in {**TUNED_WRITERS, **TAGGERS}:
        raise InvalidInputError(f"start is for networks that learn from notes; leave it out for {kind}")
    how: dict[str, Any] = {"resume": resume, "device": device, "progress": progress}
    if kind in TUNED_WRITERS:
        if trackio is not None or out is None:
            raise InvalidInputError(
                "a tuned language model is a large folder of its own: `out` says where it goes; its curves are files "
                "alone, leave trackio out"
            )
        train_text_model: Callable[..., TextTrainingResult] = load_plugin(_OTHER_TRAININGS, str(kind), "model")
        return train_text_model(values, path.parent, folder, **how, trust_remote_code=trust_remote_code)
    if kind in TAGGERS:
        if trackio is not None:
            raise InvalidInputError("the curves of a tagger are files alone; leave trackio out")
        train_tagger: Callable[..., TaggerTrainingResult] = load_plugin(_OTHER_TRAININGS, str(kind), "model")
        return train_tagger(values, path.parent, folder, **how, trust_remote_code=trust_remote_code)
    if trust_remote_code:
        raise InvalidInputError(
            f"trust_remote_code is for the encoder of a tagger and for language models; {kind} has none, leave it out"
        )
    recipe = build_recipe(values)
    config = from_mapping(network.config_class, {"model_type": kind, **recipe.model}, "model setting")
    named, known = (", ".join(names) or "(none)" for names in ([s.name for s in recipe.stages], network.stages))
    if named != known:
        raise InvalidInputError(
            f"{kind} is trained in the stages {known}; the recipe has {named}: name them all, in this order"
        )
    weights = None if start is None else _starting_weights(network, start, folder)
    train, validation = recipe_examples(recipe.model_type, config, recipe.data, path.parent)
    with seeded(recipe.training.seed, recipe.training.threads):
        model = network(config)
        if weights is not None:
            theirs, ours = ({(name, value.shape) for name, value in x.items()} for x in (weights, model.state_dict()))
            if theirs != ours:
                raise InvalidInputError(
                    f"the weights of `start` are of other sizes than the recipe's network ({min(theirs ^ ours)[0]}); "
                    "set the sizes of `model` as the config.json beside them has them, or start from other weights"
                )
            model.load_state_dict(weights)
        with _tracking(trackio, recipe.key()) as log:
            return fit(model, train, validation, recipe, folder, **how, log=log, started=weights is not None)


def _starting_weights(network: Any, start: str | Path, folder: Path) -> dict[str, Tensor]:
    """Return the weights of a model of a class; `folder` is what the training writes to, and may not be the model's."""
    place, local = find_repository(os.fspath(start), MODELS, "model")
    if local and Path(place).resolve() == folder.resolve():
        raise InvalidInputError(
            f"{start} would be replaced by the model that starts from it; name another folder as `out`"
        )
    with torch.random.fork_rng():  # a network draws its first weights, which those of the file replace
        weights: dict[str, Tensor] = network.from_pretrained(start).state_dict()
    return weights


@contextlib.contextmanager
def _tracking(project: str | None, settings: Mapping[str, Any]) -> Iterator[Log | None]:
    """Yield what logs a row to a new run of a project of trackio, a dashboard; None without a project."""
    if project is None:
        yield None
        return
    try:
        import trackio
    except ModuleNotFoundError as error:
        if error.name != "trackio":
            raise  # one that trackio itself needs
        raise MissingBackendError("trackio", "", "following a training", install="pip install trackio") from error
    trackio.init(project=project, config=dict(settings))
    try:
        yield lambda row: trackio.log(dict(row))
    finally:
        trackio.finish()


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
    epochs, seconds = 0, 0.0
    for stage in recipe.stages or (None,):
        if stage is not None:
            model.begin_stage(stage.name)
        own = recipe if stage is None else recipe.until(stage)
        run = _NoteRun(model, own, folder, (train, validation), data=data, stage=stage.name if stage else "")
        run.fit(resume=resume, progress=progress, clock=clock, log=log, started=started)
        epochs, seconds = epochs + len(run.history), seconds + run.seconds
    try:
        model.save_pretrained(folder)
    except OSError as error:
        raise OutputError(
            f"cannot write {folder}: {error}; free some space or allow writing, and run again: it goes on from there"
        ) from error
    return TrainingResult(folder, epochs, run.best_epoch, run.best_loss, seconds)


class _NoteRun(Run):
    """The training of a network of notes, or a stage of it."""

    section = "model."

    def __init__(
        self,
        model: Any,
        recipe: Recipe,
        folder: Path,
        examples: tuple[Examples, Examples],
        *,
        data: Mapping[str, str],
        stage: str,
    ) -> None:
        self.data = data
        self.training: TrainingConfig = recipe.training
        self.train, self.validation = examples
        n = self.training.epoch_contexts or len(self.train)
        # the files of a stage lie in a folder of its name, beside those of a training without stages
        checkpoint, log = ((folder / name).parent / stage / Path(name).name for name in (CHECKPOINT, LOG))
        super().__init__(model, self.training, n, (checkpoint, log), recipe.key())
        self.n_examples = n
        self.prefix = f"{stage}/" if stage else ""
        self.title, self.patience = stage or "training", self.training.patience
        self.n_epochs = self.training.n_epochs
        self.rng = np.random.default_rng(self.training.seed)
        self.average: dict[str, Tensor] = {}
        if self.training.average:
            self.average = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @property
    def finished(self) -> bool:
        """Whether no epoch is to follow; the time may be up too."""
        minutes = self.training.max_minutes
        return super().finished or (bool(self.history) and minutes is not None and self.seconds >= 60 * minutes)

    def order(self) -> npt.NDArray[np.int64]:
        """Draw how far each example is transposed, and which come when; where there are too few, more than once."""
        low, high = self.training.transpose_low, self.training.transpose_high
        pitches = getattr(self.model, "pitch_range", (0, 127))
        self.shifts = self.train.draw_transpositions(low, high, self.rng, pitch_range=pitches)
        n = len(self.train)
        passes = [self.rng.permutation(n) for _ in range(-(-self.n_examples // n))]
        return np.concatenate(passes)[: self.n_examples]

    def rate(self) -> float:
        return learning_rate(self.step, self.epoch_steps, self.training)

    def losses(self, rows: npt.NDArray[np.int64]) -> Iterator[Tensor]:
        """Yield the mean loss of some examples, moved."""
        self.model.training_step = self.step
        plain = self.training.plain_epochs
        batch = self.train.batch(rows, self.shifts[rows], str(self.device))
        yield self._losses(batch, varied=plain is not None and len(self.history) >= plain).mean()

    def _losses(self, batch: Any, *, varied: bool = False) -> Tensor:
        mixed = self.training.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=mixed):
            losses: Tensor = self.model.training_loss(batch, varied=varied)
        return losses

    @torch.no_grad()
    def after_step(self) -> None:
        """Bring the average, where there is one, nearer to the weights; the first steps soon forget the start."""
        weights = self.model.state_dict() if self.average else {}
        for name, value in self.average.items():
            if value.is_floating_point():
                # the weight of the past grows with the steps up to `average`
                value.lerp_(weights[name], 1 - min(self.training.average, (1 + self.step) / (10 + self.step)))
            else:
                value.copy_(weights[name])

    def row(self, loss: float) -> dict[str, Any]:
        """Return the mean loss over examples as they are, without dropout, and of the averaged weights."""
        n, size = len(self.validation), self.training.batch_size
        validation_losses = getattr(self.model, "validation_losses", self._losses)
        own = {name: value.detach().clone() for name, value in self.model.state_dict().items()} if self.average else {}
        self.model.eval()
        if own:
            self.model.load_state_dict(self.average)
        losses = []
        with torch.no_grad():
            for start in range(0, n, size):
                rows = np.arange(start, min(start + size, n))
                losses.append(
                    validation_losses(self.validation.batch(rows, np.zeros_like(rows), str(self.device))).cpu()
                )
        if own:
            self.model.load_state_dict(own)
        return {
            "train_loss": loss,
            "validation_loss": float(torch.cat(losses).double().mean()),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
        }

    def weights(self) -> Mapping[str, Tensor]:
        return self.average or self.model.state_dict()

    def tensors(self) -> dict[str, Tensor]:
        """Return weights, their average, and PyTorch's random states."""
        tensors = {f"{self.section}{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"average.{name}": value for name, value in self.average.items()}
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return tensors

    def state(self) -> dict[str, Any]:
        start = None if math.isinf(self.start_loss) else self.start_loss
        return {"recipe": self.key, "data": self.data, "start_loss": start, "random": self.rng.bit_generator.state}

    def check(self, state: Mapping[str, Any], advice: str) -> None:
        """Raise where a checkpoint is of another recipe, but for cycles that begin later, or of other data."""
        epochs = len(state.get("history", ()))
        theirs, ours = (_with_begun_cycles(key, epochs) if key else None for key in (state.get("recipe"), self.key))
        if theirs is None or theirs != ours:  # of a tuned language model there is no recipe
            raise OtherRunError(f"the checkpoint was written by another recipe; {advice}")
        older = {name: value for name, value in self.data.items() if name != "start"}  # than this entry, or than starts
        if state.get("data", older) != self.data:
            raise OtherRunError(
                "the checkpoint was written by a training on other data, or from another start; name another folder "
                f"as `out`, {advice}"
            )

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.start_loss = math.inf if state.get("start_loss") is None else state["start_loss"]
        self.rng.bit_generator.state = state["random"]
        self.average = {name: value.to(self.device) for name, value in section(tensors, "average.").items()}
        super().load(state, tensors)
        torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors and self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)


def learning_rate(step: int, epoch_steps: int, training: TrainingConfig) -> float:
    """Return the learning rate of a step, after the schedule of the settings.

    In all of them it rises linearly over `warmup_steps` to the peak, `learning_rate`. Then

    - ``"cosine"`` follows half a cosine from the peak to `final_learning_rate`, which it would reach at the end of the
      first cycle. There the next half cosine starts from the peak, without a rise;
    - ``"constant"`` stays at the peak;
    - ``"exponential"`` multiplies by `decay` at every step, down to `final_learning_rate`;
    - ``"noam"`` falls with the root of the step (Vaswani et al., "Attention is all you need", 2017). Its peak is
      1 / sqrt(model size x warm-up), that is 0.000699 for the size 512 and a warm-up of 4000.

    Steps are counted from 0; only ``"cosine"`` depends on the steps of one epoch, and its first cycle includes the
    rise.
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
    # half a cosine over the cycle that the step lies in; the first one begins after the rise
    ends = [epoch_steps * epochs for epochs in itertools.accumulate(training.cycles)]
    cycle = bisect.bisect_right(ends, step)
    start = ends[cycle - 1] if cycle else warmup
    swing = (1 + math.cos(math.pi * (step - start) / (ends[cycle] - start))) / 2
    return training.final_learning_rate + (peak - training.final_learning_rate) * swing


def _with_begun_cycles(key: Mapping[str, Any], epochs: int) -> dict[str, Any]:
    """Return the key of a recipe, or of its last stage, without the cycles that begin only after these epochs."""
    cycles = key["training"]["cycles"]
    starts = itertools.accumulate(cycles, initial=0)
    begun = [cycle for cycle, start in zip(cycles, starts, strict=False) if start < epochs]
    training = {**key["training"], "cycles": begun}
    if "stages" not in key:
        return {**key, "training": training}
    *earlier, own = key["stages"]
    return {**key, "training": training, "stages": [*earlier, {**own, "training": training}]}
