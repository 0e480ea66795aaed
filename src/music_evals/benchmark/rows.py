"""Rows of pairs and their scores, as every benchmark of `score_results` writes them.

What is judged is a sequence of pairs, each with an item, a system, a group and two sides that are told by hashes of
what they hold. A run is taken up again by these hashes: pairs whose scores are all there are skipped, failed ones are
not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from music_evals.errors import MusicEvalsError

__all__ = [
    "Answer",
    "Judgeable",
    "Judged",
    "Progress",
    "Row",
    "Side",
    "failed_answer",
    "new_selection",
    "score_rows",
    "unfinished",
]

Row = dict[str, Any]

Progress = Callable[[int, int, str], None]
"""Called with pairs done, pairs in all, and the item."""

Answer = dict[str, Any] | MusicEvalsError
"""What came of a pair: ``scores`` (name -> ``value``, None where undefined, then with ``reason``, or ``error``),
``notes`` and, where there is one, ``explanation``, the fields of such a row; or why there is nothing."""


class Side(Protocol):
    """A reference or an estimate."""

    @property
    def name(self) -> str:
        """What records call it."""
        ...

    @property
    def content(self) -> str:
        """Hash of what it holds."""
        ...


class Judgeable(Protocol):
    """A pair that can be judged."""

    @property
    def item(self) -> str: ...  # noqa: D102 (as in `pairs.Pair`)

    @property
    def system(self) -> str: ...  # noqa: D102

    @property
    def group(self) -> str: ...  # noqa: D102

    @property
    def entrance(self) -> str: ...  # noqa: D102

    @property
    def treatment(self) -> str: ...  # noqa: D102

    @property
    def reference(self) -> Side: ...  # noqa: D102

    @property
    def estimate(self) -> Side: ...  # noqa: D102


class Judged(Protocol):
    """All that is judged in one run: systems, pairs, and pairs that cannot be."""

    @property
    def systems(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def pairs(self) -> Sequence[Judgeable]: ...  # noqa: D102

    @property
    def failures(self) -> Sequence[Any]: ...  # noqa: D102 (of `pairs.Failure`)


AnyPair = TypeVar("AnyPair", bound=Judgeable)


def new_selection(judged: Judged, controls: Sequence[Judgeable], rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the rows that say what is judged in this sitting; none where the last ones of `rows` say the same."""
    selection: list[Row] = [{"kind": "selection", "systems": list(judged.systems)}]
    selection += map(_pair_row, (*judged.pairs, *controls))
    selection += [{"kind": "pair", **dataclasses.asdict(failure)} for failure in judged.failures]
    return [] if selection == _last_selection(rows) else selection


def _pair_row(pair: Judgeable) -> Row:
    about = {"item": pair.item, "system": pair.system, "group": pair.group, "entrance": pair.entrance}
    sides = {
        side: {"name": file.name, "content": file.content}
        for side, file in (("reference", pair.reference), ("estimate", pair.estimate))
    }
    return {"kind": "pair", **about, **sides, "treatment": pair.treatment}


def _last_selection(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        if row["kind"] == "selection":
            found = [dict(row)]
        elif row["kind"] == "pair":
            found.append(dict(row))
    return found


def unfinished(chosen: Sequence[AnyPair], scores: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[AnyPair]:
    """Leave out the pairs of which every score is there; a failed one brings its pair back."""
    good: dict[tuple[Any, ...], bool] = {}
    for row in rows:
        if row["kind"] == "score":
            good[row["item"], row["system"], *row["content"], row["metric"]] = "error" not in row
    return [pair for pair in chosen if not all(good.get((*_key(pair), name), False) for name in scores)]


def _key(pair: Judgeable) -> tuple[str, str, str, str]:
    return pair.item, pair.system, pair.reference.content, pair.estimate.content


def failed_answer(scores: Sequence[str], error: MusicEvalsError) -> dict[str, Any]:
    """Return the answer for a pair of which every score failed for one reason."""
    failed = f"{type(error).__name__}: {error}"
    return {"scores": {name: {"error": failed} for name in scores}, "notes": []}


def score_rows(pair: Judgeable, scores: Sequence[str], variant: str, answer: Answer) -> list[Row]:
    """Return the rows of one judged pair: its scores, and remarks where there are any."""
    about = {"item": pair.item, "system": pair.system, "content": [pair.reference.content, pair.estimate.content]}
    if isinstance(answer, MusicEvalsError):
        answer = failed_answer(scores, answer)
    rows: list[Row] = []
    for name in scores:
        score = answer["scores"][name]
        what = {**about, "metric": name, "variant": variant}
        rows.append({"kind": "score", **what, **score, "n": int("error" not in score)})
    if answer["notes"]:
        rows.append({"kind": "remarks", **about, "notes": answer["notes"]})
    if answer.get("explanation"):
        rows.append({"kind": "explanation", **about, **answer["explanation"]})
    return rows
