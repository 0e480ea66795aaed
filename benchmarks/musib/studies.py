"""Training at equal budgets: what is run, how far each run goes, and where an interrupted table of runs goes on.

All runs have the same number of steps, each of as many contexts, whatever the size of their data; the stages of a
design share them as its recipe does. Everything else is as the recipe says, but for the length of the schedules. The
best validation epoch of a run is kept, and judged on the test split.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import json
import math
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    # A half is reached at step k ln k. The recipe was made for the 79 steps that an epoch of the chorales has.
    share = decay * math.log(decay) / (training.n_epochs * 79)
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


def _here(keys: Collection[str]) -> dict[str, tuple[str, str]]:
    return {data.key: (data.place, data.config) for data in DATA if data.key in keys and not absent(data)}


class Studies:
    """A table of runs in a folder, with a state file that says which are done."""

    def __init__(
        self,
        out: Path,
        limits: Limits,
        models: Path,
        *,
        table: Sequence[Run] | None = None,
        places: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.out, self.limits, self.models = out, limits, models
        self.table = runs() if table is None else list(table)
        self.named = {run.name: run for run in self.table}
        # Data -> dataset and config, by default those that are on this machine.
        self.places = _here({run.data for run in self.table}) if places is None else dict(places)
        self.state_file = out / "state.json"
        self._whole: dict[tuple[str, str], ItemSet] = {}  # splits that were read

    def state(self) -> dict[str, Any]:
        """Return what is done: the folder of a run -> its core-minutes, size and best validation loss."""
        return json.loads(self.state_file.read_text(encoding="utf-8")) if self.state_file.is_file() else {}

    def done(self) -> dict[str, dict[str, Any]]:
        """Return what is done of this table with these limits: run -> what the state says of it."""
        state = self.state()
        places = {run.name: self.folder(run).name for run in self.table}
        return {name: state[place] for name, place in places.items() if place in state}

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

    def do(self, run: Run) -> None:
        """Do a run, from where it stood, and write down that it is done.

        Raises
        ------
        ValueError
            The run that it starts from is not done.

        """
        start = None if run.start is None else self.folder(self.named[run.start])
        if start is not None and run.start not in self.done():
            message = f"{run.name} starts from {run.start}, which is not done"
            raise ValueError(message)
        folder, recipe = self.folder(run), self.recipe(run)
        train, validation = (self.items(run, split).contexts for split in ("train", "validation"))
        with _settings(recipe):
            # epochs are timed in processor seconds, of all threads: a busy machine changes nothing
            trained = fit(self._network(recipe, start), train, validation, recipe, folder, clock=time.process_time)
            began = time.process_time()
            scores = judge(self._network(recipe, folder), self.items(run, "test"), self.limits.seeds)
            seconds = trained.seconds + time.process_time() - began
        write_atomically(folder / "scores.json", json.dumps(scores, allow_nan=False).encode())
        found = {
            "core_minutes": round(seconds / 60, 2),
            "size": size_of(folder),
            "epochs": trained.epochs,
            "validation_loss": trained.validation_loss,
        }
        state = {**self.state(), folder.name: found}
        write_atomically(self.state_file, json.dumps(state, indent=1, sort_keys=True).encode())

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
        found = json.loads((self.folder(self.named[name]) / "scores.json").read_text(encoding="utf-8"))
        # what is undefined is null in the file, and NaN here
        values = {metric: np.array(row, dtype=np.float64) for metric, row in found["values"].items()}
        return Scores(found["items"], found["songs"], values, about["size"])

    # --- what it will take

    def estimate(self, wanted: Sequence[Run]) -> dict[str, float]:
        """Measure some steps of each design, and return the core-minutes that each run will take."""
        rates: dict[tuple[str, str], tuple[list[float], float]] = {}
        found = {}
        for run in wanted:
            if (run.design, run.data) not in rates:
                rates[run.design, run.data] = self._measure(run)
            steps, seconds_a_window = rates[run.design, run.data]
            recipe = self.recipe(run)
            epochs = [stage.training.n_epochs for stage in recipe.stages] or [recipe.training.n_epochs]
            # a validation passes forward alone, which is about a third of a step
            per_epoch = self.limits.epoch_steps + len(self.items(run, "validation")) / self.limits.batch / 3
            trained = sum(n * per_epoch * step for n, step in zip(epochs, steps, strict=True))
            judged = seconds_a_window * len(self.items(run, "test")) * self.limits.seeds
            found[run.name] = (trained + judged) / 60
        return found

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
    pairs = [("more_data_helps", name, f"{name}-folk", f"{name}-folk-{SIZES[0]}", "folk") for name in COMPARED_DESIGNS]
    pairs += [("folk_helps_jsb", name, f"{name}-folk-then-jsb", f"{name}-jsb", "jsb") for name in COMPARED_DESIGNS]
    for hypothesis, _, more, less, data in pairs:
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
