"""Folders to the Hub: each becomes a repository, by one commit that holds all of its changes or none.

All folders are checked before anything is sent. What the Hub holds already is not sent again, so that a publication
that was interrupted continues when the command is given again.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from music_evals.deprecation import renamed_options, warn_renamed
from music_evals.errors import (
    HubError,
    HubForeignError,
    HubNotFoundError,
    HubOfflineError,
    HubTokenError,
    InvalidInputError,
    MusicEvalsError,
)
from music_evals.hub import client
from music_evals.hub.card_checks import problems
from music_evals.hub.heads import read_head
from music_evals.hub.model_index import Changed, merge_published, read_index, write_index
from music_evals.hub.repository_folders import REPOSITORY_TYPES, RepositoryFolder, Source, uncommitted
from music_evals.hub.rewriting import Addresses, pin_requirements, rewrite_card

__all__ = ["Change", "Published", "Status", "Wanted", "publish"]

CARD = "README.md"
TITLE = "Publish {label} of music_evals"
_OURS = re.compile(r"Publish \S+ of music_evals( \(#\d+\))?")
"""Title of a commit of ours; the Hub adds the number of a pull request that was merged."""
_INITIAL = {".gitattributes", CARD}
"""What the Hub puts into a repository that it makes."""

PROTECTED = (".gitattributes", ".eval_results/")
"""What the Hub or a push of results put there: never deleted."""

Status = Literal["unchanged", "published", "proposed", "would change", "failed", "not tried"]
"""What became of a repository folder."""


class Change(NamedTuple):
    """A file that differs between folder and Hub."""

    kind: Literal["new", "changed", "deleted"]
    path: str
    size: int
    """In bytes; 0 for a file that goes."""


class Wanted(NamedTuple):
    """The hardware that a Space should run on."""

    name: str
    """By the Hub's name, such as ``zero-a10g``."""
    state: Literal["there", "asked for", "would be asked for", "refused"]
    """``there``: the Space runs on it, or the Hub has it in hand already."""


class Published(NamedTuple):
    """What became of one repository folder."""

    folder: RepositoryFolder
    repository: client.Repository
    status: Status
    changes: tuple[Change, ...] = ()
    """What was sent, or would be."""
    left: tuple[str, ...] = ()
    """Files that only the Hub has, and that stay there."""
    url: str = ""
    """The repository; or the commit or pull request that was made."""
    error: str = ""
    """What failed; of a folder that was published, its hardware."""
    retained: tuple[Changed, ...] = ()
    """Results that stay on the card although the folder has other values: that of the Hub, that of the folder."""
    hardware: Wanted | None = None

    @property
    def window(self) -> RepositoryFolder:
        """Former name of `folder`."""
        warn_renamed("Published.window", "folder")
        return self.folder

    @property
    def kept(self) -> tuple[Changed, ...]:
        """Former name of `retained`."""
        warn_renamed("Published.kept", "retained")
        return self.retained


class _Plan(NamedTuple):
    held: client.Held | None
    files: dict[str, client.Content]
    changes: tuple[Change, ...]
    left: tuple[str, ...]
    retained: tuple[Changed, ...]


@renamed_options(windows="folders")
def publish(
    folders: Sequence[RepositoryFolder],
    org: str,
    *,
    source: str | None = None,
    revision: str | None = None,
    pull_request: bool = False,
    dry_run: bool = False,
    private: bool = False,
    prune: bool = False,
    adopt: bool = False,
    hardware: str | None = None,
    token: str | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    waiting: client.Waiting | None = None,
) -> list[Published]:
    """Publish repository folders.

    A published model card keeps the results that the card on the Hub has, such as those that `push_results` put there;
    where the folder has other values, they are reported.

    Parameters
    ----------
    folders
        From `find_repository_folders` or `all_repository_folders` of `hub.repository_folders`; they are published in
        the order of its `REPOSITORY_TYPES`.
    org
        User or organisation that will own the repositories; those that are missing are made.
    source, revision
        Address and commit of the source repository; see `hub.repository_folders.Source`.
    pull_request
        Open a pull request for each instead of committing; the repositories must exist.
    dry_run
        Read and compare only; send nothing.
    private
        Repositories that are made are private.
    prune
        Delete files that the folder does not have.
    adopt
        Publish over a repository that has no commit of ours.
    hardware
        Hardware of the Spaces, such as ``"zero-a10g"``; None takes what their cards suggest, and asks for nothing where
        they do not. It is requested after the files have arrived, and the answer of the Hub is verified; a refusal
        undoes nothing. Pull requests change no hardware.
    token
        Token of the Hub; None takes that of the environment.
    progress
        Called with the number of folders done, the number of all, and the name of the next.
    waiting
        Called every few seconds in which the Hub does not answer, with what is waited for and the seconds so far.

    Returns
    -------
    list of Published
        One a folder. A failure of one does not keep the others from being published, but for a connection or token that
        fails: then the rest is not tried.

    Raises
    ------
    InvalidInputError
        A folder is not fit to be published, holds changes that are not committed, or the source is not clear; the
        message lists everything. Nothing was sent.
    HubForeignError
        A repository of that name holds what we did not publish and differs, or is a Space of another sdk; nothing was
        sent.
    HubError
        No token, no rights, no connection; nothing was sent.
    """
    ordered = sorted(folders, key=lambda folder: list(REPOSITORY_TYPES).index(folder.kind))
    _check(ordered, org, hardware, pull_request=pull_request)
    hub = client.Hub(token, waiting)
    addresses = Addresses(org, hub.api.endpoint, Source(ordered[0].root, source, revision))
    contents = {folder: _contents(folder, addresses) for folder in ordered}
    if not dry_run:
        hub.check_rights(org, writes=not pull_request)
        cards = {folder: client.content_bytes(files[CARD]).decode("utf-8") for folder, files in contents.items()}
        invalid = [
            f"  {folder.label}: README.md: {complaint}"
            for folder, card in cards.items()
            for complaint in hub.card_complaints(card, folder.repository(org))
        ]
        if invalid:
            lines = "\n".join(invalid)
            raise InvalidInputError(f"nothing was sent, for the Hub finds these cards invalid:\n{lines}")
    jobs = [
        _Job(hub, folder, folder.repository(org), files, hardware, pull_request, dry_run, private, prune)
        for folder, files in contents.items()
    ]
    # look at every repository that exists, before anything is sent
    strangers = [f"  {job.repository}: {stranger}" for job in jobs if (stranger := job.stranger(adopt=adopt))]
    if strangers:
        lines = "\n".join(strangers)
        raise HubForeignError(f"nothing was sent, for these repositories are not ours:\n{lines}")
    done: list[Published] = []
    stopped = False
    for number, job in enumerate(jobs):
        folder, repository = job.folder, job.repository
        if progress is not None:
            progress(number, len(ordered), folder.label)
        if stopped:
            done.append(Published(folder, repository, "not tried", url=repository.url(hub.api.endpoint)))
            continue
        try:
            done.append(job.run())
        except MusicEvalsError as error:
            stopped = isinstance(error, HubOfflineError | HubTokenError)
            url = repository.url(hub.api.endpoint)
            done.append(Published(folder, repository, "failed", url=url, error=f"{type(error).__name__}: {error}"))
    if progress is not None:
        progress(len(ordered), len(ordered), "done")
    return done


def _check(folders: Sequence[RepositoryFolder], org: str, hardware: str | None, *, pull_request: bool) -> None:
    complaints = [f"{folder.label}: {problem}" for folder in folders for problem in problems(folder)]
    complaints += [
        f"{folder.label} holds changes that are not committed ({', '.join(changed[:5])}); commit them"
        for folder in folders
        if (changed := uncommitted(folder.path))
    ]
    targets: dict[client.Repository, RepositoryFolder] = {}
    for folder in folders:
        other = targets.setdefault(folder.repository(org), folder)
        if other != folder:
            complaints.append(
                f"{folder.label} and {other.label} would be the same {folder.repository(org)}; rename one"
            )
    if len({folder.root for folder in folders}) > 1:
        complaints.append("the folders are of several source repositories; publish them one by one")
    if not org or "/" in org:
        complaints.append(f"the owner must be the name of one user or organisation, got {org!r}")
    if hardware is not None and pull_request:
        complaints.append("a pull request changes no hardware; ask for it without one")
    if hardware is not None and not any(folder.repository(org).type == "space" for folder in folders):
        complaints.append(f"only Spaces run on hardware, and none of the folders becomes one; leave out {hardware}")
    if complaints:
        lines = "\n".join(f"  {problem}" for problem in complaints)
        raise InvalidInputError(f"nothing was sent, for these folders are not fit to be published:\n{lines}")


def _contents(folder: RepositoryFolder, addresses: Addresses) -> dict[str, client.Content]:
    """Return path -> content of everything that is sent."""
    contents: dict[str, client.Content] = dict(folder.files())
    for path, file in contents.items():
        if path.endswith(".md"):
            text = client.content_bytes(file).decode("utf-8")
            contents[path] = rewrite_card(text, folder, addresses, path=path).encode()
        elif path == "requirements.txt":
            text = client.content_bytes(file).decode("utf-8")
            contents[path] = pin_requirements(text, addresses.source).encode()
    return contents


@dataclasses.dataclass(frozen=True)
class _Job:
    """One folder on its way to the Hub."""

    hub: client.Hub
    folder: RepositoryFolder
    repository: client.Repository
    files: dict[str, client.Content]
    asked_hardware: str | None
    pull_request: bool
    dry_run: bool
    private: bool
    prune: bool

    def stranger(self, *, adopt: bool) -> str:
        """Return why the repository on the Hub may not be overwritten; empty if it may."""
        held = self.hub.look(self.repository)
        if held is None:
            return ""
        if held.sdk not in {None, self._sdk}:
            return (
                f"a Space of the sdk {held.sdk}, the folder is of {self._sdk}; rename the folder, or take another owner"
            )
        if adopt or not client.differing(self.files, held):
            return ""
        titles = self.hub.commit_titles(self.repository, held)
        new = len(titles) == 1 and set(held.hashes) <= _INITIAL
        if new or any(_OURS.fullmatch(title) for title in titles):
            return ""
        return (
            f'it holds {len(held.hashes)} files and no commit "{TITLE.format(label="...")}"; adopt it, or take another '
            "owner"
        )

    @functools.cached_property
    def _head(self) -> Mapping[str, Any]:
        return read_head(client.content_bytes(self.files[CARD]).decode("utf-8"))

    @property
    def _sdk(self) -> str | None:
        """Of a Space."""
        return str(self._head.get("sdk")) if self.repository.type == "space" else None

    def run(self) -> Published:
        held = self.hub.look(self.repository)
        done = self._publish(self._plan(held))
        name = self.asked_hardware or self._head.get("suggested_hardware")
        if name is None or self._sdk in {None, "static"} or self.pull_request:
            return done
        if self.dry_run and held is None:
            return done._replace(hardware=Wanted(str(name), "would be asked for"))
        try:
            return done._replace(hardware=self._ensure_hardware(str(name)))
        except HubError as error:
            if self.dry_run or isinstance(error, HubOfflineError | HubTokenError):
                raise
            reason = f"{type(error).__name__}: {error}; the files have arrived"
            return done._replace(hardware=Wanted(str(name), "refused"), error=reason)

    def _ensure_hardware(self, name: str) -> Wanted:
        """Ask for the hardware of the Space where it has another, and look whether the Hub has taken it up."""
        if self.hub.hardware(self.repository).becomes == name:
            return Wanted(name, "there")
        if self.dry_run:
            return Wanted(name, "would be asked for")
        hardware = self.hub.ask_for_hardware(self.repository, name)
        if hardware.becomes != name:
            raise HubError(
                f"{self.repository} was asked to run on {name}, and the Hub says that it runs on {hardware.becomes}"
            )
        return Wanted(name, "asked for")

    def _publish(self, plan: _Plan) -> Published:
        if not plan.changes and plan.held is not None:
            return self._outcome("unchanged", plan)
        if self.dry_run:
            return self._outcome("would change", plan)
        if self.pull_request:
            return self._propose(plan)
        if plan.held is None:
            self.hub.make(self.repository, private=self.private, sdk=self._sdk)
            plan = self._plan(self.hub.look(self.repository))  # the Hub puts files of its own into a new one
        return self._outcome("published", plan, self._commit(plan))

    def _outcome(self, status: Status, plan: _Plan, url: str = "") -> Published:
        address = url or self.repository.url(self.hub.api.endpoint)
        return Published(self.folder, self.repository, status, plan.changes, plan.left, address, retained=plan.retained)

    def _plan(self, held: client.Held | None) -> _Plan:
        files, retained = dict(self.files), list[Changed]()
        if held is not None and self.repository.type == "model":
            # our card with the results of that on the Hub; our results that differ from those are reported
            theirs = self.hub.read_text(self.repository, CARD, held)
            if theirs is not None and "model-index" in read_head(theirs):
                ours = client.content_bytes(self.files[CARD]).decode("utf-8")
                index, retained = merge_published(read_index(theirs), read_index(ours))
                files[CARD] = write_index(ours, index).encode()
        changes = [
            Change("changed" if held and path in held.hashes else "new", path, client.content_size(files[path]))
            for path in client.differing(files, held)
        ]
        extra = [] if held is None else [path for path in held.hashes if path not in files]
        extra = [path for path in extra if not path.startswith(PROTECTED)]
        if self.prune:
            changes += [Change("deleted", path, 0) for path in extra]
            extra = []
        return _Plan(held, files, tuple(changes), tuple(extra), tuple(retained))

    def _propose(self, plan: _Plan) -> Published:
        if plan.held is None:
            raise HubNotFoundError(
                f"there is no {self.repository} to propose a change to, or it is hidden from this token; publish it "
                "once without a pull request"
            )
        for proposal in self.hub.open_proposals(self.repository, TITLE.format(label=self.folder.label))[:1]:
            # what the open pull request lacks to propose what we would now
            held = self.hub.look(self.repository, proposal.revision) or plan.held
            changes = [
                Change("changed" if path in held.hashes else "new", path, client.content_size(plan.files[path]))
                for path in client.differing(plan.files, held)
            ]
            gone = {change.path for change in plan.changes if change.kind == "deleted"} & set(held.hashes)
            gone |= {path for path in held.hashes if path not in {**plan.files, **plan.held.hashes}}
            changes += [Change("deleted", path, 0) for path in sorted(gone)]
            proposed = plan._replace(held=held, changes=tuple(changes))
            url = self._commit(proposed, onto=proposal) if proposed.changes else proposal.url
            return self._outcome("proposed", proposed, url)
        return self._outcome("proposed", plan, self._commit(plan, proposal=True))

    def _commit(self, plan: _Plan, *, proposal: bool = False, onto: client.Proposal | None = None) -> str:
        sent = [change.path for change in plan.changes if change.kind != "deleted"]
        done = self.hub.commit(
            self.repository,
            {path: plan.files[path] for path in sent},
            title=TITLE.format(label=self.folder.label),
            parent=plan.held.commit if plan.held else None,
            deleted=[change.path for change in plan.changes if change.kind == "deleted"],
            proposal=proposal,
            onto=onto,
        )
        return done.url
