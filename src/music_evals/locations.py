"""Where input lies: on this machine, or at a URL that fsspec opens; the only place that reads URLs.

A text with a scheme in front, such as ``s3://bucket/songs/a.wav``, is a URL unless a path of that name exists. A file
at a URL is known by a fingerprint, so that whoever settles what is compared need not fetch it:

=========================  ================================================================  =====================
where                      what is known of a file unread                                    fingerprint
=========================  ================================================================  =====================
this machine, ``file://``  nothing that is sure                                              hash of its bytes
``hf://``                  SHA-256 of a large file, git's hash of a small one                that very hash
``s3://``                  ETag                                                              it, size and URL
``gs://``                  ETag, MD5 or generation                                           it, size and URL
``az://``, ``abfs://``     ETag                                                              it, size and URL
``http://``, ``https://``  ETag, Content-MD5, Digest or Last-Modified, where the server      the first of them,
                           tells one                                                         size and URL
``memory://``              when it was written                                               it, size and URL
=========================  ================================================================  =====================

`fsspec` has `ukey` and `checksum` for this, which do not serve: that of HTTP is a hash of the URL alone, and the others
are hashes of all that is told of a file, with addresses and commits that change while the file does not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import functools
import hashlib
import json
import os
import posixpath
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final
from urllib.parse import quote, unquote

from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    MissingBackendError,
    MusicEvalsError,
    NoDataError,
    OutputError,
    UnreadableFileError,
)

__all__ = [
    "HASH_DIGITS",
    "SCHEMES",
    "Location",
    "Remote",
    "beside",
    "check_local",
    "exists",
    "fetched",
    "files_below",
    "fingerprints",
    "folder_of",
    "hash_file",
    "location",
    "read_bytes",
    "without_suffix",
]

SCHEMES: Final = ("file", "hf", "s3", "gs", "az", "abfs", "http", "https", "memory")
"""What is opened. Others of fsspec open archives, chains of URLs, or shells on other machines."""

HASH_DIGITS = 32  # 128 bits: no two files of one run meet by chance

MOST_TEXT_BYTES = 2**30
"""Of a manifest or another text at a URL, which is read into memory."""

CONNECTIONS = 16
LISTED_FROM = 20
"""A folder is listed where so many of its files are asked for: one request then tells of a thousand."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]*)://")  # chains too, to be refused
_USER = re.compile(r"(://)[^/\s]*@")
_QUERY = re.compile(r"(://[^\s?#]*)[?#]\S*")
_WEB = {"http", "https"}
_BACKENDS = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "http": "aiohttp", "https": "aiohttp"}
_BLOCK = 1 << 20

_VERSIONS = (
    "etag", "contentmd5", "digest", "md5hash", "generation", "versionid", "xethash", "lastmodified", "mtime", "created",
)  # fmt: skip
"""What file systems call that which changes with a file, in lower case and letters alone; the surest first."""

_FOREIGN = (
    ("aiohttp", "ClientError"),
    ("azure.core.exceptions", "AzureError"),
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("gcsfs.retry", "HttpError"),
    ("google.auth.exceptions", "GoogleAuthError"),
    ("huggingface_hub.errors", "HTTPError"),
)
"""Roots of what the file systems raise beside OSError and ValueError."""


@dataclasses.dataclass(frozen=True)
class Remote:
    """A file or a folder at a URL, with the names of `pathlib.Path` for what inputs need; made by `location`."""

    url: str
    # What a listing told of it, so that nobody asks again.
    info: Mapping[str, Any] | None = dataclasses.field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.url

    @property
    def scheme(self) -> str:
        """What stands before ``://``."""
        return self.url.partition("://")[0]

    @property
    def name(self) -> str:
        """The last part, as the file is called and not as a URL writes it."""
        last = self.url.partition("://")[2].rstrip("/").rpartition("/")[2]
        return unquote(last) if self.scheme in _WEB else last

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The suffix with its dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> Remote:
        """The folder that it lies in."""
        scheme, _, path = self.url.partition("://")
        return Remote(f"{scheme}://{path.rstrip('/').rpartition('/')[0]}")

    def __truediv__(self, path: str) -> Remote:
        """Return what lies at a relative path from this folder."""
        scheme, _, start = self.url.partition("://")
        host, _, folder = start.partition("/")
        joined = posixpath.normpath(posixpath.join(folder, quote(path) if scheme in _WEB else path))
        if path.startswith("/") or joined.split("/")[0] == "..":
            raise InvalidInputError(f"{path!r} is no path below {scheme}://{host}, where its manifest lies")
        return Remote(f"{scheme}://{host}/{joined}")

    def is_file(self) -> bool:
        """Tell whether there is a file."""
        return self._kind == "file"

    def is_dir(self) -> bool:
        """Tell whether there is a folder."""
        return self._kind == "directory"

    def resolve(self) -> Remote:
        """Return itself."""
        return self

    @functools.cached_property
    def _kind(self) -> str:
        if self.scheme in _WEB and self.url.endswith("/"):
            return "directory"
        try:
            info = self.info or self.ask(anew=True)
        except NoDataError:
            return ""
        # a web server sends whoever asks for a folder to the same address with a slash at its end
        return "directory" if str(info.get("url", "")).endswith("/") else str(info["type"])

    def ask(self, *, anew: bool = False) -> Mapping[str, Any]:
        """Return what its file system tells of it, or told when it last was asked."""
        with _explained(self.url):
            system, path = _opened(self.url)
            if anew:
                system.invalidate_cache()
            found: Mapping[str, Any] = system.info(path)
            return found

    def listing(self, *, deep: bool) -> dict[str, Remote]:
        """Return what lies in a folder, or all files below it, by the paths from there."""
        base = self.url.rstrip("/")
        with _explained(self.url):
            system, path = _opened(self.url)
            if self.scheme in _WEB:
                return {unquote(link.removeprefix(f"{base}/")): Remote(link) for link in _links(system, f"{base}/")}
            start = system.info(path)["name"].rstrip("/")
            inside = system.find(path, detail=True).values() if deep else system.ls(path, detail=True)
            found = {info["name"].removeprefix(f"{start}/"): info for info in inside}
        return {name: Remote(f"{base}/{name}", info) for name, info in found.items() if name}

    def blocks(self, max_bytes: int) -> Iterator[bytes]:
        """Yield its bytes, and never more than the bound."""
        options = {"block_size": 0} if self.scheme in {*_WEB, "hf"} else {}  # in one go: not every server has ranges
        with _explained(self.url):
            system, path = _opened(self.url)
            with system.open(path, "rb", **options) as file:
                n_bytes = getattr(file, "size", None) or 0
                self._check_size(n_bytes, max_bytes)
                n_bytes = 0
                while block := file.read(_BLOCK):
                    n_bytes += len(block)
                    self._check_size(n_bytes, max_bytes)
                    yield block

    def _check_size(self, n_bytes: int, max_bytes: int) -> None:
        if n_bytes > max_bytes:
            message = f"{self.url}: more than {max_bytes} bytes"
            raise FileTooLargeError(message, name=self.name, unit="bytes", limit=max_bytes)


Location = Path | Remote
"""A path on this machine, or a URL."""


def _links(system: Any, folder: str) -> Iterator[str]:
    """Yield the addresses of all files below a folder of a web server, from the pages that list them."""
    # `find` of fsspec passes over folders that it cannot read
    folders = [folder]
    while folders:
        page = folders.pop()
        for link in system.ls(page, detail=False):
            if not link.startswith(page) or link == page or {*"?#"} & {*link}:  # the same page in another order
                continue
            if link.endswith("/"):
                folders.append(link)
            else:
                yield link


def exists(path: str | os.PathLike[str]) -> bool:
    """Tell whether there is a file or folder of this name on this machine."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a path, or with a null byte
        return False


def location(text: str | os.PathLike[str]) -> Location:
    """Return the path or the URL that a text means; a `Path`, or a text that a path exists for, is no URL."""
    scheme = _scheme(text)
    if not scheme or isinstance(text, os.PathLike):
        return Path(text)
    shown = _without_secrets(text)
    host, _, path = text.partition("://")[2].partition("/")
    if scheme not in SCHEMES or "::" in text:
        raise InvalidInputError(f"{shown} is not opened; expected a path, or a URL of {', '.join(SCHEMES)}")
    # a container of Azure stands where others have their user
    user = host.rpartition("@")[0] if scheme not in {"az", "abfs"} or ":" in host.partition("@")[0] else ""
    if user or re.search(r"[?#]" if scheme in _WEB else r"\?[^/]*=", text):
        raise InvalidInputError(
            f"{shown} came with a user, a query or a fragment, which may hold secrets, and what is given is recorded; "
            "leave it away, and give credentials in the environment, or fetch the file first"
        )
    if scheme != "file":
        return Remote(f"{scheme}://{host}/{path}" if path or text.endswith("/") else f"{scheme}://{host}")
    if host:
        raise InvalidInputError(f"{shown} names another machine; expected file:///path")
    return Path(f"/{path}")


def beside(folder: Location, text: str) -> Location:
    """Return what a manifest in a folder names: a path from there, or a URL."""
    if isinstance(folder, Path):
        return location(text) if _scheme(text) and not exists(folder / text) else folder / text
    if not _scheme(text):
        return folder / text
    found = location(text)
    if isinstance(found, Path) or (found.scheme == "memory" != folder.scheme):
        raise InvalidInputError(f"{text}: a manifest at a URL cannot name files of this machine; give a URL or a path")
    return found


def check_local(text: str | os.PathLike[str], setting: str) -> None:
    """Raise where a setting is a URL and must be a path."""
    if isinstance(found := location(text), Remote):
        raise InvalidInputError(f"`{setting}` must be a path, on this machine or a shared file system; got {found}")


def files_below(folder: Location) -> Iterator[tuple[PurePath, Location]]:
    """Yield all files below a folder in the order of their paths from there, with these."""
    if isinstance(folder, Remote):
        found = {PurePosixPath(name): place for name, place in folder.listing(deep=True).items()}
        yield from sorted(found.items())
        return
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder), path


def read_bytes(place: Location) -> bytes:
    """Return what a file holds; an OSError for a path that cannot be read is left to the caller."""
    return place.read_bytes() if isinstance(place, Path) else b"".join(place.blocks(MOST_TEXT_BYTES))


def without_suffix(name: str) -> str:
    """Return the path or the URL of a file without its suffix."""
    return name.removesuffix(PurePath(name).suffix) if _scheme(name) else str(Path(name).with_suffix(""))


def folder_of(name: str) -> str:
    """Return the path or the URL of the folder that a file lies in."""
    return name.rpartition("/")[0] if _scheme(name) else str(Path(name).parent)


def hash_file(path: Path) -> str:
    """Return the hash of the bytes of a file on this machine."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except FileNotFoundError:
        raise NoDataError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise UnreadableFileError(
            f"{path}: cannot be read ({error.strerror or error}); check its permissions"
        ) from error
    return digest.hexdigest()[:HASH_DIGITS]


def fingerprints(places: Iterable[Remote]) -> dict[Remote, str | MusicEvalsError]:
    """Return the fingerprint of each file at a URL, or why it has none; nothing is fetched."""
    folders: dict[Remote, list[Remote]] = {}
    wanted = dict.fromkeys(places)
    for place in wanted:
        folders.setdefault(place.parent, []).append(place)
    for place in {place.scheme: place for place in wanted}.values():  # an earlier run may have asked too
        with contextlib.suppress(MusicEvalsError), _explained(place.url):
            _opened(place.url)[0].invalidate_cache()
    tasks: list[tuple[Remote | None, list[Remote]]] = []
    for folder, inside in folders.items():
        told = folder.scheme not in _WEB and sum(place.info is None for place in inside) >= LISTED_FROM
        tasks += [(folder, inside)] if told else [(None, [place]) for place in inside]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return {place: found for part in pool.map(_fingerprints_in, tasks) for place, found in part.items()}


def _fingerprints_in(task: tuple[Remote | None, list[Remote]]) -> dict[Remote, str | MusicEvalsError]:
    folder, places = task
    try:
        listed = {} if folder is None else {place: place.info for place in folder.listing(deep=False).values()}
    except MusicEvalsError:
        listed = {}  # whoever may read a file need not be allowed to list its folder
    found: dict[Remote, str | MusicEvalsError] = {}
    for place in places:
        try:
            told = place.info or listed.get(place)
            found[place] = (told and _fingerprint(place, told)) or _asked_fingerprint(place)
        except MusicEvalsError as error:
            found[place] = error
    return found


def _asked_fingerprint(place: Remote, *, anew: bool = False) -> str:
    found = _fingerprint(place, place.ask(anew=anew))
    if not found:
        raise UnreadableFileError(
            f"{place}: its server tells neither ETag nor Last-Modified, so that nobody could know whether the file "
            "changes; fetch it and give its path, or put it where one of them is told"
        )
    return found


def _fingerprint(place: Remote, info: Mapping[str, Any]) -> str:
    """Return the hash of the content that is told, or one of what changes with it; nothing where neither is."""
    if info["type"] != "file":
        raise NoDataError(f"{place}: a folder, not a file; check the URL")
    if info.get("lfs"):
        return str(info["lfs"]["sha256"])[:HASH_DIGITS]  # as `hash_file`
    if info.get("blob_id"):
        return f"git:{info['blob_id']}"
    told = {re.sub(r"[^a-z0-9]", "", key.lower()): value for key, value in info.items()}
    version = next((_plain(told[name]) for name in _VERSIONS if told.get(name)), None)
    if version is None:
        return ""
    known = json.dumps([place.url, info.get("size"), version])
    return f"url:{hashlib.sha256(known.encode()).hexdigest()[:HASH_DIGITS]}"


def _plain(version: Any) -> str:
    """Return a version as text; some have a time as such in one place and in seconds in another."""
    return str(version.timestamp() if isinstance(version, dt.datetime) else version)


@contextlib.contextmanager
def fetched(path: str, content: str, *, max_bytes: int, folder: Path | None = None) -> Iterator[str]:
    """Yield where a file is on this machine: a path as it is, a URL as a copy that lasts as long as the block."""
    # The fingerprint must still be the one that it had. Errors of the block that name the copy name the URL instead.
    place = location(path)
    if isinstance(place, Path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="music_evals_", dir=folder, ignore_cleanup_errors=True) as scratch:
        copy = Path(scratch) / f"copy{place.suffix}"
        _copy(place, copy, max_bytes)
        if _fingerprint_of_copy(copy, place, content) != content:
            raise UnreadableFileError(f"{place}: changed after the run had begun; start the run again")
        try:
            yield str(copy)
        except MusicEvalsError as error:
            raise _renamed(error, str(copy), place.url) from error


def _copy(place: Remote, copy: Path, max_bytes: int) -> None:
    try:
        with copy.open("wb") as file:
            file.writelines(place.blocks(max_bytes))
    except MusicEvalsError:
        raise
    except OSError as error:
        held = copy.parent.parent
        raise OutputError(f"{held}: cannot hold a copy of {place} ({error.strerror}); make room there") from error


def _fingerprint_of_copy(copy: Path, place: Remote, content: str) -> str:
    """Return the hash of what was fetched; where none is known, the fingerprint that the file has by now."""
    kind = content.partition(":")[0]
    if kind == "url":
        return _asked_fingerprint(place, anew=True)
    if kind == "git":
        data = copy.read_bytes()
        digest = hashlib.sha1(b"blob %d\0" % len(data) + data)  # noqa: S324 (git's own)
        return f"git:{digest.hexdigest()}"
    return hash_file(copy)


def _renamed(error: MusicEvalsError, old: str, new: str) -> MusicEvalsError:
    # not __init__: some build their message there
    renamed: MusicEvalsError = type(error).__new__(type(error), str(error).replace(old, new))
    renamed.__dict__.update(vars(error))
    return renamed


def _scheme(text: str | os.PathLike[str]) -> str:
    """Return the scheme of a URL in lower case; nothing for a path."""
    found = _URL.match(os.fspath(text))
    return found[1].lower() if found is not None and not exists(text) else ""


def _without_secrets(text: str) -> str:
    return _QUERY.sub(r"\1", _USER.sub(r"\1", text))


def _opened(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and its path there."""
    scheme, _, path = url.partition("://")
    try:
        system = _system(scheme, path.partition("/")[0], os.getpid())
    except ImportError as error:
        package = _BACKENDS.get(scheme, "huggingface_hub")
        raise MissingBackendError(package, "", f"{scheme}://", install=f"pip install {package}") from error
    return system, system._strip_protocol(url)


@functools.lru_cache(maxsize=64)
def _system(scheme: str, host: str, _: int) -> Any:
    """Return one file system for all threads of a process: what one of them is to forget, all forget."""
    from fsspec.core import url_to_fs

    return url_to_fs(f"{scheme}://{host}", skip_instance_cache=True)[0]


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn what a file system raises into one named error."""
    try:
        yield
    except MusicEvalsError:
        raise
    except _failures() as error:
        raise _named(url, error) from error


def _failures() -> tuple[type[Exception], ...]:
    roots = [getattr(sys.modules[module], name) for module, name in _FOREIGN if module in sys.modules]
    return OSError, ValueError, NotImplementedError, *roots


def _named(url: str, error: Exception) -> MusicEvalsError:
    chain = list(_chain(error))  # the file system of HTTP says of whatever happens that there is no such file
    status = next(filter(None, map(_status, chain)), None)
    if status in {401, 403} or any(isinstance(cause, PermissionError) for cause in chain):
        told = f" ({status})" if status else ""
        return UnreadableFileError(
            f"{url}: not there, or refused to who asks{told}; check the URL, and the credentials in the environment"
        )
    others = [cause for cause in chain if isinstance(cause, _failures()) and not isinstance(cause, FileNotFoundError)]
    if isinstance(error, FileNotFoundError) and (status == 404 or not others):
        return NoDataError(f"{url}: no such file; check the URL")
    cause = others[0]
    reason = " ".join(_without_secrets(str(cause)).split()) or "no reason is given"
    return UnreadableFileError(f"{url}: cannot be read ({type(cause).__name__}: {reason})")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _status(error: BaseException) -> int | None:
    """Return the status that a server answered with, as the clients of HTTP, the Hub and S3 keep it."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        found = getattr(error, "status", None) or getattr(response, "status_code", None)
    return found if isinstance(found, int) else None
