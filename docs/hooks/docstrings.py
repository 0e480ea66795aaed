"""Docstrings as Markdown: their tables and definitions keep their form, and names in backticks become links.

Docstrings are written for `help()`: a table is drawn with ``=====``, a definition is a line and an indented text. Names
in single backticks lead to where they are described, as they are seen from the place where they stand. A constant and
a field of a class may have a comment in place of a docstring.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)")
TABLE = re.compile(r"^(={3,}(?: +={3,})+\n(?:.+\n)+?)(?=\n|\Z)", re.MULTILINE)
DOCTEST = re.compile(r"^(>>> (?:.+\n)+)", re.MULTILINE)
CODE = re.compile(r"(^ *>>>(?:.+\n?)*|^```.*?^```$)", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^\w.*\n-{3,}$", re.MULTILINE)
DEFINITION = re.compile(r"(?:(?<=\n\n)|(?<=\A))(\S.*)\n    (?=\S)")
NEXT_DEFINITION = re.compile(r"^( {4}.*)\n(?=\S.*\n {4}\S)", re.MULTILINE)


class Markdown(griffe.Extension):
    """Rewrites all docstrings of the package, once all of it is known."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go over the package."""
        self._visit(pkg)

    def _visit(self, obj: griffe.Object) -> None:
        is_field = isinstance(obj, griffe.Attribute) and isinstance(obj.parent, griffe.Class) and bool(obj.annotation)
        if obj.is_attribute and not obj.docstring and (is_field or obj.name in (obj.module.exports or ())):
            obj.docstring = _of_comment(obj)
        if obj.is_class and obj.docstring:
            obj.docstring.value = _with_options(obj, obj.docstring.value)
        if obj.docstring:
            text = TABLE.sub(_table, obj.docstring.value + "\n")
            text = _above_sections(text) if obj.is_module else text
            parts = CODE.split(text)  # every second one is code
            parts[::2] = [NAME.sub(lambda found: _linked(obj, found), part) for part in parts[::2]]
            obj.docstring.value = "".join(parts).rstrip()
        for member in obj.members.values():
            if not member.is_alias:
                self._visit(member)  # type: ignore[arg-type]


def _of_comment(obj: griffe.Object) -> griffe.Docstring | None:
    """Return the comment behind a constant, or a field of a class, as its docstring."""
    _, hash_, comment = obj.source.partition("\n")[0].partition("  # ")
    is_text = hash_ and not comment.startswith(("noqa", "type:", "fmt:", "pragma"))
    return griffe.Docstring(comment[:1].upper() + comment[1:] + ".", parent=obj) if is_text else None


def _with_options(obj: griffe.Object, text: str) -> str:
    """Return the docstring of settings with those options among the parameters that it does not describe itself."""
    missing = ""
    for name, member in obj.members.items():
        call = str(getattr(member, "value", ""))
        if not call.startswith("option(") or re.search(rf"^(?:.*, )?{name}\b", text, re.MULTILINE):
            continue
        body = ast.parse(call, mode="eval").body
        default, shown = body.args[:2] if isinstance(body, ast.Call) else (body, body)
        if isinstance(shown, ast.Constant) and isinstance(shown.value, str):
            words = re.sub(r"%\(default\)\w", ast.unparse(default), shown.value).replace("%%", "%")
            # the text of what is True by default is that of its flag, which says the opposite
            off = "False: " if isinstance(default, ast.Constant) and default.value is True else ""
            missing += f"{name}\n    {off}{words[:1].upper() + words[1:]}.\n"
    head, rule, rest = text.partition("Parameters\n----------\n")
    return head + rule + missing + rest if rule else text


def _table(found: re.Match[str]) -> str:
    """Write a table as Markdown does: a line that leaves a cell empty goes on with the row above it."""
    rule, *lines = found[0].rstrip().splitlines()
    starts = [column.start() for column in re.finditer("=+", rule)]
    columns = [slice(*ends) for ends in zip(starts, [*starts[1:], None], strict=True)]
    rows: list[list[str]] = []
    for line in lines:
        cells = [line[column].strip().replace("|", "\\|") for column in columns]
        if line.startswith("==="):
            continue
        if rows and "" in cells:
            rows[-1] = [" ".join(filter(None, pair)) for pair in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    if sum(line.startswith("===") for line in lines) < 2:
        rows.insert(0, [""] * len(columns))  # no line of heads
    rows.insert(1, ["---"] * len(columns))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def _above_sections(text: str) -> str:
    """Write definitions and examples as Markdown does; the sections of a docstring have forms of their own."""
    section = SECTION.search(text)
    end = section.start() if section else len(text)
    free = DOCTEST.sub(r"```pycon\n\1```\n", NEXT_DEFINITION.sub(r"\1\n\n", text[:end]))
    return DEFINITION.sub(r"\1\n:   ", free) + text[end:]


def _linked(obj: griffe.Object, found: re.Match[str]) -> str:
    for place in (obj, obj.package):
        target = _resolved(place, found[1])
        if target and target.startswith(f"{obj.package.path}."):
            return f'<autoref optional identifier="{target}"><code>{found[1]}</code></autoref>'
    return found[0]


def _resolved(obj: griffe.Object, name: str) -> str | None:
    """Return the full path of a name as it is seen from an object, where there is such a thing."""
    first, _, rest = name.removeprefix(f"{obj.package.path}.").partition(".")
    try:
        target: griffe.Object = obj.modules_collection[obj.resolve(first)]
        path: str = (target[rest] if rest else target).canonical_path
    except (griffe.NameResolutionError, griffe.AliasResolutionError, KeyError):
        return None
    return path
