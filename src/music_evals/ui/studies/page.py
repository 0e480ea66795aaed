"""The page of a study: one HTML file, one script and one style, which load nothing from elsewhere."""

from __future__ import annotations

from music_evals.errors import InvalidInputError
from music_evals.ui.assets import html, script, style

__all__ = ["study_page"]

_SCRIPTS = {
    "editing": (
        "player", "piano_roll", "note_edits", "edit_log", "note_roll", "study_page", "note_editor", "editing_test",
    ),
    "listening": ("ab_player", "study_page", "listening_test"),
}  # fmt: skip
_STYLES = {"editing": ("study_page", "piano_roll"), "listening": ("study_page", "listening_test")}


def study_page(kind: str, title: str) -> dict[str, bytes]:
    """Return name -> content of the files of a page, for the `page` of `studies.folders.write_study_folder`.

    The title is that of the browser's window. Raises `InvalidInputError` where there is no page for this kind.
    """
    if kind not in _SCRIPTS:
        raise InvalidInputError(f"there are pages for {', '.join(_SCRIPTS)}, not for {kind!r}")
    return {
        "index.html": html("study_page.html", title=title).encode(),
        "study.js": script(*_SCRIPTS[kind]).encode(),
        "study.css": style(*_STYLES[kind]).encode(),
    }
