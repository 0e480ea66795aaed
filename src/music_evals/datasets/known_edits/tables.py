"""Tables of the card of `known_edits`, made from `edits.yaml`, the pieces and the rows.

``datasets_scripts/known_edits/build.py`` writes them into the card.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from music_evals.datasets.known_edits.harmony import NAMES
from music_evals.datasets.known_edits.labels import declared, half_of, kinds
from music_evals.datasets.known_edits.pieces import Piece
from music_evals.errors import InvalidInputError


def fill_card(card: str, tables: Mapping[str, str]) -> str:
    """Return a card with tables put between their markers, ``<!-- table: NAME -->`` and ``<!-- end of table -->``."""
    for name, table in tables.items():
        before, begin, rest = card.partition(f"<!-- table: {name} -->\n")
        _, end, after = rest.partition("<!-- end of table -->\n")
        if not end:
            raise InvalidInputError(
                f"the card has no place for the table {name!r}: it needs <!-- table: {name} --> and an end"
            )
        card = f"{before}{begin}\n{table}\n{end}{after}"
    return card


def label_table() -> str:
    """Return what each kind leaves alone: a row for each run of strengths with equal labels, ``·`` for the same."""
    fields = declared()["fields"]
    rows = []
    for kind in kinds().values():
        for labels, pairs in itertools.groupby(
            zip(kind.strengths, kind.labels, strict=True), key=lambda pair: tuple(pair[1].values())
        ):
            strengths = ", ".join(f"{strength:g}" for strength, _ in pairs)
            rows.append([f"`{kind.name}`", strengths, *("·" if label == "same" else label for label in labels)])
    return _table(["Kind", "Strengths", *fields], rows)


def kind_table(rows: Iterable[Mapping[str, Any]], left_out: Mapping[str, Mapping[str, int]]) -> str:
    """Return what each kind does, how many rows it has in each half, and how many edits are left out and why."""
    counts = Counter((row["kind"], row["half"]) for row in rows)
    halves, reasons = list(declared()["pieces"]), list(left_out)
    body = [
        [
            f"`{kind.name}`",
            kind.description,
            *(str(counts[kind.name, half]) for half in halves),
            *(str(left_out[reason].get(kind.name, 0)) for reason in reasons),
        ]
        for kind in kinds().values()
    ]
    return _table(["Kind", "What is done", *halves, *(f"left out: {reason}" for reason in reasons)], body)


def piece_table(pieces: Iterable[Piece]) -> str:
    """Return what the pieces are: half, key, meter, tempo, length, sections, parts."""
    body = [
        [
            f"`{piece.name}`",
            half_of(piece.name).replace("_", " "),
            f"{NAMES[piece.key.tonic]} {piece.key.mode}",
            f"{piece.meter[0]}/{piece.meter[1]}",
            f"{piece.bpm:.0f}",
            f"{float(piece.seconds(piece.end)):.0f}",
            "".join(section.label for section in piece.sections),
            ", ".join(f"{part.name} {part.program}" if part.role != "drums" else "drums" for part in piece.parts),
        ]
        for piece in pieces
    ]
    return _table(["Piece", "Half", "Key", "Meter", "Beats/min", "Seconds", "Form", "Parts and their programs"], body)


def _table(head: list[str], body: Iterable[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)) + "\n"
