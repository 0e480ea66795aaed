"""Payments: entries that are only ever added, from which what is owed follows.

The paper pays by work and grade and gives no amounts; a study sets them in `Rates`. Amounts are whole cents.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from music_evals.csv_files import csv_text
from music_evals.errors import InvalidInputError

ENTRY_KINDS: Final = ("work", "reward", "penalty", "correction", "payment")
"""Of an entry; a payment lowers what is owed, a correction goes either way."""


MAX_REASON: Final = 200
"""Characters of the reason of an entry."""


class Rates(NamedTuple):
    """What is paid, in cents."""

    structure: int = 1000
    professional: int = 1500
    amateur: int = 1000
    inspection: int = 500  # for a settled structure or a scored description
    reward: int = 10
    penalty: int = 10
    currency: str = ""  # of the amounts, as ``"CNY"``, whose hundredths the cents are; empty for cents of no name


class Entry(NamedTuple):
    """One line of the ledger."""

    person: int  # whose
    kind: str  # one of `ENTRY_KINDS`
    cents: int  # added to what is owed; below 0 for penalties and payments
    reason: str  # in words
    task: int | None = None  # whose work; None where it is of no one task
    moment: dt.datetime | None = None  # when it was entered, in UTC; None before it is

    def checked(self) -> Entry:
        """Return the entry, or refuse it."""
        if self.kind not in ENTRY_KINDS:
            raise InvalidInputError(
                f"an entry must be one of {', '.join(ENTRY_KINDS)}, got {self.kind!r}",
                kind="entry_kind",
                kinds=ENTRY_KINDS,
            )
        if not self.reason.strip() or len(self.reason) > MAX_REASON:
            raise InvalidInputError(
                f"an entry needs its reason, of at most {MAX_REASON} characters", kind="entry_reason", most=MAX_REASON
            )
        wrong = self.cents > 0 if self.kind in {"penalty", "payment"} else self.cents < 0 and self.kind != "correction"
        if wrong:
            raise InvalidInputError(
                f"a {self.kind} of {self.cents} cents has the wrong sign",
                kind="entry_sign",
                entry=self.kind,
                found=self.cents,
            )
        return self


def earned(kind: str, rates: Rates) -> int:
    """Return the cents of one accepted task, or of one inspection."""
    return int(getattr(rates, kind))


def week_entry(person: int, grades: Iterable[str], work_cents: int, rates: Rates, week: str) -> Entry | None:
    """Return what the grades of a week add or take: grade I a reward, grade III a penalty; III before I."""
    distinct = set(grades)
    if "III" in distinct:
        return Entry(person, "penalty", -(work_cents * rates.penalty // 100), f"grade III, week of {week}")
    if "I" in distinct and distinct <= {"I", ""}:
        return Entry(person, "reward", work_cents * rates.reward // 100, f"grade I, week of {week}")
    return None


def balances(entries: Iterable[Entry]) -> dict[int, int]:
    """Return person -> cents that are owed."""
    owed: dict[int, int] = defaultdict(int)
    for entry in entries:
        owed[entry.person] += entry.cents
    return dict(owed)


def ledger_csv(entries: Iterable[Entry]) -> str:
    """Write entries as CSV with a header, by `csv_files.csv_text`."""
    rows = (
        entry._asdict() | {"moment": entry.moment and entry.moment.isoformat(timespec="seconds")} for entry in entries
    )
    return csv_text(Entry._fields, rows)
