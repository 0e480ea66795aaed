"""Results in the head of a model card: the ``model-index`` that the Hub reads.

It is a list of models; a model has results, a result one task and dataset, and metrics with a value each. What tells
two values apart is the dataset with its config and split, the metric and its variant. The revision of the dataset does
not: a new one replaces the value of the old, and whether it may is for the caller to decide.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.deprecation import warn_renamed
from music_evals.errors import UnreadableFileError
from music_evals.hub.heads import read_head, replace_block

INDEX = "model-index"

Index = list[dict[str, Any]]


class Key(NamedTuple):
    """What identifies a value in a card."""

    dataset: str
    config: str | None
    split: str | None
    metric: str
    variant: str | None  # ``args``: variant, and settings where they are not the default

    def __str__(self) -> str:
        variant = f", variant {self.variant}" if self.variant else ""
        return f"{self.metric} on {' '.join(filter(None, self[:3]))}{variant}"


class Changed(NamedTuple):
    """A value that is there already and would become another."""

    entry: str
    old: Any
    new: Any

    @property
    def what(self) -> str:
        """The name of `entry` in the last release."""
        warn_renamed("Changed.what", "entry")
        return self.entry

    def as_json(self) -> dict[str, Any]:
        """Return it under the keys that verbs print for programs."""
        return {"what": self.entry, "old": self.old, "new": self.new}


def read_index(card: str) -> Index:
    """Return the ``model-index`` of a card, empty if missing; raise `UnreadableFileError` for another form."""
    from huggingface_hub.repocard_data import model_index_to_eval_results

    index: Index = read_head(card).get(INDEX) or []
    try:
        if index:
            model_index_to_eval_results(index)
    except (TypeError, KeyError, AttributeError) as error:
        raise UnreadableFileError(
            f"the model-index of the card is not of the Hub's form ({type(error).__name__}: {error}); expected a list "
            "of models with name and results, each result with task, dataset and metrics"
        ) from error
    return index


def write_index(card: str, index: Index) -> str:
    """Return the card with this ``model-index``; the same text where it holds it already."""
    return card if read_index(card) == index else replace_block(card, INDEX, index)


def merge_index(index: Index, entry: Mapping[str, Any], name: str) -> tuple[Index, list[Changed]]:
    """Put one result into an index, each metric where its value stood; return the index and the values that changed."""
    # `name` is that of the model, for an index that is empty or holds several. An index that says it all is returned.
    merged = copy.deepcopy(index)
    model = _model(merged, name)
    new = {find_key(entry, metric): metric for metric in entry["metrics"]}
    changed = [
        Changed(str(key), metric["value"], new[key]["value"])
        for key, metric in held_values([model])
        if key in new and metric["value"] != new[key]["value"]
    ]
    results, missing = model["results"], dict(new)
    touched = [number for number, result in enumerate(results) if _renew(result, entry, new, missing)]
    if missing:
        home = next((result for result in results if _shell(result) == _shell(entry)), None)
        if home is None:
            results.insert(touched[-1] + 1 if touched else len(results), {**entry, "metrics": list(missing.values())})
        else:
            home["metrics"].extend(missing.values())
    for number in reversed(touched):  # all of them stand before what was put in
        if not results[number]["metrics"]:
            del results[number]
    return (index if merged == index else merged), changed


def merge_published(held: Index, local: Index) -> tuple[Index, list[Changed]]:
    """Return the index of a card that is published over another, and the values of the folder that do not stand."""
    # A value on the Hub is changed by a push only; the card of the folder adds those that the Hub does not have.
    if not held:
        return local, []
    known = {key: metric["value"] for key, metric in held_values(held)}
    retained = [
        Changed(str(key), known[key], metric["value"])
        for key, metric in held_values(local)
        if key in known and known[key] != metric["value"]
    ]
    merged = held
    for model in local:
        for result in model["results"]:
            other = [metric for metric in result["metrics"] if find_key(result, metric) not in known]
            if other:
                merged, _ = merge_index(merged, {**result, "metrics": other}, model["name"])
    return merged, retained


def held_values(index: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield every metric of an index, with the key that identifies it."""
    for model in index:
        for result in model["results"]:
            for metric in result["metrics"]:
                yield find_key(result, metric), metric


def find_key(result: Mapping[str, Any], metric: Mapping[str, Any]) -> Key:
    """Return the key that identifies a metric of a result."""
    dataset, args = result["dataset"], metric.get("args")
    values = [args[key] for key in ("variant", "settings") if args.get(key)] if isinstance(args, dict) else []
    variant = "; ".join(map(str, values)) or None
    return Key(dataset["type"], dataset.get("config"), dataset.get("split"), metric["type"], variant)


def _shell(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without its metrics."""
    return {key: value for key, value in result.items() if key != "metrics"}


def _renew(result: dict[str, Any], entry: Mapping[str, Any], new: Mapping[Key, Any], missing: dict[Key, Any]) -> bool:
    """Put new metrics where their old values stand, and take them off the missing ones; tell whether there was any."""
    # A result of which only a part is said anew, but otherwise, as of another revision, loses that part.
    metrics = result["metrics"]
    known = {at: key for at, metric in enumerate(metrics) if (key := find_key(result, metric)) in new}
    if known and len(known) == len(metrics):
        for other in _shell(result).keys() - entry.keys():
            del result[other]
        result.update(_shell(entry))
    for at, key in reversed(known.items()):
        if key in missing and _shell(result) == _shell(entry):
            renewed = missing.pop(key)
            if metrics[at]["value"] == renewed["value"]:  # what else the old one has, as that it is verified, stays
                metrics[at].update(renewed)
            else:
                metrics[at] = renewed
        else:
            del metrics[at]
    return bool(known)


def _model(index: Index, name: str) -> dict[str, Any]:
    for model in index:
        if model["name"] == name:
            return model
    if len(index) != 1:
        index.append({"name": name, "results": []})
    return index[-1]
