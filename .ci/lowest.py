"""Print the core's dependencies at their lowest declared versions, one a line: what `.ci/run lowest` installs."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def lowest(requirement: str) -> str:
    """Return ``name==X`` for ``name>=X``; a core dependency that declares anything else is refused."""
    found = re.fullmatch(r"([\w.-]+(?:\[[\w,]+\])?)>=([\w.]+)", requirement)
    if found is None:
        raise SystemExit(
            f"pyproject.toml: a dependency of the core declares its lowest version as name>=X: {requirement}"
        )
    return "{}=={}".format(*found.groups())


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sys.stdout.writelines(f"{lowest(requirement)}\n" for requirement in project["dependencies"])
