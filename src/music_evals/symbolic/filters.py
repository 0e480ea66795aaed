"""Cleaning a dataset in named steps: each says how many files it removed, which, and why.

>>> from music_evals.symbolic.frame import FileFacts
>>> frame = [
...     FileFacts("a.mid", n_instruments=4, n_measures=20, hash="1"),
...     FileFacts("b.mid", n_instruments=4, n_measures=20, hash="1"),
...     FileFacts("c.mid", n_instruments=4, n_measures=9, hash="2"),
... ]
>>> report = apply_filters(frame, [unique(), min_measures(16)])
>>> [row.filename for row in report.passed]
['a.mid']
>>> print(report.table())
step             files in  removed  kept
readable                3        0     3
unique                  3        1     2
min_measures=16         2        1     1
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.deprecation import warn_renamed
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.symbolic.frame import FileFacts

__all__ = [
    "FILTERS", "RECIPES", "Filter", "FilterReport", "FilterStep", "Removal", "apply_filters", "make_filter",
    "make_filters", "min_measures", "monophonic", "monophonic_onsets", "n_instruments", "non_empty", "only_4_4",
    "unique",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Filter:
    """A named step: `reasons` takes all rows that are left, and returns for each why it goes, or "" if it stays."""

    name: str
    reasons: Callable[[Sequence[FileFacts]], list[str]]


class Removal(NamedTuple):
    """A file that a step removed, and why."""

    filename: str
    reason: str


@dataclasses.dataclass(frozen=True)
class FilterStep:
    """What one step did."""

    name: str
    n_before: int
    removed: tuple[Removal, ...]

    @property
    def n_removed(self) -> int:
        """Number of files removed by this step."""
        return len(self.removed)

    @property
    def n_kept(self) -> int:
        """Number of files left after this step."""
        return self.n_before - self.n_removed


@dataclasses.dataclass(frozen=True)
class FilterReport:
    """What is left, and what each step removed, in order."""

    passed: tuple[FileFacts, ...]
    steps: tuple[FilterStep, ...]

    @property
    def kept(self) -> tuple[FileFacts, ...]:
        """Old name of `passed`."""
        warn_renamed("FilterReport.kept", "passed")
        return self.passed

    def table(self) -> str:
        """Return the steps as a table in plain text."""
        rows = [(step.name, str(step.n_before), str(step.n_removed), str(step.n_kept)) for step in self.steps]
        rows.insert(0, ("step", "files in", "removed", "kept"))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        return "\n".join(
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values that JSON can hold."""
        return {
            "kept": [row.filename for row in self.passed],
            "steps": [
                {
                    "name": step.name,
                    "n_before": step.n_before,
                    "n_removed": step.n_removed,
                    "n_kept": step.n_kept,
                    "removed": [removal._asdict() for removal in step.removed],
                }
                for step in self.steps
            ],
        }


def apply_filters(frame: Sequence[FileFacts], filters: Iterable[Filter]) -> FilterReport:
    """Run filters one after another. Files that could not be read go first, in a step of their own.

    The frame is that of `symbolic.frame.midi_frame`; see `FILTERS` and `RECIPES` for the filters.
    """
    rows = list(frame)
    steps = []
    for step in (Filter("readable", _each(lambda row: row.error)), *filters):
        reasons = step.reasons(rows)
        removed = tuple(Removal(row.filename, why) for row, why in zip(rows, reasons, strict=True) if why)
        steps.append(FilterStep(step.name, len(rows), removed))
        rows = [row for row, why in zip(rows, reasons, strict=True) if not why]
    return FilterReport(tuple(rows), tuple(steps))


def non_empty() -> Filter:
    """Keep files with notes."""
    return Filter("non_empty", _each(lambda row: "no notes" if row.is_empty else ""))


def unique() -> Filter:
    """Keep the first of files with the same bytes."""

    def reasons(rows: Sequence[FileFacts]) -> list[str]:
        first: dict[str, str] = {}
        why = []
        for row in rows:
            twin = first.setdefault(row.hash, row.filename)
            why.append("" if twin == row.filename else f"same bytes as {twin}")
        return why

    return Filter("unique", reasons)


def only_4_4() -> Filter:
    """Keep files with time signatures that are all 4/4; one without any is removed as missing, never taken for 4/4."""
    return Filter(
        "only_4_4", _each(lambda row: "" if row.is_4_4 else f"time signatures {', '.join(row.tsc) or 'missing'}")
    )


def monophonic() -> Filter:
    """Keep files in which every instrument plays one note at a time, to within a step of MUSIB's grid."""
    return Filter("monophonic", _each(lambda row: _per_voice(row, row.n_overlaps, "notes that sound with another")))


def monophonic_onsets() -> Filter:
    """Keep files in which no instrument starts two notes together: the thesis' rule, which sees no overlaps."""
    return Filter(
        "monophonic_onsets",
        _each(lambda row: _per_voice(row, [not mono for mono in row.is_monophony], "notes that start together")),
    )


def n_instruments(n: int = 4) -> Filter:
    """Keep files with exactly `n` instruments that have notes; MUSIB takes 4 for JSB Chorales, 1 for folk tunes."""
    _check_count("n_instruments", n)
    return Filter(
        f"n_instruments={n}", _each(lambda row: "" if row.n_instruments == n else f"{row.n_instruments} instruments")
    )


def min_measures(n: int = 16) -> Filter:
    """Keep files with at least `n` measures, by the rule that the frame was made with; a context has 16."""
    _check_count("min_measures", n)
    return Filter(f"min_measures={n}", _each(lambda row: "" if row.n_measures >= n else f"{row.n_measures} measures"))


FILTERS: Mapping[str, Callable[..., Filter]] = {
    "min_measures": min_measures,
    "monophonic": monophonic,
    "monophonic_onsets": monophonic_onsets,
    "n_instruments": n_instruments,
    "non_empty": non_empty,
    "only_4_4": only_4_4,
    "unique": unique,
}
"""The filters by name. Those of `COUNTED` take a number."""

COUNTED = ("min_measures", "n_instruments")
MAX_DIGITS = 9

RECIPES: Mapping[str, tuple[str, ...]] = {
    "musib_jsb": ("non_empty", "unique", "n_instruments=4", "min_measures=16"),
    "musib_folk": ("non_empty", "unique", "only_4_4", "n_instruments=1", "monophonic_onsets", "min_measures=17"),
    "contexts": ("non_empty", "unique", "only_4_4", "monophonic", "min_measures=16"),
}
"""Filters for `make_filter`: the two of MUSIB's code, and what clean contexts need."""


def make_filter(text: str) -> Filter:
    """Make a filter from its name, with its number after an equals sign: ``"unique"``, ``"min_measures=16"``.

    A filter that does not exist is an `UnknownNameError`, a number that cannot be read or is not taken an
    `InvalidInputError`.
    """
    name, equals, number = text.partition("=")
    if name not in FILTERS:
        raise UnknownNameError("filter", name, FILTERS)
    if not equals:
        return FILTERS[name]()
    if name not in COUNTED:
        raise InvalidInputError(
            f"filter {text!r}: {name} takes no number; {' and '.join(COUNTED)} do, as in min_measures=16"
        )
    if not (number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS):
        raise InvalidInputError(
            f"filter {text!r}: {name} takes a whole number from 0 on, as in {name}=4, got {number!r}"
        )
    return FILTERS[name](int(number))


def make_filters(text: str) -> list[Filter]:
    """Make filters from names with commas between them; the name of a recipe stands for its filters.

    A filter that is named twice runs once, where it is named first. Errors are those of `make_filter`.
    """
    names: list[str] = []
    for name in filter(None, map(str.strip, text.split(","))):
        if name.partition("=")[0] not in {*FILTERS, *RECIPES}:
            raise UnknownNameError("filter", name, [*FILTERS, *RECIPES])
        names.extend(RECIPES.get(name, (name,)))
    return [make_filter(name) for name in dict.fromkeys(names)]


def _each(reason: Callable[[FileFacts], str]) -> Callable[[Sequence[FileFacts]], list[str]]:
    return lambda rows: [reason(row) for row in rows]


def _per_voice(row: FileFacts, broken: Sequence[int], problem: str) -> str:
    voices = [
        f"{index} {name!r}" for index, (name, bad) in enumerate(zip(row.instrument_names, broken, strict=True)) if bad
    ]
    return f"{problem} in instrument {', '.join(voices)}" if voices else ""


def _check_count(name: str, n: int) -> None:
    if n < 0:
        raise InvalidInputError(f"{name} takes a number from 0 on, got {n}")
