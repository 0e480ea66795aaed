"""Every system on every item: what is recorded of inpainting, and how it is worked out.

A unit of work is some consecutive items, one system and one seed; the likelihoods of a system are units of their own,
so that they may fail by themselves. Its randomness depends on these names alone, so that a run that was killed and
resumed, or spread over processes, gives the same predictions as one that was not.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.engines import Failed, Unit
from music_evals.benchmark.inputs import derive_rng
from music_evals.benchmark.records import Records
from music_evals.benchmark.run import Job, Row
from music_evals.benchmark.scores import SeededScores
from music_evals.benchmark.tasks.inpainting.items import ItemSet
from music_evals.benchmark.tasks.inpainting.systems import System, chosen_names
from music_evals.errors import InvalidInputError, MusicEvalsError
from music_evals.files import Store
from music_evals.metrics.catalogue import INPAINTING_EXTENSIONS, INPAINTING_METRICS, metric_of
from music_evals.metrics.likelihood import inpainting_nll
from music_evals.numerics import kernels, n_cores, package_versions
from music_evals.pipelines.inpainting import FEATURES, item_features, item_scores
from music_evals.protocols import LikelihoodInpainter
from music_evals.symbolic import noteseq

CHUNK_ITEMS = 64
"""Items in a unit: enough for a network to run them together, few enough to lose little by a kill."""

MOST_WORKERS = 4
"""Processes by default: each holds PyTorch and the networks."""

NLL = "inpainting_nll"

RANKING = "note_f1"
"""Rankings use it: the accuracies are conditional on shared onsets, and one sure note would score 1."""

INTERVALS = "interval_divergence"
"""Of a whole set of predictions, from their notes: nothing of it is recorded of an item."""

METRICS = (*(name for name, info in INPAINTING_METRICS.items() if info.kind == "item"), *FEATURES.values())
"""What is recorded of a prediction: item metrics, and in place of each divergence the feature that it compares."""

COMPANION = "repeated_note_rate"
"""Recorded of every prediction too, and shown beside what ranks."""

EXTENSIONS = tuple(name for name, info in INPAINTING_EXTENSIONS.items() if info.kind == "item" and name != COMPANION)
"""What is recorded where a run asks for it."""


HEADINGS = {
    name: metric_of(name).heading for name in (RANKING, INTERVALS, COMPANION, *INPAINTING_METRICS, *EXTENSIONS, NLL)
}
"""Metric -> short heading, in the order of the tables: what ranks stands first, beside it what sees monotone output."""


def extension_names(choice: str) -> tuple[str, ...]:
    """Read a choice of extensions; those that every run has may be named too."""
    chosen = chosen_names(choice, INPAINTING_EXTENSIONS, "extension")
    return tuple(name for name in EXTENSIONS if name in chosen)


PLUGIN_ERRORS = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
"""What a plug-in may raise for some items together, which are then tried one by one."""

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class _Chunk(NamedTuple):
    """What a unit is about: rows of the items, for one system and seed."""

    system: int
    seed: int
    rows: range
    likelihood: bool


@dataclasses.dataclass(eq=False)
class InpaintingJob(Job):
    """Every system on every item; it is its own work, so that items and systems travel once to each process."""

    judged: ItemSet  # what is judged on
    systems: Sequence[System]  # who is judged; names must differ
    variant: str = "corrected"  # variant of the metrics
    seeds: Sequence[int] = (0,)  # seeds of the systems that use randomness
    protocol: str | None = None  # name of a published protocol, for the header
    # What else the header should say of how the run was asked for. A run with others is another run.
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    cache: Store | None = None  # answers of models in other runs; changes no number
    extensions: Sequence[str] = ()  # names out of `EXTENSIONS` that are recorded too

    def __post_init__(self) -> None:
        names = [system.name for system in self.systems]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidInputError(
                f"systems need different names, got {', '.join(twice)} more than once; rename one of them"
            )
        if not self.seeds:
            raise InvalidInputError("expected at least one seed, got none")
        self.recorded = (*METRICS, COMPANION, *self.extensions)  # scores and features of a prediction
        self._runs: list[tuple[int, int, bool]] = []  # system, seed, and whether likelihoods are worked out
        for index, system in enumerate(self.systems):
            seeds = system.seeds(self.seeds)
            self._runs += [(index, seed, False) for seed in seeds]
            if isinstance(system.inpainter, LikelihoodInpainter):
                # the likelihood of the true middle does not depend on the seed: it is worked out once
                self._runs.append((index, seeds[0], True))
        self.work, self.size = self, len(self._runs) * len(self.judged)
        # processes that suit it: networks, which take long, decode a chunk with one thread; rules are soon done
        networks = [system for system in self.systems if system.role in {"model", "leaking"} and system.make]
        full = sum(len(system.seeds(self.seeds)) for system in networks) * (len(self.judged) // CHUNK_ITEMS)
        self.workers = max(min(n_cores(), MOST_WORKERS, full), 1)

    def _metrics(self, chunk: _Chunk) -> tuple[str, ...]:
        return (NLL,) if chunk.likelihood else self.recorded

    @property
    def header(self) -> Row:  # type: ignore[override]
        """What the numbers depend on."""
        judged = self.judged
        return {
            "task": "inpainting",
            "protocol": self.protocol,
            "variant": self.variant,
            "dataset": {
                "id": judged.dataset,
                **{key: getattr(judged, key) for key in ("config", "split", "revision", "fingerprint")},
                "n_items": len(judged),
            },
            "systems": {
                system.name: {
                    "role": system.role,
                    "content_hash": system.content_hash,
                    "seeds": list(system.seeds(self.seeds)),
                    "sees_reference": system.sees_reference,
                    **system.details,
                }
                for system in self.systems
            },
            "extractors": {},
            "seeds": list(self.seeds),
            "options": dict(self.options),
            "versions": package_versions(),
        }

    @property
    def items(self) -> list[Row]:  # type: ignore[override]
        """Rows of the items, with their tokens and what is known of them."""
        judged = self.judged
        columns: dict[str, Any] = {
            "item": judged.item_ids,
            "song": judged.songs,
            "seen_in_train": judged.seen_in_train,
            "near_train": judged.near_train,
            "repeats_in_context": judged.repeats_in_context,
            "voice": judged.voices,
            "tokens": judged.contexts,
        }
        nothing = [None] * len(judged)
        values = [
            nothing if column is None else column.tolist() if isinstance(column, np.ndarray) else list(column)
            for column in columns.values()
        ]
        rows: list[Row] = [
            {"kind": "item", **dict(zip(columns, row, strict=True))} for row in zip(*values, strict=True)
        ]
        failures = sorted(judged.failures.items())
        return rows + [{"kind": "item", "item": item, "error": reason} for item, reason in failures]

    def left(self, rows: Records) -> list[Unit]:
        """Leave out the chunks of which every item has its scores; one failed item brings its chunk back."""
        made, n = None, len(self.judged)
        if "score" in rows.kinds:
            seeds = {system.name: list(system.seeds(self.seeds)) for system in self.systems}
            made = SeededScores(rows, self.judged.item_ids, seeds, (*self.recorded, NLL))
        units = []
        for index, seed, likelihood in self._runs:
            name = self.systems[index].name
            for start in range(0, n, CHUNK_ITEMS):
                chunk = _Chunk(index, seed, range(start, min(start + CHUNK_ITEMS, n)), likelihood)
                if made is None or not made.are_scored(name, seed, chunk.rows, self._metrics(chunk)):
                    parts = tuple(Unit(chunk._replace(rows=range(row, row + 1)), name) for row in chunk.rows)
                    units.append(Unit(chunk, name, size=len(parts), parts=parts if len(parts) > 1 else ()))
        return units

    def selection(self, rows: Records) -> list[Row]:
        """Return what is asked for from here on, where the last selection does not say it."""
        row = {"kind": "selection", "scores": [COMPANION, *self.extensions]}
        return [] if "selection" in rows.kinds and [row] == list(rows.of("selection"))[-1:] else [row]

    def rows(self, unit: Unit, answer: Any) -> list[Row]:
        """Return the rows that a chunk was answered with, or that its items failed."""
        if not isinstance(answer, Failed):
            rows: list[Row] = answer
            return rows
        chunk: _Chunk = unit.payload
        nothing = np.full(len(chunk.rows), np.nan)
        reasons = dict.fromkeys(chunk.rows, answer.reason)
        return self._rows(chunk, dict.fromkeys(self._metrics(chunk), nothing), reasons)

    def __call__(self, chunk: _Chunk) -> list[Row]:
        """Return the prediction and score rows of one chunk."""
        judged, rows, system = self.judged, chunk.rows, self.systems[chunk.system]
        errors: dict[int, str] = {}
        undefined = np.full(len(rows), np.nan)
        if chunk.likelihood:
            losses = _by_item(partial(self._losses, system), rows, undefined, errors, PLUGIN_ERRORS)
            return self._rows(chunk, {NLL: losses}, errors)
        named = {row: judged.item_ids[row] for row in rows}
        errors |= {row: system.failures[item] for row, item in named.items() if item in system.failures}
        nothing = np.zeros((len(rows), MUSIB_LAYOUT.middle_steps), dtype=np.uint8)
        middles = _by_item(partial(self._middles, system, chunk.seed), rows, nothing, errors, PLUGIN_ERRORS)
        # an item that the variant cannot score
        undefined = np.full((len(rows), len(self.recorded)), np.nan)
        scores = _by_item(partial(self._scores, chunk, middles), rows, undefined, errors, (MusicEvalsError,))
        return self._rows(chunk, dict(zip(self.recorded, scores.T, strict=True)), errors, middles)

    def _middles(self, system: System, seed: int, rows: Sequence[int], size: str) -> Tokens:
        """Return what a system predicts for some items, shape (n, 96)."""
        label = f"chunk {rows[0]}" if size == "chunk" else f"item {self.judged.item_ids[rows[0]]}"
        contexts = self.judged.contexts[rows]
        visible = contexts if system.sees_reference else noteseq.mask_middle(contexts)
        predict = partial(system.inpaint, visible, rows, seed=seed, rng=derive_rng(seed, system.name, label))
        return self._cached(system, {"asked": "middles", "seed": seed, "label": label}, visible, predict, "u1")

    def _losses(self, system: System, rows: Sequence[int], _: str) -> Floats:
        """Return the negative log-likelihoods of some true middles, shape (n,)."""
        model: Any = system.inpainter
        contexts = self.judged.contexts[rows]

        def likelihoods() -> Floats:
            values = np.asarray(inpainting_nll(-model.nll(contexts)), dtype=np.float64)
            if values.shape != (len(rows),):
                raise InvalidInputError(
                    f"{model.name} returned likelihoods of {values.size} items, expected {len(rows)}"
                )
            return values

        return self._cached(system, {"asked": "likelihoods"}, contexts, likelihoods, "<f8").reshape(-1)

    def _scores(self, chunk: _Chunk, middles: Tokens, rows: Sequence[int], _: str) -> Floats:
        """Return what is recorded of some predictions of a chunk, shape (n, n_recorded); undefined values are NaN."""
        contexts, middles = self.judged.contexts[rows], middles[[row - chunk.rows.start for row in rows]]
        scores = item_scores(contexts, middles, variant=self.variant, extensions=(COMPANION, *self.extensions))
        features = item_features(contexts, middles, variant=self.variant)
        scores |= {FEATURES[name]: estimate for name, (_, estimate) in features.items()}
        return np.stack([scores[name] for name in self.recorded], axis=-1)

    def _cached(
        self, system: System, question: dict[str, Any], contexts: Tokens, compute: Callable[[], Array], dtype: str
    ) -> Array:
        """Return what was stored of a model, or compute and store it; baselines are quicker computed than looked up."""
        # The key is all that decides an answer: the model's weights, configuration and options, the contexts that it is
        # shown, seed and chunk (what a network draws for an item depends on those beside it), versions and kernels.
        if self.cache is None or system.make is None or system.role not in {"model", "leaking"}:
            return compute()
        key = {
            **question,
            "system": system.name,  # its randomness depends on it
            "content": system.content_hash,
            "contexts": hashlib.sha256(np.ascontiguousarray(contexts).tobytes()).hexdigest(),
            "versions": package_versions(),
            "kernels": kernels(),
        }
        stored = self.cache.get(key)
        if stored is not None:
            return np.frombuffer(stored, dtype).reshape(len(contexts), -1)
        answer = compute()
        self.cache.put(key, answer.astype(dtype, copy=False).tobytes())
        return answer

    def _rows(
        self, chunk: _Chunk, scores: Mapping[str, Floats], errors: Mapping[int, str], middles: Tokens | None = None
    ) -> list[Row]:
        rows: list[Row] = []
        for position, row in enumerate(chunk.rows):
            name = self.systems[chunk.system].name
            who = {"item": self.judged.item_ids[row], "system": name, "seed": chunk.seed}
            reason = errors.get(row)
            if reason is None and middles is not None:
                rows.append({"kind": "prediction", **who, "middle": middles[position].tolist()})
            for metric, values in scores.items():
                about = {"kind": "score", **who, "metric": metric, "variant": self.variant}
                if reason is not None:
                    rows.append({**about, "error": reason, "n": 0})
                    continue
                value = float(values[position])
                # None is undefined, which is not the same as failed; JSON has neither NaN nor infinity
                number = None if np.isnan(value) else value if np.isfinite(value) else "inf"
                rows.append({**about, "value": number, "n": 1})
        return rows


def _by_item(
    compute: Callable[[Sequence[int], str], Array],
    rows: Sequence[int],
    values: Array,
    errors: dict[int, str],
    failing: tuple[type[Exception], ...],
) -> Array:
    """Return what is computed of some items; where they fail together, of each alone, so that one fails for itself.

    Those that fail keep their place in `values`, and `errors` gets the reason.
    """
    try:
        return compute(rows, "chunk")
    except failing:
        pass
    for position, row in enumerate(rows):
        try:
            values[position] = compute([row], "item")[0]
        except failing as error:
            errors.setdefault(row, f"{type(error).__name__}: {error}")
    return values
