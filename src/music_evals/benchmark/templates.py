"""HTML by jinja2 templates: everything is escaped, and a name that a template misses is an error."""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Section", "render", "static"]

_HOUSE = "music_evals.benchmark"


class Section(NamedTuple):
    """A part of a report under a heading of its own, which is open at first where the page has room for it."""

    title: str
    height_px: int
    """About, on a wide screen."""
    html: str


@functools.cache
def _environment(package: str) -> Environment:
    """Templates of one package, those in its folder ``templates``, and the ones that all benchmarks share."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, _HOUSE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(package: str, template: str, **values: Any) -> str:
    """Fill in a template of a package, e.g. ``render("music_evals.ui", "bars.html", rows=rows)``.

    What is HTML already is handed over as `markupsafe.Markup`; all else is escaped.
    """
    return _environment(package).get_template(template).render(**values)


@functools.cache
def static(name: str) -> str:
    """Return a file of style or script that reports hold, e.g. ``player.js``."""
    return resources.files(_HOUSE).joinpath("static", name).read_text(encoding="utf-8")
