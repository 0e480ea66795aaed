"""Published tables, and why our numbers differ from them. Nothing here was run by us.

Score inpainting: Araneda-Hernandez et al., "MUSIB: musical score inpainting benchmark", tables 2 (IrishFolkSong),
3 (JSB Chorales) and 4 (171 songs of the former), with the values of the literature that table 2 marks with an asterisk;
the second VLI rows are from tables 3.2 and 3.3 of the thesis (Araneda, Universidad de Chile, 2023), which agree with
tables 2 and 3 in all others.
Music context preservation: Vishe et al., "MuseCPBench", table 2.
Structured lyrics and music description: Wang et al., "MuChin", IJCAI 2024, tables 1 and 2.
The editing test: Lu et al., "Actions speak louder than listening", ACM MM 2021, tables 2 to 4.
Numbers and differences are in the files beside this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any, NamedTuple

from music_evals.csv_files import csv_rows

COMMENT, DIFFERS = "# ", "differs, "


class PublishedTable(NamedTuple):
    """A table of a paper."""

    source: str  # where it is printed
    means: dict[str, dict[str, float]]  # system -> score -> value, all digits as printed
    spread: dict[str, dict[str, float]]  # system -> score -> standard deviation, where one is printed
    marks: dict[str, dict[str, str]]  # system -> score -> ``"best"``, ``"second"`` or stars, where it is printed so
    differences: dict[str, str]  # what differs from ours -> why, in the order of its weight


def read_published(name: str) -> PublishedTable:
    """Read a table out of ``published/<name>.csv``."""
    # Lines that start with ``#`` say where it is from and, as ``differs, NAME``, what differs from ours; then come the
    # columns ``system``, ``score``, ``mean``, ``sd`` and perhaps ``mark``, the last ones empty where none is printed.
    text = resources.files("music_evals.benchmark").joinpath("published", f"{name}.csv").read_text(encoding="utf-8")
    lines = text.splitlines()
    comments = dict(line.removeprefix(COMMENT).split(": ", 1) for line in lines if line.startswith(COMMENT))
    means: dict[str, dict[str, float]] = {}
    spread: dict[str, dict[str, float]] = {}
    marks: dict[str, dict[str, str]] = {}
    for row in csv_rows("\n".join(line for line in lines if not line.startswith(COMMENT)), name):
        means.setdefault(row["system"], {})[row["score"]] = float(row["mean"])
        if row["sd"]:
            spread.setdefault(row["system"], {})[row["score"]] = float(row["sd"])
        if row.get("mark"):
            marks.setdefault(row["system"], {})[row["score"]] = row["mark"]
    differences = {key.removeprefix(DIFFERS): why for key, why in comments.items() if key.startswith(DIFFERS)}
    return PublishedTable(comments["source"], means, spread, marks, differences)


def published_section() -> dict[str, Any]:
    """Return the published table with its source and the differences, as the results file holds it."""
    table = read_published("musib_table3")
    return {"source": table.source, "table": table.means, "differences": table.differences}


def published_preservation(metrics: Iterable[str]) -> dict[str, Any]:
    """Return the published table of music context preservation, the columns of some metrics, with its source.

    ``marks``: system -> metric -> ``"best"`` or ``"second"``, where the paper prints a value bold or underlined.
    """
    table = read_published("musecpbench_table2")
    return _section(table, metrics) | {"marks": table.marks}


def published_lyrics(metrics: Iterable[str]) -> dict[str, Any]:
    """Return table 1 of MuChin, structured lyrics by language models, with its source and its known misprint."""
    return _section(read_published("muchin_table1"), metrics)


def published_descriptions(metrics: Iterable[str]) -> dict[str, Any]:
    """Return the averages of table 2 of MuChin, tags by audio encoders, with its source."""
    # Its other rows are in the data file and not compared: their labels look permuted.
    averages = [name for name in metrics if name.endswith("_average")]
    return _section(read_published("muchin_table2"), averages)


def _section(table: PublishedTable, metrics: Iterable[str]) -> dict[str, Any]:
    names = list(metrics)
    means, spread = (
        {system: {name: row[name] for name in names if name in row} for system, row in side.items()}
        for side in (table.means, table.spread)
    )
    return {"source": table.source, "table": means, "spread": spread, "differences": table.differences}
