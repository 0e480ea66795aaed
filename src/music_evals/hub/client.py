"""What we ask of the Hub, over the client of `huggingface_hub`: look at a repository, commit to it, propose to it.

Everything that goes wrong is one of the `HubError` kinds. The address is that of the environment (``HF_ENDPOINT``), the
token too (``HF_TOKEN``, or ``hf auth login``) where none is given.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from music_evals.errors import (
    HubConflictError,
    HubError,
    HubNotFoundError,
    HubOfflineError,
    HubRightsError,
    HubTokenError,
    InvalidInputError,
    MusicEvalsError,
    UnreadableFileError,
    hub_errors,
)

if TYPE_CHECKING:
    from huggingface_hub import HfApi, SpaceHardware

RepositoryType = Literal["model", "dataset", "space"]

Content = bytes | Path  # what a file holds: its bytes, or where they are

Waiting = Callable[[str, float], None]  # called with what is waited for, and the seconds so far

READ_SEC = 20.0  # how long the Hub may be silent
WRITE_SEC = 120.0  # the same for a commit or a large file, which may take it a while
SAY_SEC = 5.0  # how often it is said that we wait

_PREFIX = {"model": "", "dataset": "datasets/", "space": "spaces/"}
_CHUNK = 2**20


class Repository(NamedTuple):
    """A repository on the Hub."""

    type: RepositoryType
    id: str  # ``owner/name``

    def url(self, endpoint: str) -> str:
        """Return the address of its page."""
        return f"{endpoint}/{_PREFIX[self.type]}{self.id}"

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class Held(NamedTuple):
    """What a repository holds at one revision."""

    commit: str
    hashes: dict[str, str]  # path -> hash of its content: SHA-256 of a file in large storage, else the SHA-1 of git
    sdk: str | None = None  # of a Space


class Proposal(NamedTuple):
    """An open pull request."""

    revision: str
    url: str


class Sent(NamedTuple):
    """A commit that was made."""

    commit: str
    url: str  # its page, or that of the pull request that it opened


class Hardware(NamedTuple):
    """What a Space runs on, by the names of the Hub, such as ``zero-a10g``."""

    current: str | None  # None before it was built
    requested: str | None

    @property
    def becomes(self) -> str | None:
        """What it will run on once the Hub has carried out the request."""
        return self.requested or self.current


@dataclasses.dataclass(frozen=True)
class Hub:
    """What we ask of the Hub."""

    token: str | None = None  # None takes that of the environment
    waiting: Waiting | None = None  # called where an answer takes its time

    @functools.cached_property
    def api(self) -> HfApi:
        """The client."""
        from huggingface_hub import HfApi

        return HfApi(token=self.token, library_name="music_evals")

    @contextlib.contextmanager
    def asking(self, action: str) -> Iterator[None]:
        """Turn what the client raises within into our errors, bound how long it waits, and say that it waits."""
        with named(action), _bounded(action), _reporting_wait(action, self.waiting):
            yield

    def check_rights(self, owner: str, *, writes: bool) -> None:
        """Raise `HubTokenError` or `HubRightsError` before anything is sent; a pull request needs no right to write."""
        with self.asking("asking the Hub who we are"):
            who = self.api.whoami(cache=True)
        role = who.get("auth", {}).get("accessToken", {}).get("role")
        if role == "read":
            raise HubRightsError(
                f"the token of {who['name']} may only read; make one with the right to write and set HF_TOKEN to it"
            )
        owners = {who["name"], *(org["name"] for org in who.get("orgs", []))}
        if writes and role == "write" and owner not in owners:  # of finer rights the token does not tell
            raise HubRightsError(
                f"{who['name']} is no member of {owner} (but of: {', '.join(sorted(owners))}); take another owner or "
                "another token, or propose the change by a pull request"
            )

    def look(self, repository: Repository, revision: str | None = None) -> Held | None:
        """Return what a repository holds at a revision (None: main); None where there is no such repository."""
        from huggingface_hub.hf_api import RepoFile

        try:
            with self.asking(f"reading {repository}"):
                info = self.api.repo_info(repository.id, repo_type=repository.type, revision=revision)
                commit = str(info.sha)
                entries = list(
                    self.api.list_repo_tree(repository.id, repo_type=repository.type, revision=commit, recursive=True)
                )
        except HubNotFoundError:
            if revision is not None:
                raise
            return None
        files = [entry for entry in entries if isinstance(entry, RepoFile)]
        hashes = {file.path: file.lfs.sha256 if file.lfs else file.blob_id for file in files}
        return Held(commit, hashes, getattr(info, "sdk", None))

    def commit_titles(self, repository: Repository, held: Held) -> list[str]:
        """Return the titles of the commits that led to what a repository holds, newest first."""
        with self.asking(f"reading the commits of {repository}"):
            commits = self.api.list_repo_commits(repository.id, repo_type=repository.type, revision=held.commit)
            return [str(commit.title) for commit in commits]

    def read_text(self, repository: Repository, path: str, held: Held) -> str | None:
        """Return a text file of a repository; None if it is missing."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]  # documented

        if path not in held.hashes:
            return None
        with self.asking(f"reading {path} of {repository}"):  # hf_hub_download asks twice, and for a minute
            url = hf_hub_url(
                repository.id, path, repo_type=repository.type, revision=held.commit, endpoint=self.api.endpoint
            )
            answer = get_session().get(url, headers=build_hf_headers(token=self.token, library_name="music_evals"))
            hf_raise_for_status(answer)
        try:
            return str(answer.content, "utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableFileError(
                f"{path} of {repository} is no text in UTF-8: {error}; repair it on the Hub"
            ) from error

    def card_complaints(self, card: str, repository: Repository) -> list[str]:
        """Return what the Hub finds wrong with the head of a card; an empty list if nothing is."""
        from huggingface_hub import RepoCard, get_session
        from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]  # documented

        # the client remarks on fields that it does not know; the Hub decides
        with self.asking(f"checking the card of {repository}"), warnings.catch_warnings(action="ignore"):
            try:  # a byte order mark hides the head from the client, though not from the Hub
                content = str(RepoCard(card.removeprefix("\ufeff")))
            except ValueError as error:
                return _complaints(str(error))
            # RepoCard.validate asks huggingface.co before version 2.2 of the client, whatever the endpoint is
            body = {"repoType": repository.type, "content": content}
            answer = get_session().post(
                f"{self.api.endpoint}/api/validate-yaml", json=body, headers={"Accept": "text/plain"}
            )
            if answer.status_code == 400:
                return _complaints(answer.text)
            hf_raise_for_status(answer)
        return []

    def open_proposals(self, repository: Repository, title: str) -> list[Proposal]:
        """Return the open pull requests of this title that the token's user made, newest first."""
        with self.asking(f"reading the pull requests of {repository}"):
            name = self.api.whoami(cache=True)["name"]
            discussions = self.api.get_repo_discussions(
                repository.id,
                repo_type=repository.type,
                author=name,
                discussion_type="pull_request",
                discussion_status="open",
            )
            return [
                Proposal(f"refs/pr/{request.num}", request.url)
                for request in sorted(discussions, key=lambda request: request.num, reverse=True)
                if request.title == title and request.author == name
            ]

    def make(self, repository: Repository, *, private: bool, sdk: str | None) -> None:
        """Make a repository; `sdk` is that of a Space."""
        with self.asking(f"making {repository}"):
            self.api.create_repo(
                repository.id, repo_type=repository.type, private=private, exist_ok=True, space_sdk=sdk
            )

    def commit(
        self,
        repository: Repository,
        files: Mapping[str, Content],
        *,
        title: str,
        parent: str | None,
        deleted: Sequence[str] = (),
        proposal: bool = False,
        onto: Proposal | None = None,
    ) -> Sent:
        """Make one commit on top of `parent`: all files or none; raise if another commit came first."""
        # With `proposal` it opens a pull request; `onto` is one of ours that gets it, and `parent` is then of that.
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations: list[Any] = [
            CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
            for path, content in sorted(files.items())
        ]
        operations += [CommitOperationDelete(path) for path in sorted(deleted)]
        with self.asking(f"committing to {repository}"), warnings.catch_warnings(action="ignore"):
            done = self.api.create_commit(
                repository.id,
                operations,
                commit_message=title,
                repo_type=repository.type,
                revision=onto.revision if onto else None,
                create_pr=proposal and onto is None,
                parent_commit=parent,
            )
        return Sent(done.oid, onto.url if onto else done.pr_url or done.commit_url)

    def hardware(self, repository: Repository) -> Hardware:
        """Return what a Space runs on."""
        with self.asking(f"reading the hardware of {repository}"):
            runtime = self.api.get_space_runtime(repository.id)
        return Hardware(runtime.hardware, runtime.requested_hardware)

    def ask_for_hardware(self, repository: Repository, name: str) -> Hardware:
        """Request hardware for a Space, and return what the Hub then reports."""
        with self.asking(f"asking for the hardware {name} of {repository}"):
            self.api.request_space_hardware(repository.id, cast("SpaceHardware", name))
        return self.hardware(repository)


@contextlib.contextmanager
def _bounded(action: str) -> Iterator[None]:
    """Bound how long the client waits for one answer; by itself it waits for ever, or asks again for minutes."""
    from huggingface_hub import get_session

    pending: dict[tuple[str, str], float] = {}  # request without an answer yet -> when it was first sent

    def ask(request: Any) -> None:
        limit = WRITE_SEC if request.method == "PUT" or "/commit/" in request.url.path else READ_SEC
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), limit)
        now, place = time.monotonic(), (request.method, str(request.url))
        silent = now - pending.setdefault(place, now)
        if silent > limit and request.method != "PUT":  # the client asks again; a large file may have broken off late
            raise HubOfflineError(f"{action}: the Hub has not answered for {silent:.0f} s; try again later")

    def hear(response: Any) -> None:
        pending.pop((response.request.method, str(response.request.url)), None)

    client = get_session()
    client.event_hooks["request"].append(ask)
    client.event_hooks["response"].append(hear)
    try:
        yield
    finally:
        client.event_hooks["request"].remove(ask)
        client.event_hooks["response"].remove(hear)


@contextlib.contextmanager
def _reporting_wait(action: str, waiting: Waiting | None) -> Iterator[None]:
    """Report every few seconds that what is within still goes on."""
    if waiting is None:
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def watch() -> None:
        while not done.wait(SAY_SEC):
            waiting(action, time.monotonic() - start)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextlib.contextmanager
def named(action: str) -> Iterator[None]:
    """Turn what the client raises within into our errors; `action` is tried, and starts their messages."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    try:
        yield
    except MusicEvalsError:
        raise
    except LocalTokenNotFoundError as error:
        raise HubTokenError(
            f"{action}: there is no token; log in with `hf auth login`, or set HF_TOKEN to one that may write"
        ) from error
    except HfHubHTTPError as error:
        raise _refused(action, error) from error
    except RuntimeError as error:  # an upload to large storage; why it failed is in its cause
        if isinstance(error.__cause__, HfHubHTTPError):
            raise _refused(action, error.__cause__) from error
        raise _failed(action, error.__cause__ or error) from error
    except OfflineModeIsEnabled as error:
        raise HubOfflineError(f"{action}: HF_HUB_OFFLINE is set; unset it to reach the Hub") from error
    except ValueError as error:
        raise InvalidInputError(f"{action}: the Hub's client refuses it: {error}") from error
    except hub_errors() as error:
        raise _failed(action, error) from error


def _failed(action: str, error: BaseException) -> MusicEvalsError:
    """Return the error of a connection, or that of a file on this machine, which names it."""
    if isinstance(error, OSError) and error.filename is not None:
        return UnreadableFileError(
            f"{action}: {error.filename} on this machine fails ({type(error).__name__}: {error.strerror}); see that it "
            "is there, and that you may use it"
        )
    return HubOfflineError(
        f"{action}: the connection to the Hub failed ({type(error).__name__}: {error}); check the network, then give "
        "the same command again: what has arrived is not sent twice"
    )


def _refused(action: str, error: Any) -> HubError:
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    status = error.response.status_code
    reason = error.server_message or " ".join(str(error).split())
    if isinstance(error, RevisionNotFoundError):
        return HubNotFoundError(f"{action}: no such revision on the Hub; give a commit, tag or branch that is there")
    if isinstance(error, RepositoryNotFoundError):
        msg = f"{action}: no such repository on the Hub, or a private one that this token may not see; check its name"
        return HubNotFoundError(msg)
    if status == 401:
        msg = f"{action}: the Hub refuses the token ({reason}); log in again with `hf auth login`, or renew HF_TOKEN"
        return HubTokenError(msg)
    if status == 403:
        msg = f"{action}: this token may not do that ({reason}); take one that may"
        return HubRightsError(msg)
    if status in {409, 412}:
        msg = f"{action}: another commit was made in between ({reason}); nothing was written, give the command again"
        return HubConflictError(msg)
    return HubError(f"{action}: the Hub answers {status}: {reason}")


def content_size(content: Content) -> int:
    """Return the number of bytes of a file."""
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def content_bytes(content: Content) -> bytes:
    """Return the bytes of a file."""
    return content if isinstance(content, bytes) else content.read_bytes()


def differing(files: Mapping[str, Content], held: Held | None) -> list[str]:
    """Return the paths of the files that the repository does not hold with the same content."""
    if held is None:
        return list(files)
    return [path for path, content in files.items() if held.hashes.get(path) not in _hashes(content)]


def _hashes(content: Content) -> tuple[str, str]:
    """Return the hash of git and that of large storage; which of them a file has is decided by the Hub."""
    git = hashlib.sha1(b"blob %d\0" % content_size(content), usedforsecurity=False)
    large = hashlib.sha256()
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
        while part := file.read(_CHUNK):
            git.update(part)
            large.update(part)
    return git.hexdigest(), large.hexdigest()


def _complaints(answer: str) -> list[str]:
    try:
        return [str(error["message"]) for error in json.loads(answer)["errors"]]
    except (ValueError, KeyError, TypeError):
        return [answer]
