"""Results in the head of a model card: the ``model-index`` that the Hub reads.

It is a list of models; a model has results, a result one task and dataset, and metrics with a value each. What tells
two values apart is the dataset with its config and split, the metric and its variant. The revision of the dataset does
not: a new one replaces the value of the old, and whether it may is for the caller to decide.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.errors import UnreadableFileError
from music_evals.hub.heads import read_head, replace_block

__all__ = ["Changed", "Key", "merge_index", "merge_published", "read_index", "write_index"]

INDEX = "model-index"

Index = list[dict[str, Any]]


class Key(NamedTuple):
    """What tells one value in a card from the others."""

    dataset: str
    config: str | None
    split: str | None
    metric: str
    variant: str | None
    """``args``: variant, and settings where they are not the default."""

    def __str__(self) -> str:
        variant = f", variant {self.variant}" if self.variant else ""
        return f"{self.metric} on {' '.join(filter(None, self[:3]))}{variant}"


class Changed(NamedTuple):
    """A value that is there already and would become another."""

    what: str
    old: Any
    new: Any


def read_index(card: str) -> Index:
    """Return the ``model-index`` of a card, empty where it has none.

    Raises
    ------
    UnreadableFileError
        It is not of the form that the Hub documents.

    """
    index = read_head(card).get(INDEX) or []
    try:
        for _, _, metric in _values(index):
            _ = metric["value"]
        models = [(model["name"], list(model["results"])) for model in index]
    except (TypeError, KeyError, AttributeError) as error:
        msg = (
            f"the model-index of the card is not of the Hub's form ({type(error).__name__}: {error}); expected a list "
            "of models with name and results, each result with task, dataset and metrics"
        )
        raise UnreadableFileError(msg) from error
    return index if models else []


def write_index(card: str, index: Index) -> str:
    """Return the card with this ``model-index``; the same text where it holds it already."""
    return card if read_index(card) == index else replace_block(card, INDEX, index)


def merge_index(index: Index, entry: Mapping[str, Any], name: str) -> tuple[Index, list[Changed]]:
    """Put one result into a ``model-index``; nothing else in it changes.

    Parameters
    ----------
    index
        From `read_index`.
    entry
        A result: ``task``, ``dataset``, ``metrics`` and perhaps ``source``.
    name
        Name of the model, for an index that is empty or holds several.

    Returns
    -------
    tuple
        The new index, equal to the old one where it says the same; and the values that became others.

    """
    merged = copy.deepcopy(index)
    model = _model(merged, name)
    new = {_key(entry, metric): metric for metric in entry["metrics"]}
    held = {key: (metric["value"], _shell(result) | metric) for key, result, metric in _values([model]) if key in new}
    said = {key: _shell(entry) | metric for key, metric in new.items()}
    if {key: everything for key, (_, everything) in held.items()} == said:
        return index, []
    changed = [
        Changed(str(key), held[key][0], metric["value"])
        for key, metric in new.items()
        if key in held and held[key][0] != metric["value"]
    ]
    model["results"] = _placed(model["results"], dict(entry), set(new))
    return merged, changed


def merge_published(held: Index, local: Index) -> tuple[Index, list[Changed]]:
    """Return what a card shall hold that is published over another.

    Values of the published card stand, with the receipts that they may have: a value that was pushed is changed by a
    push only. The local card adds those that the published one does not have.

    Parameters
    ----------
    held
        ``model-index`` of the card on the Hub.
    local
        ``model-index`` of the card in the folder.

    Returns
    -------
    tuple
        The new index; and the values that stand although the folder has others: `Changed.old` is that of the Hub.

    """
    if not held:
        return local, []
    known = {key: metric["value"] for key, _, metric in _values(held)}
    kept = [
        Changed(str(key), known[key], metric["value"])
        for key, _, metric in _values(local)
        if key in known and known[key] != metric["value"]
    ]
    merged = held
    for model in local:
        for result in model["results"]:
            other = [metric for metric in result["metrics"] if _key(result, metric) not in known]
            if other:
                merged, _ = merge_index(merged, result | {"metrics": other}, model["name"])
    return merged, kept


def _values(index: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Key, dict[str, Any], dict[str, Any]]]:
    for model in index:
        for result in model["results"]:
            for metric in result["metrics"]:
                yield _key(result, metric), result, metric


def _key(result: Mapping[str, Any], metric: Mapping[str, Any]) -> Key:
    dataset, args = result["dataset"], metric.get("args")
    made = [args[key] for key in ("variant", "settings") if args.get(key)] if isinstance(args, dict) else []
    variant = "; ".join(map(str, made)) or None
    return Key(dataset["type"], dataset.get("config"), dataset.get("split"), metric["type"], variant)


def _shell(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without its metrics, under a name that no metric has."""
    return {"": {key: value for key, value in result.items() if key != "metrics"}}


def _model(index: Index, name: str) -> dict[str, Any]:
    for model in index:
        if model["name"] == name:
            return model
    if len(index) != 1:
        index.append({"name": name, "results": []})
    return index[-1]


def _placed(results: list[dict[str, Any]], entry: dict[str, Any], keys: set[Key]) -> list[dict[str, Any]]:
    """Return the results with the entry where its metrics stood, or at the end."""
    kept: list[dict[str, Any]] = []
    place: int | None = None
    for result in results:
        left = [metric for metric in result["metrics"] if _key(result, metric) not in keys]
        if len(left) < len(result["metrics"]) and place is None:
            place = len(kept) + bool(left)
        if left or not result["metrics"]:
            kept.append(result | {"metrics": left})
    for number, result in enumerate(kept):
        if _shell(result) == _shell(entry):
            kept[number] = result | {"metrics": [*result["metrics"], *entry["metrics"]]}
            return kept
    kept.insert(len(kept) if place is None else place, entry)
    return kept
