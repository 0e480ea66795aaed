"""What the conformance tests of all windows share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def card(folder: Path) -> tuple[dict[str, Any], str]:
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert match, "README.md must begin with YAML between two lines of ---"
    return yaml.safe_load(match[1]), match[2]
