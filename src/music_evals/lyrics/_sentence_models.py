"""Text encoders through sentence-transformers (extra ``text``): a Hub id at one commit, or a folder.

A model that is not there is an error that says how to get it; nothing else is ever taken in its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import BackendError, InvalidInputError, MissingBackendError, ModelUnavailableError

__all__ = ["SentenceEncoder", "load_sentence_encoder"]

PACKAGE = "sentence_transformers"
MODULES = "modules.json"  # says how tokens become one vector
BATCH = 64
HUB_TIMEOUT_SEC = 10.0
_COMMIT = re.compile("[0-9a-f]{40}")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


class _Place(NamedTuple):
    """Where a model is, and at which revision."""

    path: str
    commit: str | None
    """None for a folder."""
    revision: str
    """The commit, or the hash of the folder's files."""
    here: bool
    """Ask the Hub for nothing."""


class SentenceEncoder:
    """A sentence-transformers model in single precision, pooled as its own configuration says, without a prompt.

    Parameters
    ----------
    model
        A ``SentenceTransformer``.
    name, revision
        What records say.

    """

    def __init__(self, model: Any, name: str, revision: str) -> None:
        self._model, self.name, self.revision = model, name, revision

    @property
    def device(self) -> str:
        """Where it computes, as ``"cpu"`` or ``"cuda:0"``."""
        return str(self._model.device)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (n, dimensions), float32.

        Raises
        ------
        BackendError
            The model failed, as where the memory of the device is full.

        """
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        try:
            vectors = self._model.encode(
                list(texts), prompt="", batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True
            )
        except RuntimeError as error:
            msg = f"the encoder {self.name!r} failed on {len(texts)} texts: {error}"
            raise BackendError(msg) from error
        return np.asarray(vectors, dtype=np.float32)


def load_sentence_encoder(
    name: str, *, revision: str | None = None, device: str | None = None, trust_remote_code: bool = False
) -> SentenceEncoder:
    """Load a sentence-transformers model.

    Parameters
    ----------
    name
        Folder or Hub id.
    revision
        Commit, tag or branch of a Hub id; None is the newest, or without a connection the one on this machine.
    device
        As torch has it; None takes a GPU where there is one.
    trust_remote_code
        Run code that comes with the model.

    Raises
    ------
    MissingBackendError
        sentence-transformers is not installed.
    ModelUnavailableError
        No such folder or Hub id, no connection and no copy here, or files that are cut or missing.
    InvalidInputError
        A revision of a folder, or a device that is not there.

    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise MissingBackendError("sentence-transformers", "text", "an encoder of texts")
    place = _find(name, revision)  # before the library, which takes seconds to import
    _check_device(device)
    library = importlib.import_module(PACKAGE)
    with _named(name), _quiet():
        if not library.util.is_sentence_transformer_model(
            place.path, revision=place.commit, local_files_only=place.here
        ):
            msg = (
                f"{name!r} is not a sentence-transformers model: it has no {MODULES}, which says how tokens become one "
                "vector; name one that has, or wrap your own function by as_encoder"
            )
            raise ModelUnavailableError(msg)
        model = library.SentenceTransformer(
            place.path,
            revision=place.commit,
            device=device,
            trust_remote_code=trust_remote_code,
            local_files_only=place.here,
            model_kwargs={"dtype": "float32"},
        )
    return SentenceEncoder(model.float().eval(), name, place.revision)


def _check_device(device: str | None) -> None:
    if device is None:
        return
    import torch

    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        msg = f"no device {device!r}; expected 'cpu', 'cuda', 'cuda:0' ...: {str(error).splitlines()[0]}"
        raise InvalidInputError(msg) from error
    if kind == "cuda" and not torch.cuda.is_available():
        msg = f"device {device!r} needs a GPU and torch sees none; leave the device out or say 'cpu'"
        raise InvalidInputError(msg)


def _find(name: str, revision: str | None) -> _Place:
    if _is_folder(name):
        if revision is not None:
            msg = f"{name} is a folder, which has no revisions; a revision goes with a Hub id"
            raise InvalidInputError(msg)
        return _Place(name, None, _folder_hash(Path(name)), here=True)
    if not _HUB_ID.fullmatch(name):
        raise ModelUnavailableError(_advice(name, "there is no such folder, and it is no Hub id (owner/name)"))
    commit, here = _commit(name, revision)
    return _Place(name, commit, commit, here=here)


def _is_folder(name: str) -> bool:
    return bool(name) and Path(name).is_dir()  # an empty path is the current folder


def _commit(name: str, revision: str | None) -> tuple[str, bool]:
    """Return the commit to load, and whether the copy on this machine is all there is."""
    stored = _stored_commit(name, revision)
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    no_connection: Any = HfHubHTTPError.__bases__[0]  # of the HTTP library, which hangs on the version
    try:
        found = huggingface_hub.HfApi().model_info(name, revision=revision, timeout=HUB_TIMEOUT_SEC).sha
    except RevisionNotFoundError as error:
        raise ModelUnavailableError(_advice(name, f"the Hub has no revision {revision!r} of it")) from error
    except RepositoryNotFoundError as error:
        raise ModelUnavailableError(_advice(name, "the Hub has no such model, or it is private")) from error
    except (OSError, ValueError, no_connection) as error:
        if stored is None:
            reason = "it is not on this machine, and the Hub cannot be reached"
            raise ModelUnavailableError(_advice(name, reason)) from error
        return stored, True
    return str(found), False  # what an interrupted download left out is fetched


def _stored_commit(name: str, revision: str | None) -> str | None:
    """Return the commit of the copy in the Hub's cache on this machine."""
    import huggingface_hub

    path = huggingface_hub.try_to_load_from_cache(name, MODULES, revision=revision)
    commit = Path(path).parent.name if isinstance(path, str) else ""
    return commit if _COMMIT.fullmatch(commit) else None


def _folder_hash(folder: Path) -> str:
    """Return ``sha256-`` and 16 digits of the names and contents of a folder's files, hidden ones left out."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in inner.parts):
            digest.update(inner.as_posix().encode("utf-8", "surrogateescape") + b"\0")
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"sha256-{digest.hexdigest()[:16]}"


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Turn what goes wrong within into a `ModelUnavailableError`."""
    from safetensors import SafetensorError

    try:
        yield
    except ModelUnavailableError:
        raise
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, SafetensorError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "trust_remote_code" in str(error):
            reason = "it runs code of its own, which needs trust_remote_code=True; read that code first"
        raise ModelUnavailableError(_advice(name, reason)) from error


def _advice(name: str, reason: str) -> str:
    get = "get the folder anew" if _is_folder(name) else f"get the weights with `hf download {name}`, or give a folder"
    return f"the encoder {name!r} cannot be loaded: {reason}; {get}; 'char-ngrams' needs no weights"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's bars off stderr; whoever runs us draws their own."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown and os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS") != "1":
            logging.enable_progress_bar()
