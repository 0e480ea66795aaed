"""Training at equal budgets: what is run, how far each run goes, and where an interrupted table of runs goes on.

All runs have the same number of steps, each of as many contexts, whatever the size of their data; the stages of a
design share them as its recipe does. Everything else is as the recipe says, but for the length of the schedules. The
best validation epoch of a run is kept, and judged on the test split as `study_scores` says.

A run that is trained has a file in its folder that says so, and its scores say what they were decoded with: where that
is another decoding today, the weights are judged again, and nothing is trained. The folder also says which data it was
trained on, and is refused for others. While a run is being done its process holds a lock, which the system takes back
when the process ends, however it ends: any number of processes may share a table. What a run found can be kept
elsewhere, without its weights: such a run is done wherever that file is, so that a table may be made piece by piece, on
more than one machine. It keeps the decoding that it was judged by, whatever is shipped later.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import fcntl
import functools
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from benchmarks.musib.hypotheses import ACCURACIES, Part, Scores, drop, drop_difference, mean_difference
from benchmarks.musib.shortening import Limits, shortened
from benchmarks.musib.study_scores import BITS, decode_by, judge, shipped_decoding
from benchmarks.musib.systems import DATA, DESIGNS, absent, size_of

from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.files import write_atomically
from music_evals.models.training import fit
from music_evals.models.training.recipe import Recipe, from_mapping, read_recipe
from music_evals.models.training.run import seeded
from music_evals.protocols import INPAINTERS, load_plugin
from music_evals.symbolic.noteseq import mask_middle

SIZES: Final = (171, 342, 684)
"""Tunes of the nested subsets; 171 is the size of the published small set."""

COMPARED_DESIGNS: Final = ("inpaintnet", "vli")
"""An autoencoder and a transformer: those whose training is repeated on subsets, and after other music."""

DONE: Final = "done.json"
"""In the folder of a run that is trained: its core-minutes, size, songs it trained on, epochs, best validation loss."""

SCORES: Final = "scores.json"
"""In the folder of a run that is judged: what it scored, and the key and the decoding that it was judged by."""

TRAINED_ON: Final = "data.json"
"""In the folder of a run: a hash of its data. Folders from before there was this file are taken as they are."""

BETWEEN: Final = "folk, jsb"
"""Of differences between the two: how much a system drops from folk tunes to chorales."""

KEPT_DIGITS: Final = 6
"""Decimal places of the scores that are kept."""


class Run(NamedTuple):
    """One training: a design, its data, how many songs of it, and the run whose weights it starts from."""

    name: str
    design: str
    data: str
    songs: int | None = None
    start: str | None = None


def runs() -> list[Run]:
    """Return all runs, the weightiest first: what a budget leaves out stands at the end."""
    designs = [design.name for design in DESIGNS]
    found = [Run(f"{name}-{data}", name, data) for data in ("jsb", "folk") for name in designs]
    found += [Run(f"{name}-folk-then-jsb", name, "jsb", start=f"{name}-folk") for name in COMPARED_DESIGNS]
    found += [Run(f"{name}-folk-{size}", name, "folk", songs=size) for size in SIZES for name in COMPARED_DESIGNS]
    few = [name for name in designs if name not in COMPARED_DESIGNS]  # the others on as few tunes as table 4 has
    return found + [Run(f"{name}-folk-{SIZES[0]}", name, "folk", songs=SIZES[0]) for name in few]


# --- one run


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
        self._recipes: dict[str, Recipe] = {}

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
        about = self._trained(run)
        if about is not None and self._judged(run) is not None:
            return about
        kept = self._kept(run)
        return None if kept is None else kept["about"]

    def _trained(self, run: Run) -> dict[str, Any] | None:
        """Return what is known of a run whose weights are here, of the data that are here."""
        path = self.folder(run) / DONE
        if not path.is_file() or self._data_of(self.folder(run) / TRAINED_ON) not in {None, self.data(run)}:
            return None
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return about

    def _judged(self, run: Run) -> dict[str, Any] | None:
        """Return the scores in the folder of a run; None where there are none, or of another decoding."""
        path = self.folder(run) / SCORES
        if not path.is_file():
            return None
        scores: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return scores if scores.get("key") == self.key(run) else None

    @staticmethod
    def _data_of(path: Path) -> str | None:
        """Return the hash that a file of `TRAINED_ON` holds; None where there is no such file."""
        return str(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None

    def keep(self) -> None:
        """Write what each run found into the other folder, one file a run, without weights."""
        if self.kept is None:
            return
        for name in self.done():
            run = self.named[name]
            about, scores = self._trained(run), self._judged(run)
            if about is not None and scores is not None:
                scores["values"] = {
                    metric: [None if value is None else round(value, KEPT_DIGITS) for value in values]
                    for metric, values in scores["values"].items()
                }
                data = self._data_of(self.folder(run) / TRAINED_ON)
                content = {"key": scores["key"], "data": data, "about": about, "scores": scores}
                text = json.dumps(content, allow_nan=False, separators=(",", ":"))
                write_atomically(self.kept / f"{name}.json", text.encode(), parents=True)

    def _is_kept_alone(self, run: Run) -> bool:
        """Return whether what a run found is known, but its weights are not here."""
        return self._trained(run) is None and self._kept(run) is not None

    def _kept(self, run: Run) -> dict[str, Any] | None:
        """Return what is kept of a run; None where nothing is, of other settings, or of weights to be judged again."""
        path = None if self.kept is None else self.kept / f"{run.name}.json"
        if path is None or not path.is_file():
            return None
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        same_data = None in {found.get("data"), self.data(run)} or found["data"] == self.data(run)
        # without its weights it stands with the decoding of its day: another one would take another training
        decoding = self.decoding(run) if self._trained(run) is not None else found["scores"]["decoding"]
        return found if found["key"] == self.key(run, decoding) and same_data else None

    def left(self) -> list[Run]:
        """Return what is not yet done, of the runs whose data are here."""
        done = self.done()
        return [run for run in self.table if run.name not in done and run.data in self.places]

    def recipe(self, run: Run) -> Recipe:
        """Return what a run is trained with."""
        if run.design not in self._recipes:  # it is asked for at every look at the table
            path = self.models / run.design / "train.yaml"
            self._recipes[run.design] = shortened(read_recipe(path), self.limits)
        return self._recipes[run.design]

    def decoding(self, run: Run) -> dict[str, Any]:
        """Return what a run is judged by."""
        return shipped_decoding(run.design, run.data, self.models)

    def training_key(self, run: Run) -> str:
        """Return a hash of what decides the weights of a run, but for the data."""
        before = None if run.start is None else self.training_key(self.named[run.start])
        return _hash([run._asdict(), self.recipe(run).key(), dataclasses.asdict(self.limits), before])

    def key(self, run: Run, decoding: Mapping[str, Any] | None = None) -> str:
        """Return a hash of what decides the scores of a run, but for the data; by default with today's decoding."""
        return _hash([self.training_key(run), self.decoding(run) if decoding is None else decoding, BITS])

    def data(self, run: Run) -> str | None:
        """Return a hash of the data that a run is trained and judged on; None where they are not here."""
        if run.data not in self.places:
            return None
        return _hash([self._split(run.data, split).fingerprint for split in ("train", "validation", "test")])

    def items(self, run: Run, split: str) -> ItemSet:
        """Return the windows that a run trains on, looks at or is judged on."""
        whole = self._split(run.data, split)
        if split == "train":
            return subset(whole, run.songs, self.limits.seed)
        return spread(whole, self.limits.validation if split == "validation" else self.limits.test)

    def _split(self, data: str, split: str) -> ItemSet:
        if (data, split) not in self._whole:
            self._whole[data, split] = load_items(*self.places[data], split)
        return self._whole[data, split]

    def folder(self, run: Run) -> Path:
        """Return where a run lies; runs that are trained otherwise lie elsewhere."""
        return self.out / f"{run.name}-{self.training_key(run)}"

    def do_if_free(self, run: Run) -> bool:
        """Do a run unless another process is at it; return whether it is done."""
        with held(self.folder(run).with_suffix(".lock")) as mine:
            if mine and run.name not in self.done():
                self.do(run)
            return mine

    def do(self, run: Run) -> None:
        """Do a run, from where it stood, and write down that it is done; one that is trained is only judged.

        What a training starts from is done first where its weights are not here.

        Raises
        ------
        ValueError
            The run that it starts from is not done, or its folder is of other data.

        """
        about = self._trained(run)
        if about is None and run.start is not None:
            if run.start not in self.done():
                message = f"{run.name} starts from {run.start}, which is not done"
                raise ValueError(message)
            if self._is_kept_alone(self.named[run.start]):
                self.do(self.named[run.start])
        folder, recipe = self.folder(run), self.recipe(run)
        self._hold_to_data(run)
        with seeded(recipe.training.seed, recipe.training.threads):
            # epochs are timed in processor seconds, of all threads: a busy machine changes nothing
            if about is None:
                about = self._train(run)
            began = time.process_time()
            model = decode_by(self._network(recipe, folder), self.decoding(run))
            scores = judge(model, self.items(run, "test"), self.limits.seeds)
            if not (folder / DONE).is_file():  # another judging costs no training
                about["core_minutes"] = round(about["core_minutes"] + (time.process_time() - began) / 60, 2)
        scores = {"key": self.key(run), "decoding": self.decoding(run), **scores}
        write_atomically(folder / SCORES, json.dumps(scores, allow_nan=False).encode())
        write_atomically(folder / DONE, json.dumps(about, indent=1).encode())

    def _hold_to_data(self, run: Run) -> None:
        """Note the data in the folder of a run, and refuse one that is of others."""
        path, data = self.folder(run) / TRAINED_ON, self.data(run)
        if self._data_of(path) not in {None, data}:
            message = f"{path.parent} is of other data of the name {run.data}; remove it, or name another --out"
            raise ValueError(message)
        write_atomically(path, json.dumps(data).encode(), parents=True)

    def _train(self, run: Run) -> dict[str, Any]:
        """Train a run, from where it stood, and return what is to be known of it."""
        folder, recipe = self.folder(run), self.recipe(run)
        train, validation = (self.items(run, split) for split in ("train", "validation"))
        network = self._network(recipe, None if run.start is None else self.folder(self.named[run.start]))
        trained = fit(network, train.contexts, validation.contexts, recipe, folder, clock=time.process_time)
        return {
            "core_minutes": trained.seconds / 60,
            "size": size_of(folder),
            "songs": len(set(train.songs)),
            "epochs": trained.epochs,
            "validation_loss": trained.validation_loss,
        }

    def _network(self, recipe: Recipe, folder: Path | None) -> Any:
        network = load_plugin(INPAINTERS, recipe.model_type, "model type")
        if folder is not None:
            return network.from_pretrained(str(folder))
        return network(from_mapping(network.config_class, {"model_type": recipe.model_type, **recipe.model}, "setting"))

    def scores(self, name: str) -> Scores | None:
        """Return what the model of a run scored; None where it is not done."""
        found = self._found(name)
        if found is None:
            return None
        # what is undefined is null in the file, and NaN here
        values = {metric: np.array(row, dtype=np.float64) for metric, row in found["values"].items()}
        return Scores(found["items"], found["songs"], values, self.done()[name]["size"])

    def judged_by(self, name: str) -> dict[str, Any]:
        """Return the decoding that a run, which is done, was judged by."""
        found = self._found(name)
        if found is None:
            raise KeyError(name)
        decoding: dict[str, Any] = found["decoding"]
        return decoding

    def _found(self, name: str) -> dict[str, Any] | None:
        if name not in self.done():
            return None
        run = self.named[name]
        if self._trained(run) is not None and (judged := self._judged(run)) is not None:
            return judged
        kept = self._kept(run)
        return None if kept is None else kept["scores"]

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
            is_trained = self._trained(run) is not None
            judged = seconds_a_window * len(self.items(run, "test")) * self.limits.seeds
            found[run.name] = (judged if is_trained else trained + judged) / 60
            if not is_trained and run.start is not None and self._is_kept_alone(before := self.named[run.start]):
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
        with tempfile.TemporaryDirectory() as folder, seeded(recipe.training.seed, recipe.training.threads):
            model = self._network(recipe, None)
            fit(model, contexts, contexts[:1], short, Path(folder), clock=time.process_time)
            places = [Path(folder) / "run" / stage.name / "log.csv" for stage in named] or [
                Path(folder) / "run/log.csv"
            ]
            # the first epoch of a stage has what is done once in it
            steps = [min(float(row["seconds"]) for row in _rows(place)) / 2 for place in places]
            began = time.process_time()
            decode_by(model, self.decoding(run)).inpaint(mask_middle(contexts[:8]), rng=np.random.default_rng(0))
            return steps, (time.process_time() - began) / len(contexts[:8])


def _hash(facts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --- what they say


def parts(studies: Studies) -> Iterator[Part]:
    """Yield the differences that the hypotheses on training are about, of the runs that are done."""
    few = [f"{design.name}-folk-{SIZES[0]}" for design in DESIGNS if design.name != "sketchnet"]
    pairs = [("sketchnet_best_rhythm_on_few_tunes", f"sketchnet-folk-{SIZES[0]}", other, "folk") for other in few]
    pairs += [("more_data_helps", f"{name}-folk", f"{name}-folk-{SIZES[0]}", "folk") for name in COMPARED_DESIGNS]
    pairs += [("folk_helps_jsb", f"{name}-folk-then-jsb", f"{name}-jsb", "jsb") for name in COMPARED_DESIGNS]
    metrics = {
        "sketchnet_best_rhythm_on_few_tunes": ("position_score", "rhythm_accuracy"),
        "more_data_helps": ("note_f1", "own_loss"),
        "folk_helps_jsb": ("note_f1",),
    }
    for hypothesis, more, less, data in pairs:
        a, b = studies.scores(more), studies.scores(less)
        if a is not None and b is not None:
            _check_decodings(studies, more, less)
            for metric in metrics[hypothesis]:
                yield _part(hypothesis, data, (more, a), (less, b), metric)
    yield from _parts_between(studies)


def _parts_between(studies: Studies) -> Iterator[Part]:
    """Yield the differences between folk tunes and chorales, each system decoding as is best on that music."""
    few = f"folk-{SIZES[0]}"
    found = {
        run: {design.name: studies.scores(f"{design.name}-{run}") for design in DESIGNS} for run in ("folk", few, "jsb")
    }
    there = {run: {name: scores for name, scores in own.items() if scores is not None} for run, own in found.items()}
    jsb = there["jsb"]
    for hypothesis, run in (("every_model_drops_on_jsb", "folk"), ("few_folk_tunes_above_jsb", few)):
        for name in (name for name in there[run] if name in jsb):
            one, other = there[run][name], jsb[name]
            for metric in ACCURACIES:
                if (run, name, metric) != ("folk", "inpaintnet", "rhythm_accuracy"):  # the paper's exception
                    measure = functools.partial(drop, one, other, metric)
                    yield Part(hypothesis, BETWEEN, f"{name}-{run}", f"{name}-jsb", metric, one.size, measure)
    both = {name: (scores, jsb[name]) for name, scores in there["folk"].items() if name in jsb}
    pairs = [("vli_drops_most_on_jsb", "vli", name, True) for name in both if name != "vli"]
    pairs += [("inpaintnet_most_stable", name, "inpaintnet", False) for name in both if name != "inpaintnet"]
    for hypothesis, more, less, signed in pairs:
        for metric in ACCURACIES if more in both and less in both else ():
            measure = functools.partial(drop_difference, both[more], both[less], metric, signed=signed)
            a, b = (f"{name}-folk less -jsb" for name in (more, less))
            sizes = "; ".join(f"{name}: {both[name][0].size}" for name in (more, less))
            yield Part(hypothesis, BETWEEN, a, b, metric, sizes, measure)


def _check_decodings(studies: Studies, more: str, less: str) -> None:
    """Refuse two runs of one design that were judged by different decodings: they are no comparison of trainings."""
    same = studies.named[more].design == studies.named[less].design
    if same and studies.judged_by(more) != studies.judged_by(less):
        message = f"{more} and {less} were judged by different decodings; remove what is kept of both, and run again"
        raise ValueError(message)


def _part(hypothesis: str, data: str, more: tuple[str, Scores], less: tuple[str, Scores], metric: str) -> Part:
    (a, first), (b, second) = more, less

    def measure(confidence: float) -> tuple[float, ...]:
        # a lower loss is better
        better, worse = (second, first) if metric == "own_loss" else (first, second)
        return mean_difference(better, worse, (metric, metric), confidence)

    return Part(hypothesis, data, a, b, metric, first.size, measure)
