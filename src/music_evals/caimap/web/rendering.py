"""HTML by the templates of the platform: everything is escaped, and a name that a template misses is an error."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from music_evals.caimap.web.wording import amount_words, reason_words
from music_evals.caimap.web.words import translator
from music_evals.errors import importing

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["STATIC", "render"]

STATIC: Final = Path(__file__).parents[1] / "static"
"""Folder of the style, the scripts and the pictures of the pages."""

_TEMPLATES: Final = Path(__file__).parents[1] / "templates"


@functools.cache
def _environment() -> Environment:
    with importing("caimap", "the annotation platform"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


def render(template: str, language: str, **values: Any) -> str:
    """Fill in a template; ``t`` gives the text of a name, ``reason`` and ``amount`` those of an entry of the ledger.

    Raises
    ------
    UnknownNameError
        No such language.
    MissingBackendError
        The extra ``caimap`` is not installed.

    """
    words = {"t": translator(language), "reason": functools.partial(reason_words, language=language)}
    words["amount"] = functools.partial(amount_words, language=language)
    return _environment().get_template(template).render(**words, language=language, **values)
