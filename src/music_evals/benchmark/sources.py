"""What is judged: contexts of one split of a dataset, checked once, with an id, a song and a fingerprint."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.inpainting.columns import read_contexts, read_flags, read_names
from music_evals.errors import (
    InvalidInputError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
    hub_errors,
)
from music_evals.symbolic import noteseq

__all__ = [
    "ItemSet",
    "find_dataset",
    "find_window",
    "in_clone",
    "load_items",
    "load_split",
    "resolve_revision",
    "split_names",
]

DATASETS = "datasets_scripts"
WINDOWS = ("metrics", DATASETS, "models", "spaces")
"""Folders of the repository that hold one folder for each repository on the Hub."""
_COMMIT = re.compile("[0-9a-f]{40}")
TRAIN_CONFIGS = {"musib_official": "musib"}
"""Config that baselines are fitted on, where a config has no train split of its own."""


@dataclasses.dataclass(frozen=True, eq=False)
class ItemSet:
    """Whole contexts to be judged on.

    Parameters
    ----------
    dataset, config, split, revision
        Where they came from; config may be None, and revision, the commit on the Hub, is None for local files.
    item_ids
        One id an item, without repetitions.
    songs
        Cluster of each item: windows of one song are no independent observations.
    contexts
        Shape (n, 384), uint8 NoteSeq tokens 0..129.
    seen_in_train
        Shape (n,), True where the middle occurs in a training window; None where that is not known.
    failures
        Item id -> reason, for items that could not be read. They have no row in `contexts`.

    """

    dataset: str
    config: str | None
    split: str
    item_ids: tuple[str, ...]
    songs: tuple[str, ...]
    contexts: Tokens
    seen_in_train: npt.NDArray[np.bool_] | None = None
    revision: str | None = None
    failures: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        noteseq.check_contexts(self.contexts)
        n = len(self.item_ids)
        if n == 0 and not self.failures:
            msg = f"{self.dataset}, split {self.split}: no items; nothing can be judged"
            raise NoDataError(msg)
        if not len(self.songs) == len(self.contexts) == n:
            msg = f"{n} item ids, {len(self.songs)} songs and {len(self.contexts)} contexts; expected equal numbers"
            raise InvalidInputError(msg)
        if len(set(self.item_ids)) < n:
            twice = next(item for item in self.item_ids if self.item_ids.count(item) > 1)
            msg = f"item id {twice!r} occurs twice in {self.dataset}, split {self.split}; ids must be unique"
            raise InvalidInputError(msg)

    def __len__(self) -> int:
        return len(self.item_ids)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the content: ids, songs, tokens and what is known as seen."""
        digest = hashlib.sha256()
        digest.update("\0".join((*self.item_ids, *self.songs, *sorted(self.failures))).encode())
        digest.update(np.ascontiguousarray(self.contexts).tobytes())
        if self.seen_in_train is not None:
            digest.update(self.seen_in_train.tobytes())
        return digest.hexdigest()[:16]

    @property
    def middles(self) -> Tokens:
        """The true middles, shape (n, 96)."""
        return self.contexts[:, MUSIB_LAYOUT.middle]

    def head(self, n: int | None) -> ItemSet:
        """Return the first `n` items, or all of them for None."""
        if n is None or n >= len(self):
            return self
        seen = None if self.seen_in_train is None else self.seen_in_train[:n]
        return dataclasses.replace(
            self,
            item_ids=self.item_ids[:n],
            songs=self.songs[:n],
            contexts=self.contexts[:n],
            seen_in_train=seen,
        )


def find_window(name: str, folder: str, kind: str, known: Mapping[str, str] | None = None) -> tuple[str, bool]:
    """Tell where a dataset or model of this name is.

    Looked up in this order: the path `name`; `folder`/`name` under the current folder; both under the clone that the
    package is used from, if it is; the Hub id `name`.

    Parameters
    ----------
    name
        A name, a path or a Hub id.
    folder
        The window, e.g. ``"models"``.
    kind
        Word for the message, e.g. ``"model"``.
    known
        Further names to offer when nothing is found.

    Returns
    -------
    tuple of str and bool
        Path or Hub id, and whether it is on this machine.

    Raises
    ------
    UnknownNameError
        Neither a folder nor the form of a Hub id. A path whose first part is a folder here is never asked of the Hub:
        it is a typing error, not somebody's repository.

    """
    in_window = Path(folder) / name
    for candidate in (Path(name), in_window, in_clone(in_window), in_clone(name)):
        if candidate is not None and candidate.is_dir():
            return str(candidate), True
    owner, slash, repository = name.partition("/")
    is_id = slash and repository and "/" not in repository and owner not in {"", ".", "..", *WINDOWS}
    if is_id and not Path(owner).is_dir():
        return name, False
    parent = Path(name).parent if slash and Path(name).parent.is_dir() else None
    found = _names_in(Path(folder)) if parent is None else [f"{parent}/{inner}" for inner in _folders(parent)]
    advice = f"names are looked up in ./{folder}; a folder or a Hub id (owner/name) may be given too"
    raise UnknownNameError(kind, name, {*found, *(known or {})}, advice)


def in_clone(path: str | os.PathLike[str]) -> Path | None:
    """Return a window of the clone that the package is used from, by its path from the root; None where there is none.

    Only what lies in a folder of windows is found, such as ``models/anticipation_rnn``.
    """
    root, inner = _clone(), Path(path)
    if root is None or len(inner.parts) < 2 or inner.parts[0] not in WINDOWS or ".." in inner.parts:
        return None
    return root / inner if (root / inner).exists() else None


@functools.cache
def _clone() -> Path | None:
    """Return the root of the clone that this very file lies in; None for a package that was installed from one."""
    root = Path(__file__).resolve().parents[3]
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return root if project.get("project", {}).get("name") == "music_evals" else None


def _folders(parent: Path) -> list[str]:
    return [path.name for path in parent.glob("*") if path.is_dir()]


def _names_in(window: Path) -> list[str]:
    """Return the names of the datasets or models here, and in the clone."""
    root = _clone()
    return [name for place in (window, *([root / window] if root else [])) for name in _folders(place)]


def find_dataset(name: str) -> str:
    """Return the folder or the Hub id of a dataset; see `find_window`."""
    return find_window(name, DATASETS, "dataset")[0]


def resolve_revision(dataset: str, revision: str | None) -> str | None:
    """Return the commit of a Hub id that a tag, a branch or None (the newest) stands for; None for a folder.

    Raises
    ------
    InvalidInputError
        A revision of a folder, which has none.
    UnknownNameError
        The Hub holds no such dataset or revision.
    UnreadableFileError
        The Hub cannot be reached.

    """
    path, local = find_window(dataset, DATASETS, "dataset")
    if local:
        if revision is not None:
            msg = f"{path} is a folder, which has no revisions: --revision goes with a Hub id; leave it out"
            raise InvalidInputError(msg)
        return None
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    import huggingface_hub
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        found: str | None = huggingface_hub.HfApi().dataset_info(path, revision=revision).sha
    except RepositoryNotFoundError as error:
        raise UnknownNameError("dataset", dataset, _names_in(Path(DATASETS))) from error
    except RevisionNotFoundError as error:
        kind = f"revision of {dataset}"
        raise UnknownNameError(kind, str(revision), ()) from error
    except hub_errors() as error:
        raise _unreadable(dataset, error) from error
    return found


def split_names(dataset: str, config: str | None, *, revision: str | None = None) -> tuple[str, ...]:
    """Return the splits of a config, of a Hub id at one revision.

    Raises
    ------
    UnknownNameError
        No such dataset or config; the message offers the nearest.
    UnreadableFileError
        The dataset cannot be read.

    """
    import datasets

    path = find_dataset(dataset)
    try:
        configs = datasets.get_dataset_config_names(path, revision=revision)
        if config is not None and config not in configs:
            kind = f"config of {dataset}"
            raise UnknownNameError(kind, config, configs)
        return tuple(datasets.get_dataset_split_names(path, config, revision=revision))
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise _unreadable(dataset, error) from error


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
        From the columns ``item_id``, ``song``, ``tokens`` and, where there is one, ``seen_in_train``. Its revision is
        the commit that was read, or None for a folder; its config is the default by its name, where none was given.

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
        msg = (
            f"{dataset}, split {split}: no column {', '.join(missing)}; expected item_id, song and tokens (384 NoteSeq "
            f"tokens), got {', '.join(table.column_names)}"
        )
        raise InvalidInputError(msg)
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
    )


def load_split(dataset: str, config: str | None, split: str, *, revision: str | None = None) -> Any:
    """Return a split of a dataset, as the data set library has it.

    Raises
    ------
    UnknownNameError
        No such dataset, config or split; the message offers the nearest.
    NoDataError
        The folder is empty.
    UnreadableFileError
        The dataset cannot be read.

    """
    import datasets
    from datasets.data_files import EmptyDatasetError

    path = find_dataset(dataset)
    try:
        return datasets.load_dataset(path, config, split=split, revision=revision)
    except EmptyDatasetError as error:
        msg = f"dataset folder {path} is empty: it holds no data files; build it first or name another"
        raise NoDataError(msg) from error
    except datasets.exceptions.DatasetNotFoundError as error:
        raise UnknownNameError("dataset", dataset, _names_in(Path(DATASETS))) from error
    except ConnectionError as error:
        raise _unreadable(dataset, error) from error
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        # datasets raises the same classes for a wrong name and for a broken file: the names tell which it is
        names = split_names(dataset, config, revision=revision)
        if split not in names:
            kind = f"split of {dataset}"
            raise UnknownNameError(kind, split, names) from error
        raise _unreadable(dataset, error) from error


def _unreadable(dataset: str, error: Exception) -> UnreadableFileError:
    cause = error.__cause__ or error
    reason = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
    return UnreadableFileError(f"dataset {dataset} cannot be read: {reason}")
