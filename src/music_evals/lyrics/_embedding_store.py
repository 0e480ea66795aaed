"""Embeddings on disk: what a model made of a text once is read the next time.

One SQLite file holds the vectors of one model at one revision, by the hash of the text. A file is written by
transactions, so that a process that dies leaves it as it was; many processes may use it at once. It is made beside its
place and linked there with its table in it, so that an empty file is a damaged one. Each vector carries a checksum. The
file must lie on a file system with hard links, and not on a network whose locks do not work.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from music_evals.errors import CorruptCacheError, InvalidInputError, OutputError
from music_evals.lyrics._vectors import check_lengths, check_vectors
from music_evals.protocols import TextEncoder

__all__ = ["EmbeddingStore", "StoredEncoder"]

Vector = npt.NDArray[np.float32]

_FORMAT = "1"  # goes up whenever the layout of the file changes
_LITTLE_ENDIAN = np.dtype("<f4")
_WAIT_SEC = 120.0  # for other processes that write
_ASKED_AT_ONCE = 500  # placeholders in a statement: old libraries allow 999
_TABLE = "CREATE TABLE vectors (text BLOB PRIMARY KEY, checksum INTEGER NOT NULL, vector BLOB NOT NULL)"


class EmbeddingStore:
    """Vectors of texts in a file of their own for each model and revision.

    Parameters
    ----------
    folder
        Where the files are. It is made with the first of them.
    name, revision
        Of the model.

    Raises
    ------
    InvalidInputError
        An empty revision: stored vectors could then be those of another version of the model.

    """

    def __init__(self, folder: str | os.PathLike[str], name: str, revision: str) -> None:
        if not revision:
            msg = (
                f"the encoder {name!r} has no revision, so stored embeddings could be those of another version of it; "
                "give it one, as_encoder(..., revision=...), or leave the cache out"
            )
            raise InvalidInputError(msg)
        digest = hashlib.sha256(f"{_FORMAT}\0{name}\0{revision}".encode()).hexdigest()[:16]
        readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[-60:] or "model"
        self.path = Path(folder) / f"{readable}-{digest}.sqlite"

    def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return text -> vector of those that are stored.

        Raises
        ------
        CorruptCacheError
            The file is empty, cut or damaged; the message says what to delete.
        OutputError
            The file cannot be opened.

        """
        if not self.path.exists():
            return {}
        keys = {_key(text): text for text in texts}
        found: dict[str, Vector] = {}
        with self._open() as file:
            for some in _parts(list(keys)):
                places = ",".join("?" * len(some))
                rows = file.execute(f"SELECT text, checksum, vector FROM vectors WHERE text IN ({places})", some)  # noqa: S608 (question marks only)
                for key, checksum, content in rows:
                    found[keys[key]] = self._vector(key, checksum, content)
        return found

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Store vectors, all or none; a text that is stored already keeps its vector.

        Raises
        ------
        CorruptCacheError
            The file is empty, cut or damaged.
        OutputError
            The folder cannot be written to, is full, or another process kept the file for two minutes.

        """
        if not vectors:
            return
        rows = []
        for text, vector in vectors.items():
            key, content = _key(text), np.asarray(vector, dtype=_LITTLE_ENDIAN).tobytes()
            rows.append((key, _checksum(key, content), content))
        if not self.path.exists():
            self._create()
        with self._open() as file:
            file.execute("BEGIN IMMEDIATE")
            file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
            file.execute("COMMIT")

    def _create(self) -> None:
        """Put a file with an empty table into its place, unless another process was first."""
        part = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(part)) as file:
                file.execute(_TABLE)
            with contextlib.suppress(FileExistsError):
                self.path.hardlink_to(part)  # unlike a move, it never takes the place of a file
        except (OSError, sqlite3.Error) as error:
            msg = f"{self.path}: cannot be made ({error}); name a folder that can be written to, on a local disk"
            raise OutputError(msg) from error
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one task: a connection must not be carried into another process or thread."""
        place = f"{self.path.absolute().as_uri()}?mode=rw"  # opening makes no file
        try:
            with contextlib.closing(sqlite3.connect(place, timeout=_WAIT_SEC, isolation_level=None, uri=True)) as file:
                (page_size,) = file.execute("PRAGMA page_size").fetchone()
                if self.path.stat().st_size % page_size:
                    raise self._damaged("its last page is cut")
                if file.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors'").fetchone() is None:
                    raise self._damaged("it is empty, or a file of another kind")
                yield file
        except sqlite3.OperationalError as error:
            msg = f"{self.path}: the stored embeddings cannot be used ({error}); check that the folder is writable"
            raise OutputError(msg) from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error

    def _vector(self, key: bytes, checksum: int, content: bytes) -> Vector:
        if checksum != _checksum(key, content):
            reason = "a checksum is wrong"
            raise self._damaged(reason)
        return np.frombuffer(content, dtype=_LITTLE_ENDIAN).astype(np.float32)

    def _damaged(self, reason: str) -> CorruptCacheError:
        msg = f"{self.path}: stored embeddings are damaged ({reason}); delete this file, they are worked out again"
        return CorruptCacheError(msg)


class StoredEncoder:
    """An encoder that looks a text up before it encodes it.

    Parameters
    ----------
    encoder
        Makes the vectors that are not stored.
    folder
        Of the `EmbeddingStore`.

    Attributes
    ----------
    name, revision
        Those of the encoder.

    """

    def __init__(self, encoder: TextEncoder, folder: str | os.PathLike[str]) -> None:
        self.name, self.revision = encoder.name, encoder.revision
        self._encoder, self._store = encoder, EmbeddingStore(folder, encoder.name, encoder.revision)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (n, dimensions), float32.

        Raises
        ------
        BackendError
            The encoder does not give one finite unit vector a text; nothing is stored.
        CorruptCacheError, OutputError
            As `EmbeddingStore.get` and `EmbeddingStore.put`.

        """
        known = self._store.get(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            vectors = check_vectors(self._encoder.encode(missing), missing, self.name)
            check_lengths(vectors, missing, self.name)
            made = dict(zip(missing, vectors, strict=True))
            self._store.put(made)
            known |= made
        return np.stack([known[text] for text in texts]) if texts else self._encoder.encode([])


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _checksum(key: bytes, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(key))


def _parts(keys: list[bytes]) -> Iterator[list[bytes]]:
    return (keys[start : start + _ASKED_AT_ONCE] for start in range(0, len(keys), _ASKED_AT_ONCE))
