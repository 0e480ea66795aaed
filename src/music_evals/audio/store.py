"""The feature store: what was extracted from a recording once is read the next time.

One file holds one feature of one recording, in ``<hash[:2]>/<hash>/<feature>-<digest>.npz``: `hash` is that of the
decoded samples, `digest` that of everything else that the numbers depend on. Files are written whole or not at all, by
any number of processes. A damaged one is not trusted: it is worked out again and replaced. With the store or without
it, the numbers are the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import lzma
import os
import re
import struct
import threading
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import FEATURES
from music_evals.errors import InvalidInputError, OutputError, UnknownNameError

__all__ = ["FeatureKey", "FeatureStore", "Undefined"]

LOGGER = logging.getLogger(__name__)

# what reading bytes that are not what they were raises
DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    OSError,  # a method of compression that is not ours: its decompressor's
    lzma.LZMAError,
    zlib.error,
    struct.error,
    RuntimeError,  # an encrypted file, or one of a later version of the format
    ValueError,  # places outside the file, names that are no text, and InvalidAnnotationError
    KeyError,  # an array is missing
)
_ABOUT = "about"  # no annotation has a field of this name


@dataclasses.dataclass(frozen=True)
class Undefined:
    """A feature that the recording does not have, and why."""

    reason: str


@dataclasses.dataclass(frozen=True)
class FeatureKey:
    """What names a stored feature.

    Parameters
    ----------
    content_hash
        Of the recording, as in `Audio.content_hash`: 64 hexadecimal digits.
    feature
        One of `FEATURES`.
    digest
        Hash of what the numbers depend on besides the recording: backend, versions, parameters, inputs; 32 digits.

    Raises
    ------
    UnknownNameError
        No such feature.
    InvalidInputError
        A hash that is none.

    """

    content_hash: str
    feature: str
    digest: str

    def __post_init__(self) -> None:
        if self.feature not in FEATURES:
            raise UnknownNameError("feature", self.feature, FEATURES)
        for name, n_digits in (("content_hash", 64), ("digest", 32)):
            value = getattr(self, name)
            if not re.fullmatch(f"[0-9a-f]{{{n_digits}}}", value):  # they become names of files
                msg = f"{name} must be {n_digits} lower-case hexadecimal digits, got {value!r}"
                raise InvalidInputError(msg)

    @property
    def path(self) -> Path:
        """Where the file lies in the store's folder."""
        return Path(self.content_hash[:2], self.content_hash, f"{self.feature}-{self.digest}.npz")


class FeatureStore:
    """Features in files, safe for many processes and threads.

    Parameters
    ----------
    folder
        Where the files are. It is made with the first of them.

    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def get(self, key: FeatureKey) -> Any:
        """Return the annotation under a key, `Undefined` where there is none to be had, or None if nothing is stored.

        A file that cannot be read, or that holds something else, counts as nothing: it is logged, and the next `put`
        replaces it.
        """
        path = self.folder / key.path
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            LOGGER.warning("%s: cannot be read (%s); the feature is worked out again", path, error.strerror)
            return None
        try:
            return _decode(content, key)
        except DAMAGE as error:
            LOGGER.warning("%s: damaged (%s); the feature is worked out again", path, error)
            return None

    def put(self, key: FeatureKey, value: Any) -> None:
        """Store an annotation, or that it is `Undefined`.

        Raises
        ------
        OutputError
            The folder cannot be written to, or is full. Nothing is left behind.

        """
        path = self.folder / key.path
        # not fsynced: a file that a power cut leaves empty is damaged, and damage is found when it is read
        part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.{uuid.uuid4().hex}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(_encode(key, value))
            part.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            msg = f"{path}: cannot be written ({error.strerror}); check that the folder is writable and has room"
            raise OutputError(msg) from error

    def size(self) -> int:
        """Return the bytes of all stored features."""
        return sum(path.stat().st_size for path in self._files("*.npz"))

    def clear(self) -> None:
        """Remove every stored feature, and what interrupted writers left; other files and the folder stay."""
        for path in [*self._files("*.npz"), *self._files(".*.part")]:
            path.unlink(missing_ok=True)

    def _files(self, pattern: str) -> Iterator[Path]:
        return self.folder.glob(f"??/{'[0-9a-f]' * 64}/{pattern}")


def _encode(key: FeatureKey, value: Any) -> bytes:
    about = [key.content_hash, key.feature, key.digest, value.reason if isinstance(value, Undefined) else ""]
    arrays: dict[str, npt.NDArray[Any]] = {} if isinstance(value, Undefined) else value.to_arrays()
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **{_ABOUT: np.array(about)}, **arrays)
    return content.getvalue()


def _decode(content: bytes, key: FeatureKey) -> Any:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if archive.testzip():  # numpy would take a header for what it says before it has seen the checksum
            raise zipfile.BadZipFile("a checksum is wrong")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    *names, reason = arrays.pop(_ABOUT).tolist()
    if names != [key.content_hash, key.feature, key.digest]:
        msg = f"it holds {' '.join(map(str, names))}"
        raise ValueError(msg)
    if reason:
        return Undefined(reason)
    return FEATURES[key.feature].from_arrays(arrays)
