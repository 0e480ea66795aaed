"""Which records are one row of a table, and which of them count.

A row is a system: its name and role, the hash of its files, and who added it. Where all of these are known and equal,
what was added last counts: by the order in which the board grew, not by the date that somebody wrote. A score that may
not be ranked never takes the place of one that is. Where the hash or the name of who added it is missing, two additions
are two rows, as nothing shows that they are of one system; what else cannot be distinguished is numbered. Equal records
have one id and are read once, such as a baseline that two people ran in the same way. Controls of one name are one row
whoever ran them, as long as their scores are the same. Who added a record is what they said.
"""

from __future__ import annotations

import collections
import itertools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from music_evals.leaderboard.records import ResultRecord


def key_of(content: Any) -> str:
    """Return plain values as text that is equal for equal ones."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def is_ranked(record: ResultRecord) -> bool:
    """Tell whether a score is in a ranking."""
    return not record.unranked and record.value is not None


SAME_DECIMALS = 6
"""Controls of two runs are one where their scores are equal to so many digits: processors differ in the last ones."""


class Entry(NamedTuple):
    """A system in a table: the record that counts at each metric with its extractors, and the one added last."""

    name: str
    records: dict[tuple[str, str], ResultRecord]
    last: ResultRecord
    n_superseded: int
    n_kept: int


class _Who(NamedTuple):
    """What makes records one row; run and number are empty where hash and submitter are known."""

    system: str
    role: str
    content: str
    submitter: str
    run: str
    number: int


Where = tuple[str, str]  # metric, and its extractors, kind and direction as JSON


def _where(record: ResultRecord) -> Where:
    return record.metric, key_of([record.extractors, record.kind, record.direction])


def entries_of(records: Sequence[ResultRecord]) -> list[Entry]:
    """Group the records of a table by system; see the module on which belong together."""
    unique: dict[str, ResultRecord] = {}
    for record in records:
        unique.setdefault(record.id, record)
    groups: dict[_Who, list[ResultRecord]] = {}
    times: collections.Counter[tuple[_Who, Where]] = collections.Counter()
    controls: dict[tuple[str, Where], list[str]] = {}
    for record in unique.values():
        who = _Who(record.system, record.role, record.content or "", record.submitter, "", 0)
        if record.role == "control":
            who = who._replace(content="", submitter="")
            digests = controls.setdefault((record.system, _where(record)), [])
            digest = key_of(
                sorted(
                    [item, *(None if value is None else round(value, SAME_DECIMALS) for value in seeds)]
                    for item, seeds in zip(record.items, record.values, strict=True)
                )
            )
            if digest in digests:
                continue
            digests.append(digest)
            who = who._replace(number=len(digests))
        elif not (who.content and who.submitter):  # one of a kind in each addition: none replaces another
            who = who._replace(run=record.run)
            times[who, _where(record)] += 1
            who = who._replace(number=times[who, _where(record)])
        groups.setdefault(who, []).append(record)
    # a label for each row: the name, what distinguishes those that share it, and a number where nothing else does
    keys = list(groups)
    names = collections.Counter(key.system for key in keys)
    labels: list[str] = []
    for key in keys:
        details = ", ".join(filter(None, (key.role, key.content[:8], key.submitter)))
        label = first = f"{key.system} ({details})" if names[key.system] > 1 and details else key.system
        numbers = itertools.count(2)
        while label in labels:
            label = f"{first} #{next(numbers)}"
        labels.append(label)
    return [_entry(label, own) for label, own in zip(labels, groups.values(), strict=True)]


def _entry(label: str, records: Sequence[ResultRecord]) -> Entry:
    """Return the row of records of one system, in the order in which they were added."""
    counted: dict[Where, ResultRecord] = {}
    n_superseded = n_kept = 0
    for record in records:
        before = counted.get(_where(record))
        if before is not None and is_ranked(before) and not is_ranked(record):
            n_kept += 1
            continue
        n_superseded += before is not None
        counted[_where(record)] = record
    ids = {record.id for record in counted.values()}
    last = next(record for record in reversed(records) if record.id in ids)
    return Entry(label, counted, last, n_superseded, n_kept)
