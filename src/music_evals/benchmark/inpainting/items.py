"""What is judged: contexts of one split of a dataset, checked once, with an id, a song and a fingerprint."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.inpainting.columns import read_contexts, read_flags, read_names, read_shares
from music_evals.benchmark.sources import load_split, resolve_revision
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.symbolic import noteseq

__all__ = ["TRAIN_CONFIGS", "ItemSet", "load_items"]

TRAIN_CONFIGS = {"musib_official": "musib"}
"""Config that baselines are fitted on, where a config has no train split of its own."""


@dataclasses.dataclass(frozen=True, eq=False)
class ItemSet:
    """Whole contexts to be judged on."""

    # Where they came from; config may be None, and revision, the commit on the Hub, is None for local files.
    dataset: str
    config: str | None
    split: str
    item_ids: tuple[str, ...]  # one id an item, without repetitions
    songs: tuple[str, ...]  # cluster of each item: windows of one song are no independent observations
    contexts: Tokens  # shape (n, 384), uint8 NoteSeq tokens 0..129
    # Shape (n,), True where the middle occurs in a training window; None where that is not known.
    seen_in_train: npt.NDArray[np.bool_] | None = None
    # Shape (n,), 0..1, how near the middle comes to a training passage, and to one of its own context; or not known.
    near_train: npt.NDArray[np.float64] | None = None
    repeats_in_context: npt.NDArray[np.float64] | None = None
    voices: tuple[str, ...] | None = None  # which voice of its song each item is; None where that is not known
    revision: str | None = None
    # Item id -> reason, for items that could not be read. They have no row in `contexts`.
    failures: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        noteseq.check_contexts(self.contexts)
        n = len(self.item_ids)
        if n == 0 and not self.failures:
            raise NoDataError(f"{self.dataset}, split {self.split}: no items; nothing can be judged")
        if not len(self.songs) == len(self.contexts) == n:
            raise InvalidInputError(
                f"{n} item ids, {len(self.songs)} songs and {len(self.contexts)} contexts; expected equal numbers"
            )
        if len(set(self.item_ids)) < n:
            twice = next(item for item in self.item_ids if self.item_ids.count(item) > 1)
            raise InvalidInputError(
                f"item id {twice!r} occurs twice in {self.dataset}, split {self.split}; ids must be unique"
            )

    def __len__(self) -> int:
        return len(self.item_ids)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the content: ids, songs, tokens and what is known of them."""
        digest = hashlib.sha256()
        digest.update("\0".join((*self.item_ids, *self.songs, *sorted(self.failures))).encode())
        digest.update(np.ascontiguousarray(self.contexts).tobytes())
        for column in (self.seen_in_train, self.near_train, self.repeats_in_context):
            if column is not None:
                digest.update(column.tobytes())
        if self.voices is not None:
            digest.update("\0".join(self.voices).encode())
        return digest.hexdigest()[:16]

    @property
    def middles(self) -> Tokens:
        """The true middles, shape (n, 96)."""
        return self.contexts[:, MUSIB_LAYOUT.middle]

    def head(self, n: int | None) -> ItemSet:
        """Return the first `n` items, or all of them for None."""
        if n is None or n >= len(self):
            return self
        names = ("item_ids", "songs", "contexts", "seen_in_train", "near_train", "repeats_in_context", "voices")
        columns = {name: getattr(self, name) for name in names}
        first = {name: column[:n] for name, column in columns.items() if column is not None}
        return dataclasses.replace(self, **first)


def load_items(dataset: str, config: str | None, split: str, *, revision: str | None = None) -> ItemSet:
    """Load one split of a dataset of contexts.

    Parameters
    ----------
    dataset
        A name under ``datasets_scripts``, a folder or a Hub id.
    config
        Config of the dataset; None is its default.
    split
        Name of the split.
    revision
        Commit, tag or branch of a Hub id; None is the newest commit.

    Returns
    -------
    ItemSet
        From the columns ``item_id``, ``song``, ``tokens`` and, where there are such, ``seen_in_train``,
        ``near_train``, ``repeats_in_context`` and ``voice``. Its revision is the commit that was read, or None for a
        folder; its config is the default by its name, where none was given.

    Raises
    ------
    UnknownNameError
        No such dataset, config or split; the message offers the nearest.
    NoDataError
        The folder or the split is empty.
    InvalidInputError
        A column is missing, of another type than it should be, or without a value in some row.
    ContextLengthError
        A row's tokens are not 384.
    InvalidTokensError
        A token outside the vocabulary.
    UnreadableFileError
        The dataset cannot be read.

    """
    revision = resolve_revision(dataset, revision)
    rows = load_split(dataset, config, split, revision=revision)
    table, config = rows.with_format("arrow")[:], rows.info.config_name
    missing = [name for name in ("item_id", "song", "tokens") if name not in table.column_names]
    if missing:
        raise InvalidInputError(
            f"{dataset}, split {split}: no column {', '.join(missing)}; expected item_id, song and tokens (384 NoteSeq "
            f"tokens), got {', '.join(table.column_names)}"
        )
    item_ids = read_names(table, "item_id", dataset)
    return ItemSet(
        dataset=dataset,
        config=config,
        split=split,
        revision=revision,
        item_ids=item_ids,
        songs=read_names(table, "song", dataset),
        contexts=read_contexts(table, item_ids, dataset),
        seen_in_train=read_flags(table, "seen_in_train", dataset),
        near_train=read_shares(table, "near_train", dataset),
        repeats_in_context=read_shares(table, "repeats_in_context", dataset),
        voices=read_names(table, "voice", dataset) if "voice" in table.column_names else None,
    )
