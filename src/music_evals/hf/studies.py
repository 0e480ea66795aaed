"""Modules that score a whole study with people, from its tidy tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from music_evals.errors import NoDataError
from music_evals.hf.cells import CITATION, CODEBASE
from music_evals.hf.module import LoneModule
from music_evals.pipelines.study_tables import EDITS, StudyTables, read_table, rows_of, samples_of_edits, study_tables

STUDY_INPUTS = """
Args:
    predictions: the table of edits, one row an edit: a path (CSV, JSON lines, Parquet), a data frame, a
        datasets.Dataset, columns in a dict, or a list of dicts.
    samples: the table of samples, in the same forms. Default: its columns stand with the edits.
    listening: the table of listeners' ratings, in the same forms. Default: there was no listening test.
    confidence: level of the intervals, default 0.95.
    epsilon: added to both sides of a ratio of loads. Default 0: a load of 0 is refused.
    per_item: True adds "per_item", a list with one dict a pair.
Returns:
    a dict; of each score <name>, <name>_ci (low, high), <name>_n, <name>_n_defined and <name>_n_clusters
"""


class StudyMetric(LoneModule):
    """Base of the modules that score a study.

    A prediction is one edit; there is no reference to give: each piece and style has a sample of the baseline.
    """

    kind = "study"
    paper, authors_code, arguments = CITATION, CODEBASE, STUDY_INPUTS
    columns: ClassVar = {"predictions": {"dtype": "string", "_type": "Value"}}

    def add_batch(self, *, predictions: Any = None, references: Any = None, **inputs: Any) -> None:  # noqa: ARG002
        """Add a table of edits; references are not read.

        Raises
        ------
        UnsupportedTypeError
            No table.
        NoDataError, InvalidInputError, UnreadableFileError
            As `pipelines.study_tables.read_table`; the message names the row. Nothing of the batch was added.
        """
        rows = rows_of(predictions, table_name="edits")
        if not rows:
            raise NoDataError("predictions are empty; give at least one item")
        read_table(rows, EDITS, table_name="edits")
        super().add_batch(predictions=[json.dumps(_plain(row)) for row in rows], **inputs)


def join_study(edits: Sequence[str], samples: Any = None, listening: Any = None) -> StudyTables:
    """Return the tables of a study from the rows that a `StudyMetric` keeps.

    Parameters
    ----------
    edits
        Rows as JSON.
    samples
        Their samples, in any form; None takes the columns of samples that stand with the edits.
    listening
        Ratings of listeners, in any form; None if there was no listening test.

    Raises
    ------
    NoDataError, InvalidInputError, PairCountError, UnreadableFileError, UnsupportedTypeError
        As `pipelines.study_tables.study_tables`.
    """
    rows = [json.loads(text) for text in edits]
    return study_tables(samples_of_edits(rows) if samples is None else samples, rows, listening)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as JSON can hold it; an empty cell of a data frame is a NaN."""
    cells = {name: cell.item() if isinstance(cell, np.generic) else cell for name, cell in row.items()}
    return {name: None if cell != cell else cell for name, cell in cells.items()}  # noqa: PLR0124  # NaN
