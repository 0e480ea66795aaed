"""Each of the sixteen requirements of the platform has tests by its number, and a section of the documentation."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "tasks" / "caimap.md"
NUMBERS = range(1, 17)


def marked_by_number() -> dict[int, list[str]]:
    """Return requirement -> the tests that are marked with it."""
    found = defaultdict(list)
    for path in sorted(HERE.glob("test_*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for mark in getattr(function, "decorator_list", []):
                if ast.unparse(mark).startswith("pytest.mark.requirement("):
                    assert function.name.startswith("test_")
                    found[int(re.fullmatch(r".*\(number=(\d+)\)", ast.unparse(mark))[1])].append(function.name)
    return found


def test_each_requirement_has_a_test_by_its_number() -> None:
    found = marked_by_number()
    assert sorted(found) == list(NUMBERS), sorted(set(NUMBERS) ^ set(found))


def test_each_requirement_has_a_section_that_says_something() -> None:
    text = PAGE.read_text(encoding="utf-8")
    sections = re.findall(r"^### Requirement (\d+): .+\n\n(.+)", text, flags=re.MULTILINE)
    assert [int(number) for number, _ in sections] == list(NUMBERS)
    assert all(len(first) > 40 for _, first in sections)
