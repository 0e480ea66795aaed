"""Base classes of the evaluate modules: what goes in, how it is carried, what comes out.

A module under ``metrics/<name>/`` declares its text, reads its inputs with one of the functions below and calls the
workshop once. What the base classes add to `evaluate.Metric`:

- Items are checked and turned into NoteSeq tokens when they are added, by their type and never by `str()`. evaluate
  would write an array as text and cut it with its own ellipsis.
- A failed `add` or `add_batch` changes nothing. A failed `compute` drops what was added, gives back the cache file and
  its lock, and the instance can be used again.
- `add` and `add_batch` keep the order of the items, so that `groups` and `per_item` line up with them.

The bases are abstract: evaluate takes the first concrete class that it finds in a module.
"""

from __future__ import annotations

import abc
import base64
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import evaluate
import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Score, Tokens
from music_evals.errors import (
    ContextMismatchWarning,
    InvalidInputError,
    MusicEvalsError,
    NoDataError,
    PairCountError,
    UnsupportedTypeError,
    located,
)
from music_evals.metrics.likelihood import inpainting_nll
from music_evals.symbolic.files import READERS
from music_evals.symbolic.files import read_score as read_file
from music_evals.symbolic.items import OFFERED, describe, holds_only, read_tokens

if TYPE_CHECKING:
    from music_evals.symbolic.isolation import ReaderProcess

__all__ = [
    "CITATION",
    "CODEBASE",
    "LikelihoodMetric",
    "SymbolicMetric",
    "SymbolicPairs",
    "read_log_probabilities",
    "read_pairs",
]

CODEBASE = "https://github.com/maranedah/music_inpainting_benchmark"
CITATION = """\
@article{araneda2023musib,
  title   = {{MUSIB}: musical score inpainting benchmark},
  author  = {Araneda-Hernandez, M. and Bravo-Marquez, F. and Parra, D. and C{\\'a}diz, R. F.},
  journal = {EURASIP Journal on Audio, Speech, and Music Processing},
  volume  = {2023},
  number  = {19},
  year    = {2023},
  doi     = {10.1186/s13636-023-00279-6}
}
"""
_OPTIONS = """\
    confidence: level of the interval, default 0.95.
    n_resamples: bootstrap resamples, default 1000; 0 leaves the interval out.
    seed: of the bootstrap, default 0.
    per_item: True adds "per_item", a list with one dict an item.
Returns:
    a dict of plain numbers: <name>, <name>_ci (low, high), <name>_n, <name>_n_defined"""
_GROUPS = """\
    groups: one cluster id an item (the song); the interval is resampled by groups. Default: every item on its own.
"""
SYMBOLIC_INPUTS = f"""
Args:
    references: the true contexts, 6 + 4 + 6 measures of 24 steps each. {OFFERED[0].upper()}{OFFERED[1:]}.
    predictions: in the same order, the same kinds of items: the 4 measures of the middle (96 steps), or a whole context
        (384 steps) of which only the middle is read; the context always comes from the reference. Files and notes that
        end within 4 measures are middles, those that reach into the future are contexts.
{_GROUPS}\
    variant: "corrected" (default), "official" (the authors' code) or "paper" (their text).
    average: for means, "macro" (over items, default) or "micro" (over notes).
    base: for divergences, "nats" (default) or "bits".
{_OPTIONS}
    and, for a divergence, <name>_null, its noise floor.
"""
LIKELIHOOD_INPUTS = f"""
Args:
    predictions: one row an item, in a list, tuple or array: the log-probability in nats, at most 0, that the model gave
        to the true token at each step. -inf is taken, and makes the score infinite. All rows have the same length.
{_GROUPS}\
{_OPTIONS}.
"""


class _Module(evaluate.Metric, abc.ABC):  # type: ignore[misc]  # evaluate is not typed
    """What both kinds of module share: checked batches, and an instance that survives a failure."""

    # attributes of evaluate.EvaluationModule, which carries no types
    writer: Any
    data: Any
    buf_writer: Any
    filelock: Any
    filelocks: Any
    file_paths: Any
    cache_file_name: Any

    parser: ReaderProcess[Score] | None = None
    """Of files, while some are being added."""

    @abc.abstractmethod
    def _compute(self, **inputs: Any) -> dict[str, Any]:
        """Map the inputs and call the workshop once."""

    def compute(self, *, predictions: Any = None, references: Any = None, **options: Any) -> dict[str, Any] | None:
        """Add what is given, and compute over everything that was added.

        A failure drops what was added: the instance starts afresh.
        """
        if predictions is None and references is None and self.writer is None and self.num_process == 1:
            raise NoDataError("nothing to compute: give predictions and references, or add some first")
        try:
            result = super().compute(predictions=predictions, references=references, **options)
        except BaseException:
            self._discard()
            raise
        self.filelocks = self.file_paths = None  # evaluate has let them go; they may be another instance's by now
        self._end_parser()
        return None if result is None else _plain(result)

    def _discard(self) -> None:
        """Drop everything that was added and give back the cache files and their locks."""
        self._end_parser()
        if self.writer is not None:
            self.writer.close()
        self.writer = self.data = self.buf_writer = None
        held = [(self.filelock, self.cache_file_name)] if self.filelock is not None else []
        held += list(zip(self.filelocks or [], self.file_paths or [], strict=True))
        for lock, path in held:
            if lock.is_locked:
                Path(path).unlink(missing_ok=True)
                lock.release()
        self.filelock = self.filelocks = self.file_paths = self.cache_file_name = None

    def _end_parser(self) -> None:
        if self.parser is not None:
            self.parser.close()
        self.parser = None


class SymbolicMetric(_Module):
    """Base of the modules that compare symbolic music: references are contexts, predictions fill their middle.

    Both features are strings; `read_pairs` turns them back into tokens. Files and MIDI bytes are parsed when they are
    added, in a process of their own: a file that kills the parser is an error of its item. That process starts with the
    first file (about half a second) and ends with `compute`; other items need none.
    """

    @staticmethod
    def make_info(description: str) -> evaluate.MetricInfo:
        """Return what evaluate wants to know of a module of this kind."""
        import datasets

        value = datasets.Value("string")
        return evaluate.MetricInfo(
            description=description,
            citation=CITATION,
            inputs_description=SYMBOLIC_INPUTS,
            features=datasets.Features({"predictions": value, "references": value}),
            license="Apache-2.0",
            codebase_urls=[CODEBASE],
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **inputs: Any) -> None:
        """Add predictions and their references, checked and encoded one by one.

        Raises
        ------
        PairCountError
            One side is missing, or they differ in length.
        NoDataError
            Both are empty.
        UnsupportedTypeError, InvalidTokensError, ContextLengthError, PolyphonyError, UnreadableFileError
            An item cannot be read; the message names it. Nothing of the batch was added.

        """
        expected, given = _batch("references", references), _batch("predictions", predictions)
        if len(expected) != len(given):
            msg = f"{len(expected)} references and {len(given)} predictions do not pair up; give one of each an item"
            raise PairCountError(msg)
        _check_filled("references", expected)
        super().add_batch(
            predictions=[self._encode("predictions", i, item, whole=False) for i, item in enumerate(given)],
            references=[self._encode("references", i, item, whole=True) for i, item in enumerate(expected)],
            **inputs,
        )

    def add(self, *, prediction: Any = None, reference: Any = None, **inputs: Any) -> None:
        """Add one prediction and its reference; see `add_batch`."""
        prediction = inputs.pop("predictions", prediction)  # evaluate.combine passes one item under the plural names
        reference = inputs.pop("references", reference)
        self.add_batch(predictions=[prediction], references=[reference], **inputs)

    def _encode(self, name: str, index: int, item: Any, *, whole: bool) -> str:
        """Return one item as text: its layout, then its tokens in base64."""
        try:
            tokens = read_tokens(self._parse(item), whole=whole)
        except MusicEvalsError as error:
            raise located(error, f"{name}[{index}]") from error
        layout = "context" if len(tokens) == MUSIB_LAYOUT.n_steps else "middle"
        return f"{layout}:{base64.b64encode(tokens.tobytes()).decode('ascii')}"

    def _parse(self, item: Any) -> Any:
        """Return the score of a file or of MIDI bytes, alone or as a part of a context; other items as they are."""
        if isinstance(item, Mapping):
            return {key: self._parse(part) for key, part in item.items()}
        if isinstance(item, str | os.PathLike):
            if Path(item).suffix.lower() not in READERS:
                return item  # refused by its suffix, without a parser
            item = Path(item).absolute()  # the other process may have started in another folder
        elif isinstance(item, bytes | bytearray | memoryview):
            item = bytes(item)
        else:
            return item
        if self.parser is None:
            from music_evals.symbolic.isolation import ReaderProcess

            self.parser = ReaderProcess(read_file)
        found = self.parser.read(item)
        if isinstance(found, MusicEvalsError):
            raise found
        return found


class LikelihoodMetric(_Module):
    """Base of the modules that judge a model by the probability that it gives to the truth.

    A prediction is a row of log-probabilities (nats), one a step; there is no reference to give: the truth is what the
    probabilities are of.
    """

    @staticmethod
    def make_info(description: str) -> evaluate.MetricInfo:
        """Return what evaluate wants to know of a module of this kind."""
        import datasets

        return evaluate.MetricInfo(
            description=description,
            citation=CITATION,
            inputs_description=LIKELIHOOD_INPUTS,
            features=datasets.Features({"predictions": datasets.List(datasets.Value("float64"))}),
            license="Apache-2.0",
            codebase_urls=[CODEBASE],
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **inputs: Any) -> None:  # noqa: ARG002
        """Add rows of log-probabilities; references are not read.

        Raises
        ------
        UnsupportedTypeError
            A row is not a list, tuple or array of numbers.
        InvalidInputError
            A number above 0 or NaN, or an empty row. Nothing of the batch was added.

        """
        rows = _batch("predictions", predictions)
        _check_filled("predictions", rows)
        super().add_batch(predictions=[_log_probabilities(i, row) for i, row in enumerate(rows)], **inputs)

    def add(self, *, prediction: Any = None, reference: Any = None, **inputs: Any) -> None:  # noqa: ARG002
        """Add one row of log-probabilities; see `add_batch`."""
        prediction = inputs.pop("predictions", prediction)  # as evaluate.combine passes it
        self.add_batch(predictions=[prediction], **inputs)


class SymbolicPairs(NamedTuple):
    """Tokens of references and predictions, item by item."""

    contexts: Tokens
    """Whole true contexts, shape (n, 384)."""
    middles: Tokens
    """Predicted middles, shape (n, 96)."""


def read_pairs(references: Sequence[str], predictions: Sequence[str]) -> SymbolicPairs:
    """Return the tokens behind the strings that a `SymbolicMetric` keeps.

    Warns
    -----
    ContextMismatchWarning
        Predictions came with a context that is not the reference's; the reference's is used.

    """
    contexts = np.stack([_decode(text) for text in references])
    middles = np.empty((len(contexts), MUSIB_LAYOUT.middle_steps), dtype=np.uint8)
    differing = []
    for i, text in enumerate(predictions):
        tokens = _decode(text)
        if len(tokens) == MUSIB_LAYOUT.n_steps:
            outside = np.delete(tokens != contexts[i], MUSIB_LAYOUT.middle)
            differing += [i] if outside.any() else []
            tokens = tokens[MUSIB_LAYOUT.middle]
        middles[i] = tokens
    if differing:
        msg = (
            f"{len(differing)} of {len(contexts)} predictions, the first at index {differing[0]}, came with a past or "
            "future that differs from the reference's; only their middle was read"
        )
        warnings.warn(msg, ContextMismatchWarning, stacklevel=5)  # the caller of compute
    return SymbolicPairs(contexts, middles)


def read_log_probabilities(predictions: Sequence[Sequence[float]]) -> npt.NDArray[np.float64]:
    """Return the rows that a `LikelihoodMetric` keeps as one array of shape (n, steps).

    Raises
    ------
    InvalidInputError
        Rows of different length.

    """
    lengths = {len(row) for row in predictions}
    if len(lengths) > 1:
        msg = f"every row needs one log-probability a step; got rows of {', '.join(map(str, sorted(lengths)))} steps"
        raise InvalidInputError(msg)
    return np.asarray(predictions, dtype=np.float64)


def _batch(name: str, items: Any) -> Sequence[Any]:
    """Return the items of a batch in a list; a string, a dict or a number is none."""
    if items is None:
        msg = f"no {name} were given; give one for each item"
        raise PairCountError(msg)
    if isinstance(items, str | bytes | bytearray | Mapping | os.PathLike | Score) or not isinstance(items, Iterable):
        msg = f"{name} must be a list of items, got {describe(items)}; put a single item into a list"
        raise UnsupportedTypeError(msg)
    return list(items)


def _check_filled(name: str, items: Sequence[Any]) -> None:
    if not items:
        msg = f"{name} are empty; give at least one item"
        raise NoDataError(msg)


def _decode(text: str) -> Tokens:
    return np.frombuffer(base64.b64decode(text.partition(":")[2]), dtype=np.uint8)


def _log_probabilities(index: int, row: Any) -> list[float]:
    is_array = isinstance(row, np.ndarray) and np.issubdtype(row.dtype, np.number) and row.ndim == 1
    if not is_array and not holds_only(row, float | int | np.number):
        msg = f"predictions[{index}] must be a list, tuple or 1-D array of log-probabilities, got {describe(row)}"
        raise UnsupportedTypeError(msg)
    try:
        inpainting_nll(row)
    except InvalidInputError as error:
        msg = f"predictions[{index}]: {error}"
        raise InvalidInputError(msg) from error
    return [float(value) for value in row]


def _plain(value: Any) -> Any:
    """Return numpy numbers and arrays as Python's own, at any depth: what JSON can hold."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, tuple):
        return tuple(_plain(inner) for inner in value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value
