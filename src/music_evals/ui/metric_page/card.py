"""A metric as its page shows it: the module, its card, and what its scores mean."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.yaml_files import load_yaml

__all__ = ["PageMetric", "load_card", "load_metric"]


@dataclasses.dataclass(frozen=True)
class PageMetric:
    """A metric as a page shows it."""

    name: str  # of the module, e.g. ``"note_f1"``
    module: Any  # class of the evaluate module
    card: dict[str, Any]  # YAML of the card
    text: str  # the card below the YAML

    def section(self, heading: str) -> str:
        """Return a section of the card without its heading; empty where the card has no such section."""
        match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", self.text, flags=re.DOTALL | re.MULTILINE)
        return match[1].strip() if match else ""

    @property
    def kind(self) -> str:
        """What its module scores, see `hf.module.Module.kind`."""
        return str(self.module.kind)


def load_metric(name: str, app_file: str | os.PathLike[str]) -> PageMetric:
    """Load script and card that lie beside an `app.py`."""
    import evaluate

    folder = Path(app_file).resolve().parent
    card, text = load_card(folder)
    return PageMetric(name, type(evaluate.load(str(folder / f"{name}.py"))), card, text)


def load_card(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Return the YAML and the text of a card, `README.md` in a metric's folder."""
    path = Path(folder) / "README.md"
    if not path.is_file():
        raise NoDataError(f"{path}: no such card; a metric's folder holds its README.md beside app.py")
    match = re.match(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    if match is None:
        raise InvalidInputError(f"{path}: expected YAML between two lines of ---, then the text")
    return load_yaml(match[1], path), match[2].strip()
