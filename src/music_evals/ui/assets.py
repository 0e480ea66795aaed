"""Scripts, styles and HTML of pages, which lie as files in `static` and `templates`; each is read once."""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import TYPE_CHECKING, Any

from music_evals.benchmark.formats import render

if TYPE_CHECKING:
    from markupsafe import Markup

SHARED = dict.fromkeys(("player.js", "ab_player.js", "ab_player.css"), "music_evals.benchmark")
"""Files that reports and pages share -> the package that holds them."""


@functools.cache
def _text(file_name: str) -> str:
    package = importlib.resources.files(SHARED.get(file_name, "music_evals.ui"))
    return package.joinpath("static", file_name).read_text(encoding="utf-8")


def style(*names: str) -> str:
    """Return styles one after the other, ``style("rolls")`` being that of `static/rolls.css`."""
    return "\n".join(_text(f"{name}.css") for name in names)


def script(*names: str, start: str = "", **settings: Any) -> str:
    """Return scripts one after the other, for the `js_on_load` of a `gr.HTML`."""
    # Each adds its functions to the one name ``musicEvals``; `start` is the one of them that takes the component, with
    # settings that it gets as JSON.
    parts = [_text(f"{name}.js") for name in names]
    if start:
        parts.append(f"musicEvals.{start}.start({{ element, props, watch, trigger }}, {json.dumps(settings)});")
    return "\n".join(parts)


def html(template: str, **values: Any) -> Markup:
    """Fill in a template of `templates`; what is no `Markup` itself is escaped."""
    from markupsafe import Markup

    return Markup(render("music_evals.ui", template, **values))  # noqa: S704  (escaped by the template)
