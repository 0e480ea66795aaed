"""The two files of the Hub's benchmarks, by our copy of their documented schema.

``eval.yaml`` in a dataset repository declares tasks; ``.eval_results/*.yaml`` in a model repository hold one value a
task. The Hub validates both when they are pushed. **The framework id of an eval.yaml must be on the Hub's own list,
which cannot be checked offline**, and a dataset becomes a benchmark only once it is admitted: neither is in our power.

By the custom of this house a task is called ``<config>_<split>_<metric>``.
"""

from __future__ import annotations

import copy
import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from music_evals.errors import InvalidInputError, UnreadableFileError
from music_evals.hub.model_index import Changed

__all__ = [
    "check_eval_results",
    "check_eval_yaml",
    "merge_results",
    "ranked_metrics",
    "read_eval_yaml",
    "read_results_file",
    "write_results_file",
]

_BENCHMARK_KEYS = {"name", "description", "evaluation_framework", "tasks"}
_TASK_KEYS = {"id", "config", "split", "field_spec", "solvers", "scorers"}
_ENTRY_KEYS = {"dataset", "value", "date", "source", "notes", "verifyToken"}
_DATASET_KEYS = {"id", "task_id", "revision"}
_SOURCE_KEYS = {"url", "name", "user", "org"}
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

Entry = dict[str, Any]


def check_eval_yaml(content: object, splits: Sequence[tuple[str, str]] | None = None) -> list[str]:
    """Return what is wrong with the content of an eval.yaml; an empty list if nothing is.

    Parameters
    ----------
    content
        What YAML read.
    splits
        (config, split) of the dataset; None does not check them.

    """
    if not isinstance(content, dict):
        return [f"expected a mapping with {', '.join(sorted(_BENCHMARK_KEYS))}, got {type(content).__name__}"]
    found = [f"{key}: missing, or no text" for key in ("name", "description") if not _is_text(content.get(key))]
    framework = content.get("evaluation_framework")
    if not (isinstance(framework, str) and _SLUG.fullmatch(framework)):
        found.append("evaluation_framework: expected one id, such as music_evals")
    found += _unknown("", content, _BENCHMARK_KEYS)
    tasks = content.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        return [*found, "tasks: expected a list of at least one task"]
    for number, task in enumerate(tasks):
        found += [f"tasks[{number}]{problem}" for problem in _task_problems(task, splits)]
    ids = [task["id"] for task in tasks if isinstance(task, dict) and isinstance(task.get("id"), str)]
    found += [f"task id {name!r} is there more than once" for name in sorted({i for i in ids if ids.count(i) > 1})]
    return found


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


def check_eval_results(entries: object) -> list[str]:
    """Return what is wrong with the content of a file below ``.eval_results``; an empty list if nothing is."""
    if not isinstance(entries, list):
        return [f"expected a list of entries, got {type(entries).__name__}"]
    return [f"[{number}]{problem}" for number, entry in enumerate(entries) for problem in _entry_problems(entry)]


def _entry_problems(entry: object) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield ": expected a mapping with dataset and value"
        return
    yield from _unknown("", entry, _ENTRY_KEYS)
    yield from _dataset_problems(entry.get("dataset"))
    value = entry.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        yield ".value: expected a finite number"
    date = entry.get("date")
    if date is not None and not _is_date(date):
        yield f".date: expected text such as '2026-11-20', got {date!r}"
    yield from (f".{key}: expected text" for key in ("notes", "verifyToken") if not _is_text(entry.get(key, "text")))
    yield from _source_problems(entry)


def _dataset_problems(dataset: object) -> Iterator[str]:
    if not isinstance(dataset, dict):
        yield ".dataset: missing; expected a mapping with id and task_id"
        return
    yield from _unknown(".dataset", dataset, _DATASET_KEYS)
    if not (isinstance(dataset.get("id"), str) and _REPOSITORY.fullmatch(dataset["id"])):
        yield f".dataset.id: expected a dataset on the Hub, owner/name, got {dataset.get('id')!r}"
    yield from (f".dataset.{key}: expected text" for key in ("task_id", "revision") if not _is_optional(dataset, key))


def _is_optional(dataset: Mapping[str, Any], key: str) -> bool:
    return _is_text(dataset.get(key, None if key == "task_id" else "text"))


def _source_problems(entry: Mapping[str, Any]) -> Iterator[str]:
    if "source" not in entry:
        return
    source = entry["source"]
    if not isinstance(source, dict) or not str(source.get("url", "")).startswith(("https://", "http://")):
        yield ".source: expected a mapping with url, which starts with https://"
        return
    yield from _unknown(".source", source, _SOURCE_KEYS)


def _unknown(where: str, content: Mapping[Any, Any], known: set[str]) -> list[str]:
    return [f"{where}: unknown key {key!r}; known: {', '.join(sorted(known))}" for key in content if key not in known]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_date(value: object) -> bool:
    try:
        dt.date.fromisoformat(str(value)[:10])
    except ValueError:
        return False
    return isinstance(value, str)


def read_eval_yaml(text: str, where: str, splits: Sequence[tuple[str, str]] | None = None) -> dict[str, Any]:
    """Return the content of an eval.yaml.

    Raises
    ------
    UnreadableFileError
        It is no YAML.
    InvalidInputError
        It breaks the schema; the message lists how.

    """
    content = _load(text, where)
    problems = check_eval_yaml(content, splits)
    if problems:
        msg = f"{where} breaks the schema of eval.yaml: {'; '.join(problems)}"
        raise InvalidInputError(msg)
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
    """Return the entries of a file below ``.eval_results``, whoever wrote them; an empty file has none.

    Raises
    ------
    UnreadableFileError
        It is no YAML, or no list of mappings.

    """
    entries = _load(text, where)
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        msg = f"{where} is no list of results; repair it or delete it"
        raise UnreadableFileError(msg)
    return entries


def _load(text: str, where: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        msg = f"{where} is no YAML: {error}"
        raise UnreadableFileError(msg) from error


def write_results_file(entries: Sequence[Entry], text: str = "", where: str = "the file") -> str:
    """Return the text of a file below ``.eval_results``.

    Parameters
    ----------
    entries
        All of its entries. Those that the file has already come first, in their order.
    text
        The file as it is; of what it holds, only the entries change that say something else.
    where
        Its path, for messages.

    Raises
    ------
    UnreadableFileError
        It is no list of results, or written so that an entry cannot be told from the rest.

    """
    import yaml

    old = read_results_file(text, where)
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    new = text
    try:
        if not old and root is not None:  # an empty list that is written out
            new = f"{text[: root.start_mark.index]}{_dump(list(entries), text)}{text[root.end_mark.index :].lstrip()}"
        elif len(entries) > len(old):
            new = _appended(text, root, entries[len(old) :])
        for number in reversed(range(len(old))):
            if repr(entries[number]) != repr(old[number]):
                new = _replaced(new, root.value[number], entries[number])
        done = repr(read_results_file(new, where)) == repr(list(entries))
    except UnreadableFileError:
        done = False
    if not done:
        msg = f"{where} cannot be changed without touching what others wrote; write a list whose entries start on '- '"
        raise UnreadableFileError(msg)
    return new


def _appended(text: str, root: Any, entries: Sequence[Entry]) -> str:
    """Return a file with more entries; `root` is its list, None where it has none."""
    newline = "" if not text or text.endswith("\n") else "\r\n" if "\r\n" in text else "\n"
    if root is not None and root.flow_style:
        last = root.end_mark.index - 1
        return f"{text[:last]}, {', '.join(map(_flow, entries))}{text[last:]}"
    column = 0 if root is None else root.start_mark.column
    return f"{text}{newline}{_dump(list(entries), text, column)}"


def _replaced(text: str, node: Any, entry: Entry) -> str:
    """Return a file with another entry in the place of one, up to the blank lines and remarks that follow it."""
    start, stop = node.start_mark.index, node.end_mark.index
    if node.flow_style:
        return f"{text[:start]}{_flow(entry)}{text[stop:]}"
    lines = text[start:stop].splitlines(keepends=True)
    while len(lines) > 1 and re.fullmatch(r"\s*(#.*)?\s*", lines[-1]):
        stop -= len(lines.pop())
    block = _dump(entry, text, node.start_mark.column).lstrip(" ")
    return f"{text[:start]}{block}{text[stop:]}"


def _dump(content: object, text: str, column: int = 0) -> str:
    """Return YAML in lines, indented, with the line ends of a file."""
    import yaml

    lines = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120).splitlines(keepends=True)
    block = "".join(f"{' ' * column}{line}" for line in lines)
    return block.replace("\n", "\r\n") if "\r\n" in text else block


def _flow(entry: Entry) -> str:
    """Return YAML on one line."""
    import yaml

    text: str = yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=math.inf, default_flow_style=True)
    return text.rstrip("\n")


def merge_results(
    files: Mapping[str, list[Entry]], new: Sequence[Entry], path: str
) -> tuple[dict[str, list[Entry]], list[Changed]]:
    """Put entries among those that a model has; there is one for each task of a dataset.

    Parameters
    ----------
    files
        Path -> entries of every file below ``.eval_results``.
    new
        Entries; one that says the same as the one that is there, but for its date, changes nothing.
    path
        Where entries go whose task has none yet.

    Returns
    -------
    tuple
        Path -> entries of the files that change; and the values that became others.

    """
    merged = copy.deepcopy(dict(files))
    changed: list[Changed] = []
    for entry in new:
        place = _find(merged, entry)
        if place is None:
            merged.setdefault(path, []).append(entry)
            continue
        name, number = place
        old = merged[name][number]
        if _without_date(old) == _without_date(entry):
            continue
        if old.get("value") != entry["value"]:
            dataset = entry["dataset"]
            changed.append(Changed(f"{dataset['task_id']} of {dataset['id']}", old.get("value"), entry["value"]))
            merged[name][number] = entry
        else:
            token = {key: old[key] for key in ("verifyToken",) if key in old}  # it vouches for the value
            merged[name][number] = entry | token
    return {name: entries for name, entries in merged.items() if entries != files.get(name)}, changed


def _find(files: Mapping[str, list[Entry]], entry: Entry) -> tuple[str, int] | None:
    wanted = _task_of(entry)
    for name, entries in files.items():
        for number, old in enumerate(entries):
            if _task_of(old) == wanted:
                return name, number
    return None


def _task_of(entry: Entry) -> tuple[Any, Any]:
    dataset = entry.get("dataset")
    return (dataset.get("id"), dataset.get("task_id")) if isinstance(dataset, dict) else (None, None)


def _without_date(entry: Entry) -> Entry:
    """Return what an entry says of its value."""
    return {key: value for key, value in entry.items() if key not in {"date", "verifyToken"}}
