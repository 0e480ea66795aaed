"""What we ask of the Hub, over the client of `huggingface_hub`: look at a repository, commit to it, propose to it.

Everything that goes wrong is one of the `HubError` kinds. The address is that of the environment (``HF_ENDPOINT``), the
token too (``HF_TOKEN``, or ``hf auth login``) where none is given.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

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
    from huggingface_hub import HfApi

__all__ = [
    "Content",
    "Held",
    "Proposal",
    "Repository",
    "Sent",
    "card_complaints",
    "check_rights",
    "commit",
    "commit_titles",
    "connect",
    "content_bytes",
    "content_size",
    "differing",
    "look",
    "named",
    "open_proposals",
    "read_text",
]

RepositoryType = Literal["model", "dataset", "space"]

Content = bytes | Path
"""What a file holds: its bytes, or where they are."""

_PREFIX = {"model": "", "dataset": "datasets/", "space": "spaces/"}
_CHUNK = 2**20


class Repository(NamedTuple):
    """A repository on the Hub."""

    type: RepositoryType
    id: str
    """``owner/name``."""

    def url(self, endpoint: str) -> str:
        """Return the address of its page."""
        return f"{endpoint}/{_PREFIX[self.type]}{self.id}"

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class Held(NamedTuple):
    """What a repository holds at one revision."""

    commit: str
    hashes: dict[str, str]
    """Path -> what tells its content: SHA-256 of a file in large storage, else the SHA-1 of git."""
    sdk: str | None = None
    """Of a Space."""


class Proposal(NamedTuple):
    """An open pull request."""

    revision: str
    url: str


class Sent(NamedTuple):
    """A commit that was made."""

    commit: str
    url: str
    """Its page, or that of the pull request that it opened."""


def connect(token: str | None = None) -> HfApi:
    """Return the client."""
    from huggingface_hub import HfApi

    return HfApi(token=token, library_name="music_evals")


@contextlib.contextmanager
def named(what: str) -> Iterator[None]:
    """Turn what the client raises within into our errors.

    Parameters
    ----------
    what
        What is tried, for the start of the message: ``"publishing space org/name"``.

    """
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    try:
        yield
    except LocalTokenNotFoundError as error:
        msg = f"{what}: there is no token; log in with `hf auth login`, or set HF_TOKEN to one that may write"
        raise HubTokenError(msg) from error
    except HfHubHTTPError as error:
        raise _refused(what, error) from error
    except RuntimeError as error:  # an upload to large storage; why it failed is in its cause
        if isinstance(error.__cause__, HfHubHTTPError):
            raise _refused(what, error.__cause__) from error
        raise _failed(what, error.__cause__ or error) from error
    except OfflineModeIsEnabled as error:
        msg = f"{what}: HF_HUB_OFFLINE is set, so that the Hub is not asked; unset it"
        raise HubOfflineError(msg) from error
    except ValueError as error:
        msg = f"{what}: the Hub's client refuses it: {error}"
        raise InvalidInputError(msg) from error
    except hub_errors() as error:
        raise _failed(what, error) from error


def _failed(what: str, error: BaseException) -> MusicEvalsError:
    """Return the error of a connection, or that of a file on this machine, which names it."""
    if isinstance(error, OSError) and error.filename is not None:
        return UnreadableFileError(
            f"{what}: {error.filename} on this machine fails ({type(error).__name__}: {error.strerror}); see that it "
            "is there, and that you may use it"
        )
    return HubOfflineError(
        f"{what}: the connection to the Hub failed ({type(error).__name__}: {error}); check the network, then give the "
        "same command again: what has arrived is not sent twice"
    )


def _refused(what: str, error: Any) -> HubError:
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    status = error.response.status_code
    said = error.server_message or " ".join(str(error).split())
    if isinstance(error, RevisionNotFoundError):
        return HubNotFoundError(f"{what}: no such revision on the Hub; give a commit, tag or branch that is there")
    if isinstance(error, RepositoryNotFoundError):
        msg = f"{what}: no such repository on the Hub, or a private one that this token may not see; check its name"
        return HubNotFoundError(msg)
    if status == 401:
        msg = f"{what}: the Hub refuses the token ({said}); log in again with `hf auth login`, or renew HF_TOKEN"
        return HubTokenError(msg)
    if status == 403:
        msg = f"{what}: this token may not do that ({said}); take one that may write there, or propose it: --pr"
        return HubRightsError(msg)
    if status in {409, 412}:
        msg = f"{what}: somebody else committed in between ({said}); nothing was written, give the command again"
        return HubConflictError(msg)
    return HubError(f"{what}: the Hub answers {status}: {said}")


def check_rights(api: HfApi, owner: str, *, writes: bool) -> None:
    """Find out whether the token is good, before anything is sent.

    Parameters
    ----------
    api
        From `connect`.
    owner
        User or organisation that is written to.
    writes
        False where only pull requests are opened, for which anybody may do.

    Raises
    ------
    HubTokenError
        There is none, or it is refused.
    HubRightsError
        It may only read, or its user does not belong to the organisation.

    """
    with named("asking the Hub who we are"):
        who = api.whoami(cache=True)
    role = who.get("auth", {}).get("accessToken", {}).get("role")
    if role == "read":
        msg = f"the token of {who['name']} may only read; make one with the right to write and set HF_TOKEN to it"
        raise HubRightsError(msg)
    owners = {who["name"], *(org["name"] for org in who.get("orgs", []))}
    if writes and role == "write" and owner not in owners:  # of finer rights the token does not tell
        msg = (
            f"{who['name']} is no member of {owner} (but of: {', '.join(sorted(owners))}); take another --org, or "
            "another token, or propose the change: --pr"
        )
        raise HubRightsError(msg)


def look(api: HfApi, repository: Repository, revision: str | None = None) -> Held | None:
    """Return what a repository holds at a revision (None: its main branch); None where there is no such repository.

    Raises
    ------
    HubError
        Of its kinds, but not for a repository that is missing.

    """
    from huggingface_hub.hf_api import RepoFile

    try:
        with named(f"reading {repository}"):
            info = api.repo_info(repository.id, repo_type=repository.type, revision=revision)
            commit = str(info.sha)
            entries = list(
                api.list_repo_tree(repository.id, repo_type=repository.type, revision=commit, recursive=True)
            )
    except HubNotFoundError:
        if revision is not None:
            raise
        return None
    hashes = {
        entry.path: entry.lfs.sha256 if entry.lfs else entry.blob_id for entry in entries if isinstance(entry, RepoFile)
    }
    return Held(commit, hashes, getattr(info, "sdk", None))


def commit_titles(api: HfApi, repository: Repository, held: Held) -> list[str]:
    """Return the titles of the commits that led to what a repository holds, newest first.

    Raises
    ------
    HubError
        Of its kinds.

    """
    with named(f"reading the commits of {repository}"):
        found = api.list_repo_commits(repository.id, repo_type=repository.type, revision=held.commit)
        return [str(made.title) for made in found]


def read_text(api: HfApi, repository: Repository, path: str, held: Held) -> str | None:
    """Return a text file of a repository; None where it has none of that path.

    Raises
    ------
    HubError
        Of its kinds.
    UnreadableFileError
        The file is no text.

    """
    if path not in held.hashes:
        return None
    with named(f"reading {path} of {repository}"):
        found = api.hf_hub_download(repository.id, path, repo_type=repository.type, revision=held.commit)
    try:
        return Path(found).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"{path} of {repository} is no text in UTF-8: {error}; repair it on the Hub"
        raise UnreadableFileError(msg) from error


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
    for part in _parts(content):
        git.update(part)
        large.update(part)
    return git.hexdigest(), large.hexdigest()


def _parts(content: Content) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while part := file.read(_CHUNK):
            yield part


def card_complaints(card: str, repository: Repository) -> list[str]:
    """Return what the Hub finds wrong with the head of a card; an empty list if nothing is."""
    from huggingface_hub import RepoCard

    with named(f"checking the card of {repository}"), _no_remarks():
        try:
            RepoCard(card).validate(repo_type=repository.type)
        except ValueError as error:
            return _complaints(str(error))
    return []


def _complaints(answer: str) -> list[str]:
    try:
        return [str(error["message"]) for error in json.loads(answer)["errors"]]
    except (ValueError, KeyError, TypeError):
        return [answer]


@contextlib.contextmanager
def _no_remarks() -> Iterator[None]:
    """Leave out the client's remarks on fields that it does not know; the Hub decides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def open_proposals(api: HfApi, repository: Repository, title: str) -> list[Proposal]:
    """Return the open pull requests of this title that the token's user made, newest first."""
    with named(f"reading the pull requests of {repository}"):
        name = api.whoami(cache=True)["name"]
        found = api.get_repo_discussions(
            repository.id,
            repo_type=repository.type,
            author=name,
            discussion_type="pull_request",
            discussion_status="open",
        )
        return [
            Proposal(f"refs/pr/{request.num}", request.url)
            for request in sorted(found, key=lambda request: request.num, reverse=True)
            if request.title == title and request.author == name
        ]


def commit(
    api: HfApi,
    repository: Repository,
    files: Mapping[str, Content],
    *,
    title: str,
    text: str = "",
    parent: str | None,
    deleted: Sequence[str] = (),
    proposal: bool = False,
    onto: Proposal | None = None,
) -> Sent:
    """Make one commit: all of the files arrive, or none.

    Parameters
    ----------
    api, repository
        Who is asked, and for which repository; it must exist.
    files
        Path -> content of what is new.
    title, text
        Message of the commit.
    parent
        Commit that the change was made on: if the repository has moved on, nothing is written. None does not look.
    deleted
        Paths of files that go.
    proposal
        Open a pull request instead.
    onto
        Open pull request of ours that gets the commit; `parent` is then of it.

    Raises
    ------
    HubError
        Of its kinds.
    InvalidInputError
        The Hub finds the card invalid.

    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[Any] = [
        CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
        for path, content in sorted(files.items())
    ]
    operations += [CommitOperationDelete(path) for path in sorted(deleted)]
    with named(f"committing to {repository}"), _no_remarks():
        done = api.create_commit(
            repository.id,
            operations,
            commit_message=title,
            commit_description=text,
            repo_type=repository.type,
            revision=onto.revision if onto else None,
            create_pr=proposal and onto is None,
            parent_commit=parent,
        )
    return Sent(done.oid, onto.url if onto else done.pr_url or done.commit_url)
