"""The feature store: what was extracted from a recording once is read the next time."""

from __future__ import annotations

import dataclasses
import io
import logging
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.annotations import FEATURES
from music_evals.errors import UnknownNameError
from music_evals.files import Store

LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Undefined:
    """A feature that the recording does not have, and why."""

    reason: str


@dataclasses.dataclass(frozen=True)
class FeatureKey:
    """What names a stored feature."""

    content_hash: str  # of the decoded recording, as in `Audio.content_hash`
    feature: str  # one of `FEATURES`
    digest: str  # hash of what the numbers depend on besides the recording: backend, versions, parameters, inputs

    def __post_init__(self) -> None:
        if self.feature not in FEATURES:
            raise UnknownNameError("feature", self.feature, FEATURES)


class FeatureStore:
    """Features in files, safe for many processes and threads; see `music_evals.files.Store`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._entries = Store(folder)

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._entries.folder

    def path(self, key: FeatureKey) -> Path:
        """Return where the feature of a key lies."""
        return self._entries.path(dataclasses.asdict(key))

    def get(self, key: FeatureKey) -> Any:
        """Return the annotation under a key, `Undefined` if it is undefined, or None if nothing is stored.

        What is damaged, or breaks the rules of its annotation, counts as nothing: it is logged, and the next `put`
        replaces it.
        """
        content = self._entries.get(dataclasses.asdict(key))
        if content is None:
            return None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            if _REASON in arrays:
                return Undefined(str(arrays[_REASON]))
            return FEATURES[key.feature].from_arrays(arrays)
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:  # of a version that wrote other arrays
            LOGGER.warning("%s: cannot be used (%s); the feature is worked out again", self.path(key), error)
            return None

    def put(self, key: FeatureKey, value: Any) -> None:
        """Store an annotation, or that it is `Undefined`; a folder that cannot be written to is logged once."""
        arrays = {_REASON: np.array(value.reason)} if isinstance(value, Undefined) else value.to_arrays()
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **arrays)
        self._entries.put(dataclasses.asdict(key), content.getvalue())

    def try_out(self) -> None:
        """Log now whether the folder cannot be written to, and keep nothing then."""
        self._entries.try_out()

    def size(self) -> int:
        """Return the bytes of all stored features."""
        return self._entries.size()

    def clear(self) -> None:
        """Remove every stored feature, and what interrupted writers left; other files and the folder stay."""
        self._entries.clear()


_REASON = "undefined"  # no annotation has a field of this name
