"""Models of transformers as files: what a folder is identified by, which device is there, how to get a model."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.errors import InvalidInputError, ModelUnavailableError, UnknownNameError, hub_errors, importing

if TYPE_CHECKING:
    import torch

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_COMMIT = re.compile("[0-9a-f]{40}")
_HUB_TIMEOUT_SEC = 10.0
_NOT_MODEL = "__pycache__"  # made by running code that comes with a model


class ModelPlace(NamedTuple):
    """Where the files of a model are, at which state."""

    commit: str | None
    """None for a folder."""
    identity: str
    """The commit, or the hash of the folder's files."""
    here: bool
    """Whether the copy on this machine is all there is: the Hub cannot be reached, or need not be."""


def find_model(name: str, revision: str | None, mark: str, *, advice: str = "") -> ModelPlace:
    """Find out what identifies a model, before anything of it is read: all is then read at that state."""
    if name and Path(name).is_dir():
        if revision is not None:
            raise InvalidInputError(f"{name} is a folder, which has no revisions; a revision goes with a Hub id")
        return ModelPlace(None, folder_hash(Path(name)), here=True)
    if not _HUB_ID.fullmatch(name):
        raise unavailable(name, "there is no such folder, and it is no Hub id (owner/name)", advice)
    import huggingface_hub
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        commit = huggingface_hub.HfApi().model_info(name, revision=revision, timeout=_HUB_TIMEOUT_SEC).sha
    except RevisionNotFoundError as error:
        raise unavailable(name, f"the Hub has no revision {revision!r} of it", advice) from error
    except RepositoryNotFoundError as error:
        raise unavailable(name, "the Hub has no such model, or it is private", advice) from error
    except hub_errors() as error:
        path = _in_cache(name, mark, revision)
        stored = Path(path).parent.name if isinstance(path, str) else ""
        if not _COMMIT.fullmatch(stored):
            raise unavailable(name, "it is not on this machine, and the Hub cannot be reached", advice) from error
        return ModelPlace(stored, stored, here=True)
    if commit is None:
        raise unavailable(name, "the Hub does not say at which commit it is, so that nothing could be repeated", advice)
    return ModelPlace(commit, commit, here=False)  # what an interrupted download left out is fetched


def has_file(name: str, place: ModelPlace, file: str) -> bool:
    """Tell whether a model comes with a file, fetching it where it is on the Hub."""
    if place.commit is None:
        return (Path(name) / file).is_file()
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    known = _in_cache(name, file, place.commit)
    if known is not None:
        return isinstance(known, str)  # else a note that the Hub does not have it
    try:
        huggingface_hub.hf_hub_download(name, file, revision=place.commit)
    except LocalEntryNotFoundError as error:
        reason = f"{file} is not on this machine, and without a connection it is not known whether there is one"
        raise unavailable(name, reason, "a folder is taken as it is: that of the copy here will do") from error
    except EntryNotFoundError:
        return False
    return True


def _in_cache(name: str, file: str, revision: str | None) -> Any:
    """Return the path of a file in the Hub's cache, None if nothing is known of it, else a note that it is missing."""
    import huggingface_hub

    folder = huggingface_hub.constants.HF_HUB_CACHE
    return huggingface_hub.try_to_load_from_cache(name, file, revision=revision, cache_dir=folder)


def folder_hash(folder: Path) -> str:
    """Return ``sha256-`` and 16 digits of the names and whole contents of a folder's files, hidden ones left out."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if not path.is_file() or any(part.startswith(".") or part == _NOT_MODEL for part in inner.parts):
            continue
        digest.update(inner.as_posix().encode("utf-8", "surrogateescape") + b"\0")
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise unavailable(str(folder), f"{inner} cannot be read ({error.strerror or error})") from error
    return f"sha256-{digest.hexdigest()[:16]}"


def choose_device(device: str | None) -> torch.device:
    """Return the device of a name; without a name a GPU if there is one, else the CPU."""
    with importing("models", "a model of transformers"):
        import torch
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        torch_device = torch.device(device or ("cuda" if n_gpus else "cpu"))
        if torch_device.type == "cuda" and (torch_device.index or 0) >= n_gpus:
            available = f"{n_gpus} of them" if n_gpus else "none"
            raise InvalidInputError(
                f"device {device!r} needs a GPU that is not there: torch sees {available}; leave the device out or say "
                "'cpu'"
            )
        torch.zeros(1, device=torch_device).item()  # torch knows the names of devices that it was not built for
    except (RuntimeError, AssertionError, ImportError) as error:
        raise InvalidInputError(f"torch has no device {device!r} here; expected 'cpu', 'cuda', 'cuda:1' ...") from error
    return torch_device


PRECISIONS: Final = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Name -> type of torch."""


def dtype_of(precision: str, device: str) -> Any:
    """Return the `torch.dtype` of one of `PRECISIONS` on a device, as torch names it: ``"cpu"``, ``"cuda:1"``.

    A device that does not compute in it raises `InvalidInputError`; on a CPU only fp32 is taken.
    """
    import torch

    if precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS)
    on_gpu = device.startswith("cuda")
    if precision != "fp32" and not on_gpu:
        raise InvalidInputError(f"precision {precision} needs a GPU, and the device is {device}; take fp32")
    if precision == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise InvalidInputError(f"{device} does not compute in bf16; take fp16 or fp32")
    return getattr(torch, PRECISIONS[precision])


def unavailable(name: str, reason: str, advice: str = "") -> ModelUnavailableError:
    """Return the error for a model that cannot be loaded, with how to get it."""
    first = (reason.strip().splitlines() or ["no reason was given"])[0].rstrip(". ")[:300]
    if name and Path(name).is_dir():
        get = "get the folder anew"
    elif _HUB_ID.fullmatch(name):
        get = f"give a folder, or fetch it with: hf download {name}"
    else:
        get = "give a folder that exists, or an id on the Hub (owner/name)"
    more = f"; {advice}" if advice else ""
    return ModelUnavailableError(f"model {name!r} cannot be loaded: {first}; {get}{more}")
