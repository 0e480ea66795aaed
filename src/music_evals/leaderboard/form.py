"""Whether a file of tables has the form that `leaderboard_tables.make_leaderboard` gives them.

A file that lies beside the data of a board saves the tests of its pairs, and everything in it goes to pages and files.
The form is checked before that: numbers are numbers, kinds and directions are of the known ones, names of files are
letters, and each score is that of a record of the board. P-values and ranks are not made again here; whoever does not
trust a folder makes its tables with `leaderboard.build_leaderboard`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from music_evals.leaderboard.records import TASKS, ResultRecord
from music_evals.leaderboard.tables import FORMAT, PRESETS

__all__ = ["has_form"]

Check = Callable[[Any], bool]

LARGEST_NUMBER = 1e15
"""Nothing that a board counts or scores is larger."""

_TABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,120}")


def has_form(content: object, records: Iterable[ResultRecord]) -> bool:
    """Tell whether a value that was read from JSON is tables of these records.

    Parameters
    ----------
    content
        As `leaderboard_tables.make_leaderboard` returns it; more keys are allowed.
    records
        Of the board.

    """
    if not _LEADERBOARD(content):
        return False
    tables: list[dict[str, Any]] = content["tables"]  # type: ignore[index]  # the line above has looked
    known = {record.id: record for record in records}
    return len({table["id"] for table in tables}) == len(tables) and all(_is_whole(table, known) for table in tables)


def _is_whole(table: Mapping[str, Any], records: Mapping[str, ResultRecord]) -> bool:
    """Tell whether the parts of a table name each other, and its scores are those of records."""
    columns = {column["id"] for column in table["columns"]}
    labels = {row["label"] for row in table["rows"]}
    tests = all({test["a"], test["b"]} <= labels and test["column"] in columns for test in table["tests"])
    rows = all(
        row["cells"].keys() <= columns and all(_is_backed(row, cell, records) for cell in row["cells"].values())
        for row in table["rows"]
    )
    return table["headline"] in columns and tests and rows


def _is_backed(row: Mapping[str, Any], cell: Mapping[str, Any], records: Mapping[str, ResultRecord]) -> bool:
    """Tell whether a score is of a record, or of a paper; only what may be ranked has a rank."""
    if row["kind"] == "published":
        return not cell["record"] and cell["rank"] is None
    record = records.get(cell["record"])
    if record is None or record.system != row["system"]:
        return False
    numbers = ("value", "low", "high", "n", "n_defined", "n_failed")
    is_ranked = cell["rank"] is None or not (record.unranked or record.value is None)
    return is_ranked and all(cell[name] == getattr(record, name) for name in numbers)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and abs(value) <= LARGEST_NUMBER  # type: ignore[arg-type]


def _count(value: object) -> bool:
    return isinstance(value, int) and _number(value) and value >= 0


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _facts(value: object) -> bool:
    return isinstance(value, dict)


def _table_id(value: object) -> bool:
    return isinstance(value, str) and _TABLE_ID.fullmatch(value) is not None


def _rank(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_count, value)) and 1 <= value[0] <= value[1]


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _one_of(*known: object) -> Check:
    return lambda value: isinstance(value, str) and value in known


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _mapping_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _with(**checks: Check) -> Check:
    """Return a check of a mapping that has these keys."""
    return lambda value: (
        isinstance(value, dict) and all(name in value and check(value[name]) for name, check in checks.items())
    )


def _texts(*names: str) -> dict[str, Check]:
    return dict.fromkeys(names, _text)


def _test(value: object) -> bool:
    """Check a test: a corrected p-value has the difference that it is of."""
    return _TEST(value) and (value["p_holm"] is None or value["difference"] is not None)  # type: ignore[index]


_TEST: Final = _with(
    **_texts("column", "a", "b"),
    **dict.fromkeys(("difference", "p_value", "p_holm"), _or_none(_number)),
    n=_count,
    is_significant=_flag,
)
_CELL: Final = _with(
    **dict.fromkeys(("value", "low", "high", "floor"), _or_none(_number)),
    **dict.fromkeys(("n", "n_defined", "n_failed"), _or_none(_count)),
    rank=_or_none(_rank),
    **_texts("why", "shown", "interval", "record", "run"),
)
_ROW: Final = _with(
    **_texts("label", "system", "why", "role", "submitter", "date", "source"),
    kind=_one_of("ranked", "unranked", "published"),
    content=_or_none(_text),
    cells=_mapping_of(_CELL),
)
_COLUMN: Final = _with(
    **_texts("id", "metric", "title", "differs"),
    direction=_one_of("higher", "lower", "zero"),
    extractors=_facts,
    n_ranked=_count,
)
_TABLE: Final = _with(
    id=_table_id,
    **_texts("title", "headline"),
    task=_one_of(*TASKS),
    preset=_or_none(_one_of(*(preset.name for preset in PRESETS))),
    settings=_facts,
    apart=_list_of(_with(**_texts("table", "title"), reasons=_list_of(_text))),
    notes=_list_of(_text),
    columns=_list_of(_COLUMN),
    rows=_list_of(_ROW),
    tests=_list_of(_test),
    published=_or_none(_with(source=_text, differences=_mapping_of(_text))),
)
_LEADERBOARD: Final = _with(
    format=lambda value: _count(value) and value == FORMAT, alpha=_number, records=_text, tables=_list_of(_TABLE)
)
