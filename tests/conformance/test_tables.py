"""One module writes and reads CSV: a second writer would forget what the first one guards against."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "music_evals"
HOME = SOURCE / "csv_files.py"


def test_csv_is_written_and_read_in_one_place() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path in sorted({*SOURCE.rglob("*.py")} - {HOME})
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(alias.name == "csv" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "csv")
        or (isinstance(node, ast.Attribute) and node.attr in {"to_csv", "read_csv", "savetxt"})
    ]
    assert found == []
