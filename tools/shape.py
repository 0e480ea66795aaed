"""Measure the house: its size, its names, its circles of imports. `make check` fails where a limit is exceeded.

    python tools/shape.py                      # a table: baseline, now, limit, target
    python tools/shape.py --list banned_names  # where they are
    python tools/shape.py --lower              # write what is measured now as the new limits, where that is lower

`shape.toml` holds the numbers. A limit only ever falls.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CONFIG = Path(__file__).with_name("shape.toml")
PACKAGE = "music_evals"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
NAMING = {ast.arg: "arg", ast.alias: "asname", ast.MatchMapping: "rest"}  # node -> field of the name that it gives
NAMING |= dict.fromkeys((*FUNCTIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar), "name")


class Module(NamedTuple):
    """A module: its path below the package, its dotted name, its text and its syntax tree."""

    path: str
    name: str
    text: str
    tree: ast.Module


def read_modules(package: Path) -> list[Module]:
    """Read all modules of a package."""
    modules = []
    for path in sorted(package.rglob("*.py")):
        text, place = path.read_text(encoding="utf-8"), path.relative_to(package)
        parts = [package.name, *place.with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(place.as_posix(), name, text, ast.parse(text)))
    return modules


def code_lines(module: Module) -> int:
    """Count the lines that hold code: neither blank, nor a comment alone, nor a docstring."""
    with_code: set[int] = set()
    lines = iter(module.text.splitlines(keepends=True))
    for token in tokenize.generate_tokens(lambda: next(lines, "")):
        if token.type not in NOT_CODE:
            with_code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            with_code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(with_code)


def long_functions(module: Module, most: int) -> Iterator[str]:
    """Yield the functions of more than `most` lines, their docstrings not counted."""
    for node in ast.walk(module.tree):
        if isinstance(node, FUNCTIONS):
            n_lines = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                n_lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            if n_lines > most:
                yield f"{module.path}: {node.name} ({n_lines} lines)"


def assigned_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a module gives to things, with their lines."""
    for node in ast.walk(tree):
        name = getattr(node, NAMING.get(type(node), ""), None)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.id if isinstance(node, ast.Name) else node.attr
        if name:
            yield name, getattr(node, "lineno", 0)


def imports(module: Module, known: Mapping[str, Any]) -> set[str]:
    """Return the modules of the package that a module imports, inside functions too, but not for type checkers."""
    package = module.name if module.path.endswith("__init__.py") else module.name.rpartition(".")[0]
    targets: set[str] = set()
    nodes: list[ast.AST] = [module.tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes += node.orelse
            continue
        if isinstance(node, ast.Import):
            targets.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            targets.update(name if (name := f"{base}.{alias.name}") in known else base for alias in node.names)
        else:
            nodes += ast.iter_child_nodes(node)
    return (targets & known.keys()) - {module.name}


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that all import each other, directly or not."""
    reached: dict[str, set[str]] = {}
    for name in graph:
        reached[name], waiting = set(), [name]
        while waiting:
            new = graph[waiting.pop()] - reached[name]
            reached[name] |= new
            waiting += new
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted(sorted(group) for group in groups if group)


def measure(package: Path, config: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Return the measures of a package, and for each that counts offenders where they are."""
    modules, exceptions = read_modules(package), config["exceptions"]
    names, banned = {module.name: module for module in modules}, set(config["banned"])
    lines = sum(len(module.text.splitlines()) for module in modules)
    n_functions = sum(isinstance(node, FUNCTIONS) for module in modules for node in ast.walk(module.tree))
    folders = Counter(str(Path(module.path).parent) for module in modules if not module.path.endswith("__init__.py"))
    offenders: dict[str, list[str]] = {
        "long_functions": [text for module in modules for text in long_functions(module, config["most_lines"])],
        "banned_names": [
            f"{module.path}: {name} (line {line})"
            for module in modules
            for name, line in assigned_names(module.tree)
            if name.strip("_").lower() in banned
        ],
        "underscore_modules": [
            module.path for module in modules if re.match(r"_(?!_)", module.path.rpartition("/")[2])
        ],
        "crowded_folders": [
            f"{folder} ({n} modules)"
            for folder, n in sorted(folders.items())
            if n > config["most_modules"] and folder not in config["large_folders"]
        ],
        "circles": [
            " <-> ".join(group) for group in circles({name: imports(module, names) for name, module in names.items()})
        ],
    }
    for kind, texts in offenders.items():
        offenders[kind] = [text for text in texts if text.partition(" (")[0] not in exceptions]
    return {
        "lines": lines,
        "code_lines": sum(map(code_lines, modules)),
        "modules": len(modules),
        "functions_per_1000_lines": round(1000 * n_functions / max(lines, 1), 1),
        **{kind: len(texts) for kind, texts in offenders.items()},
    }, offenders


def lowered(text: str, section: str, values: Mapping[str, float]) -> str:
    """Return the text of a TOML file with smaller numbers in one of its sections, and all else as it was."""
    lines, here = [], ""
    for line in text.splitlines(keepends=True):
        here = match[1] if (match := re.match(r"\[([\w.]+)\]", line)) else here
        name, _, number = line.partition(" = ")
        is_lower = here == section and name in values and values[name] < float(number.partition("#")[0])
        lines.append(f"{name} = {values[name]}\n" if is_lower else line)
    return "".join(lines)


def table(now: Mapping[str, float], config: Mapping[str, Any]) -> str:
    """Return baseline, now, limit and target of each measure, and a mark where the limit is exceeded."""
    columns = [config["baseline"], now, config["limit"], config["target"]]
    rows = [["", "baseline", "now", "limit", "target"]]
    rows += [[name, *(f"{column[name]:,}" if name in column else "" for column in columns)] for name in now]
    over = {name for name, value in now.items() if value > config["limit"].get(name, math.inf)}
    marks = ["", *("  more than the limit" if name in over else "" for name in now)]
    lines = (f"{row[0]:34}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in rows)
    return "\n".join(line + mark for line, mark in zip(lines, marks, strict=True))


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or where offenders are, or lower the limits; 1 where a limit is exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--package", type=Path, default=ROOT / "src" / PACKAGE, help="folder of the package")
    parser.add_argument("--config", type=Path, default=CONFIG, help="file of the limits (default: %(default)s)")
    parser.add_argument("--list", metavar="MEASURE", help="print where the offenders of a measure are")
    parser.add_argument("--lower", action="store_true", help="write what is measured now as the new limits")
    options = parser.parse_args(arguments)
    text = options.config.read_text(encoding="utf-8")
    config = tomllib.loads(text)
    now, offenders = measure(options.package, config)
    if options.list:
        print("\n".join(offenders[options.list]))
        return 0
    print(table(now, config))
    if options.lower:
        options.config.write_text(lowered(text, "limit", now), encoding="utf-8")
        return 0
    exceeded = [name for name, value in now.items() if value > config["limit"].get(name, math.inf)]
    print("".join(f"python tools/shape.py --list {name}\n" for name in exceeded if name in offenders), end="")
    return bool(exceeded)


if __name__ == "__main__":
    sys.exit(main())
