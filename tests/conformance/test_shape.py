"""`tools/shape.py` sees what it is to see; `make check` holds the package to its limits."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from tools import shape

CONFIG = tomllib.loads(shape.CONFIG.read_text(encoding="utf-8"))


def measured(folder: Path, files: dict[str, str], **config: Any) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Measure a package of these files."""
    for name, text in files.items():
        path = folder / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return shape.measure(folder / "house", {**CONFIG, "exceptions": {}, **config})


@pytest.mark.parametrize(
    "text",
    ["found = 1\n", "def f(told): ...\n", "def _asked(): ...\n", "class One: ...\n", "a.seen = 1\n",
     "import os as kept\n", "for what in (): ...\n", "try: ...\nexcept OSError as said: ...\n",
     "match 1:\n    case [*drawn]: ...\n",
     "match 1:\n    case {**found}: ...\n", "class A:\n    told: int\n", "[1 for one in ()]\n"],
)  # fmt: skip
def test_a_banned_name_is_seen(tmp_path: Path, text: str) -> None:
    now, offenders = measured(tmp_path, {"a.py": text})
    assert now["banned_names"] == 1
    assert offenders["banned_names"][0].startswith("a.py: ")


def test_reading_a_banned_name_is_not_giving_it(tmp_path: Path) -> None:
    files = {"a.py": "'found'\nx = y.found\nf(told=1)\nfindings = founded = 2\n"}
    assert measured(tmp_path, files)[0]["banned_names"] == 0


def test_an_exception_is_left_out_with_its_reason(tmp_path: Path) -> None:
    files = {"a.py": "told = 1\n", "b.py": "told = 1\n"}
    _, offenders = measured(tmp_path, files, exceptions={"a.py: told": "a field of the records"})
    assert offenders["banned_names"] == ["b.py: told (line 1)"]


def test_a_circle_is_seen_and_imports_for_type_checkers_are_none(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "a.py": "from house import b\n",
        "b.py": "def f():\n    import house.c\n",
        "c.py": "from .a import x\n",
        "d.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.e import y\n",
        "e.py": "from house.d import z\n",
    }
    assert measured(tmp_path, files)[1]["circles"] == ["house.a <-> house.b <-> house.c"]


def test_lines_functions_folders_and_underscores_are_counted(tmp_path: Path) -> None:
    long = "def f():\n    '''One line.'''\n" + "    x = 1\n" * 60
    files = {"a.py": f"# a comment\n\n{long}", "rooms/_b.py": '"""Doc."""\n', "rooms/__init__.py": "", "rooms/c.py": ""}
    now, offenders = measured(tmp_path, files, most_modules=1)
    assert (now["lines"], now["code_lines"], now["functions_per_1000_lines"]) == (65, 61, 15.4)
    assert offenders["long_functions"] == ["a.py: f (61 lines)"]
    assert offenders["underscore_modules"] == ["rooms/_b.py"]
    assert offenders["crowded_folders"] == ["rooms (2 modules)"]
    assert measured(tmp_path, files, most_modules=1, large_folders=["rooms"])[0]["crowded_folders"] == 0


def test_limits_hold_and_only_fall(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured(tmp_path, {"a.py": "found = 1\ntold = 2\n"})
    limits = dict.fromkeys(CONFIG["limit"], 0) | {"lines": 9, "code_lines": 9}
    rows = "".join(f"{name} = {number}\n" for name, number in limits.items())
    settings = 'banned = ["found", "told"]\nmost_lines = 60\nmost_modules = 15\nlarge_folders = []\n[exceptions]\n'
    config = tmp_path / "shape.toml"
    config.write_text(f"{settings}[baseline]\n[limit] # falls\n{rows}[target]\nlines = 1\n")
    arguments = ["--package", str(tmp_path / "house"), "--config", str(config)]
    assert shape.main(arguments) == 1
    assert "python tools/shape.py --list banned_names\n" in capsys.readouterr().out
    assert shape.main([*arguments, "--lower"]) == 0
    lowered = tomllib.loads(config.read_text())
    assert lowered["limit"] == limits | {"lines": 2, "code_lines": 2}  # and none was raised
    assert lowered["target"] == {"lines": 1}
    assert shape.main([*arguments, "--list", "banned_names"]) == 0
    assert "a.py: told (line 2)" in capsys.readouterr().out
