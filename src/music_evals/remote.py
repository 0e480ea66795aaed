"""Files and folders at URLs, as `fsspec` opens them, with one named error for whatever a file system raises.

A file is known by a fingerprint, so that whoever settles what is compared need not fetch it:

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
are hashes of all metadata of a file, with addresses and commits that change while the file does not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import functools
import hashlib
import ipaddress
import json
import os
import posixpath
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    MissingBackendError,
    MusicEvalsError,
    NoDataError,
    UnreadableFileError,
)

HASH_DIGITS = 32  # 128 bits: no two files of one run meet by chance

WEB = frozenset({"http", "https"})

_BACKENDS = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "http": "aiohttp", "https": "aiohttp"}

_BLOCK = 1 << 20

_USER = re.compile(r"(://)[^/\s]*@")
_QUERY = re.compile(r"(://[^\s?#]*)(?:[?#]\S*)?")

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


_VERSIONS = (
    "etag", "contentmd5", "digest", "md5hash", "generation", "versionid", "xethash", "lastmodified", "mtime", "created",
)  # fmt: skip
"""What file systems call that which changes with a file, in lower case and letters alone; the surest first."""


@dataclasses.dataclass(frozen=True)
class Remote:
    """A file or a folder at a URL, with the names of `pathlib.Path` for what inputs need; made by `locations`."""

    url: str
    # The fingerprint from a listing, so that it is not requested again.
    content: str = dataclasses.field(default="", compare=False, repr=False)

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
        return unquote(last) if self.scheme in WEB else last

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
        joined = posixpath.normpath(posixpath.join(folder, quote(path) if scheme in WEB else path))
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
        if self.scheme in WEB and self.url.endswith("/"):
            return "directory"
        if self.content:
            return "file"
        try:
            self.forget()
            info = self.ask()
        except NoDataError:
            return ""
        # a web server sends whoever asks for a folder to the same address with a slash at its end
        return "directory" if str(info.get("url", "")).endswith("/") else str(info["type"])

    def ask(self) -> Mapping[str, Any]:
        """Return the metadata that its file system reports, possibly from a cache."""
        with _explained(self.url):
            system, path = _opened(self.url)
            info: Mapping[str, Any] = system.info(path)
            return info

    def fingerprint(self) -> str:
        """Return what is known of its content, unread."""
        info = self.ask()
        if info["type"] != "file":
            raise NoDataError(f"{self.url}: a folder, not a file; check the URL")
        content = _fingerprint(self.url, info)
        if not content:
            raise UnreadableFileError(
                f"{self.url}: its server sends neither ETag nor Last-Modified, so that changes of the file cannot "
                "be detected; fetch it and give its path, or put it on a server that sends one of them"
            )
        return content

    def forget(self) -> None:
        """Clear the cache of its file system."""
        with _explained(self.url):
            _opened(self.url)[0].invalidate_cache()

    def listing(self, *, deep: bool) -> dict[str, Remote]:
        """Return what lies in a folder, or all files below it, by the paths from there."""
        base = self.url.rstrip("/")
        with _explained(self.url):
            system, path = _opened(self.url)
            if self.scheme in WEB:
                return {unquote(link.removeprefix(f"{base}/")): Remote(link) for link in _links(system, f"{base}/")}
            start = system.info(path)["name"].rstrip("/")
            inside = system.find(path, detail=True).values() if deep else system.ls(path, detail=True)
            infos = {info["name"].removeprefix(f"{start}/"): info for info in inside}
        urls = {name: f"{base}/{name}" for name in infos if name}
        return {name: Remote(url, _fingerprint(url, infos[name])) for name, url in urls.items()}

    def blocks(self, max_bytes: int) -> Iterator[bytes]:
        """Yield its bytes, and never more than the bound."""
        options = {"block_size": 0} if self.scheme in {*WEB, "hf"} else {}  # in one go: not every server has ranges
        with _explained(self.url):
            system, path = _opened(self.url)
            with system.open(path, "rb", **options) as file:
                block, n_bytes = b"", 0
                while True:
                    if max(n_bytes, getattr(file, "size", None) or 0) > max_bytes:
                        message = f"{self.url}: more than {max_bytes} bytes"
                        raise FileTooLargeError(message, name=self.name, unit="bytes", limit=max_bytes)
                    if block:
                        yield block
                    if not (block := file.read(_BLOCK)):
                        break
                    n_bytes += len(block)


def _fingerprint(url: str, info: Mapping[str, Any]) -> str:
    """Return the reported hash of the content, or one of metadata that change with it; empty if unknown."""
    if info["type"] != "file":
        return ""
    if info.get("lfs"):
        return str(info["lfs"]["sha256"])[:HASH_DIGITS]  # as `locations.hash_file`
    if info.get("blob_id"):
        return f"git:{info['blob_id']}"
    fields = {re.sub(r"[^a-z0-9]", "", key.lower()): value for key, value in info.items()}
    version = next((fields[name] for name in _VERSIONS if fields.get(name)), None)
    if version is None:
        return ""
    # some have a time as such in one place and in seconds in another
    text = str(version.timestamp() if isinstance(version, dt.datetime) else version)
    known = json.dumps([url, info.get("size"), text])
    return f"url:{hashlib.sha256(known.encode()).hexdigest()[:HASH_DIGITS]}"


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


def without_secrets(text: str) -> str:
    """Return a text whose URLs have lost users, passwords, queries and fragments."""
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
    # the file system of HTTP reports any failure as a missing file: the causes say more
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        chain.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    status = next(filter(None, map(_status, chain)), None)
    # a 404 that is no missing file is a repository: older clients of the Hub say so of those that are not shown, too
    hidden = status == 404 and not isinstance(error, FileNotFoundError)
    if status in {401, 403} or hidden or any(isinstance(cause, PermissionError) for cause in chain):
        code = f" ({status})" if status else ""
        return UnreadableFileError(
            f"{url}: not found, or access is denied{code}; check the URL, and the credentials in the environment"
        )
    others = [cause for cause in chain if isinstance(cause, _failures()) and not isinstance(cause, FileNotFoundError)]
    if isinstance(error, FileNotFoundError) and (status == 404 or not others):
        return NoDataError(f"{url}: no such file; check the URL")
    reason = " ".join(without_secrets(str(others[0])).split()) or "no reason is given"
    return UnreadableFileError(f"{url}: cannot be read ({type(others[0]).__name__}: {reason})")


def _status(error: BaseException) -> int | None:
    """Return the status that a server answered with, as the clients of HTTP, the Hub and S3 keep it."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        status = getattr(error, "status", None) or getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def is_loopback(url: str) -> bool:
    """Tell whether an address is that of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
