"""A study in a private data set on the Hub: for servers whose disk goes with them, as that of a Space.

The data set holds the folder of the study without its key. What is sent is committed there before it is acknowledged.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from music_evals.errors import InvalidInputError
from music_evals.hub.client import Hub, Repository

__all__ = ["HubMirror"]

SUBMISSIONS = "submissions"
"""Folder of the data set, as in the folder of a study."""
_PATTERNS = ("study.json", "page/**", f"{SUBMISSIONS}/*")


class HubMirror:
    """The data set of one study.

    Parameters
    ----------
    name
        ``owner/name`` of the data set.
    token
        With the right to write to it; by default that of the environment.
    """

    def __init__(self, name: str, *, token: str | None = None) -> None:
        self.repository = Repository("dataset", name)
        self._hub = Hub(token=token)
        self._lock = threading.Lock()

    def fetch(self, folder: str | os.PathLike[str]) -> Path:
        """Copy the study and what was sent so far to a folder, made where it is missing, and return it.

        Raises
        ------
        InvalidInputError
            The data set is not private: what participants send would be seen by everybody.
        HubError
            The Hub does not answer, or has no such data set for this token.
        """
        from huggingface_hub import snapshot_download

        with self._hub.asking(f"reading {self.repository}"):
            if not self._hub.api.repo_info(self.repository.id, repo_type="dataset").private:
                raise InvalidInputError(f"{self.repository} is public; make it private, then start again")
            snapshot_download(
                self.repository.id, repo_type="dataset", local_dir=Path(folder), allow_patterns=list(_PATTERNS),
                token=self._hub.token,
            )  # fmt: skip
        return Path(folder)

    def put(self, name: str, content: bytes) -> None:
        """Commit one file of the submissions; once it returns, the Hub has it. `HubError`: nothing was committed."""
        # one at a time: the Hub refuses commits that come at the same moment
        with self._lock:
            self._hub.commit(self.repository, {f"{SUBMISSIONS}/{name}": content}, title="A submission", parent=None)

    def remove(self, names: Sequence[str]) -> None:
        """Remove files of the submissions in one commit; raises as `put`."""
        with self._lock:
            self._hub.commit(
                self.repository, {}, title="A participant withdrew", parent=None,
                deleted=[f"{SUBMISSIONS}/{name}" for name in names],
            )  # fmt: skip
