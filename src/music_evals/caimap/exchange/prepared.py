"""What `music-evals prepare` found out of songs, as pre-annotations of a study: each is said to be a program's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.caimap.domain.values import TimedLine
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.files import check_no_pointer_in

__all__ = ["PROGRAM", "Automatic", "filled", "read_prepared"]

PROGRAM: Final = "music-evals prepare"
"""Who wrote what is taken from there."""

_FILES: Final = "automatic/test-*.parquet"


class Automatic(NamedTuple):
    """What programs found of a song: ``lines``, ``rhymes``, ``cluster`` and ``theme``, as far as they were found."""

    columns: Mapping[str, Any]
    makers: Mapping[str, str]  # the same columns -> which program
    timed_lyrics: tuple[TimedLine, ...]  # lines with the times at which they begin
    sampled: bool | None  # whether the song was drawn; None where nothing was
    failures: tuple[str, ...]  # step that failed and why


def read_prepared(folder: str | os.PathLike[str]) -> dict[str, Automatic]:
    """Read what `music-evals prepare` wrote: name of a song there -> what was found of it.

    Raises `InvalidInputError` where two rows are of one song, `NoDataError` without the data set whose config is
    ``automatic``, and `UnreadableFileError` where that cannot be read, or has other columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = sorted(Path(folder).glob(_FILES))
    if not paths:
        raise NoDataError(f"{folder}: there are no prepared songs ({_FILES}); make them with music-evals prepare")
    prepared: dict[str, Automatic] = {}
    for path in paths:
        try:
            check_no_pointer_in(path)
            rows = pq.read_table(path).to_pylist()
            for row in rows:
                if row["song"] in prepared:
                    raise InvalidInputError(f"{path}: two rows are of the song {row['song']!r}; prepare the songs anew")
                # clusters, sample and themes are columns of some versions and steps alone
                timed = tuple(TimedLine(line["start_sec"], line["text"]) for line in row["lines"] if line["text"])
                columns: dict[str, Any] = {"lines": [line.text for line in timed]}
                steps = {"lines": "alignment", "rhymes": "rhymes", "cluster": "clusters", "theme": "themes"}
                if row["sections"]:
                    columns |= {
                        "lines": [line for section in row["sections"] for line in section["lines"]],
                        "rhymes": [mark for section in row["sections"] for mark in section["rhymes"]],
                    }
                    steps["lines"] = "rhymes"
                theme = row.get("theme") or {"text": None}
                columns |= {"cluster": row.get("cluster"), "theme": theme["text"]}
                present = {name: value for name, value in columns.items() if value not in (None, [], "")}
                makers = {name: f"{PROGRAM}, {steps[name]}" for name in present}
                if "theme" in present:
                    makers["theme"] += (
                        f": {', '.join(theme[part] for part in ('model', 'state', 'day') if theme[part])}"
                    )
                failures = tuple(f"{failure['step']}: {failure['error']}" for failure in row["failures"])
                prepared[row["song"]] = Automatic(present, makers, timed, row.get("sampled"), failures)
        except (OSError, pa.ArrowException, KeyError, TypeError) as error:
            raise UnreadableFileError(f"{path}: not what music-evals prepare writes ({error!r})") from error
    return prepared


def filled(row: Mapping[str, Any], automatic: Automatic) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """Fill what a row of the table of songs leaves out.

    Returns the row, whose own values stay, and which columns which program wrote (`Song.automatic`), ``timed_lyrics``
    among them. Raises `InvalidInputError` where neither has lyrics, or marks of rhyme were found for other lines than
    the row has.
    """
    if "lines" not in row and "lines" not in automatic.columns:
        why = f" ({'; '.join(automatic.failures)})" if automatic.failures else ""
        raise InvalidInputError(f"lines is missing, and none were prepared{why}")
    taken = {name: value for name, value in automatic.columns.items() if name not in row}
    if "rhymes" in taken and "lines" in row and row["lines"] != automatic.columns["lines"]:
        raise InvalidInputError(
            "its lines are not those that were prepared, which the marks of rhyme belong to; leave the column out to "
            "take those"
        )
    makers = [(name, automatic.makers[name]) for name in sorted(taken)]
    if automatic.timed_lyrics:
        makers.append(("timed_lyrics", f"{PROGRAM}, alignment"))
    return {**row, **taken}, tuple(makers)
