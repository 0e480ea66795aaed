"""A folder as a data set on the Hub: one commit, after which the data set holds what the folder holds."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from music_evals.errors import HubForeignError, InvalidInputError
from music_evals.hub.client import Hub, Repository, differing

__all__ = ["SentFolder", "send_folder"]

_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+")
_OF_THE_HUB: Final = ".gitattributes"


class SentFolder(NamedTuple):
    """What was sent.

    Attributes
    ----------
    url
        Of the commit; of the data set where nothing had changed.
    changed, deleted
        Files that were sent, and files that went.
    """

    url: str
    changed: int
    deleted: int


def send_folder(
    folder: str | os.PathLike[str],
    name: str,
    *,
    title: str,
    public: bool = False,
    adopt: bool = False,
    hub: Hub | None = None,
) -> SentFolder:
    """Send the files of a folder, in one commit; what the folder does not hold any more goes.

    Earlier commits stay in the history of the data set.

    Parameters
    ----------
    folder
        With at least one file.
    name
        ``owner/name`` of the data set. It is made if it is missing; one that is there stays as public as it is.
    title
        Of the commit. A data set is known as ours by an earlier one that differs in its numbers alone.
    public
        A data set that is made is public; by default it is private.
    adopt
        Replace a data set that is not ours.
    hub
        Where; by default that of the environment.

    Raises
    ------
    InvalidInputError
        A name of another form.
    HubForeignError
        A data set of that name is not ours; nothing was sent.
    HubError
        No token, no rights, no connection; nothing was sent.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"a data set is called owner/name, got {name!r}")
    hub, repository = hub or Hub(), Repository("dataset", name)
    files = {path.relative_to(folder).as_posix(): path for path in Path(folder).rglob("*") if path.is_file()}
    hub.check_rights(name.split("/", maxsplit=1)[0], writes=True)
    held = hub.look(repository)
    if held is None:
        hub.make(repository, private=not public, sdk=None)
        held = hub.look(repository)
    elif not adopt and not set(held.hashes) <= {_OF_THE_HUB, "README.md"}:
        ours = re.compile(re.sub(r"\d+", r"\\d+", re.escape(title)))
        if not any(ours.fullmatch(earlier) for earlier in hub.commit_titles(repository, held)):
            raise HubForeignError(
                f"nothing was sent: {repository} holds {len(held.hashes)} files that were not sent from here; take "
                "another name, or adopt it"
            )
    changed = differing(files, held)
    deleted = sorted(set(held.hashes if held else ()) - {*files, _OF_THE_HUB})
    if not changed and not deleted:
        return SentFolder(repository.url(hub.api.endpoint), 0, 0)
    parent = held.commit if held else None
    sent = hub.commit(repository, {path: files[path] for path in changed}, title=title, parent=parent, deleted=deleted)
    return SentFolder(sent.url, len(changed), len(deleted))
