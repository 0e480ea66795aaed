"""What listeners said: ratings out of a published table or one's own, one row a rating.

The table is CSV, JSON lines or Parquet. Its columns, some of which go by several names:

item (`item`, `item_id`, `id`), system
    What was heard. In their place `estimate` may name the file that was played, where the key of the study is at hand,
    its `pairs.csv` (`studies.pairs`): listeners of a blind study have seen nothing else.
listener (`listener`, `listener_id`)
    Who rated. Any name or number that tells listeners apart; no more should be known of them.
facet (`facet`, `question`)
    What was asked, such as ``melody``; where there is no such column it is `OVERALL`.
rating (`rating`, `score`)
    A number; higher is better.
scale
    Where given, the ends of the scale, such as ``0-100``: the rating is brought to 0..1. A question has scales in all
    its rows or in none.

No such data ships with this package.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.errors import InvalidInputError, NoDataError, PairCountError
from music_evals.pipelines.study_tables import located_at, read_rows
from music_evals.studies.pairs import StudyPair

__all__ = ["OVERALL", "Rating", "check_ratings", "read_ratings"]

OVERALL = "overall"
"""The question of a table that names none."""

NAMES: dict[str, tuple[str, ...]] = {
    "item": ("item", "item_id", "id"),
    "system": ("system",),
    "estimate": ("estimate",),
    "listener": ("listener", "listener_id"),
    "facet": ("facet", "question"),
    "rating": ("rating", "score"),
    "scale": ("scale",),
}
"""What is read -> the columns that it may stand in."""

_NUMBER = r"(-?(?:\d+(?:\.\d+)?|\.\d+))"
_SCALE = re.compile(rf"\s*{_NUMBER}\s*(?:-|\.\.|to|,|/)\s*{_NUMBER}\s*")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rating:
    """What one listener said of one stimulus: finite, higher is better; from 0 to 1 where it is `scaled`.

    Raises `InvalidInputError`: an empty name, or a rating that is no finite number.
    """

    item: str
    system: str
    listener: str
    rating: float
    facet: str = OVERALL
    scaled: bool = False

    def __post_init__(self) -> None:
        for name in ("item", "system", "listener", "facet"):
            if not getattr(self, name).strip():
                raise InvalidInputError(f"{name} is empty")
        if not math.isfinite(self.rating):
            raise InvalidInputError(f"rating must be a finite number, got {self.rating}; leave out what was not rated")


def read_ratings(
    path: str | os.PathLike[str], *, key: Sequence[StudyPair] = (), reverse: Collection[str] = ()
) -> tuple[Rating, ...]:
    """Read and check a table of ratings, by its suffix: ``.csv``, ``.jsonl`` or ``.parquet``.

    `key` are the rows of the study's `pairs.csv` (`pairs.read_pairs`), for a table that names played files; `reverse`
    are questions of which a lower rating is better, such as how much was changed.

    Raises `NoDataError` without such a file, or ratings in it; `UnreadableFileError` where it cannot be read as what
    its suffix says; `InvalidInputError` where a column is missing, a cell is wrong (the message names the row), or a
    question is reversed that nobody asked; `PairCountError` where a listener answered a question on a stimulus twice.
    """
    place = Path(path)
    rows = list(read_rows(place, table_name="ratings"))
    if not rows:
        raise NoDataError(f"{place} holds no ratings; expected one row a rating")
    columns = _columns(place, rows, blind=bool(key))
    played = {pair.estimate: pair for pair in key} | {Path(pair.estimate).name: pair for pair in key}
    ratings = []
    for number, row in enumerate(rows, start=1):
        with located_at(f"{place}, row {number}"):
            ratings.append(_rating({field: row.get(name) for field, name in columns.items()}, played, reverse))
    unasked = sorted(set(reverse) - {rating.facet for rating in ratings})
    if unasked:
        facets = ", ".join(dict.fromkeys(rating.facet for rating in ratings))
        raise InvalidInputError(f"{place}: no question {', '.join(unasked)} to reverse; it has {facets}")
    with located_at(place):
        check_ratings(ratings)
    return tuple(ratings)


def check_ratings(ratings: Sequence[Rating]) -> None:
    """Check what holds between ratings.

    Raises `NoDataError`: no ratings; `PairCountError`: a listener answered a question on a stimulus twice;
    `InvalidInputError`: a question with a scale in some rows and none in others.
    """
    if not ratings:
        raise NoDataError("no ratings; an agreement needs some")
    keys: set[tuple[str, str, str, str]] = set()
    scaled: dict[str, bool] = {}
    for number, rating in enumerate(ratings, start=1):
        key = (rating.item, rating.system, rating.listener, rating.facet)
        if key in keys:
            raise PairCountError(
                f"row {number}: listener {rating.listener!r} rated {rating.system!r} on {rating.item!r} twice "
                f"({rating.facet}); keep one rating, or their mean"
            )
        keys.add(key)
        if scaled.setdefault(rating.facet, rating.scaled) != rating.scaled:
            raise InvalidInputError(
                f"row {number}: {rating.facet!r} has a scale in some rows; give it in all or in none"
            )


def _columns(path: Path, rows: Sequence[Mapping[str, Any]], *, blind: bool) -> dict[str, str]:
    """Return the column of each thing that is there."""
    there = list(dict.fromkeys(str(name) for row in rows for name in row))
    columns = {}
    for field, names in NAMES.items():
        matching = [name for name in names if name in there]
        if len(matching) > 1:
            raise InvalidInputError(f"{path}: the columns {' and '.join(matching)} both name the {field}; keep one")
        if matching:
            columns[field] = matching[0]
    needed = ["listener", "rating", *(() if blind and "estimate" in columns else ("item", "system"))]
    missing = [" or ".join(NAMES[field]) for field in needed if field not in columns]
    if missing:
        is_blind = "estimate" in columns and not blind
        hint = "; played files need the key of the study, its pairs.csv" if is_blind else ""
        raise InvalidInputError(f"{path}: no column {'; no column '.join(missing)}; it has {', '.join(there)}{hint}")
    return columns


def _rating(cells: Mapping[str, Any], played: Mapping[str, StudyPair], reverse: Collection[str]) -> Rating:
    file = _text(cells.get("estimate"))
    item, system = _text(cells.get("item")), _text(cells.get("system"))
    if played and file:
        if file not in played:
            raise InvalidInputError(f"the key knows no played file {file!r}; take the pairs.csv of this study")
        pair = played[file]
        if (item or pair.item_id, system or pair.system) != (pair.item_id, pair.system):
            raise InvalidInputError(
                f"{file} is {pair.system!r} on {pair.item_id!r} by the key, and here {system!r} on {item!r}"
            )
        item, system = pair.item_id, pair.system
    facet = _text(cells.get("facet")) or OVERALL
    value, scaled = _number(cells.get("rating")), False
    if cells.get("scale") not in (None, ""):
        low, high = _scale(cells["scale"])
        if not low <= value <= high:
            raise InvalidInputError(f"rating {value:g} lies outside of its scale {low:g}..{high:g}")
        value, scaled = (value - low) / (high - low), True
    if facet in reverse:
        value = 1 - value if scaled else -value
    listener = _text(cells.get("listener"))
    return Rating(item=item, system=system, listener=listener, rating=value, facet=facet, scaled=scaled)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _number(cell: Any) -> float:
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        raise InvalidInputError(f"rating must be a number, got {cell!r}")
    try:
        return float(cell)
    except ValueError:
        raise InvalidInputError(f"rating must be a number, got {cell!r}") from None


def _scale(cell: Any) -> tuple[float, float]:
    """Return the ends of a scale, written as ``0-100`` or as a list of two numbers."""
    written = _SCALE.fullmatch(cell) if isinstance(cell, str) else None
    try:
        low, high = map(float, written.groups() if written else cell)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInputError(f"scale must be two numbers such as 0-100, the lower first, got {cell!r}")
    return low, high
