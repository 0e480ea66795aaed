"""A metric as its page shows it: the module, its card, and what its scores mean."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from pathlib import Path
from typing import Any

from music_evals.annotations import VOCABULARY_SIZE
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.metrics.catalogue import metric_of
from music_evals.ui.widgets.bars import Mark, Range
from music_evals.ui.widgets.score_bars import why_no_chance

__all__ = ["PageMetric", "load_card", "load_metric", "meaning_of"]


@dataclasses.dataclass(frozen=True)
class PageMetric:
    """A metric as a page shows it.

    Parameters
    ----------
    name
        Of the module, e.g. ``"note_f1"``.
    module
        Class of the evaluate module.
    card
        YAML of the card.
    text
        The card below the YAML.

    """

    name: str
    module: Any
    card: dict[str, Any]
    text: str

    def section(self, heading: str) -> str:
        """Return a section of the card without its heading; empty where the card has no such section."""
        match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", self.text, flags=re.DOTALL | re.MULTILINE)
        return match[1].strip() if match else ""

    @property
    def kind(self) -> str:
        """What it judges: ``"edits"`` of music, ``"contexts"`` of notes, ``"numbers"``, ``"lyrics"`` or ``"tags"``."""
        return str(self.module.kind)


def load_metric(name: str, app_file: str | os.PathLike[str]) -> PageMetric:
    """Load script and card that lie beside an `app.py`.

    Raises
    ------
    NoDataError, InvalidInputError
        As `load_card`.

    """
    import evaluate

    folder = Path(app_file).resolve().parent
    card, text = load_card(folder)
    return PageMetric(name, type(evaluate.load(str(folder / f"{name}.py"))), card, text)


def load_card(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Return the YAML and the text of a card, `README.md` in a metric's folder.

    Raises
    ------
    NoDataError
        There is no card.
    InvalidInputError
        It has no YAML between two lines of three hyphens.

    """
    import yaml

    path = Path(folder) / "README.md"
    if not path.is_file():
        msg = f"{path}: no such card; a metric's folder holds its README.md beside app.py"
        raise NoDataError(msg)
    match = re.match(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    if match is None:
        msg = f"{path}: expected YAML between two lines of ---, then the text"
        raise InvalidInputError(msg)
    return yaml.safe_load(match[1]), match[2].strip()


def meaning_of(score: str, *, entrance: str = "", variant: str = "") -> tuple[Range, tuple[Mark, ...]]:
    """Return the range of a score and the values that give it a meaning.

    Markers are what the library knows: the value of a pair of equals where that is a property of the metric, the mean
    over unrelated pieces where it was measured, and for a likelihood the model that knows nothing.

    Parameters
    ----------
    score
        Name of a score of any module.
    entrance
        What was compared, ``"audio"`` or ``"symbolic"``; empty where the score is of no pair of music.
    variant
        Which formulas. The mean over unrelated pieces was measured on recordings under the corrected ones, and is a
        marker for these alone.

    Raises
    ------
    UnknownNameError
        No module has such a score.

    """
    metric = metric_of(score)
    span = Range(metric.low, metric.high, metric.direction)
    if score == "inpainting_nll":
        return span, (Mark("all tokens equally likely", math.log(VOCABULARY_SIZE)),)
    if metric.task == "inpainting":
        return span, (Mark("the true middle", metric.best),)
    if metric.task != "preservation":
        return span, ()
    unrelated = () if why_no_chance(entrance, variant) else (Mark("unrelated pairs, mean", metric.chance),)
    return span, (Mark("identical pair", metric.best), *unrelated)
