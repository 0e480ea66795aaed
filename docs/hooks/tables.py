"""What pages take from elsewhere, where they hold `<!-- insert: ... -->`; nothing of it is written twice.

- ``metrics BLOCK [FACETS]``: a block of the catalogue as a table, or its rows of some facets, such as
  ``metrics AUXILIARY rhythm melody``;
- ``api FILES``: modules of the package that the page does not name itself, such as ``api editing/*.py``;
- ``cards FOLDER``: the cards of a folder as a table, such as ``cards datasets_scripts``;
- ``section FILE HEADING``: a section of a page at the root of the repository;
- ``options TASK``: the options of a task as a table, such as ``options preservation``;
- ``help``: what each command says of itself;
- ``glossary``: the words of the project, ``tools/glossary.csv``;
- ``definitions``: the metrics whose definition is not the first;
- ``moved`` and ``renamed``: old names that work for one release, of modules, and of functions, classes and arguments.
"""

from __future__ import annotations

import argparse
import ast
import csv
import functools
import importlib
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.utils.meta import get_data

import music_evals
from music_evals import deprecation
from music_evals.benchmark.run import settings_of
from music_evals.cli.verbs import build_parser
from music_evals.metrics import catalogue
from music_evals.options import MISSING, options_of

ROOT = Path(__file__).resolve().parents[2]
WIDTH = "100"
"""Columns of the help of the commands."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in what is to be inserted."""

    def inserted(found: re.Match[str]) -> str:
        name, *words = found[1].split()
        if name == "api":
            return api(*words, page=markdown)
        if name not in INSERTED:
            raise PluginError(f"{found[0]}: this is not among what can be inserted")
        return INSERTED[name](*words)

    return re.sub(r"^<!-- insert: (.*?) -->$", inserted, markdown, flags=re.MULTILINE)


def api(files: str, *, page: str) -> str:
    """Return the places of all public modules of these files that the page has no place for."""
    paths = (path.relative_to(ROOT / "src").with_suffix("") for path in (ROOT / "src" / "music_evals").glob(files))
    names = sorted(".".join(path.parts) for path in paths if path.name[0] != "_")
    return "\n\n".join(f"::: {name}" for name in names if f"::: {name}\n" not in page)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def glossary() -> str:
    """Return the words of the project: term, what it was called before, definition."""
    with (ROOT / "tools" / "glossary.csv").open(encoding="utf-8", newline="") as file:
        rows = [[row["term"], row["before"], row["definition"]] for row in csv.DictReader(file)]
    return table(["term", "before", "definition"], sorted(rows, key=lambda row: row[0].lower()))


@functools.cache
def card(path: str) -> tuple[str, str, dict[str, Any]]:
    """Return title, whole sentences of the first paragraph without links, and YAML of a card."""
    text, head = get_data((ROOT / path / "README.md").read_text(encoding="utf-8"))
    _, title, body = re.split(r"^# (.*)\n", text, maxsplit=1, flags=re.MULTILINE)
    first = next((part for part in body.split("\n\n") if re.match(r"[\w*]", part.strip())), "")
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    return title, words[: words.rfind(".") + 1], dict(head)


@functools.cache
def paper(key: str) -> str:
    """Return a link to a paper, by its BibTeX entry on the cards of the metrics."""
    if not key:
        return "ours"
    texts = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "metrics").glob("*/README.md")))
    entry = next(
        found[0] for text in texts if (found := re.search(rf"@\w+{{{key},.*?^}}", text, re.DOTALL | re.MULTILINE))
    )
    fields = dict(re.findall(r"^ *(\w+) *= *{(.*?)}?,?$", entry, re.MULTILINE))
    label = f"{fields['author'].partition(',')[0]} et al., {fields['year']}"
    if "doi" in fields:
        return f"[{label}](https://doi.org/{fields['doi']})"
    return f"[{label}](https://arxiv.org/abs/{fields['eprint']})" if "eprint" in fields else label


def span(metric: catalogue.Metric) -> str:
    """Return the range in words: `0 to 0.693`."""

    def end(value: float) -> str:
        return f"{'-' if value < 0 else ''}∞" if math.isinf(value) else f"{value:.3f}".rstrip("0").rstrip(".")

    return f"{end(metric.low)} to {end(metric.high)}"


BETTER = {"higher": "higher", "lower": "lower", "zero": "nearer to 0", "none": "compare with the reference's"}


def metrics(block: str, *facets: str) -> str:
    """Return a block of the catalogue, or its rows of some facets; names with a card of their own lead there."""
    rows = []
    for name, metric in getattr(catalogue, block).items():
        if facets and metric.facet not in facets:
            continue
        has_card = (ROOT / "metrics" / name).is_dir()
        description = str(card(f"metrics/{name}")[2]["description"]) if has_card else metric.description
        if not has_card and not math.isnan(metric.chance):
            description += f" Unrelated music scores about {metric.chance:.2f}."
        what = " ".join(description.split()) or metric.title
        unit = metric.unit + (", of a set" if metric.kind == "set" else "")
        rows.append([f"`{name}`", what, span(metric), BETTER[metric.direction], unit, paper(metric.paper)])
    return table(["name", "what it measures", "range", "better", "unit", "paper"], rows)


def cards(folder: str) -> str:
    """Return the cards of a folder, each with what matters most of it."""
    rows = []
    for path in sorted((ROOT / folder).glob("**/README.md")):
        name = path.parent.relative_to(ROOT)
        title, first, head = card(str(name))
        what = title if folder == "benchmarks" else first  # below it stands the command
        rows.append([f"[`{name.relative_to(folder)}`](/{name}/README.md)", what, *COLUMNS[folder][1](head)])
    return table(["name", "what it is", *COLUMNS[folder][0]], rows)


def _of_dataset(head: dict[str, Any]) -> list[str]:
    configs = ", ".join(f"`{config['config_name']}`" for config in head["configs"])
    licence = str(head.get("license_name", head["license"]))
    return [configs, f"[{licence}]({head['license_link']})" if "license_link" in head else licence]


def _of_model(head: dict[str, Any]) -> list[str]:
    return [", ".join(f"`{name}`" for name in head.get("datasets", [])), head.get("status", "with our weights")]


COLUMNS: dict[str, tuple[list[str], Any]] = {
    "datasets_scripts": (["configs", "licence"], _of_dataset),
    "models": (["data", "weights"], _of_model),
    "spaces": ([], lambda _: []),
    "benchmarks": ([], lambda _: []),
}


def section(name: str, *words: str) -> str:
    """Return a section of a page at the root, without its heading, whose words are given."""
    heading = " ".join(words)
    text = (ROOT / name).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if not found:
        raise PluginError(f"{name} has no section {heading!r}")
    return re.sub(r"(?<=\])\((?!\w+:|#|/)", "(/", found[1].strip())  # from the root of the repository


def options(task: str) -> str:
    """Return the options of a task: flag, keyword of `music_evals.run`, default and what they do."""
    rows = []
    for option in options_of(settings_of(task)):
        default = "" if option.default in {MISSING, None, ()} else f"`{option.default}`"
        shown = [f"`{option.flag}`", f"`{option.name}`", default]
        text = re.sub(r" ?\(default: %\(default\)[sg]\)", "", option.text)
        text = f"(keyword `False`) {text}" if option.default is True else text  # as its flag, which says the opposite
        rows.append([*shown, text.replace("%(default)s", str(option.default))])
    return table(["option", "keyword", "default", "what it does"], rows)


def definitions() -> str:
    """Return the metrics whose definition is not the first."""
    changed = [metric for metric in catalogue.CATALOGUE.values() if metric.definition > 1]
    return table(["metric", "definition"], [[f"`{each.name}`", str(each.definition)] for each in changed])


def moved() -> str:
    """Return old and new names of modules that may be imported by both."""
    for package in (ROOT / "src" / "music_evals").glob("*/__init__.py"):
        importlib.import_module(f"music_evals.{package.parent.name}")
    finders = [finder for finder in sys.meta_path if isinstance(finder, deprecation.MovedModules)]
    rows = [[f"`{old}`", f"`{new}`"] for finder in finders for old, new in finder.names.items()]
    return table(["before", "now"], sorted(rows))


def renamed() -> str:
    """Return module, old name and new name of functions, classes, attributes and arguments that go by both."""
    rows = [["music_evals", *names] for names in music_evals._RENAMED.items()]
    for path in sorted((ROOT / "src").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match call:
                case ast.Call(ast.Name("module_getattr"), [_, names]):
                    rows += [[module, *row] for row in ast.literal_eval(names).items()]
                case ast.Call(ast.Name("warn_renamed"), [ast.Constant(str(old)), ast.Constant(str(new))]) if "." in old:
                    rows.append([module, old, new])
                case ast.Call(ast.Name("renamed_options"), keywords=words):
                    rows += [[module, f"{word.arg}=", f"{ast.literal_eval(word.value)}="] for word in words]
    unique = sorted(set(map(tuple, rows)))
    return table(["in", "before", "now"], [[f"`{word}`" for word in row] for row in unique])


def command_help() -> str:
    """Return the help of every verb, and of the steps of those that have steps."""
    os.environ["COLUMNS"] = WIDTH
    return "\n\n".join(
        f"{'#' * min(1 + len(words), 3)} {' '.join(words)}\n\n```text\n{parser.format_help().rstrip()}\n```"
        for words, parser in _commands(("music-evals",), build_parser())
        if len(words) > 1
    )


def _commands(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, parser
    for action in parser._actions:  # argparse has no other way to its verbs
        if isinstance(action, argparse._SubParsersAction):
            for verb, inner in action.choices.items():
                yield from _commands((*words, verb), inner)


INSERTED: dict[str, Callable[..., str]] = {
    "metrics": metrics,
    "cards": cards,
    "section": section,
    "options": options,
    "help": command_help,
    "glossary": glossary,
    "definitions": definitions,
    "moved": moved,
    "renamed": renamed,
}
