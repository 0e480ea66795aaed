"""Listening tests: made of sounds, held in the browser, analysed, and beside what metrics say."""

import importlib
from typing import Any

from music_evals.deprecation import warn_renamed

_MOVED = {
    *("CHECK", "FACETS", "KIND", "LQ1", "SCALES", "TYPES", "ListeningSettings", "Question", "check_pairs_of_test"),
    *("named_questions", "page_settings", "played_systems", "style_questions"),
}  # fmt: skip
"""What the module of this name held in the last release; it is in `settings` now."""


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_renamed(f"{__name__}.{name}", f"{__name__}.settings.{name}")
    return getattr(importlib.import_module(f"{__name__}.settings"), name)
