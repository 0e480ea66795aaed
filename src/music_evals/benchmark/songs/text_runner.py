"""Judge pairs of texts into a record file, in this process or in several; and what settings of such benchmarks share.

A text is judged in milliseconds and by Python alone, so there is none of the isolation that recordings need: an error
of one pair is its record, and rows are written in blocks of many pairs.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Protocol

from music_evals.benchmark.outputs import NUMBERS, check_options
from music_evals.benchmark.records import RecordFile, read_records, reading_rows
from music_evals.benchmark.rows import Progress, Row, failed_answer, new_selection, score_rows, unfinished
from music_evals.benchmark.songs.text_pairs import TextPair, TextPairSet
from music_evals.benchmark.versions import kernel_rows
from music_evals.errors import BackendError, InvalidInputError, MusicEvalsError

__all__ = ["BLOCK", "Judge", "TextJudging", "TextSettings", "run_texts"]

BLOCK = 64
"""Pairs whose rows are written together: a run that is killed does as many again."""

CHUNK = 8
"""Pairs that a process is given at once."""


class Judge(Protocol):
    """What compares the values of both sides of a pair; it may be called in other processes."""

    def __call__(self, reference: Any, estimate: Any, *, explain: bool) -> dict[str, Any]:
        """Return an answer as in `score_records`, with an explanation where it is asked for.

        Raises
        ------
        MusicEvalsError
            The pair has no score.

        """
        ...


@dataclasses.dataclass(frozen=True)
class TextSettings:
    """What all benchmarks of texts are told.

    Parameters
    ----------
    out
        Folder for records and results; made where it is missing.
    dataset, config, split, revision
        See `songs.load_songs`.
    predictions
        ``FILE`` or ``NAME=FILE`` for each system; see `text_predictions.read_predictions`.
    limit
        Judge the first songs only.
    confidence, n_resamples, seed
        Of intervals and tests; the seed also draws the controls.
    controls
        Add the rows of the controls.
    overwrite
        Start afresh in `out`.
    report
        Write report.html.

    Raises
    ------
    InvalidInputError
        A number out of range, or options of a dataset without one.

    """

    out: str | os.PathLike[str]
    dataset: str | None = None
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    predictions: Sequence[str] = ()
    limit: int | None = None
    confidence: float = 0.95
    n_resamples: int = 1000
    seed: int = 0
    controls: bool = True
    overwrite: bool = False
    report: bool = True

    def __post_init__(self) -> None:
        of_dataset = {
            "--config": self.config,
            "--revision": self.revision,
            "--predictions": " ".join(self.predictions) or None,
        }
        given = [option for option, value in of_dataset.items() if value is not None]
        if given and self.dataset is None:
            msg = f"{' and '.join(given)} goes with --dataset; name one, or leave it out"
            raise InvalidInputError(msg)
        check_options(self, {name: bounds for name, bounds in NUMBERS.items() if hasattr(self, name)})
        if self.seed < 0:
            msg = f"--seed must be at least 0, got {self.seed}"
            raise InvalidInputError(msg)


@dataclasses.dataclass(frozen=True)
class TextJudging:
    """How pairs are judged.

    Parameters
    ----------
    scores
        Names, in the order of the results.
    variant
        In every row.
    judge
        See `Judge`.
    explained
        Systems of which explanations are kept.

    """

    scores: tuple[str, ...]
    variant: str
    judge: Judge
    explained: tuple[str, ...] = ()


def run_texts(
    judged: TextPairSet,
    controls: Sequence[TextPair],
    path: Path,
    judging: TextJudging,
    *,
    receipt: Mapping[str, Any],
    prepare: Callable[[Sequence[TextPair]], None] | None = None,
    workers: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Row]:
    """Judge pairs and controls, and return the records.

    Parameters
    ----------
    judged, controls
        What is judged.
    path
        The record file. A run that was killed is taken up again; pairs whose sides are the same and whose scores are
        all there are skipped, failed ones are not.
    judging
        How they are judged.
    receipt
        The header. A run with another one is another run.
    prepare
        Called once with the pairs that are left to do, where there are any.
    workers
        Processes.
    overwrite
        Start afresh.
    progress
        Called after each pair.

    Returns
    -------
    list of dict
        All rows of the record file, as in `records`.

    Raises
    ------
    CorruptRecordsError
        The record file is damaged or belongs to another run.
    OutputError
        The records cannot be written.
    BackendError
        A process died.

    """
    started = time.monotonic()
    chosen = [*judged.pairs, *controls]
    with RecordFile(path, receipt, overwrite=overwrite) as records:
        with reading_rows():
            todo = unfinished(chosen, judging.scores, records.rows)
            begin = new_selection(judged, controls, records.rows) + (kernel_rows(records.rows) if todo else [])
        if begin:
            records.append(begin)
        if todo:
            if prepare is not None:
                prepare(todo)
            done = len(chosen) - len(todo)
            answers = _answers(todo, judging, min(workers, len(todo)))
            while block := list(itertools.islice(answers, BLOCK)):
                rows = [
                    row for pair, answer in block for row in score_rows(pair, judging.scores, judging.variant, answer)
                ]
                records.append(rows)
                done += len(block)
                if progress is not None:
                    progress(done, len(chosen), block[-1][0].item)
            records.append([{"kind": "sitting", "wall_time_sec": round(time.monotonic() - started, 3)}])
    return read_records(path)


def _answers(todo: Sequence[TextPair], judging: TextJudging, workers: int) -> Iterator[tuple[TextPair, dict[str, Any]]]:
    answer = functools.partial(_answer, judging.judge, judging.scores)
    asked = [(pair.reference.value, pair.estimate.value, pair.system in judging.explained) for pair in todo]
    if workers == 1:
        yield from zip(todo, map(answer, asked), strict=True)
        return
    # a fresh interpreter: to fork a process that may hold threads is not safe
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield from zip(todo, pool.map(answer, asked, chunksize=CHUNK), strict=True)
        except BrokenProcessPool as error:
            msg = "a process that scores texts died, perhaps for want of memory; give the same command again to go on"
            raise BackendError(msg) from error


def _answer(judge: Judge, scores: Sequence[str], asked: tuple[Any, Any, bool]) -> dict[str, Any]:
    """Return an answer whatever happens: an error goes through a pipe as its text."""
    reference, estimate, explain = asked
    try:
        return judge(reference, estimate, explain=explain)
    except MusicEvalsError as error:
        return failed_answer(scores, error)
