"""The export of a study on the Hub: private unless it is asked for otherwise, and always what the study holds now."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from music_evals.caimap.exporting import export_songs
from music_evals.caimap.values import FinishedSong
from music_evals.errors import HubForeignError, InvalidInputError
from music_evals.hub.client import Held, Hub, Repository, differing

__all__ = ["Publication", "publish_songs"]

TITLE: Final = "CaiMAP: {count} songs"
_OURS: Final = re.compile(TITLE.format(count=r"\d+"))
_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+")
_OF_THE_HUB: Final = ".gitattributes"


class Publication(NamedTuple):
    """What was sent.

    Attributes
    ----------
    url
        Of the commit; of the data set where nothing had changed.
    songs
        How many the data set holds now.
    changed, deleted
        Files that were sent, and files that went.

    """

    url: str
    songs: int
    changed: int
    deleted: int


def publish_songs(
    finished: Sequence[FinishedSong],
    name: str,
    *,
    key: bytes,
    title: str = "",
    public: bool = False,
    adopt: bool = False,
    hub: Hub | None = None,
) -> Publication:
    """Put the finished songs of a study on the Hub, in one commit; what they do not hold any more goes.

    Earlier commits stay in the history of the data set, and with them what somebody handed in who withdrew since.

    Parameters
    ----------
    finished, key, title
        As of `exporting.export_songs`.
    name
        ``owner/name`` of the data set. It is made if it is missing; one that is there stays as public as it is.
    public
        A data set that is made is public; by default it is private.
    adopt
        Replace a data set that does not come from a study.
    hub
        Where; by default that of the environment.

    Raises
    ------
    NoDataError, InvalidInputError
        As of `exporting.export_songs`; or a name of another form.
    HubForeignError
        A data set of that name does not come from a study; nothing was sent.
    HubError
        No token, no rights, no connection; nothing was sent.

    """
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"a data set is called owner/name, got {name!r}")
    hub, repository = hub or Hub(), Repository("dataset", name)
    with tempfile.TemporaryDirectory() as folder:
        made = export_songs(finished, Path(folder) / "export", key=key, title=title)
        files = {path.relative_to(made.folder).as_posix(): path for path in made.folder.rglob("*") if path.is_file()}
        hub.check_rights(name.split("/", maxsplit=1)[0], writes=True)
        held = hub.look(repository)
        if held is None:
            hub.make(repository, private=not public, sdk=None)
            held = hub.look(repository)
        elif not adopt:
            _check_ours(hub, repository, held)
        changed = differing(files, held)
        deleted = sorted(set(held.hashes if held else ()) - {*files, _OF_THE_HUB})
        url = repository.url(hub.api.endpoint)
        if changed or deleted:
            sent = hub.commit(
                repository,
                {path: files[path] for path in changed},
                title=TITLE.format(count=made.songs),
                parent=held.commit if held else None,
                deleted=deleted,
            )
            url = sent.url
    return Publication(url, made.songs, len(changed), len(deleted))


def _check_ours(hub: Hub, repository: Repository, held: Held) -> None:
    new = set(held.hashes) <= {_OF_THE_HUB, "README.md"}
    if not new and not any(_OURS.fullmatch(title) for title in hub.commit_titles(repository, held)):
        raise HubForeignError(
            f"nothing was sent: {repository} holds {len(held.hashes)} files and does not come from a study; take "
            "another name, or adopt it"
        )
