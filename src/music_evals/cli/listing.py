"""The verb ``list``: all names, by the catalogue, the cards of the repository folders and the settings of tasks."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.benchmark.formats import plain
from music_evals.cli.console import to_stdout
from music_evals.cli.options import add_verb
from music_evals.errors import UnreadableFileError
from music_evals.files import check_no_pointer_in, parse_json

if TYPE_CHECKING:
    from music_evals.metrics.catalogue import Metric

_HELP = """\
List what there is to name: the metrics, data sets and models of this package and of the current folder, and the tasks.

Every name that is listed is found from any folder. --json has everything that is known, `path` and `settings` too.
"""

_EXAMPLES = """\
examples:
  music-evals list metrics --task preservation
  music-evals list datasets
  music-evals list models --json
  music-evals list tasks --task inpainting --json
"""

VERBS = {
    "inpainting": "inpainting",
    "preservation": "preserve",
    "lyrics": "lyrics",
    "descriptions": "describe",
    "discrepancy": "discrepancy",
    "lyric_writing": "write-lyrics",
    "style-transfer": "style-transfer",
}
"""Task -> its verb; that of any other is the name of the task, with hyphens."""

_TASK_OF_TAG = {"inpainting": "inpainting", "music-editing": "preservation"}
"""Tag on the card of a module that gives several scores -> its task."""

Row = dict[str, Any]


def add(verbs: Any) -> None:
    """Add the verb ``list``."""
    verb = add_verb(verbs, "list", _run, "list metrics, data sets, models and tasks", _HELP, _EXAMPLES)
    verb.add_argument("what", choices=list(_LISTS), help="what is listed")
    tasks = [*VERBS, "edits"]  # which judges nothing itself, but has scores
    verb.add_argument("--task", choices=tasks, metavar="TASK", help=f"of this task only: {', '.join(tasks)}")
    verb.add_argument("--json", action="store_true", help="print everything that is known as JSON")
    verb.set_defaults(verbs=verbs.choices)


def _run(options: argparse.Namespace) -> int:
    listed = [
        (row, line)
        for row, line in _LISTS[options.what](options.verbs)
        if options.task in {None, row["task"]} or options.task in row["tasks"]
    ]
    if options.json:
        text = json.dumps(plain([row for row, _ in listed]), indent=2, ensure_ascii=False, allow_nan=False)
    else:
        lines = [line for _, line in listed]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in lines)
        text = "\n".join(padded)
    with to_stdout():
        print(text)
    return 0


def _metrics(_: Any) -> Iterator[tuple[Row, list[str]]]:
    """Yield the scores of the catalogue in its order, then the modules that give several of them."""
    from music_evals.metrics.catalogue import CATALOGUE
    from music_evals.repositories import METRICS, folders

    cards = {name: (folder, _head(folder)) for name, folder in folders(METRICS).items()}
    rows: list[Row] = []
    for metric in CATALOGUE.values():
        folder, head = cards.pop(metric.name, (None, {}))
        rows.append(_score(metric) | {"description": _description(head), "path": _absolute(folder)})
    for name, (folder, head) in cards.items():
        tasks = [task for tag, task in _TASK_OF_TAG.items() if tag in head.get("tags", ())]
        about = {"name": name, "title": head.get("title", name), "task": tasks[0] if tasks else None, "tasks": tasks}
        rows.append(about | {"facet": "several", "description": _description(head), "path": _absolute(folder)})
    for row in rows:
        span = f"{row['low']:.4g} to {row['high']:.4g}" if "low" in row else ""
        better = str(row.get("better", ""))
        better = {"zero": "nearer to 0", "none": "as the reference"}.get(better, better)
        module = "module" if row["path"] else ""  # what `evaluate.load` loads
        title = f"{row['facet']}: {row['title']}"
        yield row, [row["name"], row["task"] or "", title, span, better, row.get("unit", ""), module]


def _score(metric: Metric) -> Row:
    fields = {"name", "title", "task", "facet", "low", "high", "unit", "kind", "paper", "features", "chance"}
    facts = {key: value for key, value in dataclasses.asdict(metric).items() if key in fields}
    tasks = ["lyrics", "lyric_writing"] if metric.task == "lyrics" else [metric.task]
    return facts | {"better": metric.direction, "tasks": tasks}


def _datasets(_: Any) -> Iterator[tuple[Row, list[str]]]:
    from music_evals.repositories import DATASETS, folders

    for name, folder in folders(DATASETS).items():
        head, sizes = _head(folder), _sizes(folder)
        configs: list[Row] = [
            {
                "name": str(config["config_name"]),
                "default": bool(config.get("default", False)),
                "splits": [
                    {"name": str(file["split"]), "rows": sizes.get(f"{config['config_name']}/{file['split']}")}
                    for file in config.get("data_files", ())
                ],
            }
            for config in head.get("configs", ())
        ]
        tasks, licence = _tasks_of(folder), _licence(head)
        about = {"name": name, "title": head.get("pretty_name", name), "task": tasks[0] if tasks else None}
        row = about | {"tasks": tasks, "licence": licence, "configs": configs, "path": _absolute(folder)}
        shown = []
        for config in configs:
            splits = (f"{s['name']} {s['rows']:,}" if s["rows"] is not None else s["name"] for s in config["splits"])
            shown.append(f"{config['name']} ({', '.join(splits)})")
        yield row, [name, row["title"], "; ".join(shown), licence or ""]


def _sizes(folder: Path) -> dict[str, int]:
    """Return ``config/split`` -> rows, as the manifest of a data set has them."""
    path = folder / "manifest.json"
    if not path.is_file():
        return {}
    sizes: dict[str, int] = {}
    try:
        for file, facts in json.loads(path.read_text(encoding="utf-8"))["files"].items():
            place = "/".join(file.removeprefix("data/").split("-")[0].split("/")[:2])
            sizes[place] = sizes.get(place, 0) + int(facts["rows"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableFileError(f"{path} is no manifest of a data set ({error}); build the data set again") from error
    return sizes


def _tasks_of(folder: Path) -> list[str]:
    """Return the tasks whose metrics a data set declares in eval.yaml, as ``<config>_<split>_<metric>``."""
    from music_evals.hub.heads import read_yaml
    from music_evals.metrics.catalogue import CATALOGUE

    path = folder / "eval.yaml"
    if not path.is_file():
        return []
    declared = read_yaml(path.read_text(encoding="utf-8"), str(path))
    tasks = []
    for task in declared.get("tasks", ()):
        name = str(task["id"]).removeprefix(f"{task['config']}_{task['split']}_")
        if name in CATALOGUE:
            tasks += [_score(CATALOGUE[name])["task"]]
    return list(dict.fromkeys(tasks))


def _models(_: Any) -> Iterator[tuple[Row, list[str]]]:
    """Yield the models, and each variant that lies in a folder of its own."""
    from music_evals.protocols import EDITORS, INPAINTERS, STYLE_TRANSFERS, TAGGERS, TUNED_WRITERS
    from music_evals.repositories import MODELS, folders

    tasks = {
        "inpainting": INPAINTERS,
        "descriptions": TAGGERS,
        "style-transfer": STYLE_TRANSFERS,
        "lyric_writing": TUNED_WRITERS,
        "edit": EDITORS,
    }
    kinds = {kind: task for task, known in tasks.items() for kind in known}
    configs = (
        (name, folder, config)
        for name, folder in folders(MODELS).items()
        for config in sorted(folder.glob("**/config.json"))
    )
    for name, folder, config in configs:
        place = config.parent
        inner = place.relative_to(folder).as_posix()
        head = _head(place) or _head(folder)
        content = parse_json(config.read_bytes(), str(config))
        if not isinstance(content, dict):
            raise UnreadableFileError(f"{config}: expected a JSON object")
        kind = content.get("model_type")
        weights, recipe = place / "model.safetensors", place / "train.yaml"
        task = kinds.get(str(kind))
        row = {
            "name": name if inner == "." else f"{name}/{inner}",
            "model_type": kind,
            "task": task,
            "tasks": [task] if task else [],
            "status": head.get("status", "trained" if weights.is_file() else "untrained"),
            "parameters": _parameters(weights) if weights.is_file() else None,
            "bytes": weights.stat().st_size if weights.is_file() else None,
            "licence": _licence(head),
            "recipe": _absolute(recipe) if recipe.is_file() else None,
            "path": _absolute(place),
        }
        size = "" if row["parameters"] is None else f"{row['parameters'] / 1e6:.2f} M parameters"
        yield row, [row["name"], task or "", size, row["status"], row["licence"] or ""]


def _parameters(weights: Path) -> int:
    """Return how many numbers a file of weights holds: its head says it, no network is built."""
    check_no_pointer_in(weights)
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            head = json.loads(file.read(length))
            return sum(math.prod(held["shape"]) for name, held in head.items() if name != "__metadata__")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableFileError(f"{weights} is no safetensors file ({error})") from error


def _tasks(verbs: Mapping[str, argparse.ArgumentParser]) -> Iterator[tuple[Row, list[str]]]:
    from music_evals.benchmark.run import settings_of, task_places
    from music_evals.metrics.catalogue import CATALOGUE

    runs = task_places()
    names = VERBS | {task: task.replace("_", "-") for task in runs.keys() - VERBS}
    for task, name in ((task, name) for task, name in names.items() if task in runs and name in verbs):
        verb = verbs[name]
        verb.complete()  # type: ignore[attr-defined]  # of `Parser`
        flags = {action.dest: action.option_strings[-1] for action in verb._actions if action.option_strings}
        settings = []
        for field in (field for field in dataclasses.fields(settings_of(task)) if field.init):
            default = None if field.default is dataclasses.MISSING else field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            required = field.default is field.default_factory is dataclasses.MISSING
            about = {"name": field.name, "option": flags.get(field.name), "type": str(field.type)}
            settings.append(about | {"required": required, "default": default})
        row: Row = {
            "name": task,
            "verb": f"music-evals {name}",
            "what": (verb.description or "").partition("\n\n")[0].replace("\n", " "),
            "task": task,
            "tasks": [task],
            "metrics": [name for name, metric in CATALOGUE.items() if task in _score(metric)["tasks"]],
            "settings": settings,
        }
        yield row, [task, row["verb"], row["what"]]


def _head(folder: Path) -> Row:
    """Return the YAML of a folder's card; empty if it has no card."""
    from music_evals.hub.heads import read_head

    card = folder / "README.md"
    return read_head(card.read_text(encoding="utf-8")) if card.is_file() else {}


def _description(head: Mapping[str, Any]) -> str | None:
    return " ".join(str(head["description"]).split()) if "description" in head else None


def _licence(head: Mapping[str, Any]) -> str | None:
    licence = head.get("license_name") or head.get("license")
    return None if licence is None else str(licence)


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())


_LISTS: dict[str, Callable[[Any], Iterator[tuple[Row, list[str]]]]] = {
    "metrics": _metrics,
    "datasets": _datasets,
    "models": _models,
    "tasks": _tasks,
}
"""What is listed -> its rows, each with the cells of its line in the table."""
