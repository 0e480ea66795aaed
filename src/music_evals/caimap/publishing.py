"""The export of a study on the Hub: private unless it is asked for otherwise, and always what the study holds now."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from music_evals.caimap.exporting import export_songs
from music_evals.caimap.values import FinishedSong
from music_evals.hub.client import Hub
from music_evals.hub.folders import SentFolder, send_folder

__all__ = ["Publication", "publish_songs"]

TITLE: Final = "CaiMAP: {count} songs"


class Publication(NamedTuple):
    """What was sent, and how many songs the data set holds now."""

    sent: SentFolder
    songs: int


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
    name, public, adopt, hub
        As of `hub.folders.send_folder`.

    Raises
    ------
    NoDataError, InvalidInputError, HubForeignError, HubError
        As of `exporting.export_songs` and `hub.folders.send_folder`.

    """
    with tempfile.TemporaryDirectory() as folder:
        exported = export_songs(finished, Path(folder) / "export", key=key, title=title)
        commit_title = TITLE.format(count=exported.songs)
        sent = send_folder(exported.folder, name, title=commit_title, public=public, adopt=adopt, hub=hub)
    return Publication(sent, exported.songs)
