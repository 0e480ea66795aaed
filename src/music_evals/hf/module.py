"""What all kinds of evaluate module share: checked batches, and an instance that survives a failure."""

from __future__ import annotations

import abc
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import evaluate
import numpy as np

from music_evals.annotations import Score
from music_evals.audio.io import Audio
from music_evals.errors import (
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    PairCountError,
    UnknownNameError,
    UnsupportedTypeError,
)
from music_evals.symbolic.encodings.items import describe

INTERVALS = """\
    confidence: level of the interval, default 0.95.
    per_item: True adds "per_item", a list with one dict an item.
Returns:
    a dict of plain numbers: <name>, <name>_ci (low, high), <name>_n, <name>_n_defined, and <name>_n_clusters, the
    effective number of clusters"""
GROUPS = """\
    groups: one cluster id an item (the song); the interval is clustered by them. Default: every item on its own.
"""


DEFAULT = "default"
"""What evaluate calls a config that was not named."""


class Module(evaluate.Metric, abc.ABC):  # type: ignore[misc]  # evaluate is not typed
    """What all kinds of module share: a variant, checked batches, and an instance that survives a failure.

    The config name of `evaluate.load` is the variant: ``evaluate.load(module, "official").compute(...)`` computes what
    ``compute(..., variant="official")`` does. Without a config name, or with ``"default"``, `compute` may be given any
    variant. Both may be given where they agree; where they contradict each other, `compute` refuses.

    Parameters
    ----------
    config_name
        One of the module's variants, or ``"default"``.
    options
        Go to `evaluate.Metric`.

    Raises
    ------
    UnknownNameError
        Another config name; the message offers the nearest.
    """

    kind: ClassVar[str]
    """What it scores: ``"contexts"`` of notes and their middles, ``"edits"`` of music, their ``"targets"``,
    ``"captions"`` or ``"nearness"``, ``"rolls"``, ``"numbers"``, ``"lyrics"``, their ``"words"`` or ``"themes"``,
    ``"tags"`` or a ``"study"``."""
    variants: ClassVar[tuple[str, ...]] = ()
    """What `compute` takes as ``variant``; empty where there is one formula only."""

    # attributes of evaluate.EvaluationModule, which carries no types
    writer: Any
    data: Any
    buf_writer: Any
    filelock: Any
    filelocks: Any
    file_paths: Any
    cache_file_name: Any
    config_name: str

    paper: ClassVar[str]
    """BibTeX of the metric's source."""
    authors_code: ClassVar[str]
    """Address of the official code; empty if none is published."""
    arguments: ClassVar[str]
    """What `compute` takes and returns, for the help of evaluate."""
    columns: ClassVar[Mapping[str, Any]]
    """Column that is kept of a batch -> its type, as `datasets.Features.from_dict` takes it."""

    @classmethod
    def make_info(cls, description: str) -> evaluate.MetricInfo:
        """Return what evaluate wants to know of a module of this kind."""
        import datasets

        return evaluate.MetricInfo(
            description=description,
            citation=cls.paper,
            inputs_description=cls.arguments,
            features=datasets.Features.from_dict(dict(cls.columns)),
            license="Apache-2.0",
            codebase_urls=[cls.authors_code] if cls.authors_code else [],
        )

    def __init__(self, config_name: str | None = None, **options: Any) -> None:
        known = (DEFAULT, *self.variants)
        if config_name is not None and config_name not in known:
            advice = "a config name chooses the variant" if self.variants else "this module has no variants"
            raise UnknownNameError("config", config_name, known, advice)
        super().__init__(config_name, **options)

    @abc.abstractmethod
    def _compute(self, **inputs: Any) -> dict[str, Any]:
        """Map the inputs and call the library once."""

    def compute(self, *, predictions: Any = None, references: Any = None, **options: Any) -> dict[str, Any] | None:
        """Add what is given, and compute over everything that was added.

        A failure drops what was added: the instance starts afresh.

        Raises
        ------
        NoDataError
            Nothing was given and nothing was added.
        InvalidInputError
            The variant is another one than the instance was loaded with.
        """
        if predictions is None and references is None and self.writer is None and self.num_process == 1:
            raise NoDataError("nothing to compute: give predictions and references, or add some first")
        try:
            if self.config_name != DEFAULT and options.setdefault("variant", self.config_name) != self.config_name:
                raise InvalidInputError(  # noqa: TRY301 (drops what was added, as any other)
                    f"variant {options['variant']!r} contradicts the config {self.config_name!r} that was loaded; name "
                    "one of them"
                )
            result = super().compute(predictions=predictions, references=references, **options)
        except BaseException:
            self._discard()
            raise
        self.filelocks = self.file_paths = None  # evaluate has let them go; they may be another instance's by now
        self._release()
        return None if result is None else _plain(result)

    def _discard(self) -> None:
        """Drop everything that was added and give back the cache files and their locks."""
        self._release()
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

    def _release(self) -> None:
        """Let go of what was held for the items; called once they are computed or dropped."""


class PairModule(Module):
    """Base of the modules that take predictions and references, both carried as strings."""

    columns: ClassVar = {name: {"dtype": "string", "_type": "Value"} for name in ("predictions", "references")}

    @abc.abstractmethod
    def _encode(self, name: str, index: int, item: Any) -> str:
        """Return one item of ``"references"`` or ``"predictions"`` as text; an error names its place."""

    def add_batch(self, *, predictions: Any = None, references: Any = None, **inputs: Any) -> None:
        """Add predictions and their references, checked and encoded one by one.

        Raises
        ------
        PairCountError
            One side is missing, or they differ in length.
        NoDataError
            Both are empty, or an item names a file that does not exist.
        UnsupportedTypeError, InvalidInputError, UnreadableFileError
            An item cannot be taken, with the errors of its kind of music; the message names it. Nothing of the batch
            was added.
        """
        expected, predicted = list_batch("references", references), list_batch("predictions", predictions)
        if len(expected) != len(predicted):
            raise PairCountError(
                f"{len(expected)} references and {len(predicted)} predictions do not pair up; give one of each an item"
            )
        if not expected:
            raise NoDataError("references are empty; give at least one item")
        super().add_batch(
            predictions=[self._encode("predictions", i, item) for i, item in enumerate(predicted)],
            references=[self._encode("references", i, item) for i, item in enumerate(expected)],
            **inputs,
        )

    def add(self, *, prediction: Any = None, reference: Any = None, **inputs: Any) -> None:
        """Add one prediction and its reference; see `add_batch`."""
        prediction = inputs.pop("predictions", prediction)  # evaluate.combine passes one item under the plural names
        reference = inputs.pop("references", reference)
        self.add_batch(predictions=[prediction], references=[reference], **inputs)


class LoneModule(Module):
    """Base of the modules that take predictions alone: there is no reference to give."""

    def add(self, *, prediction: Any = None, reference: Any = None, **inputs: Any) -> None:  # noqa: ARG002
        """Add one prediction; see `add_batch`."""
        prediction = inputs.pop("predictions", prediction)  # as evaluate.combine passes it
        self.add_batch(predictions=[prediction], **inputs)


def list_batch(name: str, items: Any) -> Sequence[Any]:
    """Return the items of a batch as a list; raise for a string, a dict or a number."""
    if items is None:
        raise PairCountError(f"no {name} were given; give one for each item")
    if isinstance(items, str | bytes | bytearray | Mapping | os.PathLike | Score | Audio) or not isinstance(
        items, Iterable
    ):
        raise UnsupportedTypeError(
            f"{name} must be a list of items, got {describe(items)}; put a single item into a list"
        )
    try:
        return list(items)
    except ImportError as error:  # a column of datasets decodes its recordings one by one
        if "torchcodec" not in str(error):
            raise
        feature = f"{name}: decoding a column of recordings"
        advice = "pip install torchcodec, or hand them over as stored: dataset.cast_column(name, Audio(decode=False))"
        raise MissingBackendError("torchcodec", "", feature, install=advice) from error


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
