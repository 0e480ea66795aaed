"""Where the pages take models and data from: folders beside them, or repositories of an owner on the Hub."""

from __future__ import annotations

import os

from music_evals.repositories import ORGANISATION


def hub_owner(*, here: bool) -> str:
    """Return whose repositories on the Hub a page takes; empty where it takes folders.

    It is the organisation that the environment variable ``MUSIC_EVALS_ORG`` names; else, where nothing is `here`, in
    folders beside the page, the owner of the Space that serves it.
    """
    named = os.environ.get(ORGANISATION, "").strip()
    return named or ("" if here else os.environ.get("SPACE_AUTHOR_NAME", "").strip())
