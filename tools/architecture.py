"""Draw the house from its imports: who stands on whom. Writes the drawing of docs/architecture.md.

    python tools/architecture.py           # print it
    python tools/architecture.py --write   # put it between the markers of docs/architecture.md

A test compares the page with the imports (`tests/conformance/test_imports.py`).
"""

from __future__ import annotations

import argparse
import ast
import functools
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # of a script it is this folder
from tools import shape  # noqa: E402  (beside this script)

PAGE = ROOT / "docs" / "architecture.md"
START, END = "<!-- drawing:start -->", "<!-- drawing:end -->"
PACKAGE = ROOT / "src" / "music_evals"


def room_of(module: str) -> str:
    """Return the first part of a module's name below the package, "" for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def room_imports(modules: list[shape.Module]) -> dict[str, set[str]]:
    """Return room -> rooms that it imports, wherever an import stands."""
    known = {module.name: module for module in modules}
    rooms: dict[str, set[str]] = {room_of(module.name): set() for module in modules}
    for module in modules:
        room = room_of(module.name)
        rooms[room] |= {room_of(target) for target in shape.imports(module, known)} - {room, ""}
    rooms.pop("", None)  # the package itself offers lazily what the rooms hold
    return rooms


def levels(rooms: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the rooms from the bottom up: each stands one level above the highest that it imports."""

    @functools.cache
    def level(room: str) -> int:
        return 1 + max((level(target) for target in rooms[room]), default=-1)

    by_level: dict[int, list[str]] = {}
    for room in sorted(rooms):
        by_level.setdefault(level(room), []).append(room)
    return [by_level[number] for number in sorted(by_level)]


def draw(package: Path = PACKAGE) -> str:
    """Return the drawing: levels from the top down, then a table of the rooms."""
    modules = shape.read_modules(package)
    rooms = room_imports(modules)
    purposes = dict.fromkeys(rooms, "")
    for module in modules:
        room = room_of(module.name)
        if room and module.name.count(".") == 1:
            purposes[room] = (ast.get_docstring(module.tree) or "").partition("\n")[0]
    picture = ["  ".join(names) for names in reversed(levels(rooms))]
    rows = ["| room | what it is | imports |", "|---|---|---|"]
    for names in reversed(levels(rooms)):
        for room in names:
            targets = ", ".join(f"`{target}`" for target in sorted(rooms[room])) or "nothing of ours"
            rows.append(f"| `{room}` | {purposes[room].replace('|', ' ')} | {targets} |")
    return "\n".join(["```text", *picture, "```", "", *rows])


def main() -> None:
    """Print the drawing, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into docs/architecture.md")
    drawing = draw()
    if not parser.parse_args().write:
        print(drawing)
        return
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"{PAGE}: expected the markers {START} and {END}")
    PAGE.write_text(f"{before}{START}\n{drawing}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
