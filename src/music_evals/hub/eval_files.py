"""The two files of the Hub's benchmarks: eval.yaml by our copy of its documented schema, for which the client has none.

``eval.yaml`` in a dataset repository declares tasks; ``.eval_results/*.yaml`` in a model repository hold one value a
task. The Hub validates both when they are pushed. **The framework id of an eval.yaml must be on the Hub's own list,
which cannot be checked offline**, and a dataset becomes a benchmark only once it is admitted: neither is in our power.

By the custom of this house a task is called ``<config>_<split>_<metric>``.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from music_evals.errors import InvalidInputError, UnreadableFileError
from music_evals.hub.heads import read_yaml, set_block
from music_evals.hub.model_index import Changed

_BENCHMARK_KEYS = {"name", "description", "evaluation_framework", "tasks"}
_TASK_KEYS = {"id", "config", "split", "field_spec", "solvers", "scorers"}
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Entry = dict[str, Any]


def check_eval_yaml(content: object, splits: Sequence[tuple[str, str]] | None = None) -> list[str]:
    """Return what is wrong with the content of an eval.yaml; `splits` are the (config, split) that the dataset has."""
    if not isinstance(content, dict):
        return [f"expected a mapping with {', '.join(sorted(_BENCHMARK_KEYS))}, got {type(content).__name__}"]
    texts = {key: content.get(key) for key in ("name", "description")}
    problems = [
        f"{key}: missing, or no text" for key, text in texts.items() if not (isinstance(text, str) and text.strip())
    ]
    framework = content.get("evaluation_framework")
    if not (isinstance(framework, str) and _SLUG.fullmatch(framework)):
        problems.append("evaluation_framework: expected one id, such as music_evals")
    problems += _unknown("", content, _BENCHMARK_KEYS)
    tasks = content.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        return [*problems, "tasks: expected a list of at least one task"]
    for number, task in enumerate(tasks):
        problems += [f"tasks[{number}]{problem}" for problem in _task_problems(task, splits)]
    ids = [task["id"] for task in tasks if isinstance(task, dict) and isinstance(task.get("id"), str)]
    problems += [f"task id {name!r} is there more than once" for name in sorted({i for i in ids if ids.count(i) > 1})]
    return problems


def _task_problems(task: object, splits: Sequence[tuple[str, str]] | None) -> Iterator[str]:
    if not isinstance(task, dict):
        yield ": expected a mapping with id, config and split"
        return
    yield from _unknown("", task, _TASK_KEYS)
    if not (isinstance(task.get("id"), str) and _SLUG.fullmatch(task["id"])):
        yield ".id: missing, or not made of letters, digits, '_', '-' and '.'"
        return
    config, split = task.get("config"), task.get("split", "test")
    if splits is not None and (config, split) not in splits:
        yield f" ({task['id']}): the dataset has no config {config!r} with a split {split!r}"
    elif config is not None and not task["id"].startswith(f"{config}_{split}_"):
        yield f" ({task['id']}): expected the form <config>_<split>_<metric>, here {config}_{split}_..."


def _unknown(where: str, content: Mapping[Any, Any], known: set[str]) -> list[str]:
    return [f"{where}: unknown key {key!r}; known: {', '.join(sorted(known))}" for key in content if key not in known]


def read_eval_yaml(text: str, where: str, splits: Sequence[tuple[str, str]] | None = None) -> dict[str, Any]:
    """Return the content of an eval.yaml; `InvalidInputError` lists how it breaks the schema."""
    content = read_yaml(text, where)
    problems = check_eval_yaml(content, splits)
    if problems:
        raise InvalidInputError(f"{where} breaks the schema of eval.yaml: {'; '.join(problems)}")
    declared: dict[str, Any] = content
    return declared


def ranked_metrics(declared: Mapping[str, Any], config: str, split: str) -> dict[str, str]:
    """Return metric -> task id of the tasks that an eval.yaml declares for one split."""
    prefix = f"{config}_{split}_"
    return {
        task["id"].removeprefix(prefix): task["id"]
        for task in declared["tasks"]
        if (task.get("config"), task.get("split", "test")) == (config, split) and task["id"].startswith(prefix)
    }


def read_results_file(text: str, where: str) -> list[Entry]:
    """Return the entries of a file below ``.eval_results``, whoever wrote them; an empty list for an empty file."""
    entries = read_yaml(text, where)
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UnreadableFileError(f"{where} is no list of results; repair it or delete it")
    return entries


def write_results_file(entries: Sequence[Entry], text: str, where: str) -> str:
    """Return a file below ``.eval_results`` with all of these entries, first those that it has; what is equal stays."""
    old = read_results_file(text, where)
    for number, entry in enumerate(entries):
        if number >= len(old) or entry != old[number]:
            text = set_block(text, number, entry, where)
    return text


def merge_results(
    files: Mapping[str, list[Entry]], new: Sequence[Entry], path: str
) -> tuple[dict[str, list[Entry]], list[Changed]]:
    """Put entries among those of the files, one for each task; return the files that change, and the values that do."""
    merged = copy.deepcopy(dict(files))
    changed: list[Changed] = []
    for entry in new:
        places = ((name, number) for name, entries in merged.items() for number in range(len(entries)))
        place = next(((name, at) for name, at in places if _task_of(merged[name][at]) == _task_of(entry)), None)
        if place is None:
            merged.setdefault(path, []).append(entry)
            continue
        name, number = place
        old = merged[name][number]
        if _without_date(old) == _without_date(entry):
            continue
        merged[name][number] = entry
        if old.get("value") != entry["value"]:
            dataset = entry["dataset"]
            changed.append(Changed(f"{dataset['task_id']} of {dataset['id']}", old.get("value"), entry["value"]))
        elif "verifyToken" in old:  # it vouches for the value
            merged[name][number] = entry | {"verifyToken": old["verifyToken"]}
    return {name: entries for name, entries in merged.items() if entries != files.get(name)}, changed


def _task_of(entry: Entry) -> tuple[Any, Any]:
    dataset = entry.get("dataset")
    return (dataset.get("id"), dataset.get("task_id")) if isinstance(dataset, dict) else (None, None)


def _without_date(entry: Entry) -> Entry:
    """Return the metadata of an entry's value."""
    return {key: value for key, value in entry.items() if key not in {"date", "verifyToken"}}
