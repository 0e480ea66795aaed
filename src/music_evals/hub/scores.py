"""The scores of one system in results.json, in one form for all benchmarks.

It is read by its content: ``tables`` with ``all`` are those of inpainting, ``scores`` those of preservation and of
every other benchmark that shares its tables.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from music_evals.benchmark.contents import divergences_of_set, unlisted
from music_evals.benchmark.results import definition_in
from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.hub.heads import quoted
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.protocols import RENDERED_DATASETS

DECIMALS = 4  # digits of a value in a card; those of an interval too

NO_RANK = frozenset({"control", "leaking"})  # roles that have seen the reference


class Task(NamedTuple):
    """A benchmark as a card describes it."""

    type: str
    name: str
    ranked: Mapping[str, Any] = MappingProxyType({"variant": "corrected"})
    """Place in the results -> what stands there in a run that ranks, which is the benchmark's default. A task has one
    value a model, so that all of them must be made alike."""


TASKS = {
    "inpainting": Task("music-inpainting", "Musical score inpainting"),
    "preservation": Task("music-editing", "Music editing: what is preserved"),
    "lyrics": Task(
        "lyric-generation",
        "Lyrics in a given structure",
        {
            "variant": "official",
            "options.rhyme": "official",
            "options.section_match": "initial",
            "options.accumulate_song": False,
            "options.autojunk": True,
            "options.normalise": True,
        },
    ),
    "descriptions": Task(
        "music-description",
        "Music description",
        {"variant": "mean", "options.normalize_by_self": False, "encoder.name": "BAAI/bge-large-zh-v1.5"},
    ),
    "style-transfer": Task("music-style-transfer", "Music style transfer"),
}
"""Task of the results -> how a card describes it; others are called by their own name."""

REPORTED_FIELDS = ("decoding", "temperature", "content_hash")
"""Fields of a system that a receipt reports, if the results have them."""

Results = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class DatasetPlace:
    """What was evaluated on."""

    id: str
    config: str | None
    split: str | None
    revision: str | None  # commit on the Hub; None for a folder
    fingerprint: str | None  # hash of the content, where the results have one


@dataclasses.dataclass(frozen=True)
class Score:
    """One number with what belongs to it; floats are rounded to `DECIMALS`."""

    value: float
    title: str
    low: float | None
    high: float | None
    null: float | None  # noise floor of a divergence
    n: int
    n_defined: int
    n_clusters: float | None = None  # effective number behind the interval; None in results of older versions
    n_groups: int | None = None  # independent sources of the items that define it; None in results of older versions

    @property
    def counts(self) -> dict[str, Any]:
        """How many items and clusters the value is based on, by the names in the results."""
        return {name: getattr(self, name) for name in ("n", "n_defined", "n_groups", "n_clusters")}


@dataclasses.dataclass(frozen=True)
class SystemScores:
    """All scores of one system."""

    system: str
    task: Task
    dataset: DatasetPlace
    variant: str
    departures: tuple[str, ...]  # what differs from the settings that rank; empty where the scores may be ranked
    confidence: float
    clusters: str
    items: str
    scores: Mapping[str, Score]  # metric -> score, those that are defined
    undefined: tuple[str, ...]
    settings: tuple[str, ...]  # what the scores were made with, in words

    @property
    def n_items(self) -> int:
        """Items that were evaluated."""
        return max((score.n for score in self.scores.values()), default=0)


def system_scores(results: Results, system: str | None = None, *, model: str = "") -> SystemScores:
    """Return the scores of one system that belong on a card; None is the one called like the model, or the only one."""
    try:
        name = _choose(results, system, model)
        _refuse(results, name)
        scores = read_scores(results, name)
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableFileError(
            f"the results have an unknown form ({type(error).__name__}: {error}); evaluate again with this version"
        ) from error
    if not scores.scores:
        raise InvalidInputError(f"no score of {name} is defined, so that there is nothing to put on a card")
    return scores


def index_entry(scores: SystemScores, model: str, source: str | None = None) -> dict[str, Any]:
    """Return the scores as one result of a ``model-index``; `source` is the address of what stands behind them."""
    # Where the system is not called like the model, each metric says whose it is.
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    place = scores.dataset
    settings = "; ".join(text for text in scores.departures if not text.startswith("variant "))
    shared: dict[str, Any] = {"variant": scores.variant, "settings": settings or None, "confidence": scores.confidence}
    shared["system"] = scores.system if scores.system != model else None
    shared["groups"] = scores.clusters
    eval_results = [
        EvalResult(
            task_type=scores.task.type,
            task_name=scores.task.name,
            dataset_type=place.id,
            dataset_name=place.id.rpartition("/")[2].replace("_", " "),
            dataset_config=place.config,
            dataset_split=place.split,
            dataset_revision=place.revision,
            metric_type=name,
            metric_name=score.title,
            metric_value=score.value,
            metric_args={**shared, "low": score.low, "high": score.high, "null": score.null, **score.counts},
            source_name=f"{scores.system}, results" if source else None,
            source_url=source,
        )
        for name, score in scores.scores.items()
    ]
    entry: dict[str, Any] = quoted(eval_results_to_model_index(scores.system, eval_results)[0]["results"][0])
    return entry


def _choose(results: Results, system: str | None, model: str) -> str:
    known: Mapping[str, Any] = results["systems"]
    if system is not None:
        if system not in known:
            raise UnknownNameError("system", system, known)
        return system
    systems = [name for name, held in known.items() if held["role"] in {"model", "system"}]
    if model in systems:
        return model
    if not systems:
        raise InvalidInputError(
            f"the results are of {', '.join(known)} alone, which are no systems that a card shows; evaluate a model"
        )
    if len(systems) != 1:
        raise UnknownNameError("system for the model", model, systems, "name one with `system`")
    return systems[0]


def _refuse(results: Results, system: str) -> None:
    if results["systems"][system]["role"] in NO_RANK:
        raise InvalidInputError(f"{system} has seen the reference, or is a control; its scores belong on no card")
    limit = (results.get("options") or {}).get("limit")
    if limit is not None:
        raise InvalidInputError(f"only the first {limit} items were judged; run again without a limit")
    if Path(results["dataset"]["id"]).name in RENDERED_DATASETS:
        raise InvalidInputError(
            f"the systems of {results['dataset']['id']} are kinds of edit, by which metrics are judged and not models"
        )
    failed = [row for row in results["failures"] if row["system"] in {system, None}]
    more = sum(row["n"] for row in unlisted(results, "failures") if row["system"] in {system, None})
    if failed or more:
        first = f", the first at {failed[0]['item']}: {failed[0]['error']}" if failed else ""
        raise InvalidInputError(
            f"{len(failed) + more} results of {system} failed{first}; run the benchmark again until all items have "
            "scores"
        )


def read_scores(results: Results, system: str) -> SystemScores:
    """Return the scores of one system, whether or not they belong on a card."""
    cells: Mapping[str, Any]
    titles: dict[str, str]
    if "tables" in results:  # of inpainting
        from music_evals.benchmark.tasks.inpainting.task import HEADINGS

        cells, titles, items = results["tables"]["all"]["scores"][system], dict(HEADINGS), "windows"
    else:
        scales, together = results["scales"], divergences_of_set(results, system)
        ranked = {name: cell for name, cell in results["scores"][system].items() if not scales[name]["companion"]}
        cells, items = ranked | together, results["wording"]["items"]
        titles = {name: scale["title"] for name, scale in scales.items()} | {n: CATALOGUE[n].title for n in together}
    scores = {name: _score(cell, titles.get(name, name)) for name, cell in cells.items() if _is_number(cell["value"])}
    task = TASKS.get(results["task"]) or Task(f"music-{results['task']}", str(results["task"]))
    dataset, intervals = results["dataset"], results["intervals"]
    return SystemScores(
        system=system,
        task=task,
        dataset=DatasetPlace(dataset["id"], *map(dataset.get, ("config", "split", "revision", "fingerprint"))),
        variant=results["variant"],
        departures=tuple(_departures(results, task)),
        confidence=intervals["confidence"],
        clusters=intervals["clusters"],
        items=items,
        scores=scores,
        undefined=tuple(name for name in cells if name not in scores),
        settings=tuple(_settings(results, system)),
    )


def _departures(results: Results, task: Task) -> Iterator[str]:
    for place, wanted in task.ranked.items():
        value: Any = results
        for key in place.split("."):
            value = value[key]
        if value != wanted:
            yield f"{place.rpartition('.')[2] if place.startswith('options') else place.replace('.', ' ')} {value}"
    for name in results.get("scales", {}):
        definition = definition_in(results, name)
        if name in CATALOGUE and definition != CATALOGUE[name].definition_under(results["variant"]):
            yield f"{name} by definition {definition}"


def _score(cell: Mapping[str, Any], title: str) -> Score:
    bounds = {key: _rounded(cell.get(key)) for key in ("low", "high", "null", "n_clusters")}
    counts = {"n": cell["n"], "n_defined": cell["n_defined"], "n_groups": cell.get("n_groups")}
    return Score(value=round(float(cell["value"]), DECIMALS), title=title, **(bounds | counts))


def _rounded(value: object) -> float | None:
    return round(float(value), DECIMALS) if _is_number(value) and isinstance(value, int | float) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _settings(results: Results, system: str) -> list[str]:
    held = results["systems"][system]
    reported = [f"protocol {results['protocol']}"] if results.get("protocol") else []
    seeds = held.get("seeds", results.get("seeds"))
    if seeds:
        reported.append(f"seeds {', '.join(map(str, seeds))}")
    options = {**(results.get("options") or {}), **{key: held.get(key) for key in REPORTED_FIELDS}}
    options = {key: value for key, value in options.items() if value is not None and value is not False}
    for key, value in options.items():
        if key != "variant":
            reported.append(f"{key} {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}")
    if encoder := results.get("encoder"):
        reported.append(" ".join(filter(None, ["encoder", encoder["name"], encoder["revision"]])))
    features = (results.get("extractors") or {}).get("features") or {}
    for feature, extractor in features.items():
        by = str(extractor)
        if isinstance(extractor, dict):
            names = " ".join(str(extractor[key]) for key in ("backend", "name", "version") if key in extractor)
            by = names or json.dumps(extractor)
        reported.append(f"{feature} by {by}")
    version = results["versions"]["music_evals"]
    return [*reported, f"music_evals {version}"]
