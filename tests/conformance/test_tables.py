"""One module writes and reads CSV: a second writer would forget what the first one guards against."""

from __future__ import annotations

import ast

from tests.conformance.rules import SOURCE, place, tree_of

HOME = SOURCE / "csv_files.py"


def test_csv_is_written_and_read_in_one_place() -> None:
    found = [
        f"{place(path)}:{node.lineno}"
        for path in sorted({*SOURCE.rglob("*.py")} - {HOME})
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Import) and any(alias.name == "csv" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "csv")
        or (isinstance(node, ast.Attribute) and node.attr in {"to_csv", "read_csv", "savetxt"})
    ]
    assert found == []
