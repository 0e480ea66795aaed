"""Training at equal budgets: what is run, how far each run goes, and where an interrupted table of runs goes on.

All runs have the same number of steps, each of as many contexts, whatever the size of their data; the stages of a
design share them as its recipe does. Everything else is as the recipe says, but for the length of the schedules. The
best validation epoch of a run is kept, and judged on the test split.

A run that is done has a file in its folder that says so. While it is being done its process holds a lock, which the
system takes back when the process ends, however it ends: any number of processes may share a table. What a run found
can be kept elsewhere, without its weights: such a run is done wherever that file is, so that a table may be made piece
by piece, on more than one machine.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import fcntl
import hashlib
import json
import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from benchmarks.musib.hypotheses import Part, Scores, mean_difference
from benchmarks.musib.likelihood import own_loss
from benchmarks.musib.systems import DATA, DESIGNS, absent, size_of

from music_evals.benchmark.inpainting.items import ItemSet, load_items
from music_evals.files import write_atomically
from music_evals.models.recipe import Recipe, TrainingConfig, from_mapping, read_recipe
from music_evals.models.training import fit
from music_evals.pipelines.inpainting import item_scores
from music_evals.protocols import INPAINTERS, load_plugin
from music_evals.symbolic.noteseq import mask_middle

SIZES: Final = (171, 342, 684)
"""Tunes of the nested subsets; 171 is the size of the published small set."""

COMPARED_DESIGNS: Final = ("inpaintnet", "vli")
"""An autoencoder and a transformer: those whose training is repeated on subsets, and after other music."""

RECIPE_EPOCH: Final = 79
"""Steps of an epoch of the chorales, which the recipes were made for."""

DONE: Final = "done.json"
"""In the folder of a run that is done: its core-minutes, size, songs it trained on, epochs, best validation loss."""

KEPT_DIGITS: Final = 6
"""Decimal places of the scores that are kept."""

WARMUP: Final = 0.05
"""Share of a stage's steps in which the learning rate rises."""


class Run(NamedTuple):
    """One training: a design, its data, how many songs of it, and the run whose weights it starts from."""

    name: str
    design: str
    data: str
    songs: int | None = None
    start: str | None = None


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


def runs() -> list[Run]:
    """Return all runs, the weightiest first: what a budget leaves out stands at the end."""
    designs = [design.name for design in DESIGNS]
    found = [Run(f"{name}-{data}", name, data) for data in ("jsb", "folk") for name in designs]
    found += [Run(f"{name}-folk-then-jsb", name, "jsb", start=f"{name}-folk") for name in COMPARED_DESIGNS]
    found += [Run(f"{name}-folk-{size}", name, "folk", songs=size) for size in SIZES for name in COMPARED_DESIGNS]
    return found


# --- one run


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


def subset(items: ItemSet, songs: int | None, seed: int) -> ItemSet:
    """Return the windows of some songs; those of a smaller number are among those of a larger one."""
    if songs is None:
        return items
    names = sorted(set(items.songs))
    if songs > len(names):
        message = f"{items.dataset} has {len(names)} songs in {items.split}, {songs} are asked for"
        raise ValueError(message)
    order = np.random.default_rng(seed).permutation(len(names))
    chosen = {names[place] for place in order[:songs]}
    return take(items, [row for row, song in enumerate(items.songs) if song in chosen])


def spread(items: ItemSet, most: int) -> ItemSet:
    """Return no more than so many windows, at equal distances over the split."""
    rows = np.unique(np.linspace(0, len(items) - 1, min(most, len(items))).round().astype(int))
    return take(items, rows.tolist())


def take(items: ItemSet, rows: Sequence[int]) -> ItemSet:
    """Return some windows, without what else is known of them."""
    ids, songs = (tuple(column[row] for row in rows) for column in (items.item_ids, items.songs))
    return ItemSet(items.dataset, items.config, items.split, ids, songs, items.contexts[list(rows)])


@contextlib.contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock of a file and yield True; yield False where another process holds it and there is no waiting."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


class Studies:
    """A table of runs in a folder, which processes may share, and what is kept of runs in another."""

    def __init__(
        self,
        out: Path,
        limits: Limits,
        models: Path,
        *,
        table: Sequence[Run] | None = None,
        places: Mapping[str, tuple[str, str]] | None = None,
        kept: Path | None = None,
    ) -> None:
        self.out, self.limits, self.models, self.kept = out, limits, models, kept
        self.table = runs() if table is None else list(table)
        self.named = {run.name: run for run in self.table}
        # Data -> dataset and config, by default those that are on this machine.
        self.places = self._read_or_build() if places is None else dict(places)
        self._whole: dict[tuple[str, str], ItemSet] = {}  # splits that were read

    def _read_or_build(self) -> dict[str, tuple[str, str]]:
        """Return dataset and config of what is on this machine; one that is built on first use is built by one."""
        keys = {run.data for run in self.table}
        with held(self.out / "data.lock", wait=True):
            return {data.key: (data.place, data.config) for data in DATA if data.key in keys and not absent(data)}

    def done(self) -> dict[str, dict[str, Any]]:
        """Return what is done of this table with these limits: run -> what `DONE` says of it."""
        found = {run.name: self._done(run) for run in self.table}
        return {name: about for name, about in found.items() if about is not None}

    def _done(self, run: Run) -> dict[str, Any] | None:
        path = self.folder(run) / DONE
        if path.is_file():
            about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return about
        kept = self._kept(run)
        return None if kept is None else kept["about"]

    def keep(self) -> None:
        """Write what each run found into the other folder, one file a run, without weights."""
        if self.kept is None:
            return
        for name, about in self.done().items():
            path = self.folder(self.named[name]) / "scores.json"
            if path.is_file():
                scores = json.loads(path.read_text(encoding="utf-8"))
                scores["values"] = {
                    metric: [None if value is None else round(value, KEPT_DIGITS) for value in values]
                    for metric, values in scores["values"].items()
                }
                content = {"key": self.key(self.named[name]), "about": about, "scores": scores}
                text = json.dumps(content, allow_nan=False, separators=(",", ":"))
                write_atomically(self.kept / f"{name}.json", text.encode(), parents=True)

    def _is_kept_alone(self, run: Run) -> bool:
        """Return whether what a run found is known, but its weights are not here."""
        return not (self.folder(run) / DONE).is_file() and self._kept(run) is not None

    def _kept(self, run: Run) -> dict[str, Any] | None:
        """Return what is kept of a run; None where nothing is, or of other settings."""
        path = None if self.kept is None else self.kept / f"{run.name}.json"
        if path is None or not path.is_file():
            return None
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found if found["key"] == self.key(run) else None

    def left(self) -> list[Run]:
        """Return what is not yet done, of the runs whose data are here."""
        done = self.done()
        return [run for run in self.table if run.name not in done and run.data in self.places]

    def recipe(self, run: Run) -> Recipe:
        """Return what a run is trained with."""
        return shortened(read_recipe(self.models / run.design / "train.yaml"), self.limits)

    def key(self, run: Run) -> str:
        """Return a hash of what decides the result of a run."""
        before = None if run.start is None else self.key(self.named[run.start])
        facts = [run._asdict(), self.recipe(run).key(), dataclasses.asdict(self.limits), before]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

    def items(self, run: Run, split: str) -> ItemSet:
        """Return the windows that a run trains on, looks at or is judged on."""
        if (run.data, split) not in self._whole:
            self._whole[run.data, split] = load_items(*self.places[run.data], split)
        whole = self._whole[run.data, split]
        if split == "train":
            return subset(whole, run.songs, self.limits.seed)
        return spread(whole, self.limits.validation if split == "validation" else self.limits.test)

    def folder(self, run: Run) -> Path:
        """Return where a run lies; runs with other settings lie elsewhere."""
        return self.out / f"{run.name}-{self.key(run)}"

    def do_if_free(self, run: Run) -> bool:
        """Do a run unless another process is at it; return whether it is done."""
        with held(self.folder(run).with_suffix(".lock")) as mine:
            if mine and run.name not in self.done():
                self.do(run)
            return mine

    def do(self, run: Run) -> None:
        """Do a run, from where it stood, and write down that it is done.

        What it starts from is done first where its weights are not here.

        Raises
        ------
        ValueError
            The run that it starts from is not done.

        """
        start = None
        if run.start is not None:
            if run.start not in self.done():
                message = f"{run.name} starts from {run.start}, which is not done"
                raise ValueError(message)
            before = self.named[run.start]
            start = self.folder(before)
            if self._is_kept_alone(before):
                self.do(before)
        folder, recipe = self.folder(run), self.recipe(run)
        train, validation = (self.items(run, split) for split in ("train", "validation"))
        with _settings(recipe):
            # epochs are timed in processor seconds, of all threads: a busy machine changes nothing
            network = self._network(recipe, start)
            trained = fit(network, train.contexts, validation.contexts, recipe, folder, clock=time.process_time)
            began = time.process_time()
            scores = judge(self._network(recipe, folder), self.items(run, "test"), self.limits.seeds)
            seconds = trained.seconds + time.process_time() - began
        write_atomically(folder / "scores.json", json.dumps(scores, allow_nan=False).encode())
        found = {
            "core_minutes": round(seconds / 60, 2),
            "size": size_of(folder),
            "songs": len(set(train.songs)),
            "epochs": trained.epochs,
            "validation_loss": trained.validation_loss,
        }
        write_atomically(folder / DONE, json.dumps(found, indent=1).encode())

    def _network(self, recipe: Recipe, folder: Path | None) -> Any:
        network = load_plugin(INPAINTERS, recipe.model_type, "model type")
        if folder is not None:
            return network.from_pretrained(str(folder))
        return network(from_mapping(network.config_class, {"model_type": recipe.model_type, **recipe.model}, "setting"))

    def scores(self, name: str) -> Scores | None:
        """Return what the model of a run scored; None where it is not done."""
        about = self.done().get(name)
        if about is None:
            return None
        run = self.named[name]
        path = self.folder(run) / "scores.json"
        kept = None if path.is_file() else self._kept(run)
        found = json.loads(path.read_text(encoding="utf-8")) if kept is None else kept["scores"]
        # what is undefined is null in the file, and NaN here
        values = {metric: np.array(row, dtype=np.float64) for metric, row in found["values"].items()}
        return Scores(found["items"], found["songs"], values, about["size"])

    # --- what it will take

    def estimate(self, wanted: Sequence[Run]) -> dict[str, float]:
        """Return the core-minutes that each run will take.

        The speed of each design on each data set is measured once, so that all processes that share the folder, now or
        later, plan with the same numbers.
        """
        found = {}
        for run in wanted:
            steps, seconds_a_window = self._speed(run)
            recipe = self.recipe(run)
            epochs = [stage.training.n_epochs for stage in recipe.stages] or [recipe.training.n_epochs]
            # a validation passes forward alone, which is about a third of a step
            per_epoch = self.limits.epoch_steps + len(self.items(run, "validation")) / self.limits.batch / 3
            trained = sum(n * per_epoch * step for n, step in zip(epochs, steps, strict=True))
            judged = seconds_a_window * len(self.items(run, "test")) * self.limits.seeds
            found[run.name] = (trained + judged) / 60
            if run.start is not None and self._is_kept_alone(before := self.named[run.start]):
                found[run.name] += self.estimate([before])[before.name]  # its weights are needed
        return found

    def _speed(self, run: Run) -> tuple[list[float], float]:
        """Return what `_measure` says of the run's design and data, from their file where it has been measured."""
        plain = Run("", run.design, run.data)
        path = self.out / f"speed-{run.design}-{run.data}-{self.key(plain)}.json"
        with held(path.with_suffix(".lock"), wait=True):
            if not path.is_file():
                write_atomically(path, json.dumps(self._measure(run)).encode())
        steps, seconds_a_window = json.loads(path.read_text(encoding="utf-8"))
        return steps, seconds_a_window

    def _measure(self, run: Run) -> tuple[list[float], float]:
        """Return the processor seconds of a step of each stage, and of filling a window."""
        recipe = self.recipe(run)
        stages = [stage.training for stage in recipe.stages] or [recipe.training]
        n = 2 * self.limits.batch
        small = [dataclasses.replace(one, cycles=(2,), epoch_contexts=n, warmup_steps=0) for one in stages]
        named = tuple(
            dataclasses.replace(stage, training=training) for stage, training in zip(recipe.stages, small, strict=False)
        )
        short = dataclasses.replace(recipe, training=small[0], stages=named)
        contexts = self.items(run, "train").contexts[:n]
        with tempfile.TemporaryDirectory() as folder, _settings(recipe):
            model = self._network(recipe, None)
            fit(model, contexts, contexts[:1], short, Path(folder), clock=time.process_time)
            places = [Path(folder) / "run" / stage.name / "log.csv" for stage in named] or [
                Path(folder) / "run/log.csv"
            ]
            # the first epoch of a stage has what is done once in it
            steps = [min(float(row["seconds"]) for row in _rows(place)) / 2 for place in places]
            began = time.process_time()
            model.inpaint(mask_middle(contexts[:8]), rng=np.random.default_rng(0))
            return steps, (time.process_time() - began) / len(contexts[:8])


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@contextlib.contextmanager
def _settings(recipe: Recipe) -> Iterator[None]:
    """Seed PyTorch and set its threads, and put both back."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        torch.set_num_threads(recipe.training.threads or threads)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def judge(model: Any, items: ItemSet, seeds: int) -> dict[str, Any]:
    """Return the scores of each window, the mean over seeds, and the model's own loss."""
    masked = mask_middle(items.contexts)
    filled = [
        item_scores(items.contexts, model.inpaint(masked, rng=np.random.default_rng(seed)))
        for seed in range(1 if model.deterministic else seeds)
    ]
    values = {metric: _mean([one[metric] for one in filled]) for metric in filled[0]}
    values["own_loss"] = own_loss(model, items.contexts).tolist()
    return {"items": items.item_ids, "songs": items.songs, "values": values}


def _mean(rows: Sequence[Any]) -> list[float | None]:
    """Return the mean over seeds of the defined scores of each window; None where no seed has one."""
    stacked = np.array(rows)
    defined = ~np.isnan(stacked)
    sums, counts = np.where(defined, stacked, 0).sum(axis=0), defined.sum(axis=0)
    means = np.divide(sums, counts, out=np.full(stacked.shape[1], np.nan), where=counts > 0)
    return [None if math.isnan(value) else float(value) for value in means]


# --- what they say


def parts(studies: Studies) -> Iterator[Part]:
    """Yield the differences that the hypotheses on training are about, of the runs that are done."""
    pairs = [("more_data_helps", f"{name}-folk", f"{name}-folk-{SIZES[0]}", "folk") for name in COMPARED_DESIGNS]
    pairs += [("folk_helps_jsb", f"{name}-folk-then-jsb", f"{name}-jsb", "jsb") for name in COMPARED_DESIGNS]
    for hypothesis, more, less, data in pairs:
        a, b = studies.scores(more), studies.scores(less)
        if a is not None and b is not None:
            for metric in ("note_f1", "own_loss") if hypothesis == "more_data_helps" else ("note_f1",):
                yield _part(hypothesis, data, (more, a), (less, b), metric)


def _part(hypothesis: str, data: str, more: tuple[str, Scores], less: tuple[str, Scores], metric: str) -> Part:
    (a, first), (b, second) = more, less

    def measure(confidence: float) -> tuple[float, ...]:
        # a lower loss is better
        better, worse = (second, first) if metric == "own_loss" else (first, second)
        return mean_difference(better, worse, (metric, metric), confidence)

    return Part(hypothesis, data, a, b, metric, first.size, measure)
