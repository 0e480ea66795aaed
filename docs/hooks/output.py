"""The last step of a page: formulas become MathML, and nothing is loaded from elsewhere."""

from __future__ import annotations

import html
import logging
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
ELSEWHERE = re.compile(
    r'<(?:script|img|iframe|source|audio|video|link (?!rel="(?:canonical|next|prev)"))\b'
    r'[^>]*\b(?:src|href)="(?:https?:)?//[^>]*>'
)


def on_startup(**_: Any) -> None:
    """Let the search cut Chinese words without telling of it."""
    logging.getLogger("jieba").setLevel(logging.WARNING)


def on_page_content(content: str, **_: Any) -> str:
    """Turn the formulas of a page into MathML, which browsers draw by themselves."""

    def drawn(found: re.Match[str]) -> str:
        display = "inline" if found[2] == "(" else "block"
        return convert(html.unescape(found[3]), display=display)

    return FORMULA.sub(drawn, content)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would load a file from another place."""
    if found := ELSEWHERE.search(output):
        raise PluginError(f"{page.file.src_uri} loads a file from elsewhere: {found[0]}")
    return output
