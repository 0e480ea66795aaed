"""Where datasets and models are: in a folder, in the clone that the package is used from, or on the Hub."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError, UnreadableFileError, hub_errors
from music_evals.files import check_no_pointers_below, parse_json
from music_evals.protocols import PREPARED_DATASETS, prepared_place
from music_evals.repositories import DATASETS, find_repository, folders

__all__ = ["find_dataset", "load_split", "model_type_of", "resolve_revision", "split_names"]

_COMMIT = re.compile("[0-9a-f]{40}")


def find_dataset(name: str, config: str | None = None) -> str:
    """Return the folder or the Hub id of a dataset, see `find_repository`; a config may be built on first use."""
    place, local = find_repository(name, DATASETS, "dataset")
    return prepared_place(place, config) if local else place


def resolve_revision(dataset: str, revision: str | None) -> str | None:
    """Return the commit of a Hub id that a tag, a branch or None (the newest) stands for; None for a folder."""
    path, local = find_repository(dataset, DATASETS, "dataset")
    if local:
        if revision is not None:
            raise InvalidInputError(
                f"{path} is a folder, which has no revisions: `revision` goes with a Hub id; leave it out"
            )
        return None
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    import huggingface_hub
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        commit: str | None = huggingface_hub.HfApi().dataset_info(path, revision=revision).sha
    except RepositoryNotFoundError as error:
        raise UnknownNameError("dataset", dataset, folders(DATASETS)) from error
    except RevisionNotFoundError as error:
        kind = f"revision of {dataset}"
        raise UnknownNameError(kind, str(revision), ()) from error
    except hub_errors() as error:
        raise _unreadable(dataset, error) from error
    return commit


def split_names(dataset: str, config: str | None, *, revision: str | None = None) -> tuple[str, ...]:
    """Return the splits of a config, of a Hub id at one revision."""
    import datasets

    path = find_dataset(dataset, config)
    try:
        configs = datasets.get_dataset_config_names(path, revision=revision)
        if config is not None and config not in configs:
            kind = f"config of {dataset}"
            raise UnknownNameError(kind, config, {*configs, *PREPARED_DATASETS.get(Path(path).name, ())})
        return tuple(datasets.get_dataset_split_names(path, config, revision=revision))
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise _unreadable(dataset, error) from error


def load_split(dataset: str, config: str | None, split: str, *, revision: str | None = None) -> Any:
    """Return a split of a dataset, as the data set library has it."""
    import datasets
    from datasets.data_files import EmptyDatasetError

    path = find_dataset(dataset, config)
    try:
        return datasets.load_dataset(path, config, split=split, revision=revision)
    except EmptyDatasetError as error:
        raise NoDataError(
            f"dataset folder {path} is empty: it holds no data files; build it first or name another"
        ) from error
    except datasets.exceptions.DatasetNotFoundError as error:
        raise UnknownNameError("dataset", dataset, folders(DATASETS)) from error
    except ConnectionError as error:
        raise _unreadable(dataset, error) from error
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        check_no_pointers_below(path)
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


def model_type_of(folder: Path, known: Mapping[str, str]) -> str:
    """Return the model type that the config.json of a model folder names; `known` ones are offered in the message."""
    config = folder / "config.json"
    if not config.is_file():
        raise NoDataError(f"{folder} holds no config.json; a model folder holds config.json and model.safetensors")
    try:
        values = parse_json(config.read_bytes(), str(config))
    except ValueError as error:
        raise UnreadableFileError(f"{config} is not JSON ({error}); restore it or train the model again") from error
    model_type = values.get("model_type") if isinstance(values, dict) else None
    if not isinstance(model_type, str):
        raise UnreadableFileError(f"{config} names no model_type; expected one of {', '.join(sorted(known))}")
    return model_type
