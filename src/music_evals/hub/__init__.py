"""From records to model cards and the Hub.

`publish` makes a repository of every window, `push_results` writes scores into the card of a model on the Hub; `cards`
fills a card in a folder, without the Hub.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_evals.hub.cards import fill_card
    from music_evals.hub.publishing import Published, publish
    from music_evals.hub.pushing import Pushed, push_results
    from music_evals.hub.windows import Window, all_windows, find_windows

_HOME = {
    "Published": "publishing",
    "Pushed": "pushing",
    "Window": "windows",
    "all_windows": "windows",
    "fill_card": "cards",
    "find_windows": "windows",
    "publish": "publishing",
    "push_results": "pushing",
}

__all__ = [
    "Published",
    "Pushed",
    "Window",
    "all_windows",
    "fill_card",
    "find_windows",
    "publish",
    "push_results",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
