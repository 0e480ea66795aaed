"""HTML by the templates of the platform: everything is escaped, and a name that a template misses is an error."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from music_evals.caimap.web.words import amount_words, reason_words, translator

STATIC: Final = Path(__file__).parents[1] / "static"
"""Folder of the style, the scripts and the pictures of the pages."""


@functools.cache
def environment() -> Environment:
    """Return the environment of the templates."""
    loader = FileSystemLoader(Path(__file__).parents[1] / "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def words_of(language: str) -> dict[str, Any]:
    """Return what templates speak by: ``t`` gives the text of a name, ``reason`` and ``amount`` words of the ledger."""
    reason = functools.partial(reason_words, language=language)
    amount = functools.partial(amount_words, language=language)
    return {"language": language, "t": translator(language), "reason": reason, "amount": amount}


def render(template: str, language: str, **values: Any) -> str:
    """Fill in a template in a language, ``"zh"`` or ``"en"``."""
    return environment().get_template(template).render(**words_of(language), **values)
