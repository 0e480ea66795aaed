"""What users hand over: manifests, folders of files, names of systems, datasets, models with weights, and writers.

Manifests (CSV or JSON lines) and folders may lie on this machine or at a URL, see `locations`; datasets and models in a
folder, in the clone that the package is used from, or on the Hub.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_evals import files
from music_evals.csv_files import csv_rows
from music_evals.errors import (
    InvalidInputError,
    NoDataError,
    PairCountError,
    UnknownNameError,
    UnreadableFileError,
    hub_errors,
)
from music_evals.files import check_no_pointers_below, item_name, parse_json
from music_evals.locations import Location, exists, files_below, location, read_bytes
from music_evals.protocols import PREPARED_DATASETS, WRITERS, LyricWriter, load_plugin, prepared_place
from music_evals.repositories import DATASETS, MODELS, find_repository, folders

SHOWN = 5

SEED_END = 2**63
"""Seeds of predictions are below: records and tables hold them as 64-bit integers."""

File = tuple[Location, str] | None
"""Place of a file, and its name for the records; None for a partner that is missing."""


def read_text(path: Location) -> str:
    """Return the text of a UTF-8 file."""
    with files.reading(path):
        content = read_bytes(path)
    return files.decode_text(content, path).replace("\r\n", "\n").replace("\r", "\n")


def json_lines(path: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line that is not empty."""
    yield from files.json_lines(read_text(path), path)


def manifest_rows(path: Location) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a manifest: CSV by its suffix, JSON lines otherwise."""
    if path.suffix.lower() == ".csv":
        return csv_rows(read_text(path), path)
    return [row for _, row in json_lines(path)]


def shown_types(row: Mapping[str, Any]) -> str:
    """Return the columns of a row and the types of what they hold, for a message."""
    return "{" + ", ".join(f"{key}: {type(value).__name__}" for key, value in row.items()) + "}"


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def named_path(text: str | os.PathLike[str], setting: str) -> tuple[str, Location]:
    """Return system and place of ``NAME=PATH`` or ``PATH``; what exists, a `Path` or a URL is never cut."""
    given = os.fspath(text)
    name, equals, path = given.partition("=")
    if not equals or "://" in name or isinstance(text, os.PathLike) or exists(given):
        place = location(text)
        whole = place.resolve()
        name, path = whole.stem if whole.is_file() else whole.name, given
    else:
        place = location(path)
    if not name.strip() or not path:
        raise InvalidInputError(f"`{setting}` takes PATH or NAME=PATH, got {given!r}")
    return name, place


def files_of(path: Location, suffixes: Collection[str], lack: str) -> dict[str, tuple[Location, str]]:
    """Return item -> (place, name) of one file, or of all files of a kind in a folder, hidden ones apart."""
    if path.is_file():
        return {item_name(path.stem): (path, path.name)}
    if not path.is_dir():
        raise NoDataError(f"{path}: no such file or folder; check the path")
    files_by_item: dict[str, tuple[Location, str]] = {}
    for name, file in files_below(path):
        if file.suffix.lower() not in suffixes or name.name[0] == ".":
            continue
        item = item_name(name.with_suffix(""))
        if item in files_by_item:
            other = files_by_item[item][1]
            same = item_name(other) == item_name(name)
            how = "differ in Unicode normalisation (NFC, NFD) alone" if same else "differ in their suffix alone"
            raise PairCountError(f"{path}: {other} and {name} {how} and are both {item!r}; keep one")
        files_by_item[item] = file, str(name)
    if not files_by_item:
        raise NoDataError(f"{path} holds {lack}")
    return files_by_item


def paired_files(
    reference: str | os.PathLike[str],
    estimates: Sequence[str | os.PathLike[str]],
    suffixes: Collection[str],
    lack: str,
    *,
    setting: str,
    controls: Sequence[str],
    limit: int | None,
) -> tuple[Location, list[tuple[str, str, File, File]]]:
    """Return the place of the references, and item, system and both files of each pair of folders, or single files."""
    root = location(reference)
    named = [named_path(text, setting) for text in estimates]
    originals = dict(list(files_of(root, suffixes, lack).items())[:limit])
    check_systems([system for system, _ in named], controls, setting)
    pairs: list[tuple[str, str, File, File]] = []
    for system, path in named:
        made = files_of(path, suffixes, lack)
        if path.is_dir() != root.is_dir():
            raise PairCountError(
                f"{root} and {path}: one is a folder and the other a file; give two folders or two files"
            )
        if root.is_file():
            made = dict(zip(originals, made.values(), strict=True))
        extra = [] if limit is not None else [item for item in made if item not in originals]
        pairs += [(item, system, originals.get(item), made.get(item)) for item in (*originals, *extra)]
    return root, pairs


def check_systems(names: Sequence[str], controls: Sequence[str], setting: str) -> None:
    """Check the names of systems."""
    wrong = [name for name, count in Counter(names).items() if count > 1 or not name.strip() or name in controls]
    if wrong:
        taken = f", none of them {' or '.join(controls)}" if controls else ""
        raise InvalidInputError(
            f"systems need different names{taken}; got {', '.join(map(repr, wrong))}. Name each, as in `{setting}` "
            "NAME=PATH"
        )


_COMMIT = re.compile("[0-9a-f]{40}")


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

    path, local = find_repository(dataset, DATASETS, "dataset")
    path = prepared_place(path, config) if local else path
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

    path, local = find_repository(dataset, DATASETS, "dataset")
    path = prepared_place(path, config) if local else path
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


class ModelFolder(NamedTuple):
    """A model on this machine."""

    source: str  # name, folder or Hub id, as it was given
    folder: Path
    revision: str | None  # commit of a Hub id
    model_type: str

    def plugin(self, registry: dict[str, str]) -> Any:
        """Return the class of its type; raise where that is not known, or where there are no weights."""
        model_class = load_plugin(registry, self.model_type, "model type")
        if not (self.folder / "model.safetensors").is_file():
            raise NoDataError(
                f"{self.source} holds no model.safetensors; it is not trained yet: "
                f"music-evals train {self.source}/train.yaml"
            )
        return model_class

    def content_hash(self, options: Mapping[str, Any]) -> str:
        """Return a hash of all that decides what the model says: configuration, weights and options."""
        config, weights = ((self.folder / name).read_bytes() for name in ("config.json", "model.safetensors"))
        return hash_of(b"\0".join([config, weights, json.dumps(dict(options), sort_keys=True).encode()]))


def find_model(name: str | os.PathLike[str], registry: Mapping[str, str]) -> ModelFolder:
    """Return the folder of a model by name, folder or Hub id, the last fetched where it is not here."""
    name = os.fspath(name)
    place, local = find_repository(name, MODELS, "model", registry)
    if local:
        return ModelFolder(name, Path(place), None, model_type_of(Path(place), registry))
    import huggingface_hub

    name, _, tag = place.partition("@")
    try:  # only configuration and weights
        snapshot = huggingface_hub.snapshot_download(
            name, revision=tag or None, allow_patterns=["config.json", "model.safetensors"]
        )
    except (OSError, ValueError) as error:
        raise UnreadableFileError(
            f"model {place} cannot be fetched from the Hub: {str(error).splitlines()[0]}; check name and network"
        ) from error
    folder = Path(snapshot)
    return ModelFolder(name, folder, folder.name, model_type_of(folder, registry))  # the cache has the commit as name


def hash_of(content: bytes) -> str:
    """Return what records call a content."""
    return hashlib.sha256(content).hexdigest()[:16]


def derive_rng(seed: int, system: str, label: str) -> np.random.Generator:
    """Return the generator of one answer: it depends on these names alone, not on what else is run."""
    digest = hashlib.sha256(f"{seed}\0{system}\0{label}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(np.frombuffer(digest, dtype=np.uint32).tolist()))


def split_model(text: str) -> tuple[str | None, str, str | None]:
    """Return name, folder or Hub id, and revision; a path that exists is never cut."""
    name: str | None
    revision: str | None = None
    name, equals, source = text.partition("=")
    if not equals or Path(text).exists():
        name, source = None, text
    if "@" in source and not Path(source).exists():
        source, _, revision = source.partition("@")
    if "" in {name, source, revision}:
        raise InvalidInputError(f"`models` takes ID, NAME=ID or ID@REVISION, got {text!r}")
    return name, source, revision


def load_lyric_writer(options: Mapping[str, Any]) -> LyricWriter:
    """Build the language model that ``model`` names: with ``endpoint`` one of a server, else one of transformers."""
    given = dict(options)
    model, endpoint = given.pop("model"), given.pop("endpoint", None)
    if endpoint is not None:
        writer: LyricWriter = load_plugin(WRITERS, "endpoint", "writer")(endpoint, model, **given)
        return writer
    if "api_key_env" in given:
        raise InvalidInputError("a key goes with an endpoint; give its address too")
    name, source, revision = split_model(model)
    local: LyricWriter = load_plugin(WRITERS, "transformers", "writer")(source, name=name, revision=revision, **given)
    return local
